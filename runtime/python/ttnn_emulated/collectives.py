"""Collectives of a mesh of one device: what each device gets of all is what there is."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from .calls import into, on_device
from .device import Device
from .tensor import Tensor
from .types import CoreRangeSet, MemoryConfig


def _of_one_device(name: str, memory_of: Optional[str] = "memory_config") -> Callable[..., Tensor]:
    def function(input_tensor: Tensor, *args: Any, **options: Any) -> Tensor:
        on_device(name, input_tensor)
        memory: Optional[MemoryConfig] = options.get("memory_config")
        made = input_tensor._like(input_tensor._values.clone(), memory_config=memory or input_tensor._memory_config)
        return into(options.get("output_tensor"), made)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} over one device: the tensor itself, once more."
    return function


all_gather, all_reduce, reduce_scatter, mesh_partition, broadcast = (
    _of_one_device(name) for name in ("all_gather", "all_reduce", "reduce_scatter", "mesh_partition", "broadcast")
)
# ttnn.experimental's.
all_gather_async, all_reduce_async, reduce_scatter_minimal_async = (
    _of_one_device(name) for name in ("all_gather_async", "all_reduce_async", "reduce_scatter_minimal_async")
)


def all_broadcast(input_tensor: Tensor, **options: Any) -> List[Tensor]:
    """The tensors of all devices, which are one."""
    return [broadcast(input_tensor, **options)]


class GlobalSemaphore:
    """A number that cores of a device share."""

    def __init__(self, device: Device, cores: CoreRangeSet, initial_value: int) -> None:
        self.device, self.cores, self.value = device, cores, initial_value


def create_global_semaphore(device: Device, cores: CoreRangeSet, initial_value: int = 0, *args: Any) -> GlobalSemaphore:
    return GlobalSemaphore(device, cores, initial_value)


def reset_global_semaphore_value(semaphore: GlobalSemaphore, value: int) -> None:
    semaphore.value = value


def get_num_links(*args: Any, **options: Any) -> int:
    """Links to other devices."""
    return 0
