"""Norms of rows that lie on several devices: sums of each part, which are gathered, then the norm itself. Of a tile of sums
the first column counts."""

from __future__ import annotations

from typing import Any, Optional

import torch

from .calls import fail, on_device
from .eltwise import add, multiply, rsqrt, square, subtract
from .places import typecast
from .products import sum as total
from .tensor import Tensor, packed
from .types import DataType, MemoryConfig, bfloat16, float32

Memory = Optional[MemoryConfig]
TILE = 32


def _sums(x: Tensor, residual: Optional[Tensor], squares_only: bool, dtype: DataType, memory: Memory, config: Any) -> Tensor:
    """The sum of squares, then that of the elements: a tile's columns each, the first of which has it."""
    on_device("pre_all_gather", x, residual)
    x = x if residual is None else add(x, residual)
    wide = x if x.dtype is float32 else typecast(x, float32)
    parts = [total(square(wide), -1, True, compute_kernel_config=config)]
    if not squares_only:
        parts.append(total(wide, -1, True, compute_kernel_config=config))
    columns = [torch.nn.functional.pad(one._values, (0, TILE - 1)) for one in parts]
    return x._like(packed(torch.cat(columns, -1), dtype), dtype=dtype, memory_config=memory)


def _gathered(x: Tensor, stats: Tensor, kinds: int) -> list:
    """The means over the whole rows, of each kind of sum."""
    if stats.shape[-1] % (TILE * kinds) != 0:
        raise fail(f"post_all_gather: {stats.shape[-1]} columns of sums are no whole tiles for each device")
    devices = stats.shape[-1] // (TILE * kinds)
    columns = stats._values.reshape(*stats.shape[:-1], devices, kinds, TILE)[..., 0]
    sums = [stats._like(columns[..., kind], dtype=float32, memory_config=None) for kind in range(kinds)]
    return [multiply(total(one, -1, True), 1.0 / (x.shape[-1] * devices)) for one in sums]


def _scaled(y: Tensor, x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], memory: Memory, dtype: Optional[DataType]) -> Tensor:
    for one, function in ((weight, multiply), (bias, add)):
        if one is not None:
            row = one._like(one._values.reshape(1, 1, 1, -1), layout=y.layout, memory_config=None)
            y = function(y, row if row.dtype is float32 else typecast(row, float32))
    made = typecast(y, dtype or x.dtype) if y.dtype is not (dtype or x.dtype) else y
    return made._like(made._values, memory_config=memory or x._memory_config)


def rms_norm_pre_all_gather(
    input_tensor: Tensor,
    *,
    dtype: DataType = bfloat16,
    residual_input_tensor: Optional[Tensor] = None,
    compute_kernel_config: Any = None,
    program_config: Any = None,
    memory_config: Memory = None,
    use_2d_core_grid: Optional[bool] = None,
) -> Tensor:
    """The sums of squares of rows, [.., 32]."""
    return _sums(input_tensor, residual_input_tensor, True, dtype, memory_config, compute_kernel_config)


def rms_norm_post_all_gather(
    input_tensor: Tensor,
    stats: Tensor,
    *,
    epsilon: float = 1e-12,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    memory_config: Memory = None,
    compute_kernel_config: Any = None,
    program_config: Any = None,
    dtype: Optional[DataType] = None,
    use_2d_core_grid: Optional[bool] = None,
) -> Tensor:
    """Rows over the root of the mean of their squares, which the sums of all devices give, times a weight."""
    on_device("rms_norm_post_all_gather", input_tensor, stats, weight, bias)
    (squares,) = _gathered(input_tensor, stats, 1)
    wide = input_tensor if input_tensor.dtype is float32 else typecast(input_tensor, float32)
    return _scaled(multiply(wide, rsqrt(add(squares, epsilon))), input_tensor, weight, bias, memory_config, dtype)


def layer_norm_pre_all_gather(
    input_tensor: Tensor,
    *,
    dtype: DataType = bfloat16,
    residual_input_tensor: Optional[Tensor] = None,
    compute_kernel_config: Any = None,
    program_config: Any = None,
    memory_config: Memory = None,
) -> Tensor:
    """The sums of squares and of the elements of rows, [.., 64]."""
    return _sums(input_tensor, residual_input_tensor, False, dtype, memory_config, compute_kernel_config)


def layer_norm_post_all_gather(
    input_tensor: Tensor,
    stats: Tensor,
    *,
    epsilon: float = 1e-12,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    memory_config: Memory = None,
    compute_kernel_config: Any = None,
    program_config: Any = None,
    dtype: Optional[DataType] = None,
) -> Tensor:
    """Rows with mean 0 and variance 1, by the sums of all devices, times a weight, plus a bias."""
    on_device("layer_norm_post_all_gather", input_tensor, stats, weight, bias)
    squares, mean = _gathered(input_tensor, stats, 2)
    variance = subtract(squares, square(mean))
    wide = input_tensor if input_tensor.dtype is float32 else typecast(input_tensor, float32)
    normal = multiply(subtract(wide, mean), rsqrt(add(variance, epsilon)))
    return _scaled(normal, input_tensor, weight, bias, memory_config, dtype)
