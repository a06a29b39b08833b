"""Rewrites the generated tables of README.md from the tool's own records, or checks them with --check.

Usage: readme_tables.py TTC README.md [--check]
"""

import os
import re
import subprocess
import sys


def main(tool, path, check):
    with open(path, encoding="utf-8") as file:
        old = file.read()

    def table(match):
        # A row of the support table that is not ok ends the tool with 1; the table is printed all the same.
        ran = subprocess.run([tool, *match[1].split(), "--md", "-q"], capture_output=True, text=True, cwd=os.path.dirname(os.path.abspath(path)))
        if ran.returncode > 1:
            sys.exit(f"{tool} {match[1]}: {ran.stderr}")
        out = ran.stdout
        return f"<!-- {match[1]} -->\n{out.strip()}\n<!-- end -->"

    new, count = re.subn(r"<!-- (\w[\w -]*\w) -->\n.*?<!-- end -->", table, old, flags=re.S)
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
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2], "--check" in sys.argv))
