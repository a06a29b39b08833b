"""python -m ttnn_emulated coverage | run SCRIPT [ARGUMENT]..."""

import runpy
import sys
from pathlib import Path


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["coverage"] and len(arguments) == 1:
        from .coverage import table

        print(table())
        return 0
    if arguments[:1] == ["run"] and len(arguments) > 1:
        import ttc

        ttc.as_ttnn()
        sys.argv = arguments[1:]
        sys.path[0] = str(Path(arguments[1]).resolve().parent)  # as Python runs a script
        runpy.run_path(arguments[1], run_name="__main__")
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
