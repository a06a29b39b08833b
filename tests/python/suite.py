"""Tests of the Python package, in one process: `python suite.py BUILD [CASE...]`. The package is taken from the build
folder and the sources, its entry point from pyproject.toml. Without cases, those that are quick."""

import importlib.metadata
import os
import pathlib
import sys
import tempfile
import time
import traceback

root = pathlib.Path(__file__).resolve().parents[2]
folder = pathlib.Path(__file__).resolve().parent


def as_if_installed(build: str) -> None:
    """The sources on the path, and beside them metadata as an installed package has it."""
    os.environ["TTC_BUILD"] = build
    sys.path[:0] = [str(root / "runtime/python"), str(folder)]
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    place = tempfile.mkdtemp()
    info = pathlib.Path(place) / "ttc-0.dist-info"
    info.mkdir()
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]"] + [f"{name} = {target}" for name, target in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ttc\nVersion: 0\n")
    sys.path.insert(0, place)
    assert any(one.name == "ttc" for one in importlib.metadata.entry_points(group="torch_dynamo_backends"))


def main() -> int:
    as_if_installed(os.path.abspath(sys.argv[1]))
    wanted = [one for one in sys.argv[2:] if not one.startswith("-")]
    everything = "--all" in sys.argv
    import torch  # noqa: F401  so that the import's time is measured beyond it

    passed = failed = 0
    start = time.process_time()
    import ttc  # noqa: F401

    import_seconds = time.process_time() - start
    for path in sorted(folder.glob("test_*.py")):
        module = __import__(path.stem)
        module.import_seconds = import_seconds
        for name, case in vars(module).copy().items():
            if not name.startswith("test_") or (wanted and f"{path.stem}.{name}" not in wanted and path.stem not in wanted):
                continue
            if getattr(case, "long", False) and not everything and not wanted:
                continue
            try:
                case()
                passed += 1
            except Exception:
                failed += 1
                print(f"FAILED {path.stem}.{name}")
                traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
