"""What programs take from TT-NN's extension module by its own name: ttnn._ttnn.reports.get_buffer_pages, and names that
older programs import."""

from __future__ import annotations

import dataclasses
import math
import sys
import types
from typing import Any, List

from .device import Device
from .mesh import Topology
from .system import SubDeviceId
from .tensor import Tensor
from .types import TILE_SIZE, BufferType, Layout, MemoryConfig, TensorMemoryLayout

__path__: list = []  # a package: its modules are made here


@dataclasses.dataclass(frozen=True)
class BufferPage:
    """A page of a device's memory that is taken."""

    device_id: int
    buffer_type: str
    page_index: int


def _get_buffer_pages(devices: Any) -> List[BufferPage]:
    pages: List[BufferPage] = []
    for device in devices if isinstance(devices, (list, tuple)) else [devices]:
        buffers = {id(one._buffer): one for one in list(device._tensors.values()) if one._buffer is not None}
        for one in buffers.values():
            kind = one.memory_config().buffer_type.name
            pages += [BufferPage(device.id(), kind, i) for i in range(_pages_of(one))]
    return pages


def _pages_of(tensor: Tensor) -> int:
    """Tiles, or rows."""
    sizes = list(tensor.padded_shape)
    volume = math.prod(sizes)
    return volume // (TILE_SIZE * TILE_SIZE) if tensor.layout is Layout.TILE else volume // max(sizes[-1], 1) if sizes else 1


def _module(name: str, **members: Any) -> types.ModuleType:
    made = types.ModuleType(f"{__name__}.{name}")
    made.__dict__.update(members)
    sys.modules[made.__name__] = made
    return made


reports = _module("reports", get_buffer_pages=_get_buffer_pages)
multi_device = _module("multi_device", MeshDevice=Device)
tensor = _module("tensor", Tensor=Tensor, MemoryConfig=MemoryConfig, BufferType=BufferType, TensorMemoryLayout=TensorMemoryLayout)
device = _module("device", SubDeviceId=SubDeviceId)
operations = _module(
    "operations",
    ccl=_module("operations.ccl", Topology=Topology),
    experimental=_module("operations.experimental", ccl_experimental=_module("operations.experimental.ccl_experimental", GlobalSemaphoreArg=int)),
)
global_semaphore = _module("global_semaphore", global_semaphore=int)
deprecated = _module("deprecated", operations=types.SimpleNamespace())
