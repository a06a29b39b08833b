"""Tensors: what the device's formats hold, exactly, with a buffer of the emulated device's memory beside it."""

from __future__ import annotations

import math
import os
from typing import Any, List, Optional, Sequence

import torch
from ttc import tensors as _memory
from ttc._library import native
from ttc.errors import Error

from .device import Device
from .specs import TensorSpec
from .types import (
    BLOCKS,
    DRAM_MEMORY_CONFIG,
    FLOATS,
    BufferType,
    DataType,
    Layout,
    MemoryConfig,
    Shape,
    StorageType,
    Tile,
    bfloat16,
    float32,
    int32,
    padded,
    uint8,
    uint16,
    uint32,
)

_of_torch = {
    torch.float32: float32,
    torch.float64: float32,
    torch.bfloat16: bfloat16,
    torch.float16: bfloat16,
    torch.int64: uint32,
    torch.int32: int32,
    torch.int16: uint16,
    torch.uint8: uint8,
    torch.bool: uint8,
    torch.uint16: uint16,
    torch.uint32: uint32,
}
_to_torch = {bfloat16: torch.bfloat16, int32: torch.int32, uint8: torch.uint8, uint16: torch.int16, uint32: torch.int32}


def exact_numerics() -> bool:
    """Whether TTRT_NUMERICS asks for the silicon's arithmetic; fast without it."""
    name = os.environ.get("TTRT_NUMERICS", "fast")
    if name not in ("fast", "exact"):
        raise RuntimeError(f"TTRT_NUMERICS={name}: it is fast or exact")
    return name == "exact"


def packed(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Values of any dtype as the format holds them: float32, or int64 for integers. Rounded as the host packs."""
    if dtype not in FLOATS:
        bits = {uint8: 8, uint16: 16}.get(dtype, 32)
        whole = values.to(torch.int64) & (2**bits - 1)
        return torch.where(whole >= 2**31, whole - 2**32, whole) if dtype is int32 else whole
    values = values.to(torch.float32).contiguous()
    if dtype is float32 or values.numel() == 0:
        return values
    (made,) = native.library_run(
        "host_pack_unpack",
        [("", "float32", _memory.of_torch(values), False, None)],
        [(list(values.shape), dtype.value)],
        f'{{"format": "{dtype.value}"}}',
        None,
        False,
        True,
    )
    return _memory.to_torch(made)


class Tensor:
    """A tensor of TT-NN's. `ttnn.from_torch` makes one, `ttnn.to_torch` reads it."""

    def __init__(
        self,
        tensor: Any,
        data_type: Any = None,
        device: Any = None,
        layout: Any = None,
        mem_config: Any = None,
        tile: Any = None,
        *more: Any,
        **options: Any,
    ) -> None:
        """Of an array, its format, device, layout, memory and tile; or of numbers, a shape, format, layout, device, memory and
        tile."""
        if isinstance(data_type, (list, tuple)):  # numbers and a shape
            tensor = torch.as_tensor(tensor).reshape(tuple(data_type))
            data_type, layout, device, mem_config, tile = device, layout, mem_config, tile, (more or (None,))[0]
        source = torch.as_tensor(tensor).detach().cpu()
        if data_type is None:
            data_type = _of_torch.get(source.dtype)
            if data_type is None:
                raise RuntimeError(f"Unsupported data type: {source.dtype}")
        if layout is None:
            layout = Layout.TILE if data_type in BLOCKS else Layout.ROW_MAJOR
        if data_type in BLOCKS and layout is not Layout.TILE:
            raise RuntimeError("ttnn.from_torch: bfloat8_b/bfloat4_b requires TILE_LAYOUT!")
        values = packed(source, data_type)
        if values.data_ptr() == source.data_ptr():  # the caller's, who may go on writing there
            values = values.clone()
        self._set(values, data_type, layout, device, mem_config)
        self._tile = tile

    @classmethod
    def _of(
        cls,
        values: torch.Tensor,
        dtype: DataType,
        layout: Layout,
        device: Optional[Device],
        memory_config: Optional[MemoryConfig] = None,
    ) -> "Tensor":
        """Of values that the format holds already."""
        out = cls.__new__(cls)
        out._set(values, dtype, layout, device, memory_config)
        return out

    def _set(self, values: torch.Tensor, dtype: DataType, layout: Layout, device: Any, memory_config: Any) -> None:
        self._buffer: Any = None
        self._values = values.contiguous()
        self._dtype, self._layout, self._device = dtype, layout, device
        self._memory_config = memory_config or (DRAM_MEMORY_CONFIG if device is not None else None)
        self._allocated = True
        self._tile: Optional[Tile] = None  # of 32x32
        self._padding = 0.0  # what fills up its tiles, where anybody may see that
        if device is not None:
            in_l1 = self._memory_config.buffer_type in (BufferType.L1, BufferType.L1_SMALL)
            try:
                self._buffer = device._native.allocate(list(values.shape), dtype.value, layout is Layout.ROW_MAJOR, in_l1)
            except Error as error:
                raise RuntimeError(f"TT_FATAL: {error.args[0]}") from None
            device._tensors[id(self)] = self

    @property
    def _values(self) -> torch.Tensor:
        return self._held

    @_values.setter
    def _values(self, values: torch.Tensor) -> None:
        """Others than before. They are not written in place: calls pack them into the buffer once."""
        self._held = values
        if self._buffer is not None:
            self._buffer.forget()

    # ---- what it is

    @property
    def shape(self) -> Shape:
        return Shape(self._values.shape)

    @property
    def padded_shape(self) -> Shape:
        return padded(self._values.shape, self._layout, self._tile)

    @property
    def dtype(self) -> DataType:
        return self._dtype

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def tile(self) -> Tile:
        return self._tile or Tile()

    def get_tile(self) -> Tile:
        return self.tile

    def get_dtype(self) -> DataType:
        return self._dtype

    def get_layout(self) -> Layout:
        return self._layout

    def memory_config(self) -> MemoryConfig:
        return self._memory_config or MemoryConfig(buffer_type=BufferType.SYSTEM_MEMORY)

    def storage_type(self) -> StorageType:
        return StorageType.HOST if self._device is None else StorageType.DEVICE

    def device(self) -> Optional[Device]:
        return self._device

    def is_sharded(self) -> bool:
        return self._memory_config is not None and self._memory_config.is_sharded()

    def shard_spec(self) -> Any:
        return self._memory_config.shard_spec if self._memory_config is not None else None

    def is_allocated(self) -> bool:
        return self._allocated

    def logical_volume(self) -> int:
        return math.prod(self._values.shape)

    def volume(self) -> int:
        return math.prod(self.padded_shape)

    physical_volume = volume

    def element_size(self) -> int:
        sizes = {float32: 4, uint32: 4, int32: 4, bfloat16: 2, uint16: 2}
        return sizes.get(self._dtype, 1)

    def buffer_address(self) -> int:
        self._check()
        if self._buffer is None:
            raise RuntimeError("Tensor is not allocated on device")
        return self._buffer.address

    def _check(self) -> None:
        if not self._allocated:
            raise RuntimeError("Tensor is not allocated.")

    # ---- to other places

    def _like(self, values: torch.Tensor, **changes: Any) -> "Tensor":
        members = {"dtype": self._dtype, "layout": self._layout, "device": self._device, "memory_config": self._memory_config}
        members.update(changes)
        made = Tensor._of(values, **members)
        made._tile = self._tile
        return made

    def to(self, target: Any = None, *args: Any, **options: Any) -> "Tensor":
        """To a device, a memory configuration there, or a layout."""
        self._check()
        if isinstance(target, Layout):
            return self._like(self._values, layout=target)
        memory_config = next((one for one in args if isinstance(one, MemoryConfig)), options.get("mem_config"))
        return self._like(self._values, device=target, memory_config=memory_config)

    def cpu(self, *args: Any, **options: Any) -> "Tensor":
        self._check()
        made = self._like(self._values, device=None, memory_config=None)
        made._padding = self._padding
        return made

    def to_torch_with_padded_shape(self) -> torch.Tensor:
        """The values with what fills up the tiles."""
        self._check()
        whole = torch.full(tuple(self.padded_shape), self._padding, dtype=self._values.dtype)
        values = self._values.reshape([1] * (whole.dim() - self._values.dim()) + list(self._values.shape))
        whole[tuple(slice(0, size) for size in values.shape)] = values
        return whole.to(_to_torch.get(self._dtype, torch.float32))

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, self._dtype, self._layout, memory_config=self.memory_config())

    def to_torch(self, *args: Any, **options: Any) -> torch.Tensor:
        self._check()
        return self._values.to(_to_torch.get(self._dtype, torch.float32), copy=True)

    def to_numpy(self, *args: Any) -> Any:
        values = self.to_torch()
        return (values.float() if values.dtype is torch.bfloat16 else values).numpy()

    def to_list(self) -> List[Any]:
        self._check()
        return self._values.tolist()

    def item(self) -> Any:
        self._check()
        if self._values.numel() != 1:
            raise RuntimeError("item() of a tensor that has not exactly one element")
        return self._values.item()

    def deallocate(self, force: bool = False) -> None:
        self._allocated, self._buffer = False, None
        self._values = self._values.new_empty(0).expand(0)

    def reshape(self, *shape: Any) -> "Tensor":
        from . import movement

        return movement.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def pad_to_tile(self, value: float = 0.0) -> "Tensor":
        return self

    def unpad_from_tile(self, shape: Sequence[int]) -> "Tensor":
        from . import movement

        return movement.slice(self, [0] * len(shape), list(shape))

    def __len__(self) -> int:
        return self._values.shape[0] if self._values.dim() else 1

    def __bool__(self) -> bool:
        """A comparison's result is a tensor: that it is there says `if`, as with TT-NN."""
        return True

    def __repr__(self) -> str:
        if not self._allocated:
            return "ttnn.Tensor(deallocated)"
        text = repr(self._values.tolist()) if self._values.numel() <= 64 else "..."
        return f"ttnn.Tensor({text}, shape={self.shape}, dtype={self._dtype}, layout={self._layout})"
