"""ttnn.moreh_*: the functions of the library's second family that the first one computes too. moreh_sum is recorded; the
others are made of functions that are."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Union

import torch

from . import eltwise as e
from . import movement, products
from .calls import fail, into, on_device, run
from .tensor import Tensor
from .types import FLOATS, DataType, Layout, MemoryConfig, WormholeComputeKernelConfig, bfloat16

Memory = Optional[MemoryConfig]
Config = Optional[WormholeComputeKernelConfig]
Dims = Union[None, int, Sequence[int]]


def _dims(tensor: Tensor, dim: Dims) -> List[int]:
    rank = len(tensor.shape)
    given = range(rank) if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)
    return sorted({one % rank for one in given})


def moreh_sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, output: Optional[Tensor] = None, memory_config: Memory = None,
              compute_kernel_config: Config = None) -> Tensor:  # fmt: skip
    """Sums along dims, or of all elements."""
    if input.dtype not in FLOATS:
        on_device("moreh_sum", input)
        values = input._values.sum(_dims(input, dim), keepdim=keepdim)
        return into(output, input._like(values, memory_config=memory_config or input._memory_config))
    dims = _dims(input, dim)
    shape = [1 if i in dims else size for i, size in enumerate(input.shape)]
    shape = shape if keepdim else [size for i, size in enumerate(input.shape) if i not in dims]
    params = {"dim": dims, "keepdim": keepdim}
    (result,) = run("moreh_sum", [input], [shape], params, memory_config=memory_config, config=compute_kernel_config)
    return into(output, result)


def moreh_mean(input: Tensor, *, dim: Dims = None, keepdim: bool = False, divisor: Optional[int] = None,
               output: Optional[Tensor] = None, memory_config: Memory = None, compute_kernel_config: Config = None) -> Tensor:  # fmt: skip
    """Means along dims, or sums over a number that is given."""
    count = divisor or math.prod(input.shape[i] for i in _dims(input, dim))
    made = moreh_sum(input, dim, keepdim=keepdim, compute_kernel_config=compute_kernel_config)
    return into(output, e.multiply(made, 1.0 / count, memory_config=memory_config))


def moreh_softmax(input_tensor: Tensor, dim: int, *, output_tensor: Optional[Tensor] = None, memory_config: Memory = None,
                  compute_kernel_config: Config = None, **options: Any) -> Tensor:  # fmt: skip
    """Exponentials over their sum, along a dim."""
    made = products.softmax(input_tensor, dim, memory_config=memory_config, compute_kernel_config=compute_kernel_config)
    return into(output_tensor, made)


def moreh_softmin(input_tensor: Tensor, dim: int, **options: Any) -> Tensor:
    """softmax of the negative."""
    return moreh_softmax(e.neg(input_tensor), dim, **options)


def moreh_logsoftmax(
    input_tensor: Tensor,
    dim: int,
    *,
    output_tensor: Optional[Tensor] = None,
    strategy: Any = None,
    memory_config: Memory = None,
    compute_kernel_config: Config = None,
) -> Tensor:
    """The logarithm of the softmax along a dim."""
    (result,) = run("moreh_logsoftmax", [input_tensor], [input_tensor.shape], {"dim": dim}, memory_config=memory_config,
                    config=compute_kernel_config)  # fmt: skip
    return into(output_tensor, result)


def moreh_matmul(input: Tensor, other: Tensor, *, transpose_input: bool = False, transpose_other: bool = False,
                 output: Optional[Tensor] = None, bias: Optional[Tensor] = None, memory_config: Memory = None,
                 compute_kernel_config: Config = None) -> Tensor:  # fmt: skip
    """The product of two matrices, or of batches of them."""
    made = products.matmul(input, other, transpose_a=transpose_input, transpose_b=transpose_other, memory_config=memory_config,
                           compute_kernel_config=compute_kernel_config)  # fmt: skip
    return into(output, made if bias is None else e.add(made, bias, memory_config=memory_config))


def moreh_bmm(input: Tensor, mat2: Tensor, *, output: Optional[Tensor] = None, memory_config: Memory = None,
              compute_kernel_config: Config = None) -> Tensor:  # fmt: skip
    """Products of matrices of a batch."""
    return moreh_matmul(input, mat2, output=output, memory_config=memory_config, compute_kernel_config=compute_kernel_config)


def moreh_dot(input_tensor_a: Tensor, input_tensor_b: Tensor, *, output: Optional[Tensor] = None, dtype: Optional[DataType] = None,
              memory_config: Memory = None, compute_kernel_config: Config = None) -> Tensor:  # fmt: skip
    """The sum of the products of two vectors' elements."""
    return into(output, products.sum(input_tensor_a * input_tensor_b, -1, True, compute_kernel_config=compute_kernel_config))


def moreh_linear(input: Tensor, weight: Tensor, *, bias: Optional[Tensor] = None, output: Optional[Tensor] = None,
                 memory_config: Memory = None, compute_kernel_config: Config = None) -> Tensor:  # fmt: skip
    """The product with a weight [N, K], and a bias."""
    return moreh_matmul(input, weight, transpose_other=True, bias=bias, output=output, memory_config=memory_config,
                        compute_kernel_config=compute_kernel_config)  # fmt: skip


def moreh_cumsum(input: Tensor, dim: int, *, output: Optional[Tensor] = None, memory_config: Memory = None) -> Tensor:
    """Running sums along a dim."""
    return products.cumsum(input, dim, out=output, memory_config=memory_config)


def moreh_cumsum_backward(output_grad: Tensor, dim: int, *, input_grad: Optional[Tensor] = None, memory_config: Memory = None) -> Tensor:
    """Running sums from a dim's end on."""
    return products.cumsum(output_grad, dim, out=input_grad, memory_config=memory_config, reverse_order=True)


def moreh_arange(start: int = 0, end: Optional[int] = None, step: int = 1, device: Any = None, *, output: Optional[Tensor] = None,
                 untilize_out: bool = False, dtype: DataType = bfloat16, memory_config: Memory = None) -> Tensor:  # fmt: skip
    """Numbers at equal distances."""
    layout = Layout.ROW_MAJOR if untilize_out else Layout.TILE
    return into(output, Tensor(torch.arange(start, end, step), dtype, device, layout, memory_config))


def moreh_norm(
    input: Tensor,
    p: float,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    output: Optional[Tensor] = None,
    memory_config: Memory = None,
    compute_kernel_config: Config = None,
) -> Tensor:
    """The p-norm of the vectors along dims."""
    dims = _dims(input, dim)
    params = {"ord": float(p), "dims": dims, "keepdim": keepdim}
    (result,) = run("moreh_norm", [input], [products._reduced(input, dims, keepdim)], params, memory_config=memory_config)
    return into(output, result)


def moreh_layer_norm(input: Tensor, normalized_dims: int, eps: float = 1e-5, gamma: Optional[Tensor] = None, beta: Optional[Tensor] = None,
                     *, output: Optional[Tensor] = None, mean: Optional[Tensor] = None, rstd: Optional[Tensor] = None,
                     memory_config: Memory = None, compute_kernel_config: Config = None) -> list:  # fmt: skip
    """Mean 0 and variance 1 over the last dims: the result, and mean and inverse deviation where tensors are given for them."""
    shape, rows = input.shape, input.shape[: len(input.shape) - normalized_dims]
    flat = movement.reshape(input, (math.prod(rows), math.prod(shape[len(rows) :])))
    centre = products.mean(flat, -1, True)
    scale = e.rsqrt(products.var(flat, -1, True, correction=0) + eps)
    made = movement.reshape((flat - centre) * scale, shape)
    made = made if gamma is None else made * gamma
    made = made if beta is None else made + beta
    places_of = [(output, made), (mean, movement.reshape(centre, [*rows, 1] if mean is None else mean.shape))]
    places_of.append((rstd, movement.reshape(scale, [*rows, 1] if rstd is None else rstd.shape)))
    return [into(place, one) if i == 0 or place is not None else None for i, (place, one) in enumerate(places_of)]


def moreh_getitem(input: Tensor, index_tensors: Sequence[Tensor], index_dims: Sequence[int], *, output: Optional[Tensor] = None,
                  memory_config: Memory = None) -> Tensor:  # fmt: skip
    """Elements by numbers of these dims."""
    on_device("moreh_getitem", input, *index_tensors)
    if list(index_dims) != list(range(min(index_dims), max(index_dims) + 1)):
        raise fail("The index_dims must be consecutive")
    index = [slice(None)] * len(input.shape)
    for dim, one in zip(index_dims, index_tensors):
        index[dim] = one._values.long()
    return into(output, input._like(input._values[tuple(index)], memory_config=memory_config or input._memory_config))
