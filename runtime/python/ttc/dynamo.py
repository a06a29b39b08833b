"""The backend of ``torch.compile(model, backend="ttc")``.

A graph of dynamo's is exported and compiled when it is first called with inputs of certain shapes. Parameters and
buffers become weights, packed once; where one is changed afterwards the graph is compiled again. What torch.export or
the compiler refuses, and graphs that gradients flow through, run as PyTorch runs them.

Options: torch.compile(model, backend="ttc", options={"weight_dtype": "bfloat8_b", "numerics": "exact"}), those of
``ttc.compile``; "fallback": False makes a refusal an error.
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from . import model as _model
from .errors import Error

log = logging.getLogger("ttc")

max_shapes = 64
"""Shapes that one graph is kept compiled for."""


class _Frozen(torch.nn.Module):
    """A graph with some of its inputs, by position, as weights and constants."""

    def __init__(self, graph: torch.nn.Module, frozen: Dict[int, Any], count: int) -> None:
        super().__init__()
        self.graph = graph
        self.count = count
        self.constants: Dict[int, Any] = {}
        for index, value in frozen.items():
            if isinstance(value, torch.nn.Parameter):
                self.register_parameter(f"p{index}", torch.nn.Parameter(value.detach(), requires_grad=False))
            elif isinstance(value, torch.Tensor):
                self.register_buffer(f"p{index}", value.detach())
            else:
                self.constants[index] = value

    def forward(self, *inputs: torch.Tensor) -> Any:
        rest = iter(inputs)
        args = []
        for index in range(self.count):
            if index in self.constants:
                args.append(self.constants[index])
            else:
                held = getattr(self, f"p{index}", None)
                args.append(held if held is not None else next(rest))
        return self.graph(*args)


def _is_weight(node: torch.fx.Node, example: Any) -> bool:
    """A parameter or buffer that dynamo made an input of the graph."""
    if isinstance(example, torch.nn.Parameter):
        return True
    marked = getattr(example, "_dynamo_static_input_type", None)
    return isinstance(example, torch.Tensor) and marked is not None


def _written_buffers(program: torch.export.ExportedProgram) -> List[str]:
    """Names of the buffers that a program writes, which its functional form tells."""
    schemas = [getattr(node.target, "_schema", None) for node in program.graph.nodes]
    if not any(schema is not None and schema.is_mutable for schema in schemas):
        return []
    return list(program.run_decompositions({}).graph_signature.buffers_to_mutate.values())


class _Graph:
    """One graph, compiled for the shapes that it is called with."""

    def __init__(self, graph: torch.fx.GraphModule, examples: Sequence[Any], options: Dict[str, Any]) -> None:
        self.graph = graph
        self.fallback = options.pop("fallback", True)
        self.options = options
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.weights = [i for i, (node, one) in enumerate(zip(placeholders, examples)) if _is_weight(node, one)]
        self.compiled: Dict[Tuple, Optional[_model.Model]] = {}
        self.versions: Optional[List] = None

    def held(self, args: Sequence[Any]) -> List[torch.Tensor]:
        inner = list(self.graph.parameters()) + list(self.graph.buffers())
        return [args[i] for i in self.weights] + inner

    def refuse(self, reason: str) -> None:
        if not self.fallback:
            raise Error(f"torch.compile: {reason}")
        log.warning("torch.compile: a graph of %d nodes runs in PyTorch: %s", len(self.graph.graph.nodes), reason)

    def needs_gradients(self, args: Sequence[Any]) -> bool:
        if not torch.is_grad_enabled():
            return False
        return any(isinstance(one, torch.Tensor) and one.requires_grad for one in [*args, *self.held(args)])

    def exported(self, args: Sequence[Any]) -> torch.export.ExportedProgram:
        """The graph with its weights. Buffers that it writes are inputs, which are written where they are."""
        while True:
            frozen = {i: one for i, one in enumerate(args) if i in self.weights or not isinstance(one, torch.Tensor)}
            inputs = tuple(one.detach() for i, one in enumerate(args) if i not in frozen)
            with torch.no_grad():
                program = torch.export.export(_Frozen(self.graph, frozen, len(args)), inputs, strict=False)
            names = _written_buffers(program)
            written = [int(name[1:]) for name in names if name[1:].isdigit()]
            if len(written) < len(names):
                raise Error("a buffer inside the graph is written")
            if not written:
                return program
            self.weights = [i for i in self.weights if i not in written]

    def make(self, args: Sequence[Any]) -> Optional[_model.Model]:
        try:
            return _model.compile(self.exported(args), **self.options)
        except Error as error:
            self.refuse(str(error))
        except Exception as error:  # torch.export raises whatever the model's code raises
            self.refuse(f"torch.export: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
        return None

    def weight_versions(self, args: Sequence[Any]) -> List:
        return [(one.data_ptr(), 0 if one.is_inference() else one._version) for one in self.held(args)]

    def __call__(self, *args: Any) -> Any:
        if self.needs_gradients(args):
            return self.graph(*args)
        if self.weight_versions(args) != self.versions:
            self.compiled.clear()
        key = tuple((one.dtype, tuple(one.shape)) if isinstance(one, torch.Tensor) else one for one in args)
        if key not in self.compiled:
            if len(self.compiled) >= max_shapes:
                self.compiled.clear()
            self.compiled[key] = self.make(args)
            self.versions = self.weight_versions(args)
        made = self.compiled[key]
        if made is None:
            return self.graph(*args)
        weights = set(self.weights)
        inputs = [one for i, one in enumerate(args) if i not in weights and isinstance(one, torch.Tensor)]
        return self.shaped(made.run(inputs), args)

    def shaped(self, outputs: List[Any], args: Sequence[Any]) -> Any:
        """Outputs as the graph returns them: constants and numbers among them in their places."""
        (output,) = [node for node in self.graph.graph.nodes if node.op == "output"]
        results = output.args[0]
        tuple_like = isinstance(results, (list, tuple))
        wanted = list(results) if tuple_like else [results]
        rest = iter(outputs)
        out = [next(rest) if isinstance(one, torch.fx.Node) else one for one in wanted]
        return type(results)(out) if tuple_like else out[0]


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """What dynamo calls for each graph; kwargs["options"] are torch.compile's options."""
    options = dict(kwargs.get("options") or {})
    options.setdefault("numerics", "fast")
    return _Graph(graph, example_inputs, options)
