"""What surrounds devices: parts of one, fabrics, the cluster, switches. One device and no fabric are emulated; names that
programs set up before they compute are here so that they get as far."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import types as _modules
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from . import device as _device
from .device import Device
from .types import (
    CoreCoord,
    CoreRange,
    CoreRangeSet,
    DataType,
    MathFidelity,
    StorageType,
    WormholeComputeKernelConfig,
    bfloat4_b,
    bfloat8_b,
    bfloat16,
    float32,
    int32,
    uint8,
    uint16,
    uint32,
)


class FabricConfig(enum.Enum):
    DISABLED = 0
    FABRIC_1D = 1
    FABRIC_1D_RING = 2
    FABRIC_1D_NEIGHBOR_EXCHANGE = 3
    FABRIC_2D = 4
    FABRIC_2D_TORUS_X = 5
    FABRIC_2D_TORUS_Y = 6
    FABRIC_2D_TORUS_XY = 7
    FABRIC_2D_DYNAMIC = 8
    CUSTOM = 9


class FabricReliabilityMode(enum.Enum):
    STRICT_INIT = 0
    RELAXED_INIT = 1
    DYNAMIC_RECONFIGURATION_SETUP = 2


class FabricTensixConfig(enum.Enum):
    DISABLED = 0
    MUX = 1
    UDM = 2


class CoreType(enum.Enum):
    TENSIX = 0
    ETH = 1
    DRAM = 2
    WORKER = 3


class ThrottleLevel(enum.Enum):
    NO_THROTTLE = 0
    LEVEL_1 = 1
    LEVEL_2 = 2
    LEVEL_3 = 3
    LEVEL_4 = 4
    LEVEL_5 = 5


class SubDeviceId(int):
    """The number of a part of a device."""


@dataclasses.dataclass(frozen=True)
class SubDevice:
    """Cores of a device that work apart from the others."""

    core_range_sets: Tuple[Any, ...]

    def __init__(self, core_range_sets: Sequence[Any]) -> None:
        object.__setattr__(self, "core_range_sets", tuple(core_range_sets))


class MeshCoordinate(tuple):
    """A device's place in a mesh."""

    def __new__(cls, *place: Any) -> "MeshCoordinate":
        given = place[0] if len(place) == 1 and not isinstance(place[0], int) else place
        return super().__new__(cls, given)


def set_fabric_config(config: FabricConfig, *args: Any, **options: Any) -> None:
    """One device needs no fabric."""


def get_fabric_config() -> FabricConfig:
    return FabricConfig.DISABLED


def get_num_devices() -> int:
    return _device.GetNumAvailableDevices()


get_num_pcie_devices = get_num_devices


def get_device_ids() -> List[int]:
    return list(range(get_num_devices()))


get_pcie_device_ids = get_device_ids


def GetPCIeDeviceID(device_id: int) -> int:
    return device_id


def CreateDevices(device_ids: Sequence[int], *args: Any, **options: Any) -> Dict[int, Device]:
    return {one: _device.open_device(one) for one in device_ids}


def CloseDevices(devices: Dict[int, Device]) -> None:
    for one in list(devices.values()):
        _device.close_device(one)


@contextlib.contextmanager
def create_mesh_device(mesh_shape: Any = (1, 1), *args: Any, **options: Any) -> Iterator[Device]:
    """A mesh of one device that is closed at the end of the block."""
    device = _device.open_mesh_device(mesh_shape)
    try:
        yield device
    finally:
        _device.close_device(device)


def ReadDeviceProfiler(device: Device, *args: Any) -> None:
    """Nothing is profiled."""


def dump_device_memory_state(device: Device, prefix: str = "") -> None:
    """Prints what DRAM and L1 hold."""
    for one in device.get_memory_allocation_statistics():
        print(prefix + ", ".join(f"{key} {value}" for key, value in one.items()))


def get_dram_alignment() -> int:
    return 64 if _device.is_blackhole() else 32


def get_l1_alignment() -> int:
    return 16


def event_synchronize(event: object) -> None:
    """Events are over."""


def corerange_to_cores(shard_grid: CoreRangeSet, max_cores: Optional[int] = None, row_wise: bool = False) -> List[CoreCoord]:
    """The cores of ranges one by one, along columns or along rows."""
    cores: List[CoreCoord] = []
    for one in shard_grid.ranges():
        xs, ys = range(one.start.x, one.end.x + 1), range(one.start.y, one.end.y + 1)
        cores += [CoreCoord(x, y) for y in ys for x in xs] if row_wise else [CoreCoord(x, y) for x in xs for y in ys]
    return cores if max_cores is None else cores[:max_cores]


def grid_to_cores(num_cores: int, grid_size_x: int, grid_size_y: int, row_wise: bool = False) -> List[CoreCoord]:
    """So many cores of a grid from its first one on."""
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(grid_size_x - 1, grid_size_y - 1))])
    return corerange_to_cores(grid, num_cores, row_wise)


def num_cores_to_corerangeset_in_subcoregrids(
    start_core: CoreCoord, target_num_cores: int, sub_core_grids: CoreRangeSet, row_wise: bool = False
) -> CoreRangeSet:
    """So many cores of these ranges from one on."""
    cores = corerange_to_cores(sub_core_grids, None, row_wise)
    at = cores.index(start_core)
    return CoreRangeSet([CoreRange(one, one) for one in cores[at : at + target_num_cores]])


def split_work_to_cores(core_grid: Any, units_to_divide: int, row_wise: bool = False) -> tuple:
    """Work in two groups of cores, of which the first has one unit more: cores used, all of them, both groups, both shares."""
    grid = core_grid if isinstance(core_grid, CoreRangeSet) else None
    cores = (
        corerange_to_cores(grid, None, row_wise) if grid else grid_to_cores(core_grid.x * core_grid.y, core_grid.x, core_grid.y, row_wise)
    )
    used = min(len(cores), units_to_divide)
    share, more = divmod(units_to_divide, used) if used else (0, 0)
    first = cores[:more] if more else cores[:used]
    rest = cores[more:used] if more else []
    groups = [CoreRangeSet([CoreRange(one, one) for one in group]) for group in (cores[:used], first, rest)]
    return (used, *groups, share + 1 if more else share, share if more else 0)


def tile_size(dtype: DataType) -> int:
    """Bytes of a tile."""
    return {float32: 4096, int32: 4096, uint32: 4096, bfloat16: 2048, uint16: 2048, bfloat8_b: 1088, bfloat4_b: 576}.get(dtype, 1024)


def element_size(dtype: DataType) -> int:
    """Bytes of an element."""
    return {float32: 4, int32: 4, uint32: 4, bfloat16: 2, uint16: 2}.get(dtype, 1)


def ttnn_dtype_to_torch_dtype(dtype: DataType) -> torch.dtype:
    """What to_torch makes of a format."""
    return {bfloat16: torch.bfloat16, uint8: torch.uint8, uint16: torch.int32, int32: torch.int32, uint32: torch.int64}.get(
        dtype, torch.float32
    )


def has_storage_type_of(tensor: Any, storage_type: StorageType) -> bool:
    return tensor.storage_type() is storage_type


def get_max_worker_l1_unreserved_size() -> int:
    """Bytes of a core's L1 that tensors may take."""
    return (1572864 if _device.is_blackhole() else 1499136) - 103 * 1024


def layernorm_default_compute_config(arch: Any = None) -> WormholeComputeKernelConfig:
    return WormholeComputeKernelConfig(MathFidelity.HiFi4, True, True, False)


def rmsnorm_default_compute_config(arch: Any = None) -> WormholeComputeKernelConfig:
    return WormholeComputeKernelConfig(MathFidelity.HiFi4, True, False, False)


def get_current_command_queue_id_for_thread() -> int:
    return 0


@contextlib.contextmanager
def command_queue(cq_id: int) -> Iterator[None]:
    """Calls of the block are of a queue: there is one here."""
    yield


def start_tracy_zone(*args: Any, **options: Any) -> None:
    """Nothing is profiled."""


stop_tracy_zone = tracy_message = tracy_frame = dump_stack_trace_on_segfault = start_tracy_zone
enable_asynchronous_slow_dispatch = disable_asynchronous_slow_dispatch = start_tracy_zone


# ---- switches -----------------------------------------------------------------------------------------------------------


class Config:
    """TT-NN's switches. None changes what is computed here."""

    def __init__(self) -> None:
        self.cache_path = self.model_cache_path = self.tmp_dir = self.report_name = self.report_path = None
        self.enable_model_cache = self.enable_fast_runtime_mode = self.throw_exception_on_fallback = False
        self.enable_logging = self.enable_graph_report = self.enable_detailed_buffer_report = False
        self.enable_detailed_tensor_report = self.enable_comparison_mode = False
        self.comparison_mode_pcc, self.comparison_mode_should_raise_exception = 0.9999, False
        self.root_report_path = "generated/ttnn/reports"


CONFIG = Config()


@contextlib.contextmanager
def manage_config(name: str, value: Any) -> Iterator[None]:
    """A switch with another value within the block."""
    before = getattr(CONFIG, name)
    setattr(CONFIG, name, value)
    try:
        yield
    finally:
        setattr(CONFIG, name, before)


def set_printoptions(*, profile: str = "short", **options: Any) -> None:
    """How much of a tensor is printed: TT-NN's profiles."""
    if profile.lower() not in ("empty", "short", "full"):
        raise RuntimeError(f"Invalid print profile: {profile}")


class ClusterType(enum.Enum):
    INVALID = 0
    N150 = 1
    N300 = 2
    T3K = 3
    GALAXY = 4
    TG = 5
    P100 = 6
    P150 = 7
    P150_X2 = 8
    P150_X4 = 9
    SIMULATOR_WORMHOLE_B0 = 10
    SIMULATOR_BLACKHOLE = 11
    N300_2x2 = 12
    BLACKHOLE_GALAXY = 13
    P150_X8 = 14
    P300 = 15
    P300_X2 = 16


def _cluster_type() -> ClusterType:
    return ClusterType.P150 if _device.is_blackhole() else ClusterType.N150


cluster = _modules.SimpleNamespace(ClusterType=ClusterType, get_cluster_type=_cluster_type)
