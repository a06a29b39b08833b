"""What changes shapes: reshape, permute, slices, padding, repetition, parts."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Union

import torch

from .calls import fail, into, on_device, run
from .tensor import Tensor, packed
from .types import FLOATS, Layout, MemoryConfig

Memory = Optional[MemoryConfig]


def _moved(function: str, tensor: Tensor, values: torch.Tensor, params: Any, memory_config: Memory, name: str) -> Tensor:
    """Integers move here, floats in the library: blocks get new exponents."""
    on_device(name, tensor)
    if tensor.dtype not in FLOATS or values.numel() == 0 or tensor.logical_volume() == 0:
        return tensor._like(values, memory_config=memory_config or tensor._memory_config)
    (result,) = run(function, [tensor], [values.shape], params, memory_config=memory_config or tensor._memory_config, name=name)
    return result


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _volume_of(tensor: Tensor, shape: Sequence[int]) -> List[int]:
    sizes, volume = [int(size) for size in shape], tensor.logical_volume()
    if sizes.count(-1) > 1:
        raise fail("Shape cannot have more than 1 elements that is set to -1!")
    if -1 in sizes:
        known = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = volume // known if known else 0
    if math.prod(sizes) != volume:
        raise fail(f"Invalid arguments to reshape: the volume of {tensor.shape} is not that of {sizes}")
    return sizes


def reshape(
    input_tensor: Tensor, shape: Sequence[int], *args: Any, memory_config: Memory = None, pad_value: Any = None, **options: Any
) -> Tensor:
    """The same elements in another shape; the tensor itself where it has it."""
    input_tensor._check()
    sizes = _volume_of(input_tensor, shape)
    if tuple(sizes) == tuple(input_tensor.shape) and memory_config in (None, input_tensor._memory_config):
        return input_tensor
    values = input_tensor._values.reshape(sizes)
    if input_tensor.device() is None:
        return input_tensor._like(values)
    return _moved("reshape", input_tensor, values, {"shape": sizes}, memory_config, "reshape")


def view(input_tensor: Tensor, shape: Sequence[int], **options: Any) -> Tensor:
    """reshape where no element moves: the last dim stays, in tiles the last but one too unless whole tiles are put together."""
    sizes, old = _volume_of(input_tensor, shape), list(input_tensor.shape)
    tiled = input_tensor.layout is Layout.TILE
    heights = [1 if len(one) < 2 else one[-2] for one in (sizes, old)]
    stays = sizes[-1:] == old[-1:] and (not tiled or heights[0] == heights[1] or all(one % 32 == 0 for one in heights))
    if input_tensor.device() is not None and input_tensor.logical_volume() > 1 and not stays:
        raise fail(f"view: {old} can't be seen as {sizes} where it lies")
    return reshape(input_tensor, sizes, **options)


def reshape_on_device(input_tensor: Tensor, *shape: Any, memory_config: Memory = None) -> Tensor:
    """reshape, with the sizes one by one or together."""
    on_device("reshape_on_device", input_tensor)
    return reshape(input_tensor, shape if isinstance(shape[0], int) else shape[0], memory_config=memory_config)


def unsqueeze(input_tensor: Tensor, dim: int) -> Tensor:
    """A dim of size 1 more."""
    rank = len(input_tensor.shape)
    if not -rank - 1 <= dim <= rank:
        raise fail(f"Dimension out of range (expected to be in range of [{-rank - 1}, {rank}], but got {dim})")
    return reshape(input_tensor, input_tensor._values.unsqueeze(dim).shape)


def squeeze(input_tensor: Tensor, dim: Any = None) -> Tensor:
    """Without dims of size 1."""
    rank = len(input_tensor.shape)
    dims = list(range(rank)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    for one in dims:
        if not -max(rank, 1) <= one < max(rank, 1):
            raise fail(f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, {max(rank, 1) - 1}], but got {one})")
    return reshape(input_tensor, input_tensor._values.squeeze(tuple(dims)).shape)


def unsqueeze_to_4D(input_tensor: Tensor) -> Tensor:
    """With leading dims of size 1, four in all."""
    if len(input_tensor.shape) > 4:
        raise RuntimeError("Tensor rank is greater than 4")
    return reshape(input_tensor, [1] * (4 - len(input_tensor.shape)) + list(input_tensor.shape))


def permute(input_tensor: Tensor, dims: Sequence[int], *, memory_config: Memory = None, pad_value: Any = None, **options: Any) -> Tensor:
    """Its dims in another order."""
    if len(dims) != len(input_tensor.shape):
        raise fail("The number of dimensions in the tensor input does not match the length of the desired ordering")
    order = [dim % len(dims) for dim in dims]
    return _moved("permute", input_tensor, input_tensor._values.permute(order), {"perm": order}, memory_config, "permute")


def transpose(input_tensor: Tensor, dim1: int, dim2: int, *, memory_config: Memory = None, pad_value: Any = None, **options: Any) -> Tensor:
    """Two of its dims swapped."""
    values = input_tensor._values.transpose(dim1, dim2)
    return _moved("transpose", input_tensor, values, {"dims": [dim1, dim2]}, memory_config, "transpose")


def concat(
    tensors: Sequence[Tensor],
    dim: int = 0,
    *,
    memory_config: Memory = None,
    output_tensor: Optional[Tensor] = None,
    groups: int = 1,
    sub_core_grids: Any = None,
) -> Tensor:
    """Tensors one behind the other; of several groups the parts of each tensor in turn."""
    if not tensors:
        raise fail("ttnn.concat: expected a non-empty list of Tensors!")
    on_device("concat", *tensors)
    first = tensors[0]
    if any(one.dtype is not first.dtype for one in tensors):
        raise fail("All dtypes must be equal")
    if any(len(one.shape) != len(first.shape) for one in tensors):
        raise fail("ttnn.concat: all ranks must be equal")
    if groups > 1:
        parts = [one._values.chunk(groups, dim) for one in tensors]
        values = torch.cat([part[group] for group in range(groups) for part in parts], dim)
        return into(output_tensor, first._like(packed(values, first.dtype), memory_config=memory_config or first._memory_config))
    values = torch.cat([one._values for one in tensors], dim)
    if len(tensors) == 1 or first.dtype not in FLOATS:
        return into(output_tensor, first._like(values, memory_config=memory_config or first._memory_config))
    (result,) = run("concat", list(tensors), [values.shape], {"dim": dim}, layout=first.layout, memory_config=memory_config)
    return into(output_tensor, result)


def stack(tensors: Sequence[Tensor], dim: int = 0, **options: Any) -> Tensor:
    """Tensors along a dim of their own."""
    rank = len(tensors[0].shape) + 1
    return concat([unsqueeze(one, dim % rank) for one in tensors], dim % rank, **options)


def slice(
    input_tensor: Tensor,
    starts: Any = None,
    ends: Any = None,
    steps: Any = None,
    *,
    slice_start: Any = None,
    slice_end: Any = None,
    slice_step: Any = None,
    memory_config: Memory = None,
    output_tensor: Optional[Tensor] = None,
    pad_value: Any = None,
    **options: Any,
) -> Tensor:
    """A part: from starts (included) to ends (excluded), every so many."""
    starts, ends, steps = (
        given if given is not None else other for given, other in ((starts, slice_start), (ends, slice_end), (steps, slice_step))
    )
    shape = input_tensor.shape
    if len(starts) != len(shape) or len(ends) != len(shape):
        raise fail(f"Input rank {len(shape)} and begins {len(starts)} must have the same size")
    ranges = [
        range(*_slice(start, end, step).indices(size)) for start, end, step, size in zip(starts, ends, steps or [1] * len(shape), shape)
    ]
    if any(len(one) and one.step < 1 for one in ranges):
        raise fail("Step must be positive")
    values = input_tensor._values[tuple(_slice(one.start, max(one.start, one.stop), one.step) for one in ranges)]
    params = {"start": [one.start for one in ranges], "end": [one.stop for one in ranges], "step": [one.step for one in ranges]}
    if input_tensor.device() is None:
        return input_tensor._like(packed(values, input_tensor.dtype))
    return into(output_tensor, _moved("slice", input_tensor, values, params, memory_config, "slice"))


_slice = __builtins__["slice"] if isinstance(__builtins__, dict) else __builtins__.slice


def getitem(tensor: Tensor, index: Any) -> Tensor:
    """What tensor[index] is: numbers, slices, ...; no tensors."""
    given = list(index) if isinstance(index, tuple) else [index]
    rank = len(tensor.shape)
    if Ellipsis in given:
        at = given.index(Ellipsis)
        given[at : at + 1] = [_slice(None)] * (rank - len(given) + 1)
    given += [_slice(None)] * (rank - len(given))
    if len(given) > rank:
        raise RuntimeError(f"Too many slices for tensor of rank {rank}")
    whole, kept = [], []
    for one, size in zip(given, tensor.shape):
        if isinstance(one, int):
            if not -size <= one < size:
                raise IndexError(f"index {one} is out of bounds for a dim of size {size}")
            whole.append(_slice(one % size, one % size + 1))
        elif isinstance(one, _slice):
            whole.append(one)
        else:
            raise NotImplementedError(f"ttnn.Tensor.__getitem__: an index of {type(one).__name__} is not emulated")
        kept.append(not isinstance(one, int))
    bounds = [one.indices(size) for one, size in zip(whole, tensor.shape)]
    part = slice(tensor, *[[one[i] for one in bounds] for i in range(3)])
    return part if all(kept) else reshape(part, [size for size, keep in zip(part.shape, kept) if keep])


def pad(
    input_tensor: Tensor,
    padding: Any = None,
    *args: Any,
    output_padded_shape: Optional[Sequence[int]] = None,
    input_tensor_start: Optional[Sequence[int]] = None,
    value: float = 0.0,
    use_multicore: bool = True,
    memory_config: Memory = None,
    sub_core_grids: Any = None,
) -> Tensor:
    """With elements before and after each dim: padding ((before, after), ...), of the last dims where they are fewer,
    and a value; or the shape of the output, where the input begins in it, and a value."""
    rank, rest = len(input_tensor.shape), list(args)
    if output_padded_shape is None and padding and isinstance(padding[0], int):
        output_padded_shape = padding
    if output_padded_shape is not None:
        start = rest.pop(0) if rest else input_tensor_start
        sizes = zip(output_padded_shape, start or (), input_tensor.shape)
        padding = [(before, whole - before - size) for whole, before, size in sizes]
        if len(padding) != rank or any(after < 0 for _, after in padding):
            raise fail(f"ttnn.pad: {input_tensor.shape} at {start} is not within {list(output_padded_shape)}")
    if len(rest) > 1 or padding is None:
        raise TypeError("ttnn.pad(): incompatible function arguments")
    value = rest[0] if rest else value
    if len(padding) > rank:
        raise fail(f"ttnn.pad: padding len ({len(padding)}) can't be larger than input tensor rank ({rank})")
    sides = [[0, 0]] * (rank - len(padding)) + [list(pair) for pair in padding]
    values = torch.nn.functional.pad(input_tensor._values, [side for pair in reversed(sides) for side in pair], value=value)
    return _moved("pad", input_tensor, values, {"padding": sides, "value": float(value)}, memory_config, "pad")


def repeat(input_tensor: Tensor, repeat_dims: Sequence[int], *, memory_config: Memory = None, **options: Any) -> Tensor:
    """So many times along each dim."""
    times = [int(one) for one in repeat_dims]
    if len(times) != len(input_tensor.shape):
        input_tensor = reshape(input_tensor, [1] * (len(times) - len(input_tensor.shape)) + list(input_tensor.shape))
    return _moved("repeat", input_tensor, input_tensor._values.repeat(*times), {"repeats": times}, memory_config, "repeat")


def repeat_interleave(input_tensor: Tensor, repeats: int, dim: int, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """Each position of a dim several times."""
    values = input_tensor._values.repeat_interleave(repeats, dim)
    return _moved("repeat_interleave", input_tensor, values, {"repeats": repeats, "dim": dim}, memory_config, "repeat_interleave")


def expand(input_tensor: Tensor, output_shape: Sequence[int], *, memory_config: Memory = None, **options: Any) -> Tensor:
    """Dims of size 1 repeated; -1 keeps a dim."""
    values = input_tensor._values.expand(*output_shape)
    return _moved("expand", input_tensor, values, {"shape": list(values.shape)}, memory_config, "expand")


def _parts(name: str, tensor: Tensor, parts: Sequence[torch.Tensor], dim: int, memory_config: Memory) -> List[Tensor]:
    out, at = [], 0
    for part in parts:
        starts, ends = [0] * part.dim(), list(tensor.shape)
        starts[dim], ends[dim] = at, at + part.shape[dim]
        at = ends[dim]
        out.append(slice(tensor, starts, ends, memory_config=memory_config))
    return out


def split(input_tensor: Tensor, split_size: Union[int, Sequence[int]], dim: int = 0, *, memory_config: Memory = None) -> List[Tensor]:
    """Parts of one size, or of these sizes."""
    on_device("split", input_tensor)
    sizes = split_size if isinstance(split_size, int) else list(split_size)
    return _parts("split", input_tensor, torch.split(input_tensor._values, sizes, dim), dim, memory_config)


def chunk(input_tensor: Tensor, num_chunks: int, dim: int = 0) -> List[Tensor]:
    """So many parts."""
    on_device("chunk", input_tensor)
    return _parts("chunk", input_tensor, torch.chunk(input_tensor._values, num_chunks, dim), dim, None)


def narrow(input_tensor: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A part of one dim."""
    dim %= len(input_tensor.shape)
    starts, ends = [0] * len(input_tensor.shape), list(input_tensor.shape)
    starts[dim], ends[dim] = start, start + length
    return slice(input_tensor, starts, ends)


def roll(input_tensor: Tensor, shifts: Union[int, Sequence[int]], dim: Union[None, int, Sequence[int]] = None) -> Tensor:
    """What leaves at the end of a dim comes in at its start; without a dim, of all elements in a row."""
    if dim is None:
        flat = reshape(input_tensor, [1, input_tensor.logical_volume()])
        return reshape(roll(flat, shifts, 1), input_tensor.shape)
    for shift, one in zip([shifts] if isinstance(shifts, int) else shifts, [dim] if isinstance(dim, int) else dim):
        size = input_tensor.shape[one]
        cut = -shift % size
        if cut:
            input_tensor = concat([narrow(input_tensor, one, cut, size - cut), narrow(input_tensor, one, 0, cut)], one)
    return input_tensor


def tril(input_tensor: Tensor, diagonal: int = 0, *, memory_config: Memory = None) -> Tensor:
    """The part below a diagonal, zero above."""
    (result,) = run("tril", [input_tensor], [input_tensor.shape], {"diagonal": diagonal}, memory_config=memory_config)
    return result


def triu(input_tensor: Tensor, diagonal: int = 0, *, memory_config: Memory = None) -> Tensor:
    """The part above a diagonal, zero below."""
    (result,) = run("triu", [input_tensor], [input_tensor.shape], {"diagonal": diagonal}, memory_config=memory_config)
    return result


def scatter(input: Tensor, dim: int, index: Tensor, src: Tensor, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """The input with elements of another tensor at these numbers along a dim."""
    if options.get("reduce") is not None:
        raise NotImplementedError("ttnn.scatter: reduce is not emulated")
    operands = [("x", input), ("index", index), ("src", src)]
    (result,) = run("scatter", operands, [input.shape], {"dim": dim}, memory_config=memory_config)
    return result


def gather(input: Tensor, dim: int, index: Tensor, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """Elements by their numbers along a dim."""
    (result,) = run("gather", [("x", input), ("index", index)], [index.shape], {"dim": dim}, memory_config=memory_config)
    return result


def tosa_gather(input: Tensor, index: Tensor, *, memory_config: Memory = None) -> Tensor:
    """[N, K, C] at numbers [N, W]: [N, W, C]."""
    on_device("tosa_gather", input, index)
    at = index._values.long().unsqueeze(-1).expand(-1, -1, input.shape[-1])
    return input._like(packed(input._values.gather(1, at), input.dtype), memory_config=memory_config or input._memory_config)


def tosa_scatter(input: Tensor, index: Tensor, source: Tensor, *, memory_config: Memory = None) -> Tensor:
    """[N, K, C] with rows of [N, W, C] at numbers [N, W]."""
    on_device("tosa_scatter", input, index, source)
    at = index._values.long().unsqueeze(-1).expand(-1, -1, input.shape[-1])
    values = input._values.scatter(1, at, source._values)
    return input._like(packed(values, input.dtype), memory_config=memory_config or input._memory_config)


def slice_write(input_tensor: Tensor, output_tensor: Tensor, start: Sequence[int], end: Sequence[int], step: Sequence[int]) -> Tensor:
    """A tensor into a part of another, in its place."""
    on_device("slice_write", input_tensor, output_tensor)
    part = tuple(_slice(a, b, c) for a, b, c in zip(start, end, step))
    values = output_tensor._values.clone()
    values[part] = input_tensor._values.reshape(values[part].shape)
    output_tensor._values = packed(values, output_tensor.dtype)
    return output_tensor
