"""What tests of other people's viewers share: where their packages are, and starting ttc.

`tools/setup.sh` puts tt-perf-report into .venv-viewers, `tools/setup.sh --viewers` all of them; TTC_VIEWERS names another
environment. Without the package a test is skipped and says so (exit code 77)."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
VIEWERS = pathlib.Path(os.environ.get("TTC_VIEWERS", ROOT / ".venv-viewers"))


def program(name, how):
    path = VIEWERS / "bin" / name
    if not path.exists():
        print(f"SKIP: {path} is not there; {how} installs it")
        sys.exit(77)
    return str(path)


def ttc(*args):
    done = subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"ttc {' '.join(map(str, args))}: exit code {done.returncode}: {done.stderr}"
    return json.loads(done.stdout) if "--json" in args else done.stdout
