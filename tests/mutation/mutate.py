"""Changes one kernel, rule or guard at a time and reports the share of changes that some test notices.

Usage: mutate.py [--count N] [--seed S] [--jobs J] [--folder DIR]... [--list] [--work DIR] [--report FILE.json]

The places are found in the sources (kernels, op records, passes, rules, matchers, guards, dispatch), N of them spread evenly
over the files, the same ones for the same tree and seed. Each change is one line, kept as a patch. The tree is copied to
DIR (build/mutation), built once without optimisation, and per change rebuilt and tested with the programs nearest to the
changed file until one fails. A change that does not compile is passed over for the next one of its file. Ends with a line
"N passed, N failed": noticed and survived; exit status 1 below --share (0.9).
"""

import argparse
import difflib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Which programs look at a folder, nearest first. The ones behind it are tried where those notice nothing.
NEAREST = [
    ("runtime/device", ["device_numerics_test", "device_memory_test", "sfpu_test", "replay_test", "exact_composite_test", "op_tests", "hazards_test"]),
    ("runtime/ops", ["op_tests", "hazards_test", "replay_test", "exact_composite_test", "models_test"]),
    ("runtime/dispatch", ["dispatch_test", "dispatch_config_test", "dispatchers_test"]),
    ("runtime/executor", ["executor_test", "control_test", "models_test", "hazards_test"]),
    ("src/match", ["unit_tests", "pass_tests", "models_test"]),
    ("src/pass", ["pass_tests", "session_test", "models_test"]),
    ("src/ir", ["unit_tests", "formats_test", "pass_tests"]),
    ("passes", ["pass_tests", "hazards_test", "models_test", "control_test"]),
]

# What a change is: a pattern in a line of code, and what stands there instead. One patch changes one occurrence.
OPERATORS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "),
    (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " + "), (r" % ", " / "),
    (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bif \((?!const|auto|!?constexpr)", "if (false && "),
    (r"\b0\.5F?\b", "0.25F"), (r"\breturn 1;", "return 2;"), (r"\breturn 0;", "return 1;"),
    (r"\+= ", "-= "),
]


def code_lines(path):
    """The lines that hold code a change could mean something in: no declarations, checks of ours, texts of errors."""
    inside_raw = False
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        text = line.strip()
        raw_opens, raw_closes = 'R"(' in line, ')"' in line
        if not inside_raw and not raw_opens and text and not text.startswith(("//", "#", "namespace", "using", "template", "static_assert", "TTC_CHECK", "throw ")):
            yield number, line.split("//")[0]
        inside_raw = (inside_raw or raw_opens) and not raw_closes


def places(folders):
    """{file: [(line, column, end, replacement)]} in the sources below these folders."""
    found = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.cpp")):
            at = []
            for number, line in code_lines(path):
                for pattern, new in OPERATORS:
                    for match in re.finditer(pattern, line):
                        if line[: match.start()].count('"') % 2 == 0 and "cases" not in line:
                            at.append((number, match.start(), match.end(), new))
            if at:
                found[path.relative_to(ROOT)] = at
    return found


def choose(found, count, seed):
    """Files in turn, each with its places shuffled: (file, place) without end of candidates for files that have some."""
    pick = random.Random(seed)
    queues = {path: pick.sample(at, len(at)) for path, at in sorted(found.items())}
    order = pick.sample(sorted(queues), len(queues))
    return [(path, queues[path]) for path in (order * (1 + count // max(1, len(order))))[:count]]


def changed(text, place):
    number, start, end, new = place
    lines = text.splitlines(keepends=True)
    lines[number] = lines[number][:start] + new + lines[number][end:]
    return "".join(lines)


def patch(path, before, after):
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}", n=1))


class Bench:
    """A copy of the tree with a build folder of its own."""

    def __init__(self, work, jobs):
        self.tree, self.build, self.jobs = work / "tree", work / "tree" / "build", jobs
        work.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT, self.tree, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns("build", "build-*", ".git", ".venv", "mutation-work"))
        if not (self.build / "build.ninja").exists():
            self.run(["meson", "setup", str(self.build), str(self.tree), "-Doptimization=0", "-Ddebug=false"], check=True)

    def run(self, command, timeout=None, check=False):
        return subprocess.run(command, cwd=self.tree, timeout=timeout, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def make(self, targets):
        return self.run(["ninja", "-C", str(self.build), f"-j{self.jobs}", *targets]) == 0

    def fails(self, program, limit):
        try:
            return self.run([str(self.build / program), "-a"], timeout=limit) != 0
        except subprocess.TimeoutExpired:
            return True


def programs_for(path):
    for folder, programs in NEAREST:
        if str(path).startswith(folder + "/"):
            return programs
    return []


def try_change(bench, path, queue, limits):
    """(patch, name of the program that noticed or None) of the next change of this file that compiles; None without one."""
    source = bench.tree / path
    before = source.read_text("utf-8")
    while queue:
        after = changed(before, queue.pop())
        source.write_text(after, "utf-8")
        try:
            if not bench.make(programs_for(path)):
                continue
            noticed = next((p for p in programs_for(path) if bench.fails(p, limits[p])), None)
            return patch(path, before, after), noticed
        finally:
            source.write_text(before, "utf-8")
    return None


def time_limits(bench):
    """Ten times what each program takes unchanged; every one has to pass then."""
    limits = {}
    for program in sorted({p for _, programs in NEAREST for p in programs}):
        start = time.monotonic()
        if bench.fails(program, None):
            sys.exit(f"{program} fails on the unchanged tree")
        limits[program] = 30 + 10 * (time.monotonic() - start)
    return limits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", action="append", help="only sources below this folder; may be given again")
    parser.add_argument("--share", type=float, default=0.9)
    parser.add_argument("--list", action="store_true", help="print the patches, build nothing")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--report", type=pathlib.Path)
    args = parser.parse_args()
    chosen = choose(places(args.folder or [folder for folder, _ in NEAREST]), args.count, args.seed)
    if args.list:
        for path, queue in chosen:
            if queue:
                before = (ROOT / path).read_text("utf-8")
                print(patch(path, before, changed(before, queue.pop())), end="")
        return 0
    bench = Bench(args.work.resolve(), args.jobs)
    if not bench.make(sorted({p for _, programs in NEAREST for p in programs})):
        sys.exit("the unchanged tree does not build")
    limits = time_limits(bench)
    results = []
    for path, queue in chosen:
        outcome = try_change(bench, path, queue, limits)
        if outcome is not None:
            results.append({"file": str(path), "patch": outcome[0], "noticed_by": outcome[1]})
            print(f"{len(results)} {path}: {outcome[1] or 'SURVIVED'}", flush=True)
    survivors = [r for r in results if r["noticed_by"] is None]
    for survivor in survivors:
        print(survivor["patch"], end="")
    if args.report:
        args.report.write_text(json.dumps(results, indent=1), "utf-8")
    noticed = len(results) - len(survivors)
    print(f"{noticed} passed, {len(survivors)} failed")
    return 0 if results and noticed >= args.share * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
