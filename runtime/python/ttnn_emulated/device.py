"""Devices: slots of the emulated accelerator, opened and closed as TT-NN does."""

from __future__ import annotations

import contextlib
import enum
import os
import weakref
from typing import Any, Dict, Iterator, Optional

from ttc._library import native
from ttc.errors import UsageError

from .types import CoreCoord, CoreGrid


class Arch(enum.Enum):
    GRAYSKULL = 0
    WORMHOLE_B0 = 1
    BLACKHOLE = 2


DEFAULT_L1_SMALL_SIZE = 0
DEFAULT_TRACE_REGION_SIZE = 0


def _in_a_free_slot(profile: str) -> Any:
    """Models of this process take slots from the first one on."""
    for slot in reversed(range(32)):
        try:
            return native.Device(profile, slot)
        except UsageError as error:
            if "is occupied" not in str(error):
                raise
    raise RuntimeError("no slot is left for a device")


class Device:
    """An emulated device of an architecture profile: of TTRT_ARCH in the environment, else n150."""

    def __init__(self, device_id: int) -> None:
        self._id = device_id
        self._native = _in_a_free_slot(os.environ.get("TTRT_ARCH", "n150"))
        self.shape = (1, 1)
        self._tensors: Any = weakref.WeakValueDictionary()  # those that had a buffer here, by id()
        self._programs: set = set()
        self._misses_allowed = True

    def id(self) -> int:
        return self._id

    def arch(self) -> Arch:
        return (Arch.GRAYSKULL, Arch.WORMHOLE_B0, Arch.BLACKHOLE)[self._native.arch]

    def compute_with_storage_grid_size(self) -> CoreCoord:
        x, y = self._native.grid
        return CoreCoord(x, y)

    @property
    def core_grid(self) -> CoreGrid:
        grid = self.compute_with_storage_grid_size()
        return CoreGrid(y=grid.y, x=grid.x)

    def get_num_devices(self) -> int:
        return 1

    def is_initialized(self) -> bool:
        return not self._native.is_closed

    def num_program_cache_entries(self) -> int:
        """How many programs the calls so far are: a call of the same function, shapes, formats and parameters is none."""
        return len(self._programs)

    def remember_program(self, *program: Any) -> None:
        if not self._misses_allowed and program not in self._programs:
            raise RuntimeError(f"TT_FATAL: {program[0]}: program cache miss occurred, but cache misses are forbidden")
        self._programs.add(program)

    def set_program_cache_misses_allowed(self, allowed: bool) -> None:
        """Whether calls may be others than those so far."""
        self._misses_allowed = allowed

    def clear_program_cache(self) -> None:
        self._programs.clear()

    disable_and_clear_program_cache = clear_program_cache

    def enable_program_cache(self) -> None:
        """Programs are always counted."""

    def create_sub_device_manager(self, sub_devices: Any, local_l1_size: int = 0) -> int:
        """Parts of the device, which are one here."""
        return len(sub_devices)

    def load_sub_device_manager(self, manager: int) -> None:
        """Calls are made one after the other, whatever cores they are for."""

    def clear_loaded_sub_device_manager(self) -> None:
        """See load_sub_device_manager."""

    remove_sub_device_manager = set_sub_device_stall_group = load_sub_device_manager
    reset_sub_device_stall_group = clear_loaded_sub_device_manager

    def get_device_ids(self) -> list:
        return [self._id]

    get_device_id = id

    def num_dram_channels(self) -> int:
        return self.dram_grid_size().x

    def dram_grid_size(self) -> CoreCoord:
        """DRAM's banks in a row."""
        return CoreCoord(12 if self.arch() is Arch.WORMHOLE_B0 else 8, 1)

    def get_memory_allocation_statistics(self) -> list:
        """DRAM and L1: banks, sizes, what is allocated."""
        return self._native.memory()

    def __repr__(self) -> str:
        return f"Device(id={self._id}, {self._native.profile})"


MeshDevice = Device
_open: Dict[int, Device] = {}
_default: Optional[Device] = None


def open_device(device_id: int = 0, **options: Any) -> Device:
    """Opens the device in a slot; the options of queues, traces and cores need nothing here."""
    if device_id in _open:
        raise RuntimeError(f"Device {device_id} is already open")
    _open[device_id] = Device(device_id)
    return _open[device_id]


def close_device(device: Device) -> None:
    """Closes it; its tensors can't be read any more."""
    global _default
    if device is _default:
        _default = None
    _open.pop(device.id(), None)
    device._native.close()


def CreateDevice(device_id: int = 0, *args: Any, **options: Any) -> Device:
    return open_device(device_id)


CloseDevice = close_device


def DeallocateBuffers(device: Device) -> None:
    """Buffers go with the tensors that have them."""




@contextlib.contextmanager
def manage_device(device_id: int = 0, **options: Any) -> Iterator[Device]:
    """A device that is closed at the end of the block."""
    device = open_device(device_id, **options)
    try:
        yield device
    finally:
        close_device(device)


def open_mesh_device(mesh_shape: Any = (1, 1), **options: Any) -> Device:
    """A mesh of one device; no other is emulated."""
    if tuple(mesh_shape) != (1, 1):
        raise NotImplementedError(f"ttnn.open_mesh_device: a mesh of {tuple(mesh_shape)} is not emulated, one device is")
    return open_device(0)


close_mesh_device = close_device


def synchronize_device(device: Device, *args: Any, **options: Any) -> None:
    """Calls are done when they return."""


def record_event(device: Device, cq_id: int = 0, *args: Any) -> object:
    """An event of a queue: over when this returns."""
    return object()


def wait_for_event(cq_id: int, event: object) -> None:
    """Events are over."""


def SetDefaultDevice(device: Optional[Device]) -> None:
    global _default
    _default = device


def GetDefaultDevice() -> Optional[Device]:
    return _default


def GetNumAvailableDevices() -> int:
    return 1


GetNumPCIeDevices = GetNumAvailableDevices


def is_wormhole_b0(device: Optional[Device] = None) -> bool:
    return _arch(device) is Arch.WORMHOLE_B0


def is_blackhole(device: Optional[Device] = None) -> bool:
    return _arch(device) is Arch.BLACKHOLE


def _arch(device: Optional[Device]) -> Arch:
    if device is not None:
        return device.arch()
    name = os.environ.get("TTRT_ARCH", "n150")
    return Arch.BLACKHOLE if name.startswith("p") else Arch.GRAYSKULL if name.startswith("e") else Arch.WORMHOLE_B0


def get_arch_name() -> str:
    return _arch(None).name.lower()
