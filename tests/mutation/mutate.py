"""Changes one kernel, rule or guard at a time and reports the share of changes that some test notices.

Usage: mutate.py [--count N] [--seed S] [--jobs J] [--folder DIR]... [--list] [--work DIR] [--report FILE.json] [--survivors]

The places are found in the sources (kernels, op records, passes, rules, matchers, guards, dispatch), N of them spread evenly
over the files; a file's places depend on that file and the seed alone. Each change is one line, kept as a patch. The tree is
copied to DIR (build/mutation), built once without optimisation, and per change rebuilt and tested with one program after the
other, nearest to the changed file first, until one fails. A change that does not compile is passed over for the next one of
its file. The report is written after each change; a run that finds one goes on where it ended, with --survivors it tries the
report's survivors (below --folder) again and nothing else. Ends with a line "N passed, N failed": noticed and survived; exit status 1 below
--share (0.9).
"""

import argparse
import difflib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Which programs look at a folder, nearest and quickest first.
MODELS = ["control_test", "hazards_test", "session_test", "symbiote_test", "cli_test", "models_test"]
NEAREST = {
    "runtime/device": ["device_numerics_test", "sfpu_test", "replay_test", "exact_composite_test", "op_tests", "device_memory_test", "executor_test", *MODELS],
    "runtime/ops": ["op_tests", "exact_composite_test", "replay_test", "executor_test", "dispatchers_test", "pass_tests", *MODELS],
    "runtime/dispatch": ["dispatch_test", "dispatch_config_test", "dispatchers_test", "executor_test", *MODELS],
    "runtime/executor": ["executor_test", "dispatchers_test", *MODELS],
    "src/match": ["pass_tests", "unit_tests", *MODELS],
    "src/pass": ["pass_tests", *MODELS],
    "src/ir": ["unit_tests", "pass_tests", "torch_tests", "formats_test", *MODELS],
    "passes": ["pass_tests", *MODELS],
}
PROGRAMS = sorted({program for programs in NEAREST.values() for program in programs})
# What a program runs besides itself.
BESIDES = {"cli_test": ["ttc"], "dispatchers_test": ["libdispatch_doubling.so", "libdispatch_half.so"]}

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
]  # fmt: skip

# Bytes: a device's memory is reserved, not used.
ADDRESSES = 48 << 30

# Lines that a change means nothing in: declarations, memory asked for ahead, checks for our own mistakes, texts of errors.
NO_CODE = re.compile(r"//|#|namespace|using |template|static_assert|assert|TTC_CHECK|throw |.*\breserve\(")
# Changes known to give the same program, each with its reason: FILE, the line, what replaces what.
EQUIVALENT = ROOT / "tests/mutation/equivalent.txt"


def code_lines(path):
    inside_raw = False
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        text = line.strip()
        raw_opens, raw_closes = 'R"(' in line, ')"' in line
        if not inside_raw and not raw_opens and text and not NO_CODE.match(text):
            yield number, line.split("//")[0]
        inside_raw = (inside_raw or raw_opens) and not raw_closes


def equivalents():
    """{(file, line's text, column in it, replacement)} of EQUIVALENT: "file: before => after" lines, reasons indented below."""
    known = set()
    for line in EQUIVALENT.read_text("utf-8").splitlines():
        if line and not line[0].isspace() and not line.startswith("#"):
            path, change = line.split(": ", 1)
            known.add((path, *change.split(" => ")))
    return known


def places(folders):
    """{file: [(line, column, end, replacement)]} in the sources below these folders, bodies of vector kernels included."""
    found, known = {}, equivalents()
    for folder in folders:
        for path in sorted(p for p in (ROOT / folder).rglob("*") if p.name.endswith((".cpp", "_body.h"))):
            name, at = path.relative_to(ROOT), []
            for number, line in code_lines(path):
                for pattern, new in OPERATORS:
                    for match in re.finditer(pattern, line):
                        after = line[: match.start()] + new + line[match.end() :]
                        in_text = line[: match.start()].count('"') % 2 == 1
                        if not in_text and "cases" not in line and (str(name), line.strip(), after.strip()) not in known:
                            at.append((number, match.start(), match.end(), new))
            if at:
                found[name] = at
    return found


def choose(found, count, seed):
    """Files in turn, each with its places shuffled: (file, places) without end of candidates for files that have some."""
    queues = {path: random.Random(f"{seed} {path}").sample(at, len(at)) for path, at in found.items()}
    order = sorted(queues, key=lambda path: random.Random(f"order {seed} {path}").random())
    return [(path, queues[path]) for path in (order * (1 + count // max(1, len(order))))[:count]]


def changed(text, place):
    number, start, end, new = place
    lines = text.splitlines(keepends=True)
    lines[number] = lines[number][:start] + new + lines[number][end:]
    return "".join(lines)


def patch(path, before, after):
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}", n=1))


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Bench:
    """A copy of the tree with a build folder of its own."""

    def __init__(self, work, jobs, skip=()):
        self.tree, self.build, self.jobs, self.limits = work / "tree", work / "tree" / "build", jobs, {}
        self.skip = set(skip)
        work.mkdir(parents=True, exist_ok=True)
        self.limits_file = work / "limits.json"
        if self.copy():
            self.limits_file.unlink(missing_ok=True)
        if not (self.build / "build.ninja").exists():
            self.run(["meson", "setup", str(self.build), str(self.tree), "-Doptimization=0", "-Ddebug=false"], check=True)

    def copy(self):
        """The tree as it is now, and whether that is another one; files that did not change keep their times, so that nothing
        is built again for them."""
        other = False
        for folder, names, files in os.walk(ROOT):
            at = pathlib.Path(folder).relative_to(ROOT)
            names[:] = [n for n in names if n not in (".git", ".venv") and not n.startswith("build")]
            (self.tree / at).mkdir(parents=True, exist_ok=True)
            for name in files:
                source, copy = pathlib.Path(folder, name), self.tree / at / name
                if not copy.exists() or source.read_bytes() != copy.read_bytes():
                    shutil.copyfile(source, copy)
                    shutil.copymode(source, copy)
                    other = True
        return other

    def run(self, command, seconds=None, check=False):
        """The exit status; `seconds` of processor time at most, and address space for devices and not much more."""

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

        return subprocess.run(command, cwd=self.tree, check=check, preexec_fn=limit if seconds else None, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode  # fmt: skip

    def make(self, targets):
        return self.run(["ninja", "-C", str(self.build), f"-j{self.jobs}", *targets]) == 0

    def fails(self, program):
        return self.run([str(self.build / program), "-a"], self.limits.get(program, 600)) != 0

    def measure(self):
        """Some times what each program takes unchanged; every one has to pass then. Once for a tree."""
        if self.limits_file.exists():
            self.limits = json.loads(self.limits_file.read_text("utf-8"))
            return
        for program in (p for p in PROGRAMS if p not in self.skip):
            start = processor_time()
            if self.fails(program):
                sys.exit(f"{program} fails on the unchanged tree")
            self.limits[program] = 10 + 3 * (processor_time() - start)
        self.limits_file.write_text(json.dumps(self.limits), "utf-8")

    def noticed_by(self, path):
        """The first program that fails; None where none does; "" where the tree does not compile."""
        folder = next(f for f in NEAREST if str(path).startswith(f + "/"))
        for program in (p for p in NEAREST[folder] if p not in self.skip):
            if not self.make([program, *BESIDES.get(program, [])]):
                return ""
            if self.fails(program):
                return program
        return None

    def attempt(self, path, after):
        source = self.tree / path
        before = source.read_text("utf-8")
        source.write_text(after, "utf-8")
        try:
            return self.noticed_by(path)
        finally:
            source.write_text(before, "utf-8")


def try_places(bench, chosen, report):
    """Adds to the report until every chosen file has as many results as it was chosen times."""
    wanted = {}
    for path, queue in chosen:
        wanted[path] = wanted.get(path, 0) + 1
    for path, queue in chosen:
        have = sum(r["file"] == str(path) for r in report.results)
        tried = {r["patch"] for r in report.results}
        before = (bench.tree / path).read_text("utf-8")
        while queue and have < wanted[path]:
            start = processor_time()
            place = queue.pop()
            after = changed(before, place)
            change = patch(path, before, after)
            if change in tried:
                continue
            noticed = bench.attempt(path, after)
            if noticed != "":
                report.add({"file": str(path), "line": place[0] + 1, "noticed_by": noticed, "seconds": round(processor_time() - start, 1), "patch": change})
                break


def try_survivors(bench, report, folders):
    for result in report.survivors():
        if not any(result["file"].startswith(folder.rstrip("/") + "/") for folder in folders):
            continue
        number, before, after = result["line"] - 1, *(re.search(rf"^\{sign}(?![+-])(.*)$", result["patch"], re.M)[1] for sign in "-+")
        if (result["file"], before.strip(), after.strip()) in equivalents():
            report.results.remove(result)
            continue
        text = (bench.tree / result["file"]).read_text("utf-8")
        lines = text.splitlines(keepends=True)
        same = [i for i, line in enumerate(lines) if line.rstrip("\n") == before]
        if not same:
            print(f"{result['file']}: the line is gone: {before.strip()}", flush=True)
            report.results.remove(result)
            continue
        number = min(same, key=lambda i: abs(i - number))
        lines[number] = after + "\n"
        start = processor_time()
        noticed = bench.attempt(pathlib.Path(result["file"]), "".join(lines))
        result.update(line=number + 1, noticed_by=noticed or None, seconds=round(processor_time() - start, 1))
        report.show(result)


class Report:
    def __init__(self, path):
        self.path = path
        self.results = json.loads(path.read_text("utf-8")) if path.exists() else []

    def add(self, result):
        self.results.append(result)
        self.show(result)

    def show(self, result):
        print(f"{len(self.results)} {result['file']}:{result['line']}: {result['noticed_by'] or 'SURVIVED'}, {result['seconds']} s", flush=True)
        self.path.write_text(json.dumps(self.results, indent=1), "utf-8")

    def survivors(self):
        return [r for r in self.results if r["noticed_by"] is None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", action="append", help="only sources below this folder; may be given again")
    parser.add_argument("--share", type=float, default=0.9)
    parser.add_argument("--skip", action="append", default=[], help="a program left out; --survivors without it makes up for it")
    parser.add_argument("--list", action="store_true", help="print the patches, build nothing")
    parser.add_argument("--survivors", action="store_true", help="try the report's survivors again, nothing else")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "mutation")
    parser.add_argument("--report", type=pathlib.Path, help="default: report.json in --work")
    args = parser.parse_args()
    chosen = choose(places(args.folder or NEAREST), args.count, args.seed)
    if args.list:
        for path, queue in chosen:
            if queue:
                before = (ROOT / path).read_text("utf-8")
                print(patch(path, before, changed(before, queue.pop())), end="")
        return 0
    bench = Bench(args.work.resolve(), args.jobs, args.skip)
    if not bench.make([*PROGRAMS, *(target for targets in BESIDES.values() for target in targets)]):
        sys.exit("the unchanged tree does not build")
    bench.measure()
    report = Report(args.report or args.work / "report.json")
    if args.survivors:
        try_survivors(bench, report, args.folder or NEAREST)
    else:
        try_places(bench, chosen, report)
    survivors = report.survivors()
    for survivor in survivors:
        print(survivor["patch"], end="")
    noticed = len(report.results) - len(survivors)
    print(f"{noticed} passed, {len(survivors)} failed")
    return 0 if report.results and noticed >= args.share * len(report.results) else 1


if __name__ == "__main__":
    sys.exit(main())
