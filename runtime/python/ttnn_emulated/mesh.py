"""Meshes of one device: what maps tensors to their devices and back, which is nothing here."""

from __future__ import annotations

import contextlib
import enum
from typing import Any, Iterator, List, Optional, Sequence

from .calls import fail
from .device import Device
from .tensor import Tensor
from .types import CoreCoord, CoreRange, CoreRangeSet


class Topology(enum.Enum):
    Linear = 0
    Ring = 1
    Mesh = 2
    Torus = 3


class MeshShape(tuple):
    """Rows and columns of devices."""

    def __new__(cls, *sizes: Any) -> "MeshShape":
        given = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        return super().__new__(cls, given)


class _Mapping:
    """To one device or from it: the tensor itself."""

    def __init__(self, mesh_device: Optional[Device] = None, *args: Any, **options: Any) -> None:
        self.mesh_device = mesh_device

    def unwrap(self) -> "_Mapping":
        return self


class TensorToMesh(_Mapping):
    pass


class MeshToTensor(_Mapping):
    pass


CppTensorToMesh, CppMeshToTensor = TensorToMesh, MeshToTensor


class ReplicateTensorToMesh(TensorToMesh):
    pass


class ShardTensorToMesh(TensorToMesh):
    pass


class ShardTensor2dMesh(TensorToMesh):
    pass


class ConcatMeshToTensor(MeshToTensor):
    pass


class ConcatMesh2dToTensor(MeshToTensor):
    pass


@contextlib.contextmanager
def distribute(default: _Mapping) -> Iterator[None]:
    """What from_torch and to_torch do inside with meshes: one device has the whole tensor."""
    if not isinstance(default, _Mapping):
        raise ValueError("Argument must be an instance of either TensorToMesh or MeshToTensor.")
    yield


def using_distributed_env() -> bool:
    """Whether other processes have devices too."""
    return False


def visualize_mesh_device(mesh_device: Device, tensor: Optional[Tensor] = None) -> None:
    """Prints the devices of a mesh, and which part of a tensor each has."""
    print(f"{mesh_device}" + (f": {tensor.shape}" if tensor is not None else ""))


def combine_device_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The parts of all devices as one tensor."""
    if len(tensors) != 1:
        raise fail(f"{len(tensors)} tensors for one device")
    return tensors[0]


def from_host_shards(tensors: Sequence[Tensor], mesh_shape: Any = None, *args: Any) -> Tensor:
    """See combine_device_tensors."""
    return combine_device_tensors(tensors)


class MeshComposerConfig(_Mapping):
    pass


class MeshMapperConfig(_Mapping):
    pass


class PlacementReplicate(_Mapping):
    pass


class PlacementShard(_Mapping):
    pass


def replicate_tensor_to_mesh_mapper(mesh_device: Device) -> ReplicateTensorToMesh:
    return ReplicateTensorToMesh(mesh_device)


def shard_tensor_to_mesh_mapper(mesh_device: Device, dim: int) -> ShardTensorToMesh:
    return ShardTensorToMesh(mesh_device, dim)


def concat_mesh_to_tensor_composer(mesh_device: Device, dim: int) -> ConcatMeshToTensor:
    return ConcatMeshToTensor(mesh_device, dim)


def create_mesh_mapper(mesh_device: Device, config: Any = None) -> ShardTensor2dMesh:
    return ShardTensor2dMesh(mesh_device)


def create_mesh_composer(mesh_device: Device, config: Any = None) -> ConcatMesh2dToTensor:
    return ConcatMesh2dToTensor(mesh_device)


def get_device_tensors(tensor: Tensor) -> List[Tensor]:
    """The part of each device."""
    return [tensor]


def num_cores_to_corerangeset(target_num_cores: int, grid_size: Any, row_wise: bool = False) -> CoreRangeSet:
    """So many cores from the first on, along columns or along rows: whole lines, then the rest of one."""
    x, y = (grid_size.x, grid_size.y) if isinstance(grid_size, CoreCoord) else tuple(grid_size)
    if not 0 < target_num_cores <= x * y:
        raise fail(f"Target number of cores {target_num_cores} is greater than total number of available cores {x * y}")
    length = x if row_wise else y
    lines, rest = divmod(target_num_cores, length)
    core = (lambda along, across: CoreCoord(along, across)) if row_wise else (lambda along, across: CoreCoord(across, along))
    ranges: Sequence[CoreRange] = [CoreRange(core(0, 0), core(length - 1, lines - 1))] if lines else []
    return CoreRangeSet([*ranges, *([CoreRange(core(0, lines), core(rest - 1, lines))] if rest else [])])


def divup(a: int, b: int) -> int:
    return (a + b - 1) // b


def roundup(a: int, b: int) -> int:
    return divup(a, b) * b
