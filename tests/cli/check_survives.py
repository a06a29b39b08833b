"""`ttc check --all` goes on behind a file that ends its process, runs out of memory or never returns, and reports it.

Usage: check_survives.py TTC PLUGIN MODELS
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ENDS = {
    "abort": "signal 6",
    "kill": "signal 9",
    "exit": "exit code 7",
    "memory": "bad_alloc",
    "loop": "time limit",
}


def rows(ttc, plugin, folder, end):
    limit = "3" if end == "loop" else "60"
    ran = subprocess.run(
        [ttc, "check", "--all", folder, "--plugin", plugin, "--time-limit", limit, "--json", "-q"],
        env=os.environ | {"TTX_END": end}, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 1, f"{end}: exit code {ran.returncode}\n{ran.stderr}"
    return json.loads(ran.stdout)["models"]


def main(ttc, plugin, models):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("custom_op.pt2", "custom_op.io.safetensors"):
            shutil.copy(pathlib.Path(models) / name, folder)
        shutil.copy(pathlib.Path(models) / "vit_small.pt2", pathlib.Path(folder) / "later.pt2")
        shutil.copy(pathlib.Path(models) / "vit_small.io.safetensors", pathlib.Path(folder) / "later.io.safetensors")
        for end, said in ENDS.items():
            died, later = rows(ttc, plugin, folder, end)
            assert died["model"] == "custom_op.pt2" and died["status"] == "failed", died
            assert said in died["detail"], f"{end}: {died['detail']}"
            assert later["status"] == "ok", later
    print(f"{len(ENDS)} passed, 0 failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
