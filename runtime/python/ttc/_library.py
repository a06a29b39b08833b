"""Finds the compiled part: beside this file where the package is installed, else in the build folder TTC_BUILD."""

import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from typing import TYPE_CHECKING

import torch  # noqa: F401  LibTorch is in the process before the library that links it

_here = pathlib.Path(__file__).parent


def _of_build(folder: str):
    found = [pathlib.Path(folder) / ("_ttc" + suffix) for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    path = next((one for one in found if one.exists()), None)
    if path is None:
        raise ImportError(f"TTC_BUILD={folder} has no {found[0].name}: build it with ninja")
    spec = importlib.util.spec_from_file_location("ttc._ttc", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ttc._ttc"] = module
    spec.loader.exec_module(module)
    return module


def _load():
    folder = os.environ.get("TTC_BUILD")
    if folder:
        return _of_build(folder)
    try:
        from . import _ttc
    except ImportError as error:
        raise ImportError(f"{error}; pip install the package, or name a build folder in TTC_BUILD") from error
    return _ttc


def ops_library() -> str:
    """The library that brings the tt operators to stock PyTorch."""
    folder = os.environ.get("TTC_BUILD")
    return str((pathlib.Path(folder) if folder else _here / "lib") / "libttrt_torch.so")


if TYPE_CHECKING:
    from . import _ttc as native
else:
    native = _load()
