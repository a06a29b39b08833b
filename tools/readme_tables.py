"""Rewrites the generated tables of README.md from the tool's own records, or checks them with --check.

Usage: readme_tables.py TTC README.md [--check]
"""

import re
import subprocess
import sys


def main(tool, path, check):
    with open(path, encoding="utf-8") as file:
        old = file.read()

    def table(match):
        out = subprocess.run([tool, match[1], "--md"], capture_output=True, text=True, check=True).stdout
        return f"<!-- {match[1]} -->\n{out.strip()}\n<!-- end -->"

    new, count = re.subn(r"<!-- (\w+) -->\n.*?<!-- end -->", table, old, flags=re.S)
    if check:
        stale = new != old or count == 0
        if stale:
            print(f"{path}: the tables are not what {tool} prints; run tools/readme_tables.py {tool} {path}")
        print(f"{0 if stale else 1} passed, {1 if stale else 0} failed")
        return 1 if stale else 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--check" in sys.argv))
