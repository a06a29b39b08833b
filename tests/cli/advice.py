"""Every what-if of ttc profile that has flags is followed with them: it takes what was promised. The text says the same.

Usage: advice.py TTC MODEL...
"""

import json
import pathlib
import re
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

# The same beside one that the matrix unit bounds, in more phases than it needs.
BOUND_BY_BOTH = """graph main(%x: bf16[32, 4096] user, %y: bf16[512, 4096] user, $w.weight: bf16[8192, 4096] parameter "w.weight",
    $v.weight: bf16[8192, 4096] parameter "v.weight") {
  %1: bf16[32, 8192] = aten.linear.default(%x, $w.weight)  @w : Linear
  %2: bf16[512, 8192] = aten.linear.default(%y, $v.weight)  @v : Linear
  return %1, %2
}
"""


def profile(ttc, model, *flags):
    ran = subprocess.run([ttc, "profile", model, *flags, "--json", "-q"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def told_in_text(ttc, model, *flags):
    """The lines of advice: what, us, flags."""
    ran = subprocess.run([ttc, "profile", model, *flags, "--what-if", "--top", "1", "-q"], capture_output=True, text=True, check=True)
    return [(what, float(us), rest) for what, us, rest in
            re.findall(r"^advice: (.*) save ([0-9.e+]+) us \([0-9.]+%\): (.*)$", ran.stdout, re.MULTILINE)]


def follow(ttc, model, flags, count):
    told = profile(ttc, model, *flags, "--what-if")
    now = told["total"]["us"]
    advice = sorted((way for way in told["what_if"] if way["advice"]), key=lambda way: way["us"])
    said = told_in_text(ttc, model, *flags)
    if [(way["what"], way["flags"]) for way in advice] != [(what, rest) for what, _, rest in said] or \
            any(abs(way["saves_us"] - us) > 1e-3 * way["saves_us"] for way, (_, us, _) in zip(advice, said)):
        count["failed"] += 1
        print(f"{model}: the text's advice is not the JSON's: {said}")
    for way in told["what_if"]:
        count["advised"] += way["advice"]
        if way["advice"] and not (way["flags"] and way["saves_us"] > 0):
            count["failed"] += 1
            print(f"{model}: {way['what']} is advice that saves nothing, or nobody can follow")
        if not way["flags"]:
            continue
        count["followed"] += 1
        other = shlex.split(way["flags"])
        kept = flags[2:] if other[0] == "--arch" and flags[:1] == ["--arch"] else flags  # one board
        made = profile(ttc, model, *kept, *other)
        saved = now - made["total"]["us"]
        if abs(saved - way["saves_us"]) > 1e-6 * now or made["memory"]["dram"]["peak"] != way["dram_peak"]:
            count["failed"] += 1
            print(f"{model}: {way['flags']} was to save {way['saves_us']} us and saves {saved}")
    return told["what_if"]


def main(ttc, bound, models):
    count = {"failed": 0, "followed": 0, "advised": 0}
    for model in [bound, *models]:
        follow(ttc, model, [], count)
    # All advice at once saves more than each.
    both = pathlib.Path(bound).parent / "both.ir"
    both.write_text(BOUND_BY_BOTH)
    ways = follow(ttc, str(both), ["--fidelity", "HiFi4"], count)
    advice = [way for way in ways if way["advice"]]
    if ways[-1]["flags"].count("--") < 2 or ways[-1]["saves_us"] <= max(way["saves_us"] for way in advice[:-1]):
        count["failed"] += 1
        print(f"both: the advice is not tried at once: {advice}")
    # What the user chose himself stays; on other boards; of a file that is rewritten already.
    follow(ttc, bound, ["--arch", "p150", "--weight-dtype", "bfloat8_b", "--fidelity", "HiFi4"], count)
    rewritten = str(pathlib.Path(bound).parent / "rewritten.pt2")
    subprocess.run([ttc, "compile", models[0], "-o", rewritten, "-q"], capture_output=True, check=True)
    follow(ttc, rewritten, [], count)
    print(f"{count['followed']} followed, {count['advised']} of them advice, {count['failed']} failed")
    return 1 if count["failed"] or count["followed"] < 40 or count["advised"] < 6 else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        bound = pathlib.Path(folder) / "bound.ir"
        bound.write_text(BOUND_BY_WEIGHT)
        sys.exit(main(sys.argv[1], str(bound), sys.argv[2:]))
