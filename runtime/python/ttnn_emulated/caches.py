"""Caches of keys and values, which calls write in place: [batch, heads, positions, width]."""

from __future__ import annotations

from .calls import fail, on_device
from .tensor import Tensor, packed


def _written(cache: Tensor, input: Tensor) -> None:
    """What was written, as the cache's format holds it."""
    cache._values = packed(cache._values, cache.dtype)


def fill_cache(cache_tensor: Tensor, input_tensor: Tensor, batch_idx: int) -> Tensor:
    """The first positions of one batch item: input [1, heads, positions, width]."""
    on_device("fill_cache", cache_tensor, input_tensor)
    if input_tensor.shape[-2] > cache_tensor.shape[-2] or not 0 <= batch_idx < cache_tensor.shape[0]:
        raise fail(f"fill_cache: {input_tensor.shape} does not fit into item {batch_idx} of {cache_tensor.shape}")
    cache_tensor._values = cache_tensor._values.clone()
    cache_tensor._values[batch_idx, :, : input_tensor.shape[-2]] = input_tensor._values[0]
    _written(cache_tensor, input_tensor)
    return cache_tensor


def update_cache(cache_tensor: Tensor, input_tensor: Tensor, update_idx: int, batch_offset: int = 0, **options: object) -> Tensor:
    """One position of all batch items: input [1, heads, batch, width]."""
    on_device("update_cache", cache_tensor, input_tensor)
    batch = cache_tensor.shape[0]
    if not 0 <= update_idx < cache_tensor.shape[-2] or input_tensor.shape[-2] < batch_offset + batch:
        raise fail(f"update_cache: {input_tensor.shape} does not fit into position {update_idx} of {cache_tensor.shape}")
    rows = input_tensor._values[0, :, batch_offset : batch_offset + batch]
    cache_tensor._values = cache_tensor._values.clone()
    cache_tensor._values[:, :, update_idx] = rows.transpose(0, 1)
    _written(cache_tensor, input_tensor)
    return cache_tensor


def fill_cache_for_user_(cache: Tensor, input: Tensor, batch_index: int) -> Tensor:
    """ttnn.kv_cache: fill_cache."""
    return fill_cache(cache, input, batch_index)


def update_cache_for_token_(cache: Tensor, input: Tensor, update_index: int, batch_offset: int = 0) -> Tensor:
    """ttnn.kv_cache: update_cache."""
    return update_cache(cache, input, update_index, batch_offset)
