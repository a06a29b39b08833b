"""Tensors in host memory or on a device, and operators on them: every name of ATen's or a device op's is a function,
`softmax(x, -1)`. It runs on the device of its operands, else on the default one; nothing falls back to the CPU."""

from __future__ import annotations

from typing import Any, Callable, Tuple, Union

import torch

from .._library import native
from ..tensors import Given, to_torch
from .device import Device, Host


class Tensor:
    """A copy of a torch tensor, an array or a number."""

    def __init__(self, values: Any) -> None:
        given = Given()
        given.add(values.clone() if isinstance(values, torch.Tensor) else values)
        self._native = given.tensors[0]

    @classmethod
    def _of(cls, made: native.Tensor) -> Tensor:
        out = cls.__new__(cls)
        out._native = made
        return out

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._native.shape

    @property
    def is_on_device(self) -> bool:
        return self._native.is_resident

    @property
    def storage(self) -> str:
        """ "bfloat16, TILE, DRAM"; "" in host memory."""
        return native.storage(self._native)

    def to(self, where: Union[Device, Host]) -> Tensor:
        """The tensor there: on a device in tiles of bfloat16, or of int32 for integers."""
        if isinstance(where, Host):
            return Tensor._of(native.to_host(self._native))
        return Tensor._of(native.to_device(self._native, where))

    def torch(self) -> torch.Tensor:
        """The elements, brought to host memory."""
        return to_torch(native.to_host(self._native))

    def deallocate(self) -> None:
        """Frees its memory on the device now, also under its copies."""
        native.deallocate(self._native)

    def __repr__(self) -> str:
        return repr(self._native)


def _given(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._native
    if isinstance(value, torch.Tensor):
        return Tensor(value)._native
    return [_given(one) for one in value] if isinstance(value, (list, tuple)) else value


def _made(value: Any) -> Any:
    if isinstance(value, native.Tensor):
        return Tensor._of(value)
    return [_made(one) for one in value] if isinstance(value, list) else value


def op(name: str, *args: Any, exact: bool = False, **keywords: Any) -> Any:
    """One operator: "aten::softmax.int", "softmax" with the overload found by the arguments, or "tt.softmax"."""
    made = native.device_op(name, tuple(_given(arg) for arg in args), {key: _given(arg) for key, arg in keywords.items()}, exact)
    return _made(made)


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(name)

    def function(*args: Any, **keywords: Any) -> Any:
        return op(name, *args, **keywords)

    function.__name__ = name
    return function
