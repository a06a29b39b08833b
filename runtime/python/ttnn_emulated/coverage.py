"""Which of TT-NN's public names there are here. names.txt lists those of 0.81, a line each."""

from __future__ import annotations

import pathlib
from typing import Any, Callable, Dict, List

names_file = pathlib.Path(__file__).with_name("names.txt")


def public_names() -> List[str]:
    """TT-NN's public names: "linear", "transformer.concatenate_heads"."""
    lines = names_file.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


_known: Dict[str, bool] = {}


def missing_function(space: str, name: str) -> Callable[..., Any]:
    """What stands for a function of TT-NN's that is not emulated: calling it raises NotImplementedError."""
    full = f"{space}.{name}" if space else name
    if not _known:
        _known.update(dict.fromkeys(public_names(), True))
    if name.startswith("__") or full not in _known:
        raise AttributeError(f"module 'ttnn' has no attribute '{full}'")

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"ttnn.{full} is not emulated")

    function.__name__ = name
    function.emulated = False
    return function


def covered(full: str) -> bool:
    """Whether the name is emulated."""
    import ttnn_emulated

    found: Any = ttnn_emulated
    for part in full.split("."):
        found = getattr(found, part, None)
    return found is not None and getattr(found, "emulated", True)


def table() -> str:
    """The names by module, each with whether it is emulated."""
    spaces: Dict[str, List[str]] = {}
    for full in public_names():
        space, _, name = full.rpartition(".")
        spaces.setdefault("ttnn." + space if space else "ttnn", []).append(full)
    lines, total, there = [], 0, 0
    for space, names in sorted(spaces.items()):
        have = [full for full in names if covered(full)]
        total, there = total + len(names), there + len(have)
        lines.append(f"{space}: {len(have)} of {len(names)}")
        lines += [f"  {'yes' if full in have else 'no ':4}{full.rpartition('.')[2]}" for full in sorted(names)]
    return "\n".join([f"{there} of {total} public names of TT-NN 0.81 are emulated", *lines])
