"""What a tensor is without its values: ttnn.TensorSpec."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Union

from .types import (
    TILE_SIZE,
    BufferType,
    CoreRange,
    CoreRangeSet,
    DataType,
    Layout,
    MemoryConfig,
    NdShardSpec,
    Shape,
    ShardOrientation,
    ShardShapeAlignment,
    ShardSpec,
    TensorMemoryLayout,
    padded,
)


class TensorSpec:
    """Shape, format, layout and memory of a tensor."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DataType,
        layout: Layout = Layout.ROW_MAJOR,
        memory_layout: Any = None,
        shard_spec: Optional[ShardSpec] = None,
        buffer_type: BufferType = BufferType.DRAM,
        tile: Any = None,
        *,
        memory_config: Optional[MemoryConfig] = None,
        nd_shard_spec: Optional[NdShardSpec] = None,
    ) -> None:
        self.shape, self.dtype, self.layout, self.tile = Shape(shape), dtype, layout, tile
        if isinstance(memory_layout, NdShardSpec):
            nd_shard_spec, memory_layout = memory_layout, None
        if isinstance(memory_layout, BufferType):
            buffer_type, memory_layout = memory_layout, None
        if memory_layout is not None:
            memory_config = memory_config or MemoryConfig(memory_layout, buffer_type, shard_spec)
        self.memory_config = memory_config or MemoryConfig(buffer_type, nd_shard_spec)

    def sharded_across_dims(
        self, dims: Sequence[int], grid: Any, orientation: ShardOrientation = ShardOrientation.ROW_MAJOR
    ) -> "TensorSpec":
        """With these dims dealt to cores, one position each."""
        whole = padded(self.shape, self.layout)
        tile = [TILE_SIZE if self.layout is Layout.TILE and i >= len(whole) - 2 else 1 for i in range(len(whole))]
        wanted = {dim % len(whole) for dim in dims}
        shard = [tile[i] if i in wanted else size for i, size in enumerate(whole)]
        config = MemoryConfig(self.memory_config.buffer_type, NdShardSpec(shard, grid, orientation))
        return TensorSpec(self.shape, self.dtype, self.layout, memory_config=config, tile=self.tile)

    def sharded_across_dims_except(self, dims: Sequence[int], grid: Any, orientation: Any = ShardOrientation.ROW_MAJOR) -> "TensorSpec":
        """With all other dims dealt to cores."""
        kept = {dim % len(self.shape) for dim in dims}
        return self.sharded_across_dims([i for i in range(len(self.shape)) if i not in kept], grid, orientation)

    def block_sharded(self, grid: Union[CoreRange, CoreRangeSet], orientation: ShardOrientation = ShardOrientation.ROW_MAJOR) -> "TensorSpec":
        """With rows and columns dealt to a rectangle of cores."""
        box = grid.bounding_box() if isinstance(grid, CoreRangeSet) else grid
        size, whole = box.grid_size(), padded(self.shape, self.layout)
        part = (-(-math.prod(whole[:-1]) // size.y), -(-whole[-1] // size.x))
        return self._sharded(TensorMemoryLayout.BLOCK_SHARDED, part, CoreRangeSet([grid]), orientation)

    def _sharded(self, layout: TensorMemoryLayout, shape: Sequence[int], grid: Any, orientation: ShardOrientation) -> "TensorSpec":
        config = MemoryConfig(layout, self.memory_config.buffer_type, ShardSpec(grid, tuple(shape), orientation))
        return TensorSpec(self.shape, self.dtype, self.layout, memory_config=config, tile=self.tile)

    def height_sharded(self, grid: Any, orientation: ShardOrientation = ShardOrientation.ROW_MAJOR) -> "TensorSpec":
        """With its rows dealt to cores."""
        rows = math.prod(padded(self.shape, self.layout)[:-1])
        return self._sharded(TensorMemoryLayout.HEIGHT_SHARDED, (-(-rows // grid.num_cores()), self.shape[-1]), grid, orientation)

    def width_sharded(self, grid: Any, orientation: ShardOrientation = ShardOrientation.ROW_MAJOR) -> "TensorSpec":
        """With its columns dealt to cores."""
        rows = math.prod(padded(self.shape, self.layout)[:-1])
        return self._sharded(TensorMemoryLayout.WIDTH_SHARDED, (rows, -(-self.shape[-1] // grid.num_cores())), grid, orientation)

    def sharded(
        self,
        shard_shape: Union[NdShardSpec, Sequence[int]],
        grid: Any = None,
        shard_alignment: ShardShapeAlignment = ShardShapeAlignment.RECOMMENDED,
        orientation: ShardOrientation = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: Any = None,
    ) -> "TensorSpec":
        """In parts of this shape; of a tensor in tiles they are whole ones, unless the alignment is NONE."""
        if isinstance(shard_shape, NdShardSpec):
            spec = shard_shape
        else:
            whole = self.layout is Layout.TILE and shard_alignment is not ShardShapeAlignment.NONE
            shape = [-(-size // TILE_SIZE) * TILE_SIZE if whole and i >= len(shard_shape) - 2 else size for i, size in enumerate(shard_shape)]
            more = () if shard_distribution_strategy is None else (shard_distribution_strategy,)
            spec = NdShardSpec(shape, grid, orientation, *more)
        config = MemoryConfig(self.memory_config.buffer_type, spec)
        return TensorSpec(self.shape, self.dtype, self.layout, memory_config=config, tile=self.tile)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and vars(self) == vars(other)
