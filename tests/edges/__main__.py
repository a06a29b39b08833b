"""The edges of the command line: what ttc says and does where something is wrong, missing, in the way or without effect.

    tests/edges TTC [PART_OF_A_NAME]

One line a check; fails if one fails. Each check is a function that gets a fresh folder; what several share (rewritten
files) is made once. Small models only.
"""

import concurrent.futures
import os
import pathlib
import signal
import sys
import tempfile
import time

import files, gates, kills, messages, names, reports, terminal  # noqa: each adds its checks
from common import CHECKS, FOLDER


def run(function):
    folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER[0]))
    start = time.time()
    try:
        function(folder)
        return function.__name__, None, time.time() - start
    except Exception as error:  # whatever it is, the check failed
        return function.__name__, f"{type(error).__name__}: {error}", time.time() - start


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # ignored under nohup, which processes inherit
        signal.signal(number, signal.SIG_DFL)
    wanted = [c for c in CHECKS if len(sys.argv) < 3 or sys.argv[2] in c.__name__]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ttc-edges-") as shared_folder:
        FOLDER.append(pathlib.Path(shared_folder))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, problem, seconds in pool.map(run, wanted):
                failed += problem is not None
                print(f"{'FAIL' if problem else 'ok  '} {name.replace('_', ' ')} ({seconds:.1f} s)" + (f": {problem}" if problem else ""))
    print(f"{len(wanted) - failed} of {len(wanted)} hold")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
