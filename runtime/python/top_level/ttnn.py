"""TT-NN on the emulated device, for programs that say `import ttnn`. A real ttnn that is installed too comes first, or is an error."""

import importlib.machinery
import pathlib
import sys

_here = pathlib.Path(__file__).resolve().parent
_others = [place for place in sys.path if pathlib.Path(place or ".").resolve() != _here]
_real = importlib.machinery.PathFinder.find_spec("ttnn", _others)
if _real is not None and _real.origin is not None:
    raise ImportError(f"two modules ttnn: the emulated one, and {_real.origin}; pip uninstall ttc-ttnn, or put that one first on the path")

import ttc  # noqa: E402

ttc.as_ttnn(replace=True)
