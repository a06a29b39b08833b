"""Rewrites the generated tables of the README files from the tool's own records, or checks them with --check.

Usage: readme_tables.py TTC [--check]

A table stands between <!-- COMMAND --> and <!-- end -->; COMMAND is what `ttc COMMAND --md` prints.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = re.compile(r"<!-- (\w[\w ./-]*\w) -->\n.*?<!-- end -->", re.S)


def printed(tool, command):
    # A row of the support table that is not ok ends the tool with 1; the table is printed all the same.
    ran = subprocess.run([tool, *command.split(), "--md", "-q"], capture_output=True, text=True, cwd=ROOT)
    if ran.returncode > 1:
        sys.exit(f"{tool} {command}: {ran.stderr}")
    return f"<!-- {command} -->\n{ran.stdout.strip()}\n<!-- end -->"


def pages():
    folders = [ROOT / name for name in ("src", "passes", "runtime", "tools", "tests", "models")]
    found = [ROOT / "README.md"] + sorted(page for folder in folders for page in folder.rglob("README.md"))
    return [page for page in found if TABLE.search(page.read_text("utf-8"))]


def main(tool, check):
    passed = failed = 0
    for page in pages():
        old = page.read_text("utf-8")
        new = TABLE.sub(lambda match: printed(tool, match[1]), old)
        if not check:
            page.write_text(new, "utf-8")
        elif new == old:
            passed += 1
        else:
            failed += 1
            print(f"{page}: the tables are not what {tool} prints; run tools/readme_tables.py {tool}")
    if check:
        print(f"{passed} passed, {failed} failed")
    return 1 if failed or (check and passed == 0) else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), "--check" in sys.argv))
