"""Products of matrices, norms, softmax, reductions, embeddings."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import torch

from .calls import fail, into, on_device, run
from .eltwise import activated, binary, in_dest, spread
from .tensor import Tensor, packed
from .types import (
    BLOCKS,
    FLOATS,
    BufferType,
    DataType,
    EmbeddingsType,
    Layout,
    MemoryConfig,
    Tile,
    WormholeComputeKernelConfig,
    bfloat16,
    uint16,
    uint32,
)

Config = Optional[WormholeComputeKernelConfig]


def _turned(shape: Sequence[int], turn: bool) -> Tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if turn and len(shape) > 1 else tuple(shape)


def _as_matrix(b: Tensor) -> Tensor:
    """A vector as one column."""
    return b if len(b.shape) > 1 else b._like(b._values.reshape(-1, 1))


def _fits(left: Sequence[int], right: Sequence[int]) -> None:
    if not left or len(right) < 2 or left[-1] != right[-2]:
        raise fail(
            f"The width of the first tensor must be equal to the height of the second tensor. Mismatch: width={left[-1] if left else 1} "
            f"height={right[-2] if len(right) > 1 else 1}"
        )


def _in_dram(config: Optional[MemoryConfig]) -> bool:
    return config is None or (config.buffer_type is BufferType.DRAM and not config.is_sharded())


def _is_added(bias: Optional[Tensor], a: Tensor, b: Tensor, memory_config: Optional[MemoryConfig], chosen: bool) -> bool:
    """Whether a bias is a sum of its own: where it has several rows, or where the program is not `chosen` by the caller and
    operands or the result lie elsewhere than in DRAM, interleaved."""
    if bias is None:
        return False
    if len(bias.shape) > 1 and any(size != 1 for size in bias.shape[:-1]):
        return True
    if chosen:
        return False
    if memory_config is not None and memory_config.buffer_type is not BufferType.DRAM:
        return True
    return not a.is_sharded() and not all(_in_dram(one) for one in (a._memory_config, b._memory_config, memory_config))


def _product(
    a: Tensor,
    b: Tensor,
    bias: Optional[Tensor],
    transpose_a: bool,
    transpose_b: bool,
    memory_config: Optional[MemoryConfig],
    dtype: Optional[DataType],
    program_config: Any,
    activation: Any,
    config: Config,
    grid: Any,
    tile: Any,
    optional_output_tensor: Optional[Tensor],
) -> Tensor:
    on_device("matmul", a, b, bias)
    if a.layout is not Layout.TILE or b.layout is not Layout.TILE:
        raise fail("Inputs to matmul must be tilized")
    vector, b = len(b.shape) == 1, _as_matrix(b)
    left, right = _turned(a.shape, transpose_a), _turned(b.shape, transpose_b)
    _fits(left, right)
    batches = torch.broadcast_shapes(left[:-2], right[:-2])
    shape = (*batches, *left[-2:-1], right[-1])
    if bias is not None and any(size != 1 for size in right[:-2]):
        raise fail("Batched input not supported when bias exists (linear operation).")
    if any(size != 1 for size in right[:-2]):  # one matrix for all stays one
        a, b = spread(a, (*batches, *a.shape[-2:])), spread(b, (*batches, *b.shape[-2:]))
    params: dict = {"transpose_a": transpose_a or None, "transpose_b": transpose_b or None}
    block = getattr(program_config, "in0_block_w", None)
    if block is not None:
        if -(-left[-1] // 32) % block != 0:
            raise fail("Kt must be divisible by in0_block_w")
        params["in0_block_w"] = block
    # A program configuration's activation, and one beside a grid of cores, act in Dest; any other is a function of its own.
    fused = getattr(program_config, "fused_activation", None) or (activation if grid is not None and program_config is None else None)
    after = activation if fused is not activation else None
    if fused is not None and in_dest(fused) is None:
        fused, after = None, fused
    if fused is not None:
        params |= {"activation": in_dest(fused), "fused": True}
    if dtype is None and optional_output_tensor is not None:
        dtype = optional_output_tensor.dtype
    if dtype is not None:
        params["out_dtype"] = dtype.value
    operands = [("a", a), ("b", b)]
    if bias is not None and len(bias.shape) > 1 and bias.shape[-2] == 32 and shape[-2] != 32:  # a tile whose first row counts
        bias = bias._like(bias._values[..., :1, :])
    added = _is_added(bias, a, b, memory_config, program_config is not None or grid is not None)
    if bias is not None and not added:
        operands.append(("bias", bias))
    name = "linear" if fused is not None or len(operands) > 2 else "matmul"
    (result,) = run(name, operands, [shape], params, dtype=dtype, memory_config=memory_config, config=config)
    if added:
        result = binary("add", result, bias, memory_config=memory_config)
    if after is not None:
        result = activated(result, after)
    if vector:
        result = result._like(result._values.reshape(shape[:-1]))
    result._tile = tile or (a._tile and Tile((a.tile.tile_shape[0], b.tile.tile_shape[1])))
    return into(optional_output_tensor, result)


def matmul(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    memory_config: Optional[MemoryConfig] = None,
    dtype: Optional[DataType] = None,
    program_config: Any = None,
    activation: Any = None,
    compute_kernel_config: Config = None,
    core_grid: Any = None,
    output_tile: Any = None,
    optional_output_tensor: Optional[Tensor] = None,
    global_cb: Any = None,
    sub_device_id: Any = None,
) -> Tensor:
    """The product of two matrices, or of batches of them."""
    return _product(input_tensor_a, input_tensor_b, None, transpose_a, transpose_b, memory_config, dtype,
                    program_config, activation, compute_kernel_config, core_grid, output_tile, optional_output_tensor)  # fmt: skip


def linear(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    bias: Optional[Tensor] = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    memory_config: Optional[MemoryConfig] = None,
    dtype: Optional[DataType] = None,
    program_config: Any = None,
    activation: Any = None,
    compute_kernel_config: Config = None,
    core_grid: Any = None,
    output_tile: Any = None,
    optional_output_tensor: Optional[Tensor] = None,
    global_cb: Any = None,
    sub_device_id: Any = None,
) -> Tensor:
    """The product with a weight [K, N], a bias and an activation behind it."""
    return _product(input_tensor_a, input_tensor_b, bias, transpose_a, transpose_b, memory_config, dtype,
                    program_config, activation, compute_kernel_config, core_grid, output_tile, optional_output_tensor)  # fmt: skip


def addmm(
    input_tensor: Tensor, mat1_tensor: Tensor, mat2_tensor: Tensor, *, alpha: float = 1.0, beta: float = 1.0, **options: Any
) -> Tensor:
    """alpha mat1 @ mat2 + beta input."""
    product = matmul(mat1_tensor, mat2_tensor, **options)
    if alpha != 1.0:
        product = binary("multiply", product, alpha)
    added = binary("multiply", input_tensor, beta) if beta != 1.0 else input_tensor
    return binary("add", product, added) if beta != 0.0 else product


# ---- rows ------------------------------------------------------------------------------------------------------------


def layer_norm(
    input_tensor: Tensor,
    *,
    epsilon: float = 1e-12,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    residual_input_tensor: Optional[Tensor] = None,
    memory_config: Optional[MemoryConfig] = None,
    program_config: Any = None,
    compute_kernel_config: Config = None,
    recip_tensor: Any = None,
    name: str = "layer_norm",
) -> Tensor:
    """Rows with mean 0 and variance 1, times a weight, plus a bias; of the sum with a residual where there is one."""
    operands = [("x", input_tensor)]
    operands += [(key, one) for key, one in (("w", weight), ("b", bias), ("residual", residual_input_tensor)) if one is not None]
    params = {"epsilon": epsilon, "residual_input_tensor": True if residual_input_tensor is not None else None}
    (result,) = run(name, operands, [input_tensor.shape], params, memory_config=memory_config, config=compute_kernel_config)
    return result


def rms_norm(
    input_tensor: Tensor,
    *,
    epsilon: float = 1e-12,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    residual_input_tensor: Optional[Tensor] = None,
    memory_config: Optional[MemoryConfig] = None,
    program_config: Any = None,
    compute_kernel_config: Config = None,
) -> Tensor:
    """Rows over the root of the mean of their squares, times a weight."""
    return layer_norm(input_tensor, epsilon=epsilon, weight=weight, bias=bias, residual_input_tensor=residual_input_tensor,
                      memory_config=memory_config, compute_kernel_config=compute_kernel_config, name="rms_norm")  # fmt: skip


def softmax(
    input_tensor: Tensor,
    dim: int = -1,
    *,
    memory_config: Optional[MemoryConfig] = None,
    compute_kernel_config: Config = None,
    numeric_stable: Optional[bool] = None,
    optional_output_tensor: Optional[Tensor] = None,
) -> Tensor:
    """Exponentials over their sum, along a dim."""
    params = {"dim": dim, "numeric_stable": numeric_stable}
    (result,) = run("softmax", [input_tensor], [input_tensor.shape], params, memory_config=memory_config, config=compute_kernel_config)
    return into(optional_output_tensor, result)


def softmax_in_place(input_tensor: Tensor, dim: int = -1, **options: Any) -> Tensor:
    """softmax in the place of its input."""
    options.pop("program_config", None)
    return into(input_tensor, softmax(input_tensor, dim, **options))


def scale_mask_softmax(
    input_tensor: Tensor,
    scale: Optional[float] = None,
    mask: Optional[Tensor] = None,
    *,
    memory_config: Optional[MemoryConfig] = None,
    is_causal_mask: bool = False,
    compute_kernel_config: Config = None,
    numeric_stable: bool = True,
    program_config: Any = None,
) -> Tensor:
    """softmax(x scale + mask), of which the first row of a mask counts, and all rows of a causal one."""
    operands = [("x", input_tensor)] + ([("mask", mask)] if mask is not None else [])
    params = {"scale": 1.0 if scale is None else scale, "causal": True if is_causal_mask else None}
    (result,) = run("scale_mask_softmax", operands, [input_tensor.shape], params, memory_config=memory_config, config=compute_kernel_config)
    return result


def scale_mask_softmax_in_place(input_tensor: Tensor, scale: Any = None, mask: Any = None, **options: Any) -> Tensor:
    """scale_mask_softmax in the place of its input."""
    options.pop("program_config", None)
    return into(input_tensor, scale_mask_softmax(input_tensor, scale, mask, **options))


def scale_causal_mask_hw_dims_softmax_in_place(input_tensor: Tensor, scale: Any = None, mask: Any = None, **options: Any) -> Tensor:
    """scale_mask_softmax with a causal mask, in the place of its input."""
    return scale_mask_softmax_in_place(input_tensor, scale, mask, is_causal_mask=True, **options)


# ---- reductions ------------------------------------------------------------------------------------------------------

Dims = Union[None, int, Sequence[int]]


def _dims(tensor: Tensor, dim: Dims) -> List[int]:
    rank = len(tensor.shape)
    given = range(rank) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    for one in given:
        if not -rank <= one < rank:
            raise fail(f"Unsupported dim {one} for tensor with rank {rank}")
    return sorted({one % rank for one in given})


def _reduced(tensor: Tensor, dims: Sequence[int], keepdim: bool) -> List[int]:
    sizes = [1 if i in dims else size for i, size in enumerate(tensor.shape)]
    return sizes if keepdim else [size for i, size in enumerate(sizes) if i not in dims]


def _reduction(name: str) -> Callable[..., Tensor]:
    def function(
        input_tensor: Tensor,
        dim: Dims = None,
        keepdim: bool = False,
        *,
        memory_config: Optional[MemoryConfig] = None,
        compute_kernel_config: Config = None,
        scalar: float = 1.0,
        correction: Any = None,
        sub_core_grids: Any = None,
        dtype: Optional[DataType] = None,
    ) -> Tensor:
        dims = _dims(input_tensor, dim)
        if name == "sum" and input_tensor.dtype not in FLOATS:
            return _whole_sum(input_tensor, dims, keepdim, memory_config)
        spread_of = name in ("var", "std")
        if spread_of and len(dims) > 1:  # the library has them along one dim
            return _spread_over(name, input_tensor, dims, keepdim, correction, memory_config, compute_kernel_config, scalar)
        params = {"dim": dims[0] if spread_of else dims}
        if correction is not None and spread_of:
            params["correction"] = correction
        shape = _reduced(input_tensor, dims, keepdim)
        (result,) = run(name, [input_tensor], [shape], params, dtype=dtype, memory_config=memory_config, config=compute_kernel_config)
        return binary("multiply", result, scalar) if scalar != 1.0 else result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} along dims, or of all elements."
    return function


def _whole_sum(x: Tensor, dims: List[int], keepdim: bool, memory_config: Optional[MemoryConfig]) -> Tensor:
    """Of integers, which wrap."""
    on_device("sum", x)
    total = x._values.sum(dims, keepdim=keepdim) if x._values.dim() else x._values
    return x._like(packed(total, x.dtype), memory_config=memory_config)


def _spread_over(
    name: str, x: Tensor, dims: List[int], keepdim: bool, correction: Any, memory: Any, config: Config, scalar: float
) -> Tensor:
    """Variance or deviation over several dims: over one that they are made into."""
    from .movement import permute, reshape

    kept = [i for i in range(len(x.shape)) if i not in dims]
    flat = reshape(permute(x, [*kept, *dims]), [*(x.shape[i] for i in kept), -1])
    function = var if name == "var" else std
    made = function(flat, -1, False, correction=correction, memory_config=memory, compute_kernel_config=config, scalar=scalar)
    return reshape(made, _reduced(x, dims, keepdim))


sum, mean, max, min, prod, var, std = (_reduction(one) for one in ("sum", "mean", "max", "min", "prod", "var", "std"))


def argmax(
    input_tensor: Tensor,
    dim: Optional[int] = None,
    keepdim: bool = False,
    *,
    memory_config: Optional[MemoryConfig] = None,
    use_multicore: bool = False,
    output_tensor: Optional[Tensor] = None,
    sub_core_grids: Any = None,
) -> Tensor:
    """Where the largest element of each row is, in uint32."""
    dims = _dims(input_tensor, dim)
    params = {"dim": dim, "keepdim": keepdim}
    shape = _reduced(input_tensor, dims, keepdim)
    (result,) = run("argmax", [input_tensor], [shape], params, dtype=uint32, layout=Layout.ROW_MAJOR, memory_config=memory_config)
    return into(output_tensor, result)


def _with_indices(name: str, tensor: Tensor, shape: Sequence[int], params: Any, out: Any, memory_config: Any) -> Tuple[Tensor, Tensor]:
    """Values and where they were; in the tensors of `out` where there are some, whose indices may be wider."""
    from .places import typecast

    wide = typecast(tensor, bfloat16) if tensor.dtype in BLOCKS else tensor  # as their values lie in Dest
    values, indices = run(name, [wide], [shape, shape], params, dtype=[wide.dtype, uint16], memory_config=memory_config)
    values = typecast(values, tensor.dtype)
    if tensor.shape and tensor.shape[params["dim"]] > 65535:
        indices = indices._like(indices._values, dtype=uint32)
    if out is None:
        return values, indices
    return into(out[0], values), into(out[1], indices._like(indices._values, dtype=out[1].dtype))


def topk(
    input_tensor: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    memory_config: Any = None,
    output_tensor: Any = None,
    out: Any = None,
    indices_tensor: Optional[Tensor] = None,
    sub_core_grids: Any = None,
) -> Tuple[Tensor, Tensor]:
    """The k largest or smallest elements along a dim, and where they are (uint16): by the numbers of another tensor where
    there is one."""
    shape = list(input_tensor.shape)
    shape[dim] = k
    params = {"k": k, "dim": dim, "largest": largest, "sorted": sorted}
    values, at = _with_indices("topk", input_tensor, shape, params, out or output_tensor, memory_config)
    if indices_tensor is not None:
        at = at._like(indices_tensor._values.gather(dim, at._values), dtype=indices_tensor.dtype)
    return values, at


def sort(
    input_tensor: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, *, memory_config: Any = None, out: Any = None
) -> Tuple[Tensor, Tensor]:
    """Elements in order along a dim, and where they were (uint16)."""
    params = {"dim": dim, "descending": descending, "stable": stable}
    return _with_indices("sort", input_tensor, input_tensor.shape, params, out, memory_config)


def _scan(name: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        dim: int,
        *,
        dtype: Optional[DataType] = None,
        memory_config: Any = None,
        reverse_order: bool = False,
        out: Optional[Tensor] = None,
    ) -> Tensor:
        dtype = dtype or (out.dtype if out is not None else None)
        backwards = lambda one: one._like(one._values.flip(dim)) if reverse_order else one  # noqa: E731
        (result,) = run(name, [backwards(input)], [input.shape], {"dim": dim}, dtype=dtype, memory_config=memory_config)
        return into(out, backwards(result))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} along a dim, from its start or its end on."
    return function


cumsum, cumprod = _scan("cumsum"), _scan("cumprod")


def embedding(
    input_tensor: Tensor,
    weight: Tensor,
    *,
    padding_idx: Optional[int] = None,
    layout: Optional[Layout] = None,
    embeddings_type: Any = None,
    dtype: Optional[DataType] = None,
    memory_config: Optional[MemoryConfig] = None,
    output_tensor: Optional[Tensor] = None,
) -> Tensor:
    """Rows of a table by their numbers."""
    if padding_idx is not None or embeddings_type not in (None, EmbeddingsType.GENERIC):
        raise NotImplementedError("ttnn.embedding: padding_idx and tables of two rows are not emulated")
    if input_tensor.logical_volume() and int(input_tensor._values.max()) >= weight.shape[-2]:
        raise fail(f"embedding: an index is not below {weight.shape[-2]}, the number of rows")
    shape = (*input_tensor.shape, weight.shape[-1])
    (result,) = run("embedding", [("ids", input_tensor), ("w", weight)], [shape], dtype=dtype or weight.dtype,
                    layout=layout or Layout.ROW_MAJOR, memory_config=memory_config)  # fmt: skip
    return into(output_tensor, result)


def fast_reduce_nc(
    input: Tensor,
    dims: Sequence[int],
    *,
    output: Optional[Tensor] = None,
    memory_config: Any = None,
    compute_kernel_config: Config = None,
    **options: Any,
) -> Tensor:
    """ttnn.experimental: sums over dims that are not the last two."""
    return into(output, sum(input, list(dims), True, memory_config=memory_config, compute_kernel_config=compute_kernel_config))


def intimg(input_tensor: Tensor, **options: Any) -> Tensor:
    """ttnn.experimental: the sum of all that lies above and left, in [batch, height, width, channels]."""
    return cumsum(cumsum(input_tensor, 1), 2)


def minimal_matmul(
    input_tensor: Tensor, weight_tensor: Tensor, bias_tensor: Optional[Tensor] = None, fused_activation: Any = None, config: Any = None,
    *, memory_config: Any = None, dtype: Optional[DataType] = None, compute_kernel_config: Config = None, **options: Any,
) -> Tensor:  # fmt: skip
    """ttnn.experimental: the product with a weight, a bias and an activation."""
    return linear(input_tensor, weight_tensor, bias=bias_tensor, activation=fused_activation, memory_config=memory_config, dtype=dtype,
                  compute_kernel_config=compute_kernel_config)  # fmt: skip
