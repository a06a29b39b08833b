"""Builds the wheel as pip does and uses it from a folder of its own: `python wheel.py`. Fails where that takes the
sources' place, or links another LibTorch than the process has."""

import os
import pathlib
import shutil
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
        sources = {str(path.relative_to(package)) for path in package.glob("*/*") if path.suffix in (".py", ".txt", ".typed")}
        sources = {one for one in sources if not one.startswith("top_level/")}
        assert sources <= set(names), sources - set(names)
        installed = place / "site"
        subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", installed, wheel], check=True)
        environment = {name: value for name, value in os.environ.items() if name != "TTC_BUILD"}
        environment["PYTHONPATH"] = str(installed)
        subprocess.run([sys.executable, "-c", use, str(installed)], check=True, cwd=place, env=environment)
        shutil.copytree(package / "top_level", place / "top_level")  # setuptools builds in its sources
        top = [place / "top_level", "--no-deps", "--no-build-isolation", "--quiet", "--target", installed]
        subprocess.run([sys.executable, "-m", "pip", "install", *top], check=True)
        named = "import ttnn, ttnn_emulated; assert ttnn is ttnn_emulated"
        subprocess.run([sys.executable, "-c", named], check=True, cwd=place, env=environment)
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
