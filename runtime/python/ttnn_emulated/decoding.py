"""What programs that decode call of ttnn.experimental: caches in pages, rotary embeddings of pairs, heads of one token
for each of a batch. Values are moved as they are; the embedding is a product with the pairs' matrix, two products and a
sum, each rounded to the tensors' format."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch

from .calls import fail, into, on_device
from .eltwise import binary
from .products import matmul
from .tensor import Tensor, packed
from .types import Layout, MemoryConfig, int32, uint32

Memory = Optional[MemoryConfig]


# ---- caches in pages


def _positions(update_idxs: Sequence[int], update_idxs_tensor: Optional[Tensor], users: int) -> List[int]:
    """Where each user's next row goes; below 0: that user is left out."""
    given = list(update_idxs) if update_idxs_tensor is None else _signed(update_idxs_tensor)
    if len(given) < users:
        raise fail(f"{len(given)} positions for {users} users")
    return given[:users]


def _signed(tensor: Tensor) -> List[int]:
    """Elements of a tensor of indices, -1 of an unsigned one included."""
    return [int(one) - 2**32 if one >= 2**31 else int(one) for one in tensor._values.flatten().tolist()]


def _table(page_table: Tensor) -> torch.Tensor:
    return torch.tensor(_signed(page_table)).reshape(page_table.shape[-2:])


def paged_update_cache(
    cache_tensor: Tensor,
    input_tensor: Tensor,
    *,
    update_idxs: Sequence[int] = (),
    update_idxs_tensor: Optional[Tensor] = None,
    share_cache: Optional[bool] = None,
    page_table: Optional[Tensor] = None,
    batch_offset: int = 0,
    compute_kernel_config: Any = None,
    mesh_coords: Any = None,
) -> Tensor:
    """One row of each user [1, users, heads, width] at a position of its own: in its item of a cache [users, heads, rows,
    width], or in the block of [blocks, heads, rows of one, width] that its row of the page table names."""
    on_device("experimental.paged_update_cache", cache_tensor, input_tensor, page_table)
    users, heads = input_tensor.shape[1], cache_tensor.shape[1]
    if input_tensor.shape[-1] != cache_tensor.shape[-1] or input_tensor.shape[2] < heads:
        raise fail(f"experimental.paged_update_cache: rows {input_tensor.shape} do not fit the cache {cache_tensor.shape}")
    table = None if page_table is None else _table(page_table)
    values, rows = cache_tensor._values.clone(), input_tensor._values
    for user, position in enumerate(_positions(update_idxs, update_idxs_tensor, users)):
        if position < 0:
            continue
        item = 0 if share_cache else user
        if table is not None:
            item, position = int(table[user, position // values.shape[2]]), position % values.shape[2]
        if not 0 <= item < values.shape[0] or position >= values.shape[2]:
            raise fail(f"experimental.paged_update_cache: position {position} of item {item} is outside of {cache_tensor.shape}")
        values[item, :, position] = rows[0, user, :heads]
    cache_tensor._values = packed(values, cache_tensor.dtype)
    return cache_tensor


def paged_fused_update_cache(
    cache_tensor1: Tensor, input_tensor1: Tensor, cache_tensor2: Tensor, input_tensor2: Tensor, **options: Any
) -> Tuple[Tensor, Tensor]:
    """paged_update_cache of two caches, keys and values."""
    return paged_update_cache(cache_tensor1, input_tensor1, **options), paged_update_cache(cache_tensor2, input_tensor2, **options)


def paged_fill_cache(
    cache_tensor: Tensor,
    input_tensor: Tensor,
    page_table: Tensor,
    *,
    batch_idx_tensor: Optional[Tensor] = None,
    batch_idx: int = 0,
    compute_kernel_config: Any = None,
    mesh_coords: Any = None,
) -> Tensor:
    """The rows of one user [1, heads, rows, width] into the blocks of its row of the page table; blocks below 0 are left out."""
    on_device("experimental.paged_fill_cache", cache_tensor, input_tensor, page_table)
    user = _signed(batch_idx_tensor)[0] if batch_idx_tensor is not None else batch_idx
    values, size, rows = cache_tensor._values.clone(), cache_tensor.shape[2], input_tensor.shape[2]
    blocks = _table(page_table)[user].tolist()
    if -(-rows // size) > len(blocks):
        raise fail(f"experimental.paged_fill_cache: {rows} rows are more than {len(blocks)} blocks of {size}")
    for at, block in zip(range(0, rows, size), blocks):
        part = input_tensor._values[0, :, at : at + size]
        if block >= 0:
            values[block, :, : part.shape[1]] = part
    cache_tensor._values = packed(values, cache_tensor.dtype)
    return cache_tensor


def in_rows(cache: Tensor, page_table: Tensor) -> Tensor:
    """A cache in blocks as [users, heads, rows, width], the blocks of each user one behind the other."""
    table = _table(page_table).clamp(min=0)
    blocks = cache._values[table]  # users, blocks, heads, rows of one, width
    users, count, heads, size, width = blocks.shape
    return cache._like(blocks.transpose(1, 2).reshape(users, heads, count * size, width))


def plus_one(input_tensor: Tensor, *, sub_core_grids: Any = None, skip_negative_entries: bool = False) -> Tensor:
    """Positions moved on by one, in their place."""
    on_device("plus_one", input_tensor)
    if input_tensor.dtype not in (int32, uint32):
        raise fail("plus_one: Only uint32 and int32 are supported")
    moved = torch.tensor([one + (0 if skip_negative_entries and one < 0 else 1) for one in _signed(input_tensor)], dtype=torch.int64)
    input_tensor._values = packed(moved.reshape(tuple(input_tensor.shape)), input_tensor.dtype)
    return input_tensor


# ---- rotary embeddings


def rotary_embedding_llama(
    input_tensor: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    trans_mat: Tensor,
    *,
    is_decode_mode: bool = False,
    memory_config: Memory = None,
    compute_kernel_config: Any = None,
) -> Tensor:
    """x cos + (x trans_mat) sin for [batch, heads, rows, width], trans_mat turning pairs within each 32 columns; with
    is_decode_mode for [1, batch, heads, width], with a row of cos and sin for each of the batch."""
    on_device("experimental.rotary_embedding_llama", input_tensor, cos_cache, sin_cache, trans_mat)
    width, tile = input_tensor.shape[-1], trans_mat.shape[-1]
    if width % tile != 0 or cos_cache.shape[-1] != width or sin_cache.shape != cos_cache.shape:
        raise fail(f"experimental.rotary_embedding_llama: {width} columns with cos and sin of {cos_cache.shape[-1]}")
    columns = input_tensor._like(input_tensor._values.reshape(1, 1, -1, tile), memory_config=None)
    matrix = trans_mat._like(trans_mat._values.reshape(-1, *trans_mat.shape[-2:])[:1].unsqueeze(0), memory_config=None)
    turned = matmul(columns, matrix, compute_kernel_config=compute_kernel_config, dtype=input_tensor.dtype)
    turned = input_tensor._like(turned._values.reshape(tuple(input_tensor.shape)))
    rows = (slice(None), slice(None), slice(None, 1 if is_decode_mode else input_tensor.shape[2]))
    cos, sin = (one._like(one._values[rows], memory_config=None) for one in (cos_cache, sin_cache))
    sum_of = binary("add", binary("multiply", input_tensor, cos), binary("multiply", turned, sin))
    return sum_of._like(sum_of._values, memory_config=memory_config or input_tensor._memory_config)


def rotary_embedding_llama_fused_qk(
    q_input_tensor: Tensor, k_input_tensor: Tensor, cos_cache: Tensor, sin_cache: Tensor, trans_mat: Tensor, *, compute_kernel_config: Any = None
) -> Tuple[Tensor, Tensor]:
    """rotary_embedding_llama of queries and keys [1, batch, heads, width]; cos and sin have rows for both, one behind the other."""

    def turned(x: Tensor, first: int) -> Tensor:
        rows = slice(first, first + x.shape[1]) if cos_cache.shape[1] > x.shape[1] else slice(None)
        cos, sin = (one._like(one._values[:, rows], memory_config=None) for one in (cos_cache, sin_cache))
        return rotary_embedding_llama(x, cos, sin, trans_mat, is_decode_mode=True, compute_kernel_config=compute_kernel_config)

    return turned(q_input_tensor, 0), turned(k_input_tensor, q_input_tensor.shape[1])


# ---- heads of one token for each of a batch


def nlp_create_qkv_heads_decode(
    input_tensor: Tensor,
    *,
    num_heads: int,
    num_kv_heads: Optional[int] = None,
    output_tensors: Optional[Sequence[Tensor]] = None,
    overlap_qk_coregrid: bool = True,
    batch_offset: Optional[Tensor] = None,
    slice_size: Optional[int] = None,
    memory_config: Memory = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """[1, 1, batch, columns of all queries, keys, values] as three of [1, batch, heads, width]; of `slice_size` of the
    batch from `batch_offset` on where these are given."""
    on_device("experimental.nlp_create_qkv_heads_decode", input_tensor)
    kv_heads, columns = num_kv_heads or num_heads, input_tensor.shape[-1]
    if columns % (num_heads + 2 * kv_heads) != 0:
        raise fail(f"experimental.nlp_create_qkv_heads_decode: {columns} columns for {num_heads} heads and twice {kv_heads}")
    width = columns // (num_heads + 2 * kv_heads)
    values = input_tensor._values.reshape(-1, columns)
    if batch_offset is not None and slice_size is not None:
        first = _signed(batch_offset)[0]
        values = values[first : first + slice_size]
    parts = torch.split(values.reshape(1, values.shape[0], -1, width), [num_heads, kv_heads, kv_heads], 2)
    out = [input_tensor._like(one, memory_config=memory_config) for one in parts]
    out = out if output_tensors is None else [into(to, one) for to, one in zip(output_tensors, out)]
    return out[0], out[1], out[2]


def nlp_concat_heads_decode(
    input_tensor: Tensor, *, num_heads: int, memory_config: Memory = None, output_tensor: Optional[Tensor] = None, sub_core_grids: Any = None
) -> Tensor:
    """The first `num_heads` of [1, batch, heads, width] beside each other: [1, 1, batch, num_heads width], the batch in whole tiles."""
    on_device("experimental.nlp_concat_heads_decode", input_tensor)
    _, batch, heads, width = input_tensor.shape
    if heads < num_heads:
        raise fail(f"experimental.nlp_concat_heads_decode: {num_heads} of {heads} heads")
    values = torch.zeros(1, 1, -(-batch // 32) * 32, num_heads * width)
    values[0, 0, :batch] = input_tensor._values[0, :, :num_heads].reshape(batch, -1)
    return into(output_tensor, input_tensor._like(values, memory_config=memory_config))


def nlp_create_qkv_heads_falcon7b(input: Tensor, *, memory_config: Memory = None) -> Tuple[Tensor, Tensor, Tensor]:
    """[batch, 1, rows, 73 of 64 columns] as 71 heads of queries, one of keys and one of values."""
    if input.shape[-1] != 73 * 64:
        raise fail(f"experimental.nlp_create_qkv_heads_falcon7b: {input.shape[-1]} columns, not {73 * 64}")
    values = input._values.reshape(input.shape[0], input.shape[-2], 73, 64).transpose(1, 2)
    q, k, v = (input._like(one, memory_config=memory_config) for one in values.split([71, 1, 1], 1))
    return q, k, v


def nlp_kv_cache_load_slice(input: Tensor, *, seq_len_start: int, seq_len_end: int, memory_config: Memory = None) -> Tensor:
    """Rows of a cache [batch, heads, rows, width], whole tiles of them."""
    if seq_len_start % 32 != 0 or seq_len_end % 32 != 0:
        raise fail("experimental.nlp_kv_cache_load_slice: rows begin and end with a tile")
    return input._like(input._values[:, :, seq_len_start:seq_len_end], memory_config=memory_config)


# ---- channels


def convert_to_chw(input: Tensor, *, dtype: Any = None) -> Tensor:
    """[1, 1, places, channels] as [1, 1, channels, places], in rows."""
    values = input._values.transpose(-1, -2)
    return input._like(packed(values, dtype or input.dtype), dtype=dtype or input.dtype, layout=Layout.ROW_MAJOR, memory_config=None)


def convert_to_hwc(input: Tensor, *, dtype: Any = None, memory_config: Memory = None) -> Tensor:
    """[1, batch, channels, places] as [1, 1, batch places, channels], in rows."""
    channels = input.shape[-2]
    values = input._values.transpose(-1, -2).reshape(1, 1, -1, channels)
    made = packed(values, dtype or input.dtype)
    return input._like(made, dtype=dtype or input.dtype, layout=Layout.ROW_MAJOR, memory_config=memory_config)
