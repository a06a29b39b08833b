"""Traces: the calls between begin and end, made again by execute_trace on what their tensors hold then. Results come to
the tensors that the captured calls gave."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Callable, Dict, List, Optional, Tuple

from .calls import fail
from .device import Device
from .tensor import Tensor

_Call = Tuple[Callable[..., Any], tuple, dict, Any]
_ids = itertools.count()
_captured: Dict[int, List[_Call]] = {}
_capturing: Optional[int] = None
_inside = False  # a public function that another one calls is part of that


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls a capture remembers."""

    @functools.wraps(function)
    def call(*args: Any, queue_id: Any = None, **kwargs: Any) -> Any:  # every operation of TT-NN's takes a queue
        global _inside
        if _capturing is None or _inside:
            return function(*args, **kwargs)
        _inside = True
        try:
            result = function(*args, **kwargs)
        finally:
            _inside = False
        _captured[_capturing].append((function, args, kwargs, result))
        return result

    return call


def not_captured(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """A function that reads from a device or writes to it from the host, which no trace holds."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor) and one.device() is not None]
        if _capturing is not None and (tensors or any(isinstance(one, Device) for one in (*args, *kwargs.values()))):
            raise fail(f"{what} are not supported during trace capture.")
        return function(*args, **kwargs)

    return call


def begin_trace_capture(device: Device, cq_id: int = 0) -> int:
    """From here on calls are remembered."""
    global _capturing
    if _capturing is not None:
        raise fail("a trace is being captured already")
    _capturing = next(_ids)
    _captured[_capturing] = []
    return _capturing


def end_trace_capture(device: Device, trace_id: int, cq_id: int = 0) -> None:
    """Up to here."""
    global _capturing
    if trace_id != _capturing:
        raise fail(f"trace {trace_id} is not being captured")
    _capturing = None


def execute_trace(device: Device, trace_id: int, cq_id: int = 0, blocking: bool = True) -> None:
    """The calls of a trace once more."""
    if trace_id not in _captured or trace_id == _capturing:
        raise fail(f"Trace instance with ID {trace_id} does not exist")
    for function, args, kwargs, result in _captured[trace_id]:
        _give(function(*args, **kwargs), result)


def release_trace(device: Device, trace_id: int) -> None:
    """Forgets it."""
    if _captured.pop(trace_id, None) is None:
        raise fail(f"Trace instance with ID {trace_id} does not exist")


def is_trace_capture_active(device: Optional[Device] = None) -> bool:
    return _capturing is not None


def _give(made: Any, to: Any) -> None:
    """Values, and the memory that they take, to the tensors of the capture."""
    if isinstance(to, Tensor):
        if made is not to:
            to._values, to._buffer, to._allocated = made._values, made._buffer, made._allocated
    elif isinstance(to, (list, tuple)):
        for one, other in zip(made, to):
            _give(one, other)
