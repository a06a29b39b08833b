"""Every what-if of ttc profile that has flags is followed with them: it takes what was promised.

Usage: advice.py TTC MODEL...
"""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

# A product that the way of its weight bounds, whose bytes nobody needs.
BOUND_BY_WEIGHT = """graph main(%x: bf16[32, 4096] user, $w.weight: bf16[8192, 4096] parameter "w.weight") {
  %1: bf16[32, 8192] = aten.linear.default(%x, $w.weight)  @w : Linear
  return %1
}
"""


def profile(ttc, model, *flags):
    ran = subprocess.run([ttc, "profile", model, *flags, "--json", "-q"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def main(ttc, models):
    failed = followed = advised = 0
    for model in models:
        told = profile(ttc, model, "--what-if")
        now = told["total"]["us"]
        for way in told["what_if"]:
            advised += way["advice"]
            if way["advice"] and not (way["flags"] and way["saves_us"] > 0):
                failed += 1
                print(f"{model}: {way['what']} is advice that saves nothing, or nobody can follow")
            if not way["flags"]:
                continue
            followed += 1
            made = profile(ttc, model, *shlex.split(way["flags"]))
            saved = now - made["total"]["us"]
            if abs(saved - way["saves_us"]) > 1e-6 * now or made["memory"]["dram"]["peak"] != way["dram_peak"]:
                failed += 1
                print(f"{model}: {way['flags']} was to save {way['saves_us']} us and saves {saved}")
    print(f"{followed} followed, {advised} of them advice, {failed} failed")
    return 1 if failed or followed < 10 or advised == 0 else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        bound = pathlib.Path(folder) / "bound.ir"
        bound.write_text(BOUND_BY_WEIGHT)
        sys.exit(main(sys.argv[1], [str(bound), *sys.argv[2:]]))
