"""The machine that runs this process, and emulated accelerators in its slots."""

from __future__ import annotations

import enum
from typing import Optional, Union

from .._library import native

Host = native.Host  # threads, isa
Device = native.Device  # name, profile, pcie_slot, is_initialized, is_closed, grid, memory()


class Arch(enum.Enum):
    """An architecture, by its usual board."""

    GRAYSKULL = "e150"
    WORMHOLE = "n150"
    BLACKHOLE = "p150"


def GetHost() -> Host:
    return native.get_host()


def CreateDevice(arch: Union[Arch, str], pcie_slot: int = 0) -> Device:
    """A device in slot 0 to 31, which it takes until it is closed or gone; `arch` may be a profile's name or file too."""
    return native.create_device(arch.value if isinstance(arch, Arch) else str(arch), pcie_slot)


def InitializeDevice(device: Device) -> None:
    """Before its first use. UsageError where it is initialised already, or closed."""
    native.initialize_device(device)


def CloseDevice(device: Device) -> None:
    """Its tensors can't be read any more."""
    native.close_device(device)


def SetDefaultDevice(device: Optional[Device]) -> None:
    """Where operators run that have no operand on a device; None sets none."""
    native.set_default_device(device)


def GetDefaultDevice() -> Device:
    """UsageError where there is none."""
    return native.get_default_device()
