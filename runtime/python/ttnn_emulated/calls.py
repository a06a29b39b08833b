"""Calls of the op library: operands checked as TT-NN checks them, results in the format and place that were asked."""

from __future__ import annotations

import json
import math
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from ttc import tensors as _memory
from ttc._library import native
from ttc.errors import Unsupported, UsageError

from .device import Arch
from .tensor import Tensor, exact_numerics
from .types import BLOCKS, FLOATS, DataType, Layout, MemoryConfig, UnaryWithParam, WormholeComputeKernelConfig

Operands = Sequence[Union[Tensor, Tuple[str, Tensor]]]


def fail(text: str) -> RuntimeError:
    """An error of a call that TT-NN would refuse."""
    return RuntimeError(f"TT_FATAL: {text}")


def on_device(function: str, *tensors: Any) -> Any:
    """The device of the operands, all of which lie there."""
    found = None
    for tensor in tensors:
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"ttnn.{function}(): incompatible function arguments: {type(tensor).__name__} is no ttnn.Tensor")
        if not tensor.is_allocated():
            raise fail(f"Operands to {function} need to be allocated in buffers on device! Buffer is not allocated")
        if tensor.device() is None:
            raise fail(f"Operands to {function} need to be on device!")
        if found is not None and tensor.device() is not found:
            raise fail(f"Operands to {function} need to be on the same device!")
        found = tensor.device()
    return found


def config_of(config: Optional[WormholeComputeKernelConfig]) -> Optional[tuple]:
    if config is None:
        return None
    return (config.math_fidelity.name, config.math_approx_mode, config.fp32_dest_acc_en, config.packer_l1_acc)


def _number(value: Any) -> Any:
    """JSON has no infinities: their names stand for them."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def run(
    function: str,
    operands: Operands,
    shapes: Sequence[Sequence[int]],
    params: Optional[Mapping[str, Any]] = None,
    *,
    dtype: Union[None, DataType, Sequence[DataType]] = None,
    layout: Optional[Layout] = None,
    memory_config: Optional[MemoryConfig] = None,
    config: Optional[WormholeComputeKernelConfig] = None,
    name: Optional[str] = None,
) -> List[Tensor]:
    """The results of a call, in these shapes; in the first operand's format and layout unless another is asked. `name`
    is what TT-NN calls the function where that differs."""
    pairs = [one if isinstance(one, tuple) else ("", one) for one in operands]
    name = name or function
    device = on_device(name, *[tensor for _, tensor in pairs])
    first = pairs[0][1]
    dtypes = list(dtype) if isinstance(dtype, (list, tuple)) else [dtype or first.dtype] * len(shapes)
    given = [
        (operand, tensor.dtype.value, _memory.of_torch(tensor._values.float()), tensor.layout is Layout.ROW_MAJOR, tensor._buffer)
        for operand, tensor in pairs
    ]
    results = [(list(shape), one.value) for shape, one in zip(shapes, dtypes)]
    text = json.dumps({key: _number(value) for key, value in (params or {}).items() if value is not None})
    blackhole = device is not None and device.arch() is Arch.BLACKHOLE
    if device is not None:
        shaped = tuple((operand, one.dtype, one.layout, tuple(one.shape), one._memory_config) for operand, one in pairs)
        device.remember_program(function, shaped, str(results), text, config_of(config), memory_config)
    made = _served(name, [function, given, results, text, config_of(config), blackhole])
    out = []
    for values, one in zip(made, dtypes):
        held = _memory.to_torch(values)
        place = Layout.TILE if one in BLOCKS else layout or first.layout
        out.append(Tensor._of(held if one in FLOATS else held.long(), one, place, device, memory_config))
    return out


def _served(name: str, call: list, exact: Optional[bool] = None) -> list:
    """The library's results; in exact numerics where fast ones do not serve the function."""
    exact = exact_numerics() if exact is None else exact
    try:
        return native.library_run(*call, exact)
    except Unsupported as error:
        if not exact and "in fast numerics" in str(error):
            return _served(name, call, True)
        raise NotImplementedError(f"ttnn.{name}: {error}") from None
    except UsageError as error:
        raise fail(f"ttnn.{name}: {error}") from None


def function_name(value: Any) -> str:
    """ "gelu" of a name, UnaryOpType.GELU or UnaryWithParam."""
    return value.name if isinstance(value, UnaryWithParam) else str(value)


def into(output: Optional[Tensor], result: Tensor) -> Tensor:
    """The result in the tensor that the caller gave for it."""
    if output is None:
        return result
    if output.shape != result.shape:
        raise fail(f"the output tensor has shape {output.shape}, the result {result.shape}")
    from .places import typecast

    output._values = (result if result.dtype is output.dtype else typecast(result, output.dtype))._values
    return output
