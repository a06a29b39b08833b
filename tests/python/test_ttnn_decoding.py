"""What decoding and sharded programs call: caches in pages, rotary embeddings, norms over several devices, shards."""

import torch
import ttc
from helpers import agree, pcc, raises

ttnn = ttc.as_ttnn(replace=True)


class opened:
    def __enter__(self):
        self.device = ttnn.open_device(device_id=0)
        return self.device

    def __exit__(self, *_) -> None:
        ttnn.close_device(self.device)


def on(device, values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, **options):
    return ttnn.from_torch(values, dtype=dtype, layout=layout, device=device, **options)


def indices(device, values):
    return on(device, torch.tensor(values, dtype=torch.int32), ttnn.int32, ttnn.ROW_MAJOR_LAYOUT)


def test_pages_hold_what_a_whole_cache_would():
    torch.manual_seed(0)
    users, heads, size, width = 3, 2, 32, 32
    rows = torch.randn(users, heads, 2 * size, width).bfloat16().float()
    table = [[5, 1], [0, 3], [4, 2]]
    with opened() as device:
        pages = on(device, torch.zeros(6, heads, size, width))
        for user in range(users):
            ttnn.experimental.paged_fill_cache(pages, on(device, rows[user : user + 1]), indices(device, table), batch_idx=user)
        new = torch.randn(1, users, 32, width).bfloat16().float()
        at = [40, -1, 7]
        ttnn.experimental.paged_update_cache(pages, on(device, new), update_idxs_tensor=indices(device, at), page_table=indices(device, table))
        for user, position in enumerate(at):
            if position >= 0:
                rows[user, :, position] = new[0, user, :heads]
        held = ttnn.to_torch(pages).float()
        for user in range(users):
            assert torch.equal(torch.cat([held[block] for block in table[user]], 1), rows[user])
        q = on(device, torch.randn(1, users, heads, width))
        plain = ttnn.transformer.scaled_dot_product_attention_decode(q, on(device, rows), on(device, rows), cur_pos=[40, 20, 30])
        paged = ttnn.transformer.paged_scaled_dot_product_attention_decode(q, pages, pages, indices(device, table), cur_pos=[40, 20, 30])
        assert torch.equal(ttnn.to_torch(paged), ttnn.to_torch(plain))
        with raises(RuntimeError, "outside of"):
            ttnn.experimental.paged_update_cache(on(device, rows), on(device, new), update_idxs=[99, 0, 0])


def test_positions_move_on_but_for_those_left_out():
    with opened() as device:
        at = indices(device, [3, -1, 7])
        ttnn.plus_one(at, skip_negative_entries=True)
        assert ttnn.to_torch(at).tolist() == [4, -1, 8]
        ttnn.plus_one(at)
        assert ttnn.to_torch(at).tolist() == [5, 0, 9]


def test_rotary_embedding_turns_pairs():
    torch.manual_seed(0)
    batch, heads, rows, width = 1, 3, 40, 64
    x, angle = torch.randn(batch, heads, rows, width), torch.randn(1, 1, rows, width // 2).repeat_interleave(2, -1)
    turn = torch.zeros(1, 1, 32, 32)
    turn[..., torch.arange(0, 32, 2), torch.arange(1, 32, 2)] = 1
    turn[..., torch.arange(1, 32, 2), torch.arange(0, 32, 2)] = -1
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    with opened() as device:
        cos, sin = on(device, angle.cos()), on(device, angle.sin())
        y = ttnn.experimental.rotary_embedding_llama(on(device, x), cos, sin, on(device, turn))
        assert pcc(ttnn.to_torch(y).float(), x * angle.cos() + turned * angle.sin()) > 0.9999
        one = x.permute(2, 0, 1, 3)[:1].expand(1, 5, heads, width).contiguous()  # a token for each of a batch
        at = angle.permute(0, 2, 1, 3)[:, :5]
        wide = [on(device, torch.nn.functional.pad(part, (0, 0, 0, 31))) for part in (at.cos(), at.sin())]
        y = ttnn.experimental.rotary_embedding_llama(on(device, one), *wide, on(device, turn), is_decode_mode=True)
        turned = torch.stack((-one[..., 1::2], one[..., ::2]), -1).flatten(-2)
        assert pcc(ttnn.to_torch(y).float(), one * at.cos() + turned * at.sin()) > 0.9999


def test_heads_of_one_token_each_and_back():
    values = torch.arange(2 * 8 * 32, dtype=torch.float32).reshape(1, 1, 2, 256) / 512
    with opened() as device:
        q, k, v = ttnn.experimental.nlp_create_qkv_heads_decode(on(device, values, ttnn.float32), num_heads=4, num_kv_heads=2)
        assert (tuple(q.shape), tuple(k.shape), tuple(v.shape)) == ((1, 2, 4, 32), (1, 2, 2, 32), (1, 2, 2, 32))
        assert torch.equal(ttnn.to_torch(k), values.reshape(1, 2, 8, 32)[:, :, 4:6])
        back = ttnn.to_torch(ttnn.experimental.nlp_concat_heads_decode(q, num_heads=4))
        assert tuple(back.shape) == (1, 1, 32, 128) and torch.equal(back[:, :, :2], values[..., :128]) and not back[:, :, 2:].any()


def test_attention_in_chunks_and_of_two_sequences():
    torch.manual_seed(0)
    with opened() as device:
        q, k, v = (torch.randn(1, 2, 64, 32) for _ in range(3))
        whole = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        table = indices(device, [[1, 0]])
        pages = [torch.cat((one[:, :, 32:], one[:, :, :32])) for one in (k, v)]
        second = ttnn.transformer.chunked_scaled_dot_product_attention(
            on(device, q[:, :, 32:].contiguous()), *[on(device, one) for one in pages], table, 32
        )
        assert pcc(ttnn.to_torch(second).float(), whole[:, :, 32:]) > 0.999
        halves = [[on(device, one[:, :, part].contiguous()) for one in (q, k, v)] for part in (slice(0, 32), slice(32, 64))]
        a, b = ttnn.transformer.joint_scaled_dot_product_attention(*halves[0], *halves[1])
        both = torch.cat((ttnn.to_torch(a), ttnn.to_torch(b)), 2).float()
        assert pcc(both, torch.nn.functional.scaled_dot_product_attention(q, k, v)) > 0.999


def test_norms_of_rows_on_two_devices():
    torch.manual_seed(0)
    x, weight, bias = torch.randn(1, 1, 32, 128) * 3 + 1, torch.randn(128), torch.randn(128)
    layer = torch.nn.functional.layer_norm(x, (128,), weight, bias, 1e-5)
    rms = torch.nn.functional.rms_norm(x, (128,), weight, 1e-5)
    with opened() as device:
        halves = [on(device, one.contiguous()) for one in x.split(64, -1)]
        for name, expected, given in (("layer", layer, bias), ("rms", rms, None)):
            before, after = getattr(ttnn, f"{name}_norm_pre_all_gather"), getattr(ttnn, f"{name}_norm_post_all_gather")
            stats = ttnn.concat([before(one, dtype=ttnn.float32) for one in halves], -1)
            for i, one in enumerate(halves):
                part = slice(64 * i, 64 * (i + 1))
                options = {"weight": on(device, weight[part])} | ({} if given is None else {"bias": on(device, given[part])})
                y = ttnn.to_torch(after(one, stats, epsilon=1e-5, **options)).float()
                assert pcc(y, expected[..., part]) > 0.9998, name


def test_shards_are_configurations_of_the_same_values():
    config = ttnn.create_sharded_memory_config_(
        (1, 1, 100, 64), ttnn.CoreGrid(x=4, y=2), ttnn.ShardStrategy.BLOCK, ttnn.ShardOrientation.ROW_MAJOR, tile_layout=True
    )
    assert tuple(config.shard_spec.shape) == (64, 16)
    ranges = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))])
    rows = ttnn.create_sharded_memory_config_((256, 64), ranges, ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.ShardOrientation.ROW_MAJOR)
    assert tuple(rows.shard_spec.shape) == (64, 64)
    values = torch.randn(1, 1, 256, 64).bfloat16()
    with opened() as device:
        x = ttnn.to_memory_config(on(device, values), rows)
        wide = ttnn.create_sharded_memory_config_((256, 64), ranges, ttnn.ShardStrategy.WIDTH, ttnn.ShardOrientation.ROW_MAJOR)
        assert ttnn.reshard(x, wide).memory_config() == wide and torch.equal(ttnn.to_torch(ttnn.reshard(x, wide)), values)
        whole = on(device, torch.zeros(1, 1, 256, 64))
        for i in range(4):
            part = ttnn.interleaved_to_sharded_partial(
                on(device, values), ranges, (16, 64), 4, i, ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.ShardOrientation.ROW_MAJOR
            )
            assert tuple(part.shape) == (1, 1, 64, 64)
            ttnn.sharded_to_interleaved_partial(part, whole, 4, i)
        assert torch.equal(ttnn.to_torch(whole), values)
        with raises(RuntimeError, "sharded"):
            ttnn.reshard(whole, wide)


def test_folded_images_are_deeper():
    image = torch.randn(2, 4, 6, 8).bfloat16()
    parts = image.reshape(2, 2, 2, 3, 2, 8).transpose(2, 3).reshape(2, 2, 3, 32)
    with opened() as device:
        rows = {"layout": ttnn.ROW_MAJOR_LAYOUT}
        assert torch.equal(ttnn.to_torch(ttnn.fold(on(device, image, **rows), 2, 2)), parts)
        first = on(device, image.permute(0, 3, 1, 2).contiguous(), **rows)
        assert torch.equal(ttnn.to_torch(ttnn.fold(first, 2, 2, use_transpose_as_fold=True)), parts)
        places = on(device, image.reshape(1, 1, 48, 8))
        assert torch.equal(ttnn.to_torch(ttnn.experimental.convert_to_chw(places)), image.reshape(1, 1, 48, 8).transpose(2, 3))


def test_a_weight_is_packed_once_and_again_where_it_changed():
    """Whether by the values that come out: an operand's memory on the device counts, not what the host packs anew."""
    torch.manual_seed(0)
    x, w, b = torch.randn(32, 64), torch.randn(64, 96), torch.randn(96)
    with opened() as device:
        rows, weight, bias = on(device, x), on(device, w), on(device, b.reshape(1, 96))
        first = ttnn.to_torch(ttnn.linear(rows, weight, bias=bias))
        agree(first.float(), x @ w + b)
        again = ttnn.to_torch(ttnn.linear(rows, weight, bias=bias))
        assert torch.equal(first, again)
        ttnn.copy(on(device, 2 * w), weight)
        assert pcc(ttnn.to_torch(ttnn.linear(rows, weight, bias=bias)).float(), 2 * x @ w + b) > 0.999
        turned = on(device, w.T.contiguous())
        assert torch.equal(ttnn.to_torch(ttnn.linear(rows, turned, bias=bias, transpose_b=True)), first)
        table = on(device, w, layout=ttnn.ROW_MAJOR_LAYOUT)
        ids = on(device, torch.tensor([[3, 0]], dtype=torch.int32), ttnn.uint32, ttnn.ROW_MAJOR_LAYOUT)
        for _ in range(2):
            assert torch.equal(ttnn.to_torch(ttnn.embedding(ids, table))[0], w[[3, 0]].bfloat16())


def test_a_tensor_is_a_copy_of_what_it_was_made_of():
    values = torch.ones(32, 32)
    with opened() as device:
        held = on(device, values, ttnn.float32)
        values.zero_()
        assert ttnn.to_torch(held).sum() == 1024


def test_specs_are_sharded_by_ranges_of_cores():
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 1))])
    spec = ttnn.TensorSpec((2, 3, 40, 50), ttnn.float32, ttnn.TILE_LAYOUT, buffer_type=ttnn.BufferType.L1)
    assert tuple(spec.block_sharded(cores).memory_config.shard_spec.shape) == (192, 16)
    assert tuple(spec.sharded((1, 37, 37), cores).memory_config.nd_shard_spec.shard_shape) == (1, 64, 64)
    named = ttnn.ShardSpec(grid=cores, shard_shape=[64, 32], shard_orientation=ttnn.ShardOrientation.ROW_MAJOR)
    assert named == ttnn.ShardSpec(cores, (64, 32), ttnn.ShardOrientation.ROW_MAJOR)
    assert ttnn.CoreRangeSet([cores]) == cores


def test_pools_give_bfloat16_in_rows():
    with opened() as device:
        x = on(device, torch.randn(1, 1, 64, 32), ttnn.bfloat8_b)
        for pool in (ttnn.max_pool2d, ttnn.avg_pool2d):
            y = pool(x, 1, 8, 8, 32, (2, 2), (2, 2), (0, 0))
            assert (y.dtype, y.layout) == (ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT)
        slopes = on(device, torch.tensor([0.5, 0.25]), layout=ttnn.ROW_MAJOR_LAYOUT)
        y = ttnn.prelu(on(device, -torch.ones(1, 2, 32, 32)), slopes)
        assert torch.equal(ttnn.to_torch(y)[0, :, 0, 0].float(), torch.tensor([-0.5, -0.25]))
        whole = ttnn.sum(on(device, torch.full((4, 32), 70000, dtype=torch.int32), ttnn.int32), dim=0)
        assert ttnn.to_torch(whole).flatten()[0] == 280000
        filled = ttnn.tilize_with_val_padding(on(device, torch.zeros(1, 1, 3, 5), layout=ttnn.ROW_MAJOR_LAYOUT), [1, 1, 32, 32], 7.0)
        assert filled.cpu().to_torch_with_padded_shape().sum() == 7 * (1024 - 15)


def test_tensors_of_numbers_and_a_shape():
    with opened() as device:
        held = ttnn.from_buffer([1.5, 2.0, 3.0, -4.0], [2, 2], dtype=ttnn.bfloat16, device=device)
        assert held.layout == ttnn.ROW_MAJOR_LAYOUT and ttnn.to_torch(held).tolist() == [[1.5, 2.0], [3.0, -4.0]]
        tiles = ttnn.Tensor([1, 2, 3, 4], (1, 4), ttnn.int32, ttnn.TILE_LAYOUT, device)
        assert tiles.layout == ttnn.TILE_LAYOUT and ttnn.to_torch(tiles).tolist() == [[1, 2, 3, 4]]
