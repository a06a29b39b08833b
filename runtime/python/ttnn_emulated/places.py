"""Where tensors lie and in which format; constants; shards."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence

import torch

from .calls import fail, into, on_device, run
from .device import Device
from .specs import TensorSpec
from .tensor import Tensor, packed
from .types import (
    BLOCKS,
    DRAM_MEMORY_CONFIG,
    FLOATS,
    BufferType,
    CoreCoord,
    CoreGrid,
    CoreRange,
    CoreRangeSet,
    DataType,
    Layout,
    MemoryConfig,
    Shape,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
    bfloat16,
    padded,
)

Memory = Optional[MemoryConfig]


# ---- host and device -------------------------------------------------------------------------------------------------


def from_torch(
    tensor: Any,
    dtype: Optional[DataType] = None,
    *,
    spec: Any = None,
    tile: Any = None,
    pad_value: Optional[float] = None,
    layout: Optional[Layout] = None,
    device: Optional[Device] = None,
    memory_config: Memory = None,
    mesh_mapper: Any = None,
    cq_id: Optional[int] = None,
    **options: Any,
) -> Optional[Tensor]:
    """A torch tensor as a tensor of TT-NN's, on the host or on a device; None of None."""
    if tensor is None:
        return None
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"ttnn.from_torch: {name} is not emulated")
    if spec is not None:
        if tuple(spec.shape) != tuple(tensor.shape):
            raise RuntimeError(f"ttnn.from_torch: Tensor shape {list(tensor.shape)} does not match that of spec {spec.shape}")
        dtype, layout, memory_config = spec.dtype, spec.layout, spec.memory_config
    if memory_config is not None and memory_config.is_sharded() and not (memory_config.shard_spec or memory_config.nd_shard_spec):
        raise RuntimeError("ttnn.from_torch: Shard spec must not be None for sharded tensors")
    return Tensor(tensor, dtype, device, layout, memory_config, tile)


def as_tensor(
    tensor: Any,
    dtype: Optional[DataType] = None,
    *,
    layout: Optional[Layout] = None,
    device: Optional[Device] = None,
    memory_config: Memory = None,
    cache_file_name: Any = None,
    preprocess: Any = None,
    mesh_mapper: Any = None,
    use_device_tilizer: bool = False,
) -> Optional[Tensor]:
    """from_torch behind a function of one's own; converting is quick here, so that nothing is cached in a file."""
    return from_torch(
        preprocess(tensor) if preprocess is not None else tensor, dtype, layout=layout, device=device, memory_config=memory_config
    )


def to_torch(
    tensor: Tensor,
    dtype: Optional[torch.dtype] = None,
    *,
    torch_rank: Optional[int] = None,
    mesh_composer: Any = None,
    device: Optional[Device] = None,
    cq_id: Optional[int] = None,
) -> torch.Tensor:
    """The values as a torch tensor: bfloat16 as bfloat16, block formats as float32."""
    found = tensor.to_torch()
    while torch_rank is not None and found.dim() > torch_rank:
        if found.shape[0] != 1:
            raise RuntimeError("ttnn: Unable to squeeze to desired rank!")
        found = found.squeeze(0)
    return found if dtype is None else found.to(dtype)


def to_device(tensor: Tensor, device: Device, memory_config: Memory = None, *, cq_id: Any = None, queue_id: Any = None) -> Tensor:
    """To a device."""
    tensor._check()
    return tensor._like(tensor._values, device=device, memory_config=memory_config)


def from_device(tensor: Tensor, *, blocking: bool = True, cq_id: Any = None, queue_id: Any = None) -> Tensor:
    """To the host."""
    return tensor.cpu()


def deallocate(tensor: Tensor, force: bool = True) -> None:
    """Frees its memory; the tensor can't be read any more."""
    tensor.deallocate(force)


def reallocate(tensor: Tensor, memory_config: Memory = None) -> Tensor:
    """The tensor at another place."""
    tensor._check()
    values = tensor._values
    tensor.deallocate()
    return tensor._like(values, memory_config=memory_config or tensor._memory_config)


move = reallocate


def clone(tensor: Tensor, *, dtype: Optional[DataType] = None, memory_config: Memory = None, compute_kernel_config: Any = None) -> Tensor:
    """A copy, in another format where one is given."""
    on_device("clone", tensor)
    made = tensor._like(tensor._values.clone(), memory_config=memory_config or tensor._memory_config)
    return made if dtype is None else typecast(made, dtype)


def to_memory_config(tensor: Tensor, memory_config: MemoryConfig, dtype: Optional[DataType] = None, **options: Any) -> Tensor:
    """To another kind of memory on the device."""
    on_device("to_memory_config", tensor)
    made = tensor._like(tensor._values, memory_config=memory_config)
    return made if dtype is None else typecast(made, dtype)


def interleaved_to_sharded(tensor: Tensor, memory_config: Any, *args: Any, **options: Any) -> Tensor:
    """To shards over cores."""
    if not isinstance(memory_config, MemoryConfig):  # a grid, the shape of a shard, how they are dealt, in which order
        shard_shape, scheme, order, *rest = args
        grid = memory_config
        if isinstance(grid, CoreCoord):
            grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(grid.x - 1, grid.y - 1))])
        memory_config = MemoryConfig(scheme, BufferType.L1, ShardSpec(grid, tuple(shard_shape), order))
        options.setdefault("output_dtype", rest[0] if rest else None)
    return to_memory_config(tensor, memory_config, options.get("output_dtype"))


def sharded_to_interleaved(tensor: Tensor, memory_config: MemoryConfig = DRAM_MEMORY_CONFIG, **options: Any) -> Tensor:
    """From shards to interleaved pages."""
    return to_memory_config(tensor, memory_config)


def typecast(tensor: Tensor, dtype: DataType, output_dtype: Any = None, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """In another format, as the device converts."""
    if tensor.dtype is dtype:
        return tensor
    if tensor.device() is None:
        return to_dtype(tensor, dtype)
    (result,) = run("typecast", [tensor], [tensor.shape], {"to": dtype.value}, dtype=dtype,
                    layout=tensor.layout, memory_config=memory_config or tensor._memory_config)  # fmt: skip
    return result


def to_dtype(tensor: Tensor, dtype: DataType) -> Tensor:
    """In another format, as the host converts."""
    layout = Layout.TILE if dtype in BLOCKS else tensor.layout
    return tensor._like(packed(tensor._values, dtype), dtype=dtype, layout=layout)


def to_layout(tensor: Tensor, layout: Layout, dtype: Optional[DataType] = None, memory_config: Memory = None, **options: Any) -> Tensor:
    """In another layout; padding is the library's business."""
    tensor._check()
    if tensor.dtype in BLOCKS and layout is Layout.ROW_MAJOR:
        tensor = typecast(tensor, bfloat16)  # rows hold no blocks
    made = tensor._like(tensor._values, layout=layout, memory_config=memory_config or tensor._memory_config)
    return made if dtype is None else typecast(made, dtype)


def tilize_with_val_padding(tensor: Tensor, output_tensor_shape: Any = None, pad_value: float = 0.0, **options: Any) -> Tensor:
    """In tiles, filled up with this value."""
    on_device("tilize_with_val_padding", tensor)
    made = to_layout(tensor, Layout.TILE, options.get("dtype"), options.get("memory_config"))
    made = made._like(made._values) if made is tensor else made
    made._padding = float(pad_value)
    return made


def untilize_with_unpadding(tensor: Tensor, output_tensor_end: Any = None, **options: Any) -> Tensor:
    """In rows, up to these elements (included)."""
    on_device("untilize_with_unpadding", tensor)
    rows = to_layout(tensor, Layout.ROW_MAJOR, None, options.get("memory_config"))
    if output_tensor_end is None:
        return rows
    from .movement import slice as part

    return part(rows, [0] * len(rows.shape), [int(end) + 1 for end in output_tensor_end])


def fill_implicit_tile_padding(tensor: Tensor, fill_value: float, *, memory_config: Memory = None) -> Tensor:
    """With one value in what fills up the tiles: no function here takes that for a value of its own."""
    on_device("fill_implicit_tile_padding", tensor)
    made = tensor._like(tensor._values, memory_config=memory_config or tensor._memory_config)
    made._padding = float(fill_value)
    return made


def fill(tensor: Tensor, fill_value: float, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """One value everywhere, in the shape of a tensor."""
    return full_like(tensor, fill_value, memory_config=memory_config)


def assign(tensor: Tensor, *args: Any, memory_config: Memory = None, dtype: Optional[DataType] = None, **options: Any) -> Tensor:
    """A copy, or the values in another tensor."""
    if args and isinstance(args[0], Tensor):
        return into(args[0], tensor)
    return clone(tensor, dtype=dtype, memory_config=memory_config)


def allocate_tensor_on_device(shape: Any, *args: Any, memory_config: Memory = None) -> Tensor:
    """A tensor whose values are still to come: of a shape, format, layout and device, or of a spec and a device."""
    if isinstance(shape, TensorSpec):
        return zeros(shape.shape, shape.dtype, shape.layout, args[0], shape.memory_config)
    dtype, layout, device, *rest = args
    return zeros(shape, dtype, layout, device, rest[0] if rest else memory_config)


def allocate_tensor_on_host(shape: Any, *args: Any, **options: Any) -> Tensor:
    """A tensor on the host whose values are still to come."""
    if isinstance(shape, TensorSpec):
        return zeros(shape.shape, shape.dtype, shape.layout)
    return zeros(shape, args[0], args[1])


def copy_device_to_host_tensor(device_tensor: Tensor, host_tensor: Tensor, blocking: bool = True, cq_id: Any = None) -> None:
    """The values of a tensor on a device into one on the host."""
    into(host_tensor, device_tensor.cpu())


def copy_host_to_device_tensor(host_tensor: Tensor, device_tensor: Tensor, cq_id: Any = None) -> None:
    """The values of a tensor on the host into one on a device."""
    into(device_tensor, host_tensor._like(host_tensor._values))


def pearson_correlation_coefficient(expected: Any, actual: Any) -> float:
    """How far two tensors vary together."""
    a, b = [(to_torch(one) if isinstance(one, Tensor) else one).detach().double().flatten() for one in (expected, actual)]
    if torch.equal(a, b):
        return 1.0
    return float(torch.corrcoef(torch.stack([a, b]))[0, 1])


def tilize(tensor: Tensor, *, memory_config: Memory = None, dtype: Optional[DataType] = None, **options: Any) -> Tensor:
    """In tiles; the last two dims are whole tiles already."""
    on_device("tilize", tensor)
    if any(size % 32 for size in tensor.shape[-2:]):
        raise fail("tilize: the last two dims must be divisible by 32")
    return to_layout(tensor, Layout.TILE, dtype, memory_config)


def tilize_with_zero_padding(tensor: Tensor, *, memory_config: Memory = None, dtype: Any = None, **options: Any) -> Tensor:
    """In tiles, filled up with zeros."""
    on_device("tilize_with_zero_padding", tensor)
    return to_layout(tensor, Layout.TILE, dtype, memory_config)


def untilize(tensor: Tensor, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """In rows."""
    on_device("untilize", tensor)
    return to_layout(tensor, Layout.ROW_MAJOR, None, memory_config)


# ---- constants -------------------------------------------------------------------------------------------------------


def full(
    shape: Sequence[int],
    fill_value: float,
    *,
    dtype: Optional[DataType] = None,
    layout: Optional[Layout] = None,
    device: Optional[Device] = None,
    memory_config: Memory = None,
    optional_tensor: Optional[Tensor] = None,
) -> Tensor:
    """One value everywhere."""
    dtype = dtype or bfloat16
    values = torch.full(tuple(shape), float(fill_value) if dtype in FLOATS else int(fill_value))
    return into(optional_tensor, Tensor(values, dtype, device, layout or Layout.ROW_MAJOR, memory_config))


def zeros(
    shape: Sequence[int],
    dtype: Optional[DataType] = None,
    layout: Optional[Layout] = None,
    device: Optional[Device] = None,
    memory_config: Memory = None,
) -> Tensor:
    """Zeros."""
    return full(shape, 0, dtype=dtype, layout=layout, device=device, memory_config=memory_config)


def ones(
    shape: Sequence[int],
    dtype: Optional[DataType] = None,
    layout: Optional[Layout] = None,
    device: Optional[Device] = None,
    memory_config: Memory = None,
) -> Tensor:
    """Ones."""
    return full(shape, 1, dtype=dtype, layout=layout, device=device, memory_config=memory_config)


empty = zeros


def full_like(
    tensor: Tensor,
    fill_value: float,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    memory_config: Memory = None,
    **options: Any,
) -> Tensor:
    """One value everywhere, in the shape and place of a tensor."""
    return full(tensor.shape, fill_value, dtype=dtype or tensor.dtype, layout=layout or tensor.layout,
                device=device or tensor.device(), memory_config=memory_config)  # fmt: skip


def zeros_like(tensor: Tensor, **options: Any) -> Tensor:
    """Zeros in the shape and place of a tensor."""
    return full_like(tensor, 0, **options)


def ones_like(tensor: Tensor, **options: Any) -> Tensor:
    """Ones in the shape and place of a tensor."""
    return full_like(tensor, 1, **options)


empty_like = zeros_like


def moreh_full(shape: Sequence[int], fill_value: float, device: Device, *, dtype: Optional[DataType] = None, layout: Layout = Layout.TILE,
               memory_config: Memory = None) -> Tensor:  # fmt: skip
    """One value everywhere."""
    return full(shape, fill_value, dtype=dtype, layout=layout, device=device, memory_config=memory_config)


def moreh_full_like(input: Tensor, fill_value: float, *, dtype: Any = None, layout: Any = None, memory_config: Memory = None) -> Tensor:
    """One value everywhere, in the shape and place of a tensor."""
    return full_like(input, fill_value, dtype=dtype, layout=layout, memory_config=memory_config)


def arange(*range_of: int, start: Optional[int] = None, end: Optional[int] = None, step: int = 1, dtype: DataType = bfloat16,
           device: Optional[Device] = None, layout: Layout = Layout.ROW_MAJOR, memory_config: Memory = None) -> Tensor:  # fmt: skip
    """Numbers one after the other."""
    if range_of:
        start, end, step = (range_of[0], range_of[1], *range_of[2:], step)[:3] if len(range_of) > 1 else (0, range_of[0], step)
    return Tensor(torch.arange(start or 0, end, step), dtype, device, layout, memory_config)


def rand(shape: Sequence[int], *, device: Optional[Device] = None, dtype: DataType = bfloat16, layout: Layout = Layout.TILE,
         memory_config: Memory = None, low: float = 0.0, high: float = 1.0, seed: int = 0) -> Tensor:  # fmt: skip
    """Numbers within bounds, of torch's generator and not the card's."""
    generator = torch.Generator()
    generator.manual_seed(seed) if seed else generator.seed()
    values = torch.rand(tuple(shape), generator=generator) * (high - low) + low
    return Tensor(values, dtype, device, layout, memory_config)


def randn(shape: Sequence[int], *, device: Optional[Device] = None, dtype: DataType = bfloat16, layout: Layout = Layout.TILE,
          memory_config: Memory = None, seed: int = 0) -> Tensor:  # fmt: skip
    """Normal numbers, of torch's generator and not the card's."""
    generator = torch.Generator()
    generator.manual_seed(seed) if seed else generator.seed()
    return Tensor(torch.randn(tuple(shape), generator=generator), dtype, device, layout, memory_config)


# ---- shards ----------------------------------------------------------------------------------------------------------


def from_buffer(
    buffer: Sequence[Any],
    shape: Sequence[int],
    dtype: DataType,
    device: Any = None,
    layout: Optional[Layout] = None,
    memory_config: Memory = None,
) -> Tensor:
    """Numbers in a row as a tensor of this shape, in rows where nobody says otherwise."""
    return Tensor(list(buffer), tuple(shape), dtype, layout or Layout.ROW_MAJOR, device, memory_config)


def create_sharded_memory_config(
    shape: Sequence[int],
    core_grid: Any,
    strategy: ShardStrategy,
    orientation: Optional[ShardOrientation] = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """The configuration of a tensor that is dealt to cores: by height, by width, or both."""
    layout = {
        ShardStrategy.HEIGHT: TensorMemoryLayout.HEIGHT_SHARDED,
        ShardStrategy.WIDTH: TensorMemoryLayout.WIDTH_SHARDED,
        ShardStrategy.BLOCK: TensorMemoryLayout.BLOCK_SHARDED,
    }.get(strategy)
    if layout is None:
        raise RuntimeError("Invalid sharding strategy")
    orientation = orientation or ShardOrientation.ROW_MAJOR
    *batch, height, width = shape
    if isinstance(core_grid, CoreGrid):
        grid, cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(core_grid.x - 1, core_grid.y - 1))]), core_grid.num_cores
    elif isinstance(core_grid, CoreRangeSet):
        grid, cores = core_grid, core_grid.num_cores()
        if not use_height_and_width_as_shard_shape:
            raise RuntimeError("height and width must be shard shape with CoreRangeSet")
    else:
        raise RuntimeError("Invalid core_grid type")
    by_row = orientation is ShardOrientation.ROW_MAJOR
    if use_height_and_width_as_shard_shape:
        part = (height, width) if by_row else (width, height)
    else:
        rows = math.prod(batch) * height
        across, down = (core_grid.x, core_grid.y) if by_row else (core_grid.y, core_grid.x)
        part = {
            ShardStrategy.HEIGHT: (-(-rows // cores), width),
            ShardStrategy.WIDTH: (rows, -(-width // cores)),
            ShardStrategy.BLOCK: (-(-rows // down), -(-width // across)),
        }[strategy]
    return MemoryConfig(layout, BufferType.L1, ShardSpec(grid, part, orientation))


def get_memory_config(tensor: Tensor) -> Memory:
    """Where a tensor lies."""
    return tensor.memory_config()


def is_sharded(tensor: Tensor) -> bool:
    return tensor.is_sharded()


def is_tensor_storage_on_device(tensor: Tensor) -> bool:
    return tensor.device() is not None


def has_tile_padding(tensor: Tensor, *, dim: Optional[int] = None) -> bool:
    if dim is not None:
        return tensor.shape[dim] != tensor.padded_shape[dim]
    return tensor.shape[-2:] != Shape(tensor.padded_shape[-2:])


def pad_to_tile_shape(shape: Sequence[int]) -> List[int]:
    return list(padded(shape, Layout.TILE))


def copy(input_a: Tensor, input_b: Tensor) -> Tensor:
    """The values of one tensor into another."""
    return into(input_b, input_a)
