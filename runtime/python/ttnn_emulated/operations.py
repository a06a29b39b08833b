"""ttnn.operations: what programs import from its modules by name."""

from __future__ import annotations

import sys
import types

from .golden import golden_of_activation

__path__: list = []  # a package: its modules are made here


def _module(name: str) -> types.ModuleType:
    """A module whose members are those of ttnn itself."""
    made = types.ModuleType(f"{__name__}.{name}")

    def member(key: str) -> object:
        import ttnn_emulated

        return getattr(ttnn_emulated, key)

    made.__getattr__ = member  # type: ignore[method-assign]
    sys.modules[made.__name__] = made
    return made


matmul, normalization, conv2d, reduction, embedding, transformer, core, unary, binary, ternary, pool, losses, data_movement = (
    _module(name)
    for name in """matmul normalization conv2d reduction embedding transformer core unary binary ternary pool losses
    data_movement""".split()
)
activations = types.ModuleType(__name__ + ".activations", "ttnn.operations.activations")
activations.get_golden_function_for_activation = golden_of_activation
sys.modules[activations.__name__] = activations
