"""Files of one tensor (.tensorbin): a FlatBuffers header behind its size, then the bytes of the device's buffer."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
from ttc import tensors as _memory
from ttc._library import native
from ttc.errors import Error

from .calls import fail
from .device import Device
from .tensor import Tensor
from .types import FLOATS, BufferType, DataType, Layout, MemoryConfig, bfloat4_b, bfloat8_b, bfloat16, float32, int32
from .types import uint8, uint16, uint32

_dtypes = [bfloat16, float32, uint32, bfloat8_b, bfloat4_b, uint8, uint16, int32]  # by TT-NN's number
_ROW_MAJOR_PAGE, _TILE_PAGE = 1, 2
_INLINE_STORAGE = 1
_ALIGNMENT = 64  # of the data in the file


# ---- reading ---------------------------------------------------------------------------------------------------------


class _Table:
    """A table of a FlatBuffers buffer: fields by their slot."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._vtable = at - struct.unpack_from("<i", data, at)[0]
        self._slots = (struct.unpack_from("<H", data, self._vtable)[0] - 4) // 2

    def _field(self, slot: int) -> int:
        place = struct.unpack_from("<H", self._data, self._vtable + 4 + 2 * slot)[0] if slot < self._slots else 0
        return self._at + place if place else 0

    def number(self, slot: int, code: str, otherwise: int = 0) -> int:
        at = self._field(slot)
        return struct.unpack_from("<" + code, self._data, at)[0] if at else otherwise

    def _target(self, slot: int) -> int:
        at = self._field(slot)
        return at + struct.unpack_from("<I", self._data, at)[0] if at else 0

    def table(self, slot: int) -> Optional["_Table"]:
        at = self._target(slot)
        return _Table(self._data, at) if at else None

    def numbers(self, slot: int) -> Tuple[int, ...]:
        at = self._target(slot)
        count = struct.unpack_from("<I", self._data, at)[0] if at else 0
        return struct.unpack_from(f"<{count}I", self._data, at + 4) if count else ()

    def tables(self, slot: int) -> List["_Table"]:
        at = self._target(slot)
        count = struct.unpack_from("<I", self._data, at)[0] if at else 0
        places = [at + 4 + 4 * i for i in range(count)]
        return [_Table(self._data, place + struct.unpack_from("<I", self._data, place)[0]) for place in places]

    def longs(self, slot: int, count: int) -> Tuple[int, ...]:
        at = self._target(slot)
        return struct.unpack_from(f"<{count}Q", self._data, at) if at else (0,) * count


def load_tensor(file_name: Union[str, Path], *, device: Optional[Device] = None, **options: Any) -> Tensor:
    """The tensor of a .tensorbin file, on the device where one is given."""
    path = Path(file_name)
    if not path.exists():
        raise RuntimeError(f'TT_FATAL: Cannot open "{path}"')
    data = path.read_bytes()
    try:
        shape, dtype, layout, buffer_type, payload = _parsed(data)
        held = native.library_restored(payload, shape, dtype.value, layout is Layout.ROW_MAJOR)
    except (struct.error, IndexError, AttributeError, Error) as error:
        raise fail(f"Cannot validate tensor data of {path}: {error}") from None
    values = _memory.to_torch(held)
    memory_config = MemoryConfig(buffer_type=buffer_type) if device is not None else None
    return Tensor._of(values if dtype in FLOATS else values.long(), dtype, layout, device, memory_config)


def _parsed(data: bytes) -> Tuple[Tuple[int, ...], DataType, Layout, BufferType, bytes]:
    (size,) = struct.unpack_from("<Q", data, 0)
    if size + 8 > len(data):
        raise fail(f"Tensor file is truncated or corrupt (header_size={size}, file_size={len(data)})")
    header = data[8 : 8 + size]
    tensor = _Table(header, struct.unpack_from("<I", header, 0)[0])
    spec, shards = tensor.table(0), tensor.tables(2)
    if spec is None or len(shards) != 1:
        raise NotImplementedError("ttnn.load_tensor: tensors of several devices are not emulated")
    layout = spec.table(1)
    page = layout.number(1, "B")
    memory = layout.table(3)
    if memory is not None and memory.number(0, "H") != 0:
        raise NotImplementedError("ttnn.load_tensor: sharded tensors are not emulated")
    offset, count = shards[0].longs(1, 2)
    begin = 8 + size + offset
    if begin + count > len(data):
        raise fail("Tensor file is truncated or corrupt")
    place = BufferType(memory.number(1, "H")) if memory is not None else BufferType.DRAM
    kind = Layout.TILE if page == _TILE_PAGE else Layout.ROW_MAJOR
    return spec.numbers(0), _dtypes[layout.number(0, "B")], kind, place, data[begin : begin + count]


# ---- writing ---------------------------------------------------------------------------------------------------------


class _Writer:
    """From the root on: parents before what they refer to."""

    def __init__(self) -> None:
        self.data = bytearray(4)

    def _reserve(self, size: int, alignment: int) -> int:
        self.data += bytes(-len(self.data) % alignment)
        at = len(self.data)
        self.data += bytes(size)
        return at

    def table(self, fields: Sequence[Tuple[int, str, int]]) -> Tuple[int, List[int]]:
        """(slot, type, value) each; its place and the fields'."""
        slots, body, places = max((slot for slot, _, _ in fields), default=-1) + 1, 4, []
        for _, code, _ in fields:
            size = struct.calcsize(code)
            body = -(-body // size) * size
            places.append(body)
            body += size
        vtable = self._reserve(4 + 2 * slots, 2)
        struct.pack_into("<HH", self.data, vtable, 4 + 2 * slots, body)
        start = self._reserve(body, 4)
        struct.pack_into("<i", self.data, start, start - vtable)
        for (slot, code, value), place in zip(fields, places):
            struct.pack_into("<H", self.data, vtable + 4 + 2 * slot, place)
            struct.pack_into("<" + code, self.data, start + place, value)
        return start, [start + place for place in places]

    def numbers(self, values: Sequence[int]) -> int:
        start = self._reserve(4 + 4 * len(values), 4)
        struct.pack_into(f"<I{len(values)}I", self.data, start, len(values), *values)
        return start

    def longs(self, values: Sequence[int]) -> int:
        start = self._reserve(8 * len(values), 8)
        struct.pack_into(f"<{len(values)}Q", self.data, start, *values)
        return start

    def refer(self, field: int, target: int) -> None:
        struct.pack_into("<I", self.data, field, target - field)


def _header(tensor: Tensor, size: int) -> bytes:
    to = _Writer()
    tiled = tensor.layout is Layout.TILE
    root, (spec_at, mesh_at, shards_at) = to.table([(0, "I", 0), (1, "I", 0), (2, "I", 0)])
    to.refer(0, root)
    spec, (shape_at, layout_at) = to.table([(0, "I", 0), (1, "I", 0)])
    to.refer(spec_at, spec)
    to.refer(shape_at, to.numbers(tensor.shape))
    page = _TILE_PAGE if tiled else _ROW_MAJOR_PAGE
    layout, places = to.table([(0, "B", _dtypes.index(tensor.dtype)), (1, "B", page), (2, "I", 0), (3, "I", 0), (4, "I", 0)])
    to.refer(layout_at, layout)
    config, inner = to.table([(0, "I", 0)] if tiled else [])
    to.refer(places[2], config)
    if tiled:
        to.refer(inner[0], to.table([(0, "I", 32), (1, "I", 32)])[0])
    to.refer(places[3], to.table([(1, "H", tensor.memory_config().buffer_type.value % BufferType.SYSTEM_MEMORY.value)])[0])
    to.refer(places[4], to.numbers([32, 32] if tiled else [1]))
    mesh, (dims_at,) = to.table([(0, "I", 0)])
    to.refer(mesh_at, mesh)
    to.refer(dims_at, to.numbers([1, 1]))
    shards = to.numbers([0])
    to.refer(shards_at, shards)
    shard, (_, storage_at, place_at) = to.table([(0, "B", _INLINE_STORAGE), (1, "I", 0), (2, "I", 0)])
    to.refer(shards + 4, shard)
    to.refer(storage_at, to.longs([0, size]))
    coordinate, (values_at,) = to.table([(0, "I", 0)])
    to.refer(place_at, coordinate)
    to.refer(values_at, to.numbers([0, 0]))
    return bytes(to.data)


def dump_tensor(file_name: Union[str, Path], tensor: Tensor, **options: Any) -> None:
    """Writes the tensor as load_tensor reads it."""
    tensor._check()
    values = tensor._values.float() if tensor.dtype in FLOATS else tensor._values.to(torch.int32)
    payload = native.library_stored(_memory.of_torch(values.contiguous()), tensor.dtype.value, tensor.layout is Layout.ROW_MAJOR)
    header = _header(tensor, len(payload))
    size = -(-(8 + len(header)) // _ALIGNMENT) * _ALIGNMENT - 8
    Path(file_name).write_bytes(struct.pack("<Q", size) + header.ljust(size, b"\0") + payload)
