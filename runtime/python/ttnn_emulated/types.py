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

    def grid_size(self) -> CoreCoord:
        return CoreCoord(self.end.x - self.start.x + 1, self.end.y - self.start.y + 1)


class CoreRangeSet:
    """A set of ranges of cores."""

    def __init__(self, ranges: Iterable[CoreRange] = ()) -> None:
        given = [ranges] if isinstance(ranges, CoreRange) else list(ranges)
        self._ranges = sorted(given, key=lambda one: (one.start, one.end))

    def ranges(self) -> List[CoreRange]:
        return list(self._ranges)

    def num_cores(self) -> int:
        return sum(one.grid_size().x * one.grid_size().y for one in self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreRangeSet) and self._ranges == other._ranges

    def __hash__(self) -> int:
        return hash(tuple(self._ranges))

    def __repr__(self) -> str:
        return f"CoreRangeSet({self._ranges})"


@dataclasses.dataclass(frozen=True)
class ShardSpec:
    grid: CoreRangeSet
    shape: Tuple[int, int]
    orientation: ShardOrientation = ShardOrientation.ROW_MAJOR

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))

    def num_cores(self) -> int:
        return self.grid.num_cores()


@dataclasses.dataclass(frozen=True)
class MemoryConfig:
    memory_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED
    buffer_type: BufferType = BufferType.DRAM
    shard_spec: Optional[ShardSpec] = None

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
    """A tile of 32x32; no other is emulated."""

    def __init__(self, tile_shape: Sequence[int] = (32, 32), transpose_tile: bool = False) -> None:
        if tuple(tile_shape) != (32, 32) or transpose_tile:
            raise NotImplementedError(f"ttnn.Tile({tuple(tile_shape)}): tiles of 32x32 are emulated")
        self.tile_shape = [32, 32]


def padded(shape: Sequence[int], layout: Layout) -> Shape:
    """The shape with its last two dims filled up to whole tiles."""
    sizes = list(shape)
    if layout is Layout.TILE:
        for i in range(max(0, len(sizes) - 2), len(sizes)):
            sizes[i] = -(-sizes[i] // TILE_SIZE) * TILE_SIZE
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


class _ProgramConfig:
    """How a program is laid out over the cores. Members are kept; those that decide numbers are honoured."""

    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.__dict__.items())})"


class MatmulMultiCoreReuseProgramConfig(_ProgramConfig):
    pass


class MatmulMultiCoreReuseMultiCastProgramConfig(_ProgramConfig):
    pass


class MatmulMultiCoreReuseMultiCast1DProgramConfig(_ProgramConfig):
    pass


class MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(_ProgramConfig):
    pass


class SDPAProgramConfig(_ProgramConfig):
    pass


class SoftmaxDefaultProgramConfig(_ProgramConfig):
    pass


class SoftmaxShardedMultiCoreProgramConfig(_ProgramConfig):
    pass


class LayerNormDefaultProgramConfig(_ProgramConfig):
    pass


class LayerNormShardedMultiCoreProgramConfig(_ProgramConfig):
    pass


class DispatchCoreConfig(_ProgramConfig):
    """Which cores dispatch, for open_device: no other cores are fewer for it here."""

    def __init__(self, type: Any = None, axis: Any = None, fabric_tensix_config: Any = None) -> None:
        super().__init__(type=type, axis=axis, fabric_tensix_config=fabric_tensix_config)


class Conv2dConfig(_ProgramConfig):
    pass


class Conv2dSliceConfig(_ProgramConfig):
    pass


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
