"""Tensors that are dealt to cores, in part or anew, and images folded to fewer, deeper places. Values do not depend on the
cores that hold them."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Union

import torch

from .calls import fail, into, on_device
from .tensor import Tensor, packed
from .types import (
    BLOCKS,
    BufferType,
    CoreCoord,
    CoreGrid,
    CoreRange,
    CoreRangeSet,
    DataType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
    bfloat16,
)


def _cores(core_grid: Any) -> CoreRangeSet:
    """A grid from the first core on, two grids one below the other, or ranges as they are."""
    if isinstance(core_grid, CoreRangeSet):
        return core_grid
    if isinstance(core_grid, CoreGrid):
        return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(core_grid.x - 1, core_grid.y - 1))])
    if not isinstance(core_grid, (list, tuple)):
        raise RuntimeError("Invalid core_grid type")
    if len(core_grid) != 2:
        raise RuntimeError("Invalid core_grid")
    if not all(isinstance(one, CoreGrid) for one in core_grid):
        raise RuntimeError("Invalid core_grid type")
    whole, rest = core_grid
    below = CoreRange(CoreCoord(0, whole.y), CoreCoord(rest.x - 1, whole.y))
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(whole.x - 1, whole.y - 1)), below])


_layouts = {
    ShardStrategy.HEIGHT: TensorMemoryLayout.HEIGHT_SHARDED,
    ShardStrategy.WIDTH: TensorMemoryLayout.WIDTH_SHARDED,
    ShardStrategy.BLOCK: TensorMemoryLayout.BLOCK_SHARDED,
}


def create_sharded_memory_config_(
    shape: Sequence[int],
    core_grid: Any,
    strategy: Union[ShardStrategy, TensorMemoryLayout],
    orientation: ShardOrientation,
    use_height_and_width_as_shard_shape: bool = False,
    tile_layout: bool = False,
) -> MemoryConfig:
    """The configuration of a tensor that is dealt to these cores; `tile_layout` fills rows up to whole tiles on each."""
    if not isinstance(shape, (list, tuple)):
        raise RuntimeError("Invalid input shape")
    grid = _cores(core_grid)
    layout = _layouts.get(strategy) if isinstance(strategy, ShardStrategy) else strategy
    if not isinstance(layout, TensorMemoryLayout):
        raise RuntimeError("Invalid type of sharding strategy")
    if not isinstance(orientation, ShardOrientation):
        raise RuntimeError("Invalid type of shard orientation")
    *batch, height, width = shape
    by_row = orientation is ShardOrientation.ROW_MAJOR
    if use_height_and_width_as_shard_shape:
        part = (height, width) if by_row else (width, height)
    else:
        part = _share(math.prod(batch) * height, width, grid, layout, by_row, tile_layout)
    if tile_layout and part[0] % 32 != 0 and part[1] % 32 != 0:
        raise RuntimeError("Incorrect tensor shape")
    return MemoryConfig(layout, BufferType.L1, ShardSpec(grid, part, orientation))


def _share(rows: int, columns: int, grid: CoreRangeSet, layout: TensorMemoryLayout, by_row: bool, tiles: bool) -> tuple:
    """Rows and columns of one core's part."""
    cores, size = grid.num_cores(), grid.bounding_box().grid_size()

    def parts(total: int, of: int) -> int:
        return -(-total // of)

    if layout is TensorMemoryLayout.HEIGHT_SHARDED:
        return parts(rows, cores), columns
    if layout is TensorMemoryLayout.WIDTH_SHARDED:
        return rows, parts(columns, cores)
    if layout is not TensorMemoryLayout.BLOCK_SHARDED:
        raise RuntimeError("Invalid sharding scheme")
    if size.x * size.y != cores:
        raise RuntimeError("Invalid CoreRangeSet for block sharding strategy")
    down, across = (size.y, size.x) if by_row else (size.x, size.y)
    if tiles:
        rows = parts(rows, down * 32) * down * 32
    return parts(rows, down), parts(columns, across)


def reshard(input_tensor: Tensor, output_memory_config: MemoryConfig, output_tensor: Optional[Tensor] = None) -> Tensor:
    """The same tensor, dealt to cores in another way."""
    on_device("reshard", input_tensor)
    if not input_tensor.is_sharded() or not output_memory_config.is_sharded():
        raise fail("reshard: input and output are sharded")
    return into(output_tensor, input_tensor._like(input_tensor._values, memory_config=output_memory_config))


def _rows_of(function: str, rows: int, num_slices: int, slice_index: int) -> slice:
    if not 0 <= slice_index < num_slices or rows % num_slices != 0:
        raise fail(f"{function}: slice {slice_index} of {num_slices} of {rows} rows")
    size = rows // num_slices
    return slice(slice_index * size, (slice_index + 1) * size)


def interleaved_to_sharded_partial(
    input_tensor: Tensor,
    grid: Any,
    shard_shape: Sequence[int],
    num_slices: int,
    slice_index: int,
    shard_scheme: TensorMemoryLayout,
    shard_orientation: ShardOrientation,
    output_dtype: Optional[DataType] = None,
) -> Tensor:
    """One of so many equal parts of a tensor's rows, dealt to cores: [1, 1, rows of the part, columns]."""
    on_device("interleaved_to_sharded_partial", input_tensor)
    rows = input_tensor._values.reshape(-1, input_tensor.shape[-1])
    part = rows[_rows_of("interleaved_to_sharded_partial", rows.shape[0], num_slices, slice_index)].reshape(1, 1, -1, rows.shape[1])
    cores = grid if isinstance(grid, CoreRangeSet) else CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(grid.x - 1, grid.y - 1))])
    config = MemoryConfig(shard_scheme, BufferType.L1, ShardSpec(cores, tuple(shard_shape), shard_orientation))
    dtype = output_dtype or input_tensor.dtype
    return input_tensor._like(packed(part, dtype), dtype=dtype, memory_config=config)


def sharded_to_interleaved_partial(
    input_tensor: Tensor,
    cache_tensor: Tensor,
    num_slices: int,
    slice_index: int,
    *,
    memory_config: Optional[MemoryConfig] = None,
    output_dtype: Optional[DataType] = None,
) -> Tensor:
    """The way back: a part into its rows of the whole, in the whole's place."""
    on_device("sharded_to_interleaved_partial", input_tensor, cache_tensor)
    whole = cache_tensor._values.clone().reshape(-1, cache_tensor.shape[-1])
    part = _rows_of("sharded_to_interleaved_partial", whole.shape[0], num_slices, slice_index)
    whole[part] = input_tensor._values.reshape(-1, whole.shape[1])
    cache_tensor._values = packed(whole.reshape(tuple(cache_tensor.shape)), cache_tensor.dtype)
    return cache_tensor


def _filled_up(values: torch.Tensor, padding: Sequence[int]) -> torch.Tensor:
    """[N, H, W, C] with zeros around: (h, w), (top, bottom, left, right), or these and channels before and behind."""
    if len(padding) == 2:
        padding = (padding[0], padding[0], padding[1], padding[1])
    top, bottom, left, right, *channels = padding
    return torch.nn.functional.pad(values, (*(channels or (0, 0)), left, right, top, bottom))


def fold(
    input: Tensor,
    stride_h: int,
    stride_w: int,
    use_transpose_as_fold: bool = False,
    output_shape: Optional[Sequence[int]] = None,
    padding: Sequence[int] = (0, 0),
    grid_size: Any = None,
    override_memory_config: Optional[MemoryConfig] = None,
) -> Tensor:
    """[N, H, W, C] as [N, H / stride_h, W / stride_w, stride_h stride_w C], in rows; in L1 these as rows of one. With
    use_transpose_as_fold of [N, C, H, W]."""
    on_device("fold", input)
    values = input._values.permute(0, 2, 3, 1) if use_transpose_as_fold else input._values
    values = _filled_up(values, padding)
    n, height, width, channels = values.shape
    if height % stride_h != 0 or width % stride_w != 0:
        raise fail(f"fold: {height} x {width} places by {stride_h} x {stride_w}")
    down, across = height // stride_h, width // stride_w
    parts = values.reshape(n, down, stride_h, across, stride_w, channels).transpose(2, 3)
    shape = (n, down, across, stride_h * stride_w * channels)
    if output_shape is not None and math.prod(output_shape) == math.prod(shape):
        shape = tuple(output_shape)
    elif not use_transpose_as_fold and input.memory_config().buffer_type is not BufferType.DRAM:
        shape = (1, 1, n * down * across, shape[-1])
    dtype = bfloat16 if input.dtype in BLOCKS else input.dtype
    return input._like(parts.reshape(shape), dtype=dtype, layout=Layout.ROW_MAJOR, memory_config=override_memory_config)
