"""Adds up the test cases in a Meson test log and prints "N passed, N failed".

Catch2 programs end in "All tests passed (A assertions in N test cases)" or "test cases: N | P passed | F failed"; our
Python tests end in "N passed, N failed". A program that printed neither counts as one case, by its result.
"""

import re
import sys

CATCH_ALL = re.compile(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)")
CATCH_SOME = re.compile(r"^test cases:\s*(\d+)\s*\|(?:\s*(\d+) passed\s*\|)?\s*(\d+) failed", re.M)
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed", re.M)
RESULT = re.compile(r"^result:\s+(.*)$", re.M)


def count(section):
    if match := CATCH_ALL.search(section):
        return int(match[1]), 0
    if match := CATCH_SOME.search(section):
        total, failed = int(match[1]), int(match[3])
        return int(match[2]) if match[2] else total - failed, failed
    if matches := PLAIN.findall(section):
        return tuple(map(int, matches[-1]))
    return None


def main(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        sections = re.split(r"^=+ \d+/\d+ =+$", file.read(), flags=re.M)[1:]
    passed = failed = 0
    for section in sections:
        result = RESULT.search(section)
        if result and "exit status 77" in result[1]:  # skipped: it says why
            print("\n".join(line for line in section.splitlines() if line.startswith("SKIP: ")))
            continue
        ok = bool(result) and "exit status 0" in result[1]
        counts = count(section)
        if counts is None or (not ok and counts[1] == 0):  # a crash after the last summary is a failure too
            counts = (counts[0] if counts else 0) + ok, (0 if ok else 1)
        passed, failed = passed + counts[0], failed + counts[1]
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main(sys.argv[1])
