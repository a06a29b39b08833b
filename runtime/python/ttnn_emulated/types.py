"""The types that calls name: formats, layouts, memory and program configurations. Under TT-NN's names."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Iterable, List, Optional, Sequence, Tuple, Union


class DataType(enum.Enum):
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    UINT32 = "uint32"
    BFLOAT8_B = "bfloat8_b"
    BFLOAT4_B = "bfloat4_b"
    UINT8 = "uint8"
    UINT16 = "uint16"
    INT32 = "int32"
    INVALID = "invalid"


bfloat16, float32 = DataType.BFLOAT16, DataType.FLOAT32
bfloat8_b, bfloat4_b = DataType.BFLOAT8_B, DataType.BFLOAT4_B
uint8, uint16, uint32, int32 = DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.INT32

FLOATS = (bfloat16, float32, bfloat8_b, bfloat4_b)
BLOCKS = (bfloat8_b, bfloat4_b)


class Layout(enum.Enum):
    ROW_MAJOR = 0
    TILE = 1


ROW_MAJOR_LAYOUT, TILE_LAYOUT = Layout.ROW_MAJOR, Layout.TILE
TILE_SIZE = 32


class StorageType(enum.Enum):
    HOST = 0
    DEVICE = 1


DEVICE_STORAGE_TYPE = StorageType.DEVICE


class BufferType(enum.Enum):
    DRAM = 0
    L1 = 1
    SYSTEM_MEMORY = 2
    L1_SMALL = 3
    TRACE = 4


class TensorMemoryLayout(enum.Enum):
    INTERLEAVED = 0
    HEIGHT_SHARDED = 2
    WIDTH_SHARDED = 3
    BLOCK_SHARDED = 4
    ND_SHARDED = 5


class ShardOrientation(enum.Enum):
    ROW_MAJOR = 0
    COL_MAJOR = 1


class ShardStrategy(enum.Enum):
    HEIGHT = 1
    WIDTH = 2
    BLOCK = 3


class MathFidelity(enum.Enum):
    LoFi = 0
    HiFi2 = 2
    HiFi3 = 3
    HiFi4 = 4


class TileReshapeMapMode(enum.Enum):
    CACHE = 0
    RECREATE = 1


class EmbeddingsType(enum.Enum):
    GENERIC = 0
    PADDED = 1
    BINARY = 2


class DispatchCoreType(enum.Enum):
    WORKER = 0
    ETH = 1


class DispatchCoreAxis(enum.Enum):
    ROW = 0
    COL = 1


class SigmoidMode(enum.Enum):
    Accurate = 0
    AccurateWithFastExp = 1
    FastApproximate = 2


@dataclasses.dataclass(frozen=True, order=True)
class CoreCoord:
    x: int
    y: int


@dataclasses.dataclass(frozen=True)
class CoreGrid:
    y: int
    x: int

    @property
    def num_cores(self) -> int:
        return self.x * self.y


@dataclasses.dataclass(frozen=True)
class CoreRange:
    start: CoreCoord
    end: CoreCoord

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            given = getattr(self, name)
            if not isinstance(given, CoreCoord):
                object.__setattr__(self, name, CoreCoord(*given))

    def grid_size(self) -> CoreCoord:
        return CoreCoord(self.end.x - self.start.x + 1, self.end.y - self.start.y + 1)


class CoreRangeSet:
    """A set of ranges of cores."""

    def __init__(self, ranges: Iterable[CoreRange] = ()) -> None:
        given = [ranges] if isinstance(ranges, CoreRange) else list(ranges)
        given = [one for part in given for one in (part.ranges() if isinstance(part, CoreRangeSet) else [part])]
        self._ranges = sorted(given, key=lambda one: (one.start, one.end))

    def ranges(self) -> List[CoreRange]:
        return list(self._ranges)

    def bounding_box(self) -> CoreRange:
        """The smallest range with all of these in it."""
        starts, ends = [one.start for one in self._ranges], [one.end for one in self._ranges]
        first = CoreCoord(min(one.x for one in starts), min(one.y for one in starts))
        return CoreRange(first, CoreCoord(max(one.x for one in ends), max(one.y for one in ends)))

    def grid_size(self) -> CoreCoord:
        """Columns and rows up to the last core."""
        end = self.bounding_box().end
        return CoreCoord(end.x + 1, end.y + 1)

    def contains(self, other: Any) -> bool:
        """Whether each core of the other is one of these."""
        cores = self._cores()
        given = (
            other.ranges() if isinstance(other, CoreRangeSet) else [other] if isinstance(other, CoreRange) else [CoreRange(other, other)]
        )
        return all((x, y) in cores for one in given for x in range(one.start.x, one.end.x + 1) for y in range(one.start.y, one.end.y + 1))

    def _cores(self) -> set:
        return {(x, y) for one in self._ranges for x in range(one.start.x, one.end.x + 1) for y in range(one.start.y, one.end.y + 1)}

    def subtract(self, other: "CoreRangeSet") -> "CoreRangeSet":
        """The cores that the other does not have."""
        left = sorted(self._cores() - other._cores())
        return CoreRangeSet([CoreRange(CoreCoord(*one), CoreCoord(*one)) for one in left])

    def merge(self, other: Any) -> "CoreRangeSet":
        """The cores of both."""
        both = sorted(self._cores() | (other if isinstance(other, CoreRangeSet) else CoreRangeSet(other))._cores())
        return CoreRangeSet([CoreRange(CoreCoord(*one), CoreCoord(*one)) for one in both])

    def num_cores(self) -> int:
        return sum(one.grid_size().x * one.grid_size().y for one in self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreRangeSet) and self._ranges == other._ranges

    def __hash__(self) -> int:
        return hash(tuple(self._ranges))

    def __repr__(self) -> str:
        return f"CoreRangeSet({self._ranges})"


@dataclasses.dataclass(frozen=True, init=False)
class ShardSpec:
    grid: CoreRangeSet
    shape: Tuple[int, int]
    orientation: ShardOrientation

    def __init__(
        self, grid: CoreRangeSet, shard_shape: Sequence[int] = (), shard_orientation: ShardOrientation = ShardOrientation.ROW_MAJOR, **names: Any
    ) -> None:
        for name, value in zip(("grid", "shape", "orientation"), (grid, shard_shape, shard_orientation)):
            value = names.get(name, value)
            object.__setattr__(self, name, tuple(value) if name == "shape" else value)

    def num_cores(self) -> int:
        return self.grid.num_cores()


class ShardShapeAlignment(enum.Enum):
    REQUIRED = 0
    RECOMMENDED = 1
    NONE = 2


class ShardDistributionStrategy(enum.Enum):
    ROUND_ROBIN_1D = 0
    GRID_2D = 1


class NdShardSpec:
    """Shards of any rank, dealt to cores in turn."""

    def __init__(
        self,
        shard_shape: Sequence[int],
        core_ranges: Any = None,
        orientation: ShardOrientation = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: ShardDistributionStrategy = ShardDistributionStrategy.ROUND_ROBIN_1D,
        **options: Any,
    ) -> None:
        self.shard_shape, self.grid = Shape(shard_shape), options.get("grid", core_ranges)
        self.orientation, self.shard_distribution_strategy = orientation, shard_distribution_strategy

    def _members(self) -> tuple:
        return (self.shard_shape, self.grid, self.orientation, self.shard_distribution_strategy)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NdShardSpec) and self._members() == other._members()

    def __hash__(self) -> int:
        return hash(self._members())


@dataclasses.dataclass(frozen=True, init=False)
class MemoryConfig:
    memory_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED
    buffer_type: BufferType = BufferType.DRAM
    shard_spec: Optional[ShardSpec] = None
    nd_shard_spec: Optional[NdShardSpec] = None

    def __init__(
        self,
        memory_layout: Any = TensorMemoryLayout.INTERLEAVED,
        buffer_type: Any = BufferType.DRAM,
        shard_spec: Optional[ShardSpec] = None,
        nd_shard_spec: Optional[NdShardSpec] = None,
    ) -> None:
        if isinstance(memory_layout, BufferType):  # MemoryConfig(buffer type, spec of shards)
            nd = buffer_type if isinstance(buffer_type, NdShardSpec) else nd_shard_spec
            layout = TensorMemoryLayout.INTERLEAVED if nd is None else TensorMemoryLayout.ND_SHARDED
            memory_layout, buffer_type, nd_shard_spec = layout, memory_layout, nd
        for name, value in (("memory_layout", memory_layout), ("buffer_type", buffer_type), ("shard_spec", shard_spec)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "nd_shard_spec", nd_shard_spec)

    def is_sharded(self) -> bool:
        return self.memory_layout is not TensorMemoryLayout.INTERLEAVED

    @property
    def interleaved(self) -> bool:
        return not self.is_sharded()


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(buffer_type=BufferType.L1)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
L1_WIDTH_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
L1_BLOCK_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)


class Shape(tuple):
    """Sizes, equal to tuples and lists of them."""

    def __new__(cls, sizes: Iterable[int] = ()) -> "Shape":
        return super().__new__(cls, [int(size) for size in sizes])

    @property
    def rank(self) -> int:
        return len(self)

    def to_rank(self, rank: int) -> "Shape":
        if rank >= len(self):
            return Shape([1] * (rank - len(self)) + list(self))
        cut = len(self) - rank
        if any(size != 1 for size in self[:cut]):
            raise RuntimeError("Can't convert shape rank")
        return Shape(self[cut:])

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Shape(found) if isinstance(index, slice) else found

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (tuple, list)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Shape({list(self)})"


class Tile:
    """Rows and columns of a tile. Values do not depend on them here: blocks share exponents along rows of 16, whatever the height."""

    def __init__(self, tile_shape: Sequence[int] = (32, 32), transpose_tile: bool = False) -> None:
        height, width = tile_shape
        if height not in (1, 2, 4, 8, 16, 32) or width not in (16, 32):
            raise RuntimeError(f"TT_FATAL: Tile size is not valid for our hardware: {tuple(tile_shape)}")
        if transpose_tile and height not in (16, 32):
            raise RuntimeError("TT_FATAL: Tile height must be equal or greater than 16")
        self.tile_shape, self.transpose_tile = [height, width], transpose_tile
        self.face_shape = [min(height, 16), 16]
        self.num_faces = max(height // 16, 1) * (width // 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tile) and (self.tile_shape, self.transpose_tile) == (other.tile_shape, other.transpose_tile)

    def __hash__(self) -> int:
        return hash((*self.tile_shape, self.transpose_tile))

    def __repr__(self) -> str:
        return f"Tile(tile_shape={self.tile_shape})"


def padded(shape: Sequence[int], layout: Layout, tile: Optional[Tile] = None) -> Shape:
    """The shape with its last two dims filled up to whole tiles; there are two at least."""
    sides = tile.tile_shape if tile is not None else [TILE_SIZE, TILE_SIZE]
    sizes = list(shape)
    if layout is Layout.TILE:
        sizes = [1] * (2 - len(sizes)) + sizes
        for i, side in zip((-2, -1), sides):
            sizes[i] = -(-sizes[i] // side) * side
    return Shape(sizes)


# ---- how kernels compute ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class WormholeComputeKernelConfig:
    math_fidelity: MathFidelity = MathFidelity.LoFi
    math_approx_mode: bool = True
    fp32_dest_acc_en: bool = False
    packer_l1_acc: bool = False
    dst_full_sync_en: bool = False
    throttle_level: Any = None


BlackholeComputeKernelConfig = DeviceComputeKernelConfig = WormholeComputeKernelConfig


def init_device_compute_kernel_config(
    arch: Any = None,
    device_kernel_config: Optional[WormholeComputeKernelConfig] = None,
    *,
    math_fidelity: MathFidelity = MathFidelity.LoFi,
    math_approx_mode: bool = True,
    fp32_dest_acc_en: bool = False,
    packer_l1_acc: bool = False,
    dst_full_sync_en: bool = False,
    throttle_level: Any = None,
) -> WormholeComputeKernelConfig:
    """The configuration that is given, else one of these members."""
    if device_kernel_config is not None:
        return device_kernel_config
    return WormholeComputeKernelConfig(math_fidelity, math_approx_mode, fp32_dest_acc_en, packer_l1_acc, dst_full_sync_en)


class ReduceType(enum.Enum):
    """What collectives do with the devices' values."""

    Sum = 0
    Mean = 1
    Max = 2
    Min = 3
    Std = 4
    Var = 5


class _UnaryOpTypes(type):
    """UnaryOpType.GELU is a name; whether it is a function says the call."""

    def __getattr__(cls, name: str) -> "UnaryWithParam":
        if not name.isupper():
            raise AttributeError(name)
        return UnaryWithParam(name.lower())


class UnaryOpType(metaclass=_UnaryOpTypes):
    """Functions that may be fused behind others: UnaryOpType.GELU, UnaryOpType.SILU, ..."""


class UnaryWithParam:
    """A function with a parameter of its own."""

    def __init__(self, op_type: Union[str, "UnaryWithParam"], param: Any = None) -> None:
        self.name = op_type.name if isinstance(op_type, UnaryWithParam) else str(op_type).lower()
        self.param = param

    @property
    def op_type(self) -> "UnaryWithParam":
        return UnaryWithParam(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnaryWithParam) and (self.name, self.param) == (other.name, other.param)

    def __hash__(self) -> int:
        return hash((self.name, self.param))

    def __repr__(self) -> str:
        return f"UnaryOpType.{self.name.upper()}" + ("" if self.param is None else f"({self.param})")
