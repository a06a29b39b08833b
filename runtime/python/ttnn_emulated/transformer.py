"""ttnn.transformer: attention, and how heads are split and merged."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch

from .calls import fail, into, on_device, run
from .decoding import in_rows
from .tensor import Tensor
from .types import MemoryConfig, WormholeComputeKernelConfig, bfloat16

Memory = Optional[MemoryConfig]
Config = Optional[WormholeComputeKernelConfig]


def scaled_dot_product_attention(
    input_tensor_q: Tensor,
    input_tensor_k: Tensor,
    input_tensor_v: Tensor,
    *,
    attn_mask: Optional[Tensor] = None,
    is_causal: bool = True,
    scale: Optional[float] = None,
    sliding_window_size: Optional[int] = None,
    memory_config: Memory = None,
    program_config: Any = None,
    compute_kernel_config: Config = None,
    attention_sink: Optional[Tensor] = None,
) -> Tensor:
    """softmax(q k^T scale + mask) v, of [batch, heads, rows, width]."""
    if sliding_window_size is not None or attention_sink is not None:
        raise NotImplementedError("ttnn.transformer.scaled_dot_product_attention: windows and sinks are not emulated")
    if is_causal and attn_mask is not None:
        raise fail("is_causal and attn_mask cannot both be set")
    params = {"is_causal": is_causal, "scale": scale}
    if program_config is not None:
        for name, member in (("q_chunk", "q_chunk_size"), ("k_chunk", "k_chunk_size"), ("exp_approx_mode", "exp_approx_mode")):
            params[name] = getattr(program_config, member, None)
    operands = [("q", input_tensor_q), ("k", input_tensor_k), ("v", input_tensor_v)]
    if attn_mask is not None:
        operands.append(("mask", attn_mask))
        params["attn_mask"] = "mask"
    shape = (*input_tensor_q.shape[:-1], input_tensor_v.shape[-1])
    (result,) = run("scaled_dot_product_attention", operands, [shape], params, memory_config=memory_config,
                    config=compute_kernel_config, name="transformer.scaled_dot_product_attention")  # fmt: skip
    return result


def scaled_dot_product_attention_decode(
    input_tensor_q: Tensor,
    input_tensor_k: Tensor,
    input_tensor_v: Tensor,
    *,
    is_causal: bool = True,
    attn_mask: Optional[Tensor] = None,
    cur_pos: Sequence[int] = (),
    cur_pos_tensor: Optional[Tensor] = None,
    attention_sink: Optional[Tensor] = None,
    scale: Optional[float] = None,
    sliding_window_size: Optional[int] = None,
    memory_config: Memory = None,
    program_config: Any = None,
    compute_kernel_config: Config = None,
) -> Tensor:
    """One query of each head [1, batch, heads, width] over the keys up to its position."""
    name = "transformer.scaled_dot_product_attention_decode"
    if not is_causal or attn_mask is not None or attention_sink is not None or sliding_window_size is not None:
        raise NotImplementedError(f"ttnn.{name}: masks, sinks and windows are not emulated")
    positions = list(cur_pos) if cur_pos_tensor is None else [int(one) for one in cur_pos_tensor._values.flatten()]
    operands = [("q", input_tensor_q), ("k", input_tensor_k), ("v", input_tensor_v)]
    (result,) = run("scaled_dot_product_attention_decode", operands, [input_tensor_q.shape], {"cur_pos": positions, "scale": scale},
                    memory_config=memory_config, config=compute_kernel_config, name=name)  # fmt: skip
    return result


def paged_scaled_dot_product_attention_decode(
    input_tensor_q: Tensor, input_tensor_k: Tensor, input_tensor_v: Tensor, page_table_tensor: Tensor, **options: Any
) -> Tensor:
    """scaled_dot_product_attention_decode over caches in blocks [blocks, heads, rows of one, width]."""
    on_device("transformer.paged_scaled_dot_product_attention_decode", input_tensor_q, input_tensor_k, input_tensor_v, page_table_tensor)
    keys, values = (in_rows(one, page_table_tensor) for one in (input_tensor_k, input_tensor_v))
    return scaled_dot_product_attention_decode(input_tensor_q, keys, values, **options)


def chunked_scaled_dot_product_attention(
    input_tensor_q: Tensor,
    input_tensor_k: Tensor,
    input_tensor_v: Tensor,
    page_table_tensor: Tensor,
    chunk_start_idx: int,
    *,
    scale: Optional[float] = None,
    memory_config: Memory = None,
    program_config: Any = None,
    compute_kernel_config: Config = None,
) -> Tensor:
    """Causal attention of the queries from a position on over caches in blocks, up to the last of them."""
    on_device("transformer.chunked_scaled_dot_product_attention", input_tensor_q, input_tensor_k, input_tensor_v, page_table_tensor)
    rows = input_tensor_q.shape[-2]
    end = chunk_start_idx + rows
    keys, values = (in_rows(one, page_table_tensor) for one in (input_tensor_k, input_tensor_v))
    keys, values = (one._like(one._values[:, :, :end]) for one in (keys, values))
    hidden = torch.full((1, 1, rows, end), float("-inf")).triu(chunk_start_idx + 1)
    mask = Tensor(hidden.expand(input_tensor_q.shape[0], 1, rows, end), bfloat16, input_tensor_q.device(), input_tensor_q.layout)
    return scaled_dot_product_attention(input_tensor_q, keys, values, attn_mask=mask, is_causal=False, scale=scale,
                                        memory_config=memory_config, program_config=program_config,
                                        compute_kernel_config=compute_kernel_config)  # fmt: skip


def joint_scaled_dot_product_attention(
    input_tensor_q: Tensor, input_tensor_k: Tensor, input_tensor_v: Tensor,
    joint_tensor_q: Tensor, joint_tensor_k: Tensor, joint_tensor_v: Tensor,
    *, joint_strategy: str = "rear", program_config: Any = None, scale: Optional[float] = None, compute_kernel_config: Config = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """Attention of two sequences as of one, the second behind the first: what becomes of each."""
    if joint_strategy != "rear":
        raise fail("Joint strategy must be 'rear'")
    first = (input_tensor_q, input_tensor_k, input_tensor_v)
    both = [
        a._like(torch.cat([a._values, b._values], 2), memory_config=None) for a, b in zip(first, (joint_tensor_q, joint_tensor_k, joint_tensor_v))
    ]
    made = scaled_dot_product_attention(*both, is_causal=False, scale=scale, program_config=program_config,
                                        compute_kernel_config=compute_kernel_config)  # fmt: skip
    rows = input_tensor_q.shape[2]
    return made._like(made._values[:, :, :rows]), made._like(made._values[:, :, rows:])


def _split(
    function: str, tensor: Tensor, heads: int, kv_heads: int, turned: bool, key: str, memory_config: Memory, name: str
) -> Tuple[Tensor, Tensor, Tensor]:
    batch, rows, columns = tensor.shape[0], tensor.shape[-2], tensor.shape[-1]
    if columns % (heads + 2 * kv_heads) != 0:
        raise fail(f"Head size {columns} must be a multiple of {heads + 2 * kv_heads}")
    width = columns // (heads + 2 * kv_heads)
    keys = (batch, kv_heads, width, rows) if turned else (batch, kv_heads, rows, width)
    shapes = [(batch, heads, rows, width), keys, (batch, kv_heads, rows, width)]
    params = {"num_heads": heads, key: turned}
    if kv_heads != heads:
        params["num_kv_heads"] = kv_heads
    q, k, v = run(function, [tensor], shapes, params, memory_config=memory_config, name=name)
    return q, k, v


def _beside(function: str, queries: Tensor, others: Optional[Tensor]) -> Tensor:
    """The columns of queries, then those of keys and values, which may come in a tensor of their own."""
    if others is None:
        return queries
    on_device(function, queries, others)
    if tuple(others.shape[:-1]) != tuple(queries.shape[:-1]):
        raise fail("KV tensor seq_len dim must be same as Q tensor seq_len!")
    if others.dtype is not queries.dtype:
        raise fail("KV tensor dtype must be same as Q tensor dtype!")
    return queries._like(torch.cat([queries._values, others._values], -1))


def split_query_key_value_and_split_heads(
    input_tensor: Tensor,
    kv_input_tensor: Optional[Tensor] = None,
    *,
    num_heads: int,
    num_kv_heads: Optional[int] = None,
    transpose_key: bool = True,
    memory_config: Memory = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """[batch, rows, columns of all queries, keys, values] as three of [batch, heads, rows, width]; keys turned round."""
    if len(input_tensor.shape) != 3:
        raise fail("Input Tensor must have strictly 3 dimensions!")
    input_tensor = _beside("split_query_key_value_and_split_heads", input_tensor, kv_input_tensor)
    return _split("split_query_key_value_and_split_heads", input_tensor, num_heads, num_kv_heads or num_heads, transpose_key,
                  "transpose_key", memory_config, "transformer.split_query_key_value_and_split_heads")  # fmt: skip


def nlp_create_qkv_heads(
    input_tensor: Tensor,
    input_tensor_kv: Optional[Tensor] = None,
    *,
    num_heads: int,
    num_kv_heads: Optional[int] = None,
    transpose_k_heads: bool = True,
    memory_config: Memory = None,
    output_tensors: Any = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """ttnn.experimental: the same of [batch, 1, rows, columns]."""
    input_tensor = _beside("nlp_create_qkv_heads", input_tensor, input_tensor_kv)
    return _split("nlp_create_qkv_heads", input_tensor, num_heads, num_kv_heads or num_heads, transpose_k_heads,
                  "transpose_k_heads", memory_config, "experimental.nlp_create_qkv_heads")  # fmt: skip


def concatenate_heads(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """[batch, heads, rows, width] as [batch, rows, heads width]."""
    batch, heads, rows, width = input_tensor.shape
    (result,) = run("concatenate_heads", [input_tensor], [(batch, rows, heads * width)], memory_config=memory_config,
                    name="transformer.concatenate_heads")  # fmt: skip
    return result


def nlp_concat_heads(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """ttnn.experimental: [batch, heads, rows, width] as [batch, 1, rows, heads width]."""
    batch, heads, rows, width = input_tensor.shape
    (result,) = run("nlp_concat_heads", [input_tensor], [(batch, 1, rows, heads * width)], memory_config=memory_config,
                    name="experimental.nlp_concat_heads")  # fmt: skip
    return result


def split_heads_of_images(
    input_tensor: Tensor, compute_with_storage_grid_size: Any = None, *, memory_config: Memory = None, num_heads: int = 16, **options: Any
) -> Tuple[Tensor, Tensor, Tensor]:
    """ttnn.experimental: [batch, 1, rows, columns] split into heads, with the keys turned round."""
    return _split("nlp_create_qkv_heads", input_tensor, num_heads, num_heads, True, "transpose_k_heads", memory_config,
                  "experimental.split_query_key_value_and_split_heads")  # fmt: skip


def rotate_half(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """ttnn.experimental: the second half of each row, negated, before the first."""
    from .eltwise import neg
    from .movement import concat, narrow

    half = input_tensor.shape[-1] // 2
    parts = [neg(narrow(input_tensor, -1, half, half)), narrow(input_tensor, -1, 0, half)]
    return concat(parts, -1, memory_config=memory_config)


def attention_softmax(
    input_tensor: Tensor,
    *,
    head_size: Optional[int] = None,
    attention_mask: Optional[Tensor] = None,
    program_config: Any = None,
    causal_mask: bool = False,
    memory_config: Memory = None,
) -> Tensor:
    """softmax(x / sqrt(head_size) + mask)."""
    operands = [("x", input_tensor)] + ([("mask", attention_mask)] if attention_mask is not None else [])
    params: dict = {"head_size": head_size} if head_size is not None else {"scale": 1.0}
    if causal_mask:  # each row of x with its own row of the mask
        params["causal"] = True
    (result,) = run("attention_softmax", operands, [input_tensor.shape], params, memory_config=memory_config,
                    name="transformer.attention_softmax")  # fmt: skip
    return result


def attention_softmax_(input_tensor: Tensor, **options: Any) -> Tensor:
    """attention_softmax in the place of its input."""
    return into(input_tensor, attention_softmax(input_tensor, **options))


def rotary_embedding(
    input_tensor: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    token_index: Optional[int] = None,
    *,
    memory_config: Memory = None,
    compute_kernel_config: Config = None,
) -> Tensor:
    """ttnn.experimental: x cos + rotated x sin, of caches [1, 1, rows, width]."""
    on_device("experimental.rotary_embedding", input_tensor, cos_cache, sin_cache)
    if token_index is not None:
        raise NotImplementedError("ttnn.experimental.rotary_embedding: token_index is not emulated")
    operands = [("x", input_tensor), ("cos", cos_cache), ("sin", sin_cache)]
    (result,) = run("rotary_embedding", operands, [input_tensor.shape], memory_config=memory_config,
                    config=compute_kernel_config, name="experimental.rotary_embedding")  # fmt: skip
    return result


def __getattr__(name: str) -> Any:
    from .coverage import missing_function

    return missing_function("transformer", name)
