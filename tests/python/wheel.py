"""Builds the wheel as pip does and uses it from a folder of its own: `python wheel.py`. Fails where that takes the
sources' place, or links another LibTorch than the process has."""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

root = pathlib.Path(__file__).resolve().parents[2]
use = """
import sys, torch
module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU())
x = torch.randn(4, 32)
with torch.no_grad():
    y = torch.compile(module, backend="ttc")(x)
    assert torch.allclose(y, module(x), atol=0.05)
import ttc
assert ttc.__file__.startswith(sys.argv[1]), ttc.__file__
ttc.register_ops()
assert torch.ops.tt.linear
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu" in line}
assert len(mapped) == 1, mapped
"""


def on_request(place: pathlib.Path, wheel: pathlib.Path, environment: dict) -> None:
    """The extra `ttnn` in an environment of its own, over the packages of this one: there with it, not there without."""
    # Without packages of its own, whose versions would hide those of this one.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    python = place / "venv/bin/python"
    (site,) = (place / "venv").glob("lib/python*/site-packages")
    (site / "these.pth").write_text("\n".join(one for one in sys.path if one.endswith("-packages")) + "\n")
    environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    for wanted, there in ((str(wheel), False), (f"{wheel}[ttnn]", True)):
        command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-build-isolation", "--quiet", wanted]
        subprocess.run(command, check=True, env=environment)
        named = "import importlib.util as u; assert (u.find_spec('ttnn') is not None) is " + str(there)
        named += "; import ttnn, ttnn_emulated; assert ttnn is ttnn_emulated" if there else ""
        subprocess.run([python, "-c", named], check=True, cwd=place, env=environment)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", root, "-w", place, "--no-deps", "--no-build-isolation", "--quiet"], check=True
        )
        (wheel,) = place.glob("ttc-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        assert any(name.endswith("scripts/ttc") for name in names), names
        package = root / "runtime/python"
        sources = {str(path.relative_to(package)) for path in package.glob("*/*") if path.suffix in (".py", ".pyi", ".txt", ".typed")}
        sources = {one for one in sources if not one.startswith(("top_level/", "build_backend/"))}
        assert sources <= set(names), sources - set(names)
        installed = place / "site"
        subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", installed, wheel], check=True)
        environment = {name: value for name, value in os.environ.items() if name != "TTC_BUILD"}
        environment["PYTHONPATH"] = str(installed)
        subprocess.run([sys.executable, "-c", use, str(installed)], check=True, cwd=place, env=environment)
        on_request(place, wheel, environment)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
