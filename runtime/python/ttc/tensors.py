"""Tensors of torch and numpy to the library's and back; elements are shared."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import torch

from ._library import native
from .errors import UsageError

_names = [str(name) for name in native.element_types]
_torch_names = {"boolean": "bool"}
_of_torch = {
    getattr(torch, _torch_names.get(name, name)): code for code, name in enumerate(_names) if hasattr(torch, _torch_names.get(name, name))
}
_to_torch = {code: dtype for dtype, code in _of_torch.items()}


def is_numpy(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and hasattr(value, "__array_interface__")


def of_torch(tensor: torch.Tensor) -> native.Tensor:
    """A view of a contiguous torch tensor on the CPU."""
    code = _of_torch.get(tensor.dtype)
    if code is None:
        raise UsageError(f"tensors of {tensor.dtype} can't be given")
    return native.Tensor.view(tensor.data_ptr(), code, tuple(tensor.shape), tensor)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor whose memory is read: on the CPU, strided, without a pending conjugation."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        raise UsageError(f"a tensor on {tensor.device} is given", "tensors come from host memory: .cpu()")
    if tensor.layout is not torch.strided:
        raise UsageError(f"a {tensor.layout} tensor is given", "tensors are dense: .to_dense()")
    return tensor.resolve_conj().resolve_neg()


class Given:
    """Inputs of one call, as the library takes them. What is not contiguous is copied, and written back where the
    model changed it."""

    def __init__(self) -> None:
        self.tensors: list = []
        self.numpy = False
        self._torch = False
        self._copies: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def add(self, value: Any) -> None:
        if isinstance(value, native.Tensor):
            self.tensors.append(value)
            return
        if isinstance(value, torch.Tensor):
            self._torch = True
        elif is_numpy(value):
            self.numpy = True
            value = _of_numpy(value)
        elif isinstance(value, bool):
            value = torch.tensor(value)
        elif isinstance(value, int):
            value = torch.tensor(value, dtype=torch.int64)
        elif isinstance(value, float):
            value = torch.tensor(value, dtype=torch.float64)
        elif hasattr(value, "__dlpack__"):
            value = torch.from_dlpack(value)
        else:
            raise UsageError(f"an input is a {type(value).__name__}", "inputs are tensors, arrays and numbers")
        tensor = plain(value)
        if not tensor.is_contiguous():
            dense = tensor.contiguous()
            self._copies.append((tensor, dense.clone(), dense))
            tensor = dense
        self.tensors.append(of_torch(tensor))

    def written_back(self) -> None:
        for source, before, after in self._copies:
            if not torch.equal(before, after):
                source.copy_(after)

    def results(self, outputs: Sequence, infos: list) -> list:
        infos = infos if len(infos) == len(outputs) else [None] * len(outputs)
        as_numpy = self.numpy and not self._torch
        return [result(one, info, as_numpy) for one, info in zip(outputs, infos)]


def _of_numpy(value: Any) -> torch.Tensor:
    import numpy

    array = numpy.asarray(value)  # of numpy's scalars too
    # torch takes neither memory that may not be written nor strides that run backwards.
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise UsageError(f"arrays of {array.dtype} can't be given") from error


def to_torch(tensor: native.Tensor) -> torch.Tensor:
    """The library's elements as a torch tensor, which keeps them alive."""
    dtype = _to_torch.get(tensor.type)
    if dtype is None:
        raise UsageError(f"torch has no dtype {_names[tensor.type]}")
    if 0 in tensor.shape:
        return torch.empty(tensor.shape, dtype=dtype)
    return torch.frombuffer(tensor, dtype=dtype).reshape(tensor.shape)


def to_numpy(tensor: native.Tensor) -> Any:
    """The library's elements as an array; formats that numpy lacks (bfloat16) as float32."""
    found = to_torch(tensor)
    try:
        return found.numpy()
    except TypeError:
        return found.float().numpy()


def result(tensor: native.Tensor, info: Optional[dict], as_numpy: bool) -> Any:
    if tensor.is_resident:
        return tensor
    kind = info["kind"] if info is not None else "tensor"
    if kind in ("integer", "number", "boolean"):
        return to_torch(tensor).item()
    if kind == "other" and 0 in tensor.shape:
        return None
    return to_numpy(tensor) if as_numpy else to_torch(tensor)
