"""ttnn.operations: what programs import from its modules by name."""

from __future__ import annotations

import sys
import types

from .golden import golden_of_activation

__path__: list = []  # a package: its modules are made here

activations = types.ModuleType(__name__ + ".activations", "ttnn.operations.activations")
activations.get_golden_function_for_activation = golden_of_activation
sys.modules[activations.__name__] = activations
