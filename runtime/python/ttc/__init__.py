"""ttc: exported PyTorch models rewritten for Tenstorrent devices, and an emulated device that runs them.

    import torch, ttc
    model = ttc.compile(torch.export.export(module, (x,)), weight_dtype="bfloat8_b")
    y = model(x)                      # on the emulated device; elements are not copied on the way
    print(model.report)               # what stays on the CPU, and why
    model.save("model.tt.pt2")        # stock PyTorch opens it
    fast = torch.compile(module, backend="ttc")

Errors are ``ttc.Error`` and its classes in ``ttc.errors``.
"""

from __future__ import annotations

from typing import Any

from . import errors, tt_lib
from ._library import native as _native
from ._library import ops_library
from .errors import BadFile, Bug, Cancelled, Error, Failed, Unsupported, UsageError
from .model import Model, check, compare, compile, load
from .reports import Comparison, CompileReport, Profile, RunReport

__version__: str = _native.version()
__all__ = [
    "BadFile",
    "Bug",
    "Cancelled",
    "Comparison",
    "CompileReport",
    "Error",
    "Failed",
    "Model",
    "Profile",
    "RunReport",
    "Unsupported",
    "UsageError",
    "archs",
    "as_ttnn",
    "check",
    "compare",
    "compile",
    "errors",
    "load",
    "modules",
    "ops",
    "register_ops",
    "set_threads",
    "tt_lib",
]


def archs() -> dict:
    """Architecture profiles, and what they are."""
    return _native.archs()


def ops() -> dict:
    """Device ops, and what they do."""
    return _native.ops()


def modules() -> dict:
    """TT modules, and what they do."""
    return _native.modules()


def set_threads(n: int) -> None:
    """Threads that LibTorch and the device use, of the whole process."""
    _native.set_threads(n)


def as_ttnn(replace: bool = False) -> Any:
    """Makes ``import ttnn`` give the emulated module from here on, which is also the result.

    Where a real ttnn is installed or loaded that is an error, unless `replace` says that it is meant."""
    import importlib
    import sys

    emulated = importlib.import_module("ttnn_emulated")
    if sys.modules.get("ttnn") is emulated:
        return emulated
    if not replace and _real_ttnn():
        raise UsageError("a real ttnn is installed", "as_ttnn(replace=True) takes its place in this process")
    for name in [one for one in sys.modules if one == "ttnn" or one.startswith("ttnn.")]:
        del sys.modules[name]
    sys.modules["ttnn"] = emulated
    for name in [one for one in sys.modules if one.startswith("ttnn_emulated.")]:  # one module, whichever its name
        sys.modules["ttnn" + name.removeprefix("ttnn_emulated")] = sys.modules[name]
    return emulated


def _real_ttnn() -> bool:
    """Whether `import ttnn` gives another module than ours. A folder of that name without code is none, nor is
    runtime/python/top_level, which is this function's caller."""
    import importlib.util
    import sys

    if "ttnn" in sys.modules:
        return True
    spec = importlib.util.find_spec("ttnn")
    if spec is None or spec.origin is None:
        return False
    return not (spec.origin.endswith("ttnn.py") and "ttc.as_ttnn(" in open(spec.origin).read())


def register_ops() -> None:
    """Makes the ``tt`` operators known to torch, so that ``torch.export.load`` opens rewritten models."""
    import torch

    torch.ops.load_library(ops_library())
