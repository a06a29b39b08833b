"""ttnn_emulated: recorded blocks to the bit, functions against torch, errors, memory, how it is found."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import types

import recorded
import torch
import ttc
import ttnn_emulated
from helpers import pcc, raises, root

ttnn = ttnn_emulated


@contextlib.contextmanager
def opened(numerics: str = "fast"):
    os.environ["TTRT_NUMERICS"] = numerics
    device = ttnn.open_device(device_id=0)
    try:
        yield device
    finally:
        ttnn.close_device(device)
        del os.environ["TTRT_NUMERICS"]


def tiles(values: torch.Tensor, device, dtype=ttnn.bfloat16):
    return ttnn.from_torch(values, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


def test_recorded_blocks():
    ttc.as_ttnn()
    files = sorted((root / "tests/data/golden").glob("A_*.safetensors"))
    assert len(files) >= 4
    with opened("exact") as device:
        for path in files:
            for how, (seen, wrong) in recorded.run(path, device).items():
                assert seen > 10 and not wrong, (path.stem, how, wrong)
    with opened("fast") as device:  # the other numerics are not the card's to the bit
        assert recorded.run(files[0], device)["end to end"][1]


def test_recorded_calls():
    """Every recorded call that TT-NN has gives the recorded bits; those of Blackhole on one."""
    ttc.as_ttnn()
    made, wrong = 0, []
    with opened("exact") as device:
        os.environ["TTRT_ARCH"] = "p150"
        blackhole = ttnn.open_device(device_id=1)
        del os.environ["TTRT_ARCH"]
        for path in sorted((root / "tests/data/golden").glob("*.safetensors")):
            case, _ = recorded.read(path)
            if case["op"] == "sequence" or not recorded.single(case):
                continue
            found = recorded.run(path, blackhole if case.get("arch") == "bh" else device)
            made += 1
            wrong += [path.stem for _, differ in found.values() if differ]
        ttnn.close_device(blackhole)
    assert made > 80 and not wrong, (made, wrong)


def test_module_is_ttnn_on_request_only():
    code = "import sys; import ttc; assert 'ttnn' not in sys.modules and 'ttnn_emulated' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(root / "runtime/python")})
    assert ttc.as_ttnn() is ttnn_emulated and sys.modules["ttnn"] is ttnn_emulated
    real = types.ModuleType("ttnn")
    sys.modules["ttnn"] = real
    try:
        with raises(ttc.UsageError, "a real ttnn"):
            ttc.as_ttnn()
        assert sys.modules["ttnn"] is real
        assert ttc.as_ttnn(replace=True) is ttnn_emulated
    finally:
        sys.modules["ttnn"] = ttnn_emulated


def test_coverage_names_what_is_missing():
    from ttnn_emulated import coverage

    names = coverage.public_names()
    assert len(names) > 400 and coverage.covered("linear") and coverage.covered("transformer.concatenate_heads")
    assert not coverage.covered("point_to_point") and "no  point_to_point" in coverage.table()
    with raises(NotImplementedError, "ttnn.point_to_point"):
        ttnn.point_to_point(1)
    with raises(NotImplementedError, "ttnn.transformer.ring_mla"):
        ttnn.transformer.ring_mla(1)
    with raises(AttributeError, "no attribute 'linaer'"):
        ttnn.linaer


def test_formats_hold_what_they_hold():
    x = torch.randn(3, 40, 70) * 8
    host = ttnn.from_torch(x)
    assert host.dtype is ttnn.float32 and host.layout is ttnn.ROW_MAJOR_LAYOUT and host.device() is None
    assert torch.equal(ttnn.to_torch(host), x)
    brain = ttnn.from_torch(x, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
    assert torch.equal(ttnn.to_torch(brain), x.bfloat16()) and ttnn.to_torch(brain).dtype is torch.bfloat16
    assert brain.shape == (3, 40, 70) and brain.padded_shape == [3, 64, 96]
    for dtype, bits in ((ttnn.bfloat8_b, 7), (ttnn.bfloat4_b, 3)):
        blocks = ttnn.to_torch(ttnn.from_torch(x, dtype=dtype, layout=ttnn.TILE_LAYOUT))
        top = x.abs().unfold(-1, 1, 1).amax()
        assert 0 < (blocks - x).abs().max() <= top * 2.0 ** (1 - bits)
    with raises(RuntimeError, "requires TILE_LAYOUT!"):
        ttnn.from_torch(x, dtype=ttnn.bfloat8_b, layout=ttnn.ROW_MAJOR_LAYOUT)
    ids = ttnn.from_torch(torch.tensor([[1, 2**31 + 5]]), dtype=ttnn.uint32)
    assert ids.to_list() == [[1, 2**31 + 5]]
    assert ttnn.from_torch(None) is None
    cached = ttnn.as_tensor(x, ttnn.bfloat16, preprocess=lambda one: one[:1], cache_file_name="never_written")
    assert cached.shape == (1, 40, 70) and not os.path.exists("never_written")


def test_products():
    x, w, b = torch.randn(2, 33, 64), torch.randn(64, 96), torch.randn(1, 96)
    for numerics in ("fast", "exact"):
        with opened(numerics) as device:
            a, weight, bias = tiles(x, device), tiles(w, device), tiles(b, device)
            y = ttnn.linear(a, weight, bias=bias, activation="relu")
            assert y.shape == (2, 33, 96) and y.dtype is ttnn.bfloat16
            assert pcc(ttnn.to_torch(y), (x @ w + b).relu()) > 0.999
            assert pcc(ttnn.to_torch(a @ weight), x @ w) > 0.999
            turned = ttnn.matmul(a, tiles(w.t().contiguous(), device), transpose_b=True)
            assert torch.equal(ttnn.to_torch(turned), ttnn.to_torch(ttnn.matmul(a, weight)))
            assert ttnn.matmul(a, weight, dtype=ttnn.float32).dtype is ttnn.float32
            batches = ttnn.matmul(tiles(torch.ones(4, 1, 32, 32), device), tiles(torch.ones(1, 3, 32, 64), device))
            assert batches.shape == (4, 3, 32, 64) and (ttnn.to_torch(batches) == 32).all()
            with raises(RuntimeError, "The width of the first tensor must be equal"):
                ttnn.matmul(a, a)
            with raises(RuntimeError, "need to be on device"):
                ttnn.matmul(ttnn.from_torch(x, layout=ttnn.TILE_LAYOUT), weight)


def test_compute_configurations_decide():
    x, w = torch.randn(64, 2048), torch.randn(2048, 32)
    with opened("exact") as device:
        a, weight = tiles(x, device), tiles(w, device)
        found = {}
        for fidelity in ttnn.MathFidelity:
            for wide in (False, True):
                config = ttnn.WormholeComputeKernelConfig(math_fidelity=fidelity, fp32_dest_acc_en=wide)
                y = ttnn.to_torch(ttnn.matmul(a, weight, compute_kernel_config=config)).float()
                found[fidelity, wide] = (y - x @ w).norm().item()
        assert found[ttnn.MathFidelity.LoFi, True] > 2 * found[ttnn.MathFidelity.HiFi4, True]
        assert found[ttnn.MathFidelity.HiFi4, False] > 2 * found[ttnn.MathFidelity.HiFi4, True]


def test_program_configurations_decide():
    x, w = torch.randn(32, 1024), torch.randn(1024, 32)
    with opened("exact") as device:
        a, weight = tiles(x, device), tiles(w, device)

        def product(block):
            config = ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=block, per_core_M=1, per_core_N=1)
            return ttnn.to_torch(ttnn.matmul(a, weight, program_config=config))

        assert torch.equal(product(2), ttnn.to_torch(ttnn.matmul(a, weight)))  # what the library takes for narrow products
        assert not torch.equal(product(8), product(2)) and pcc(product(8), x @ w) > 0.999
        with raises(RuntimeError, "Kt must be divisible by in0_block_w"):
            product(5)
        fused = ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(in0_block_w=2, fused_activation=ttnn.UnaryOpType.RELU)
        assert torch.equal(ttnn.to_torch(ttnn.linear(a, weight, program_config=fused)), product(2).relu())


def test_functions_against_torch():
    special = {
        "eqz": lambda x: x == 0,
        "gez": lambda x: x >= 0,
        "gtz": lambda x: x > 0,
        "lez": lambda x: x <= 0,
        "ltz": lambda x: x < 0,
        "nez": lambda x: x != 0,
    }
    functional = torch.nn.functional
    x = torch.rand(2, 40, 70) * 0.8 + 0.1
    seen = 0
    with opened() as device:
        given = tiles(x, device)
        rounded = ttnn.to_torch(given).float()
        for name, parameters in ttnn_emulated.eltwise._unary.items():
            other = special.get(name) or getattr(torch, name, None) or getattr(torch.special, name, None) or getattr(functional, name, None)
            if other is None or name in ("polygamma", "heaviside", "threshold", "acosh", "erfinv", "isneginf", "isposinf"):
                continue
            want = other(rounded)
            got = ttnn.to_torch(getattr(ttnn, name)(given)).float()
            assert pcc(got, want.float()) > 0.99 or torch.allclose(got, want.float(), atol=0.02), name
            seen += 1
    assert seen > 45, seen


def test_binary_functions_broadcast():
    x, y = torch.randn(2, 3, 40, 70), torch.rand(3, 1, 70) + 0.5
    names = {
        "add": "add",
        "subtract": "sub",
        "multiply": "mul",
        "divide": "div",
        "maximum": "maximum",
        "minimum": "minimum",
        "gt": "gt",
        "le": "le",
        "ne": "ne",
    }
    with opened() as device:
        a, b = tiles(x, device), tiles(y, device)
        left, right = ttnn.to_torch(a).float(), ttnn.to_torch(b).float()
        for ours, theirs in names.items():
            got = ttnn.to_torch(getattr(ttnn, ours)(a, b))
            want = getattr(torch, theirs)(left, right).float()
            assert got.shape == want.shape and pcc(got, want) > 0.999, ours
        assert pcc(ttnn.to_torch(a * 3 + 1 - b), left * 3 + 1 - right) > 0.999
        assert pcc(ttnn.to_torch(ttnn.add(a, b, activations=["relu"])), (left + right).relu()) > 0.999
        chosen = ttnn.where(ttnn.gt(a, 0.0), a, -1.0)
        assert torch.equal(ttnn.to_torch(chosen).float(), torch.where(left > 0, left, torch.tensor(-1.0)))
        into = ttnn.zeros_like(a)
        assert ttnn.add(a, b, output_tensor=into) is into and pcc(ttnn.to_torch(into), left + right) > 0.999
        with raises(RuntimeError, "broadcast"):
            ttnn.add(a, tiles(torch.ones(4, 7), device))


def test_rows_and_reductions():
    x, w, b = torch.randn(2, 40, 96), torch.rand(1, 96), torch.randn(1, 96)
    with opened() as device:
        a, g, c = tiles(x, device), tiles(w, device), tiles(b, device)
        norm = torch.nn.functional.layer_norm(x, (96,), w[0], b[0], 1e-5)
        assert pcc(ttnn.to_torch(ttnn.layer_norm(a, epsilon=1e-5, weight=g, bias=c)), norm) > 0.999
        rms = x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * w
        assert pcc(ttnn.to_torch(ttnn.rms_norm(a, epsilon=1e-6, weight=g)), rms) > 0.999
        for dim in (-1, 1):
            assert pcc(ttnn.to_torch(ttnn.softmax(a, dim=dim)), x.softmax(dim)) > 0.999
            for name in ("sum", "mean"):
                got = ttnn.to_torch(getattr(ttnn, name)(a, dim=dim, keepdim=True))
                want = getattr(torch, name)(x, dim, keepdim=True)
                assert got.shape == want.shape and pcc(got, want) > 0.999
        assert ttnn.max(a, dim=-1).shape == (2, 40)
        assert torch.equal(ttnn.to_torch(ttnn.argmax(a, dim=-1)).long(), x.bfloat16().float().argmax(-1))
        values, places = ttnn.topk(tiles(torch.randn(1, 1, 32, 64), device), 32)
        assert values.shape == places.shape == (1, 1, 32, 32) and places.dtype is ttnn.uint16


def test_movement():
    x = torch.randn(2, 3, 40, 70).bfloat16()
    with opened() as device:
        a = tiles(x, device)
        same = lambda got, want: torch.equal(ttnn.to_torch(got), want)
        assert same(ttnn.reshape(a, (6, -1, 35)), x.reshape(6, 80, 35)) and same(ttnn.permute(a, (0, 3, 1, 2)), x.permute(0, 3, 1, 2))
        assert same(ttnn.transpose(a, 1, -1), x.transpose(1, -1)) and same(ttnn.concat([a, a], dim=2), torch.cat([x, x], 2))
        assert same(ttnn.slice(a, [0, 1, 8, 0], [2, 3, 40, 33]), x[:, 1:3, 8:40, :33]) and same(a[1, :, ::2, -5:], x[1, :, ::2, -5:])
        assert same(ttnn.pad(a, [(0, 1), (2, 3)], 1.5), torch.nn.functional.pad(x, (2, 3, 0, 1), value=1.5))
        assert same(ttnn.repeat(a, (1, 2, 1, 1)), x.repeat(1, 2, 1, 1)) and same(ttnn.to_layout(a, ttnn.ROW_MAJOR_LAYOUT), x)
        assert [part.shape[1] for part in ttnn.split(a, 2, dim=1)] == [2, 1]
        assert same(ttnn.stack([a, a], dim=0), torch.stack([x, x])) and same(ttnn.unsqueeze_to_4D(a), x)
        ids = ttnn.from_torch(torch.tensor([[5, 0, 7]]), dtype=ttnn.uint32, device=device)
        table = torch.randn(9, 64).bfloat16()
        assert same(ttnn.embedding(ids, ttnn.from_torch(table, device=device), layout=ttnn.TILE_LAYOUT), table[torch.tensor([[5, 0, 7]])])
        blocks = ttnn.typecast(a, ttnn.bfloat8_b)
        assert blocks.dtype is ttnn.bfloat8_b and pcc(ttnn.to_torch(blocks), x.float()) > 0.999
        with raises(RuntimeError, "reshape"):
            ttnn.reshape(a, (5, 5))


def test_attention():
    q, k, v = torch.randn(2, 4, 64, 32), torch.randn(2, 2, 64, 32), torch.randn(2, 2, 64, 32)
    with opened() as device:
        got = ttnn.transformer.scaled_dot_product_attention(*[tiles(one, device) for one in (q, k, v)], is_causal=True)
        want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        assert pcc(ttnn.to_torch(got), want) > 0.99
        x = torch.randn(2, 32, 3 * 64)
        heads = ttnn.transformer.split_query_key_value_and_split_heads(tiles(x, device), num_heads=2)
        wanted = x.bfloat16().reshape(2, 32, 3, 2, 32).permute(2, 0, 3, 1, 4)
        assert torch.equal(ttnn.to_torch(heads[0]), wanted[0]) and torch.equal(ttnn.to_torch(heads[1]), wanted[1].transpose(-1, -2))
        merged = ttnn.transformer.concatenate_heads(heads[2])
        assert torch.equal(ttnn.to_torch(merged), x.bfloat16()[..., 128:])
        scores = torch.randn(2, 4, 32, 64)
        soft = ttnn.transformer.attention_softmax(tiles(scores, device), head_size=64)
        assert pcc(ttnn.to_torch(soft), (scores / 8).softmax(-1)) > 0.99  # the card's own steps: scores in bfloat16


def test_masks_are_of_batch_items():
    scores, mask = torch.randn(2, 3, 32, 64), torch.randn(2, 1, 1, 64) * 4
    with opened("exact") as device:
        soft = lambda x, m: ttnn.to_torch(
            ttnn.transformer.attention_softmax(tiles(x, device), attention_mask=tiles(m, device), head_size=64)
        )
        whole = soft(scores, mask)
        assert torch.equal(whole, torch.cat([soft(scores[i : i + 1], mask[i : i + 1]) for i in range(2)]))
        assert not torch.equal(whole[1:], soft(scores[1:], mask[:1]))
        with raises(NotImplementedError, "ttnn.transformer.attention_softmax"):
            soft(scores, mask.expand(2, 3, 1, 64))


def test_memory_is_taken_and_given_back():
    with opened() as device:
        taken = lambda: [one["allocated_per_bank"] for one in device.get_memory_allocation_statistics()]
        before = taken()
        a = tiles(torch.zeros(1024, 1024), device)
        b = ttnn.to_memory_config(a, ttnn.L1_MEMORY_CONFIG)
        assert taken()[0] > before[0] and taken()[1] > before[1] and a.buffer_address() >= 0
        ttnn.deallocate(a)
        assert taken()[0] == before[0]
        with raises(RuntimeError, "allocated in buffers on device"):
            ttnn.relu(a)
        with raises(RuntimeError, "Tensor is not allocated."):
            ttnn.to_torch(a)
        with raises(RuntimeError, "Out of Memory: Not enough space to allocate"):
            held = [ttnn.zeros((1, 1, 8192, 8192), layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)]
            held.append(b)
        with raises(RuntimeError, "already open"):
            ttnn.open_device(device_id=0)


def test_command_line():
    run = lambda *args: subprocess.run([sys.executable, "-m", "ttnn_emulated", *args], capture_output=True, text=True,
                                       env={**os.environ, "PYTHONPATH": str(root / "runtime/python")})  # fmt: skip
    assert run().returncode == 2 and importlib.util.find_spec("ttnn_emulated") is not None
    table = run("coverage")
    assert table.returncode == 0 and "public names of TT-NN" in table.stdout.splitlines()[0]
    assert len(table.stdout.splitlines()) > 400


def test_images():
    x, w, b = torch.randn(2, 8, 8, 32), torch.randn(64, 32, 3, 3) / 16, torch.randn(1, 1, 1, 64)
    first = x.permute(0, 3, 1, 2)
    last = lambda y: y.permute(0, 2, 3, 1).reshape(1, 1, -1, y.shape[1])
    with opened() as device:
        given = ttnn.from_torch(x.reshape(1, 1, 128, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        got, size = ttnn.conv2d(
            input_tensor=given, weight_tensor=ttnn.from_torch(w, dtype=ttnn.bfloat16), bias_tensor=ttnn.from_torch(b, dtype=ttnn.bfloat16),
            device=device, in_channels=32, out_channels=64, batch_size=2, input_height=8, input_width=8, kernel_size=(3, 3),
            stride=(2, 2), padding=(1, 1), return_output_dim=True,
        )  # fmt: skip
        assert size == (4, 4)
        assert pcc(ttnn.to_torch(got), last(torch.nn.functional.conv2d(first, w, b.flatten(), 2, 1))) > 0.999
        same = dict(device=device, in_channels=32, out_channels=64, batch_size=2, input_height=8, input_width=8, kernel_size=(3, 3))
        weight = ttnn.from_torch(w, dtype=ttnn.bfloat16)
        plain = ttnn.to_torch(ttnn.conv2d(input_tensor=given, weight_tensor=weight, groups=0, **same))
        fused = ttnn.Conv2dConfig(activation=ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU))
        assert torch.equal(ttnn.to_torch(ttnn.conv2d(input_tensor=given, weight_tensor=weight, conv_config=fused, **same)), plain.relu())
        functional = torch.nn.functional
        pooled = ttnn.max_pool2d(given, 2, 8, 8, 32, (2, 2), (2, 2), (0, 0))
        assert torch.equal(ttnn.to_torch(pooled), last(functional.max_pool2d(first.bfloat16(), 2)))
        assert (
            pcc(ttnn.to_torch(ttnn.avg_pool2d(given, 2, 8, 8, 32, (2, 2), (2, 2), (0, 0))), last(functional.avg_pool2d(first, 2))) > 0.999
        )
        images = tiles(x, device)
        assert pcc(ttnn.to_torch(ttnn.global_avg_pool2d(images)), x.mean((1, 2), keepdim=True)) > 0.99
        assert ttnn.upsample(images, 2).shape == (2, 16, 16, 32)
        part = ttnn.max_pool2d(given, 2, 8, 8, 32, (3, 3), (2, 2), (0, 0), ceil_mode=True)  # the last window is cut
        assert torch.equal(ttnn.to_torch(part), last(functional.max_pool2d(first.bfloat16(), 3, 2, ceil_mode=True)))


def test_caches():
    with opened() as device:
        cache, prompt, token = (
            tiles(torch.zeros(2, 4, 64, 32), device),
            torch.randn(1, 4, 40, 32).bfloat16(),
            torch.randn(1, 4, 2, 32).bfloat16(),
        )
        ttnn.fill_cache(cache, tiles(prompt, device), 1)
        ttnn.update_cache(cache, tiles(token, device), 40)
        found = ttnn.to_torch(cache)
        assert torch.equal(found[1, :, :40], prompt[0]) and not found[0, :, :40].any()
        assert torch.equal(found[:, :, 40], token[0].transpose(0, 1)) and not found[:, :, 41:].any()
        with raises(RuntimeError, "does not fit"):
            ttnn.update_cache(cache, tiles(token, device), 64)


class Block(torch.nn.Module):
    def __init__(self, width: int = 64, inner: int = 128) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)

    def forward(self, x):
        batch, rows, width = x.shape
        q, k, v = self.qkv(self.first(x)).reshape(batch, rows, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, rows, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))


def written_by_hand(block: Block, x, device):
    row = lambda one: tiles(one.detach().reshape(1, -1), device)
    linear = lambda t, one, **more: ttnn.linear(t, tiles(one.weight.detach().T, device), bias=row(one.bias), **more)
    norm = lambda t, one: ttnn.layer_norm(t, epsilon=one.eps, weight=row(one.weight), bias=row(one.bias))
    fused = linear(norm(x, block.first), block.qkv)
    q, k, v = ttnn.transformer.split_query_key_value_and_split_heads(fused, num_heads=2, transpose_key=False)
    y = ttnn.transformer.concatenate_heads(ttnn.transformer.scaled_dot_product_attention(q, k, v, is_causal=True))
    x = ttnn.add(x, linear(y, block.out))
    return ttnn.add(x, linear(linear(norm(x, block.second), block.up, activation="gelu"), block.down))


def test_a_program_gives_what_the_compiled_model_gives():
    block, x = Block(), torch.randn(2, 40, 64)
    with torch.no_grad():
        want = block(x)
    compiled = ttc.compile(block, (x,), numerics="exact")
    with opened("exact") as device:
        assert torch.equal(ttnn.to_torch(written_by_hand(block, tiles(x, device), device)).float(), compiled(x))
    with opened("fast") as device:
        assert pcc(ttnn.to_torch(written_by_hand(block, tiles(x, device), device)), want) > 0.999


def test_layouts_and_places_are_kept():
    with opened() as device:
        rows = ttnn.from_torch(torch.randn(4, 10), dtype=ttnn.bfloat16, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
        for made in (ttnn.relu(rows), rows + 1.0, ttnn.transpose(rows, 0, 1)):
            assert made.layout is ttnn.ROW_MAJOR_LAYOUT and made.memory_config() == ttnn.L1_MEMORY_CONFIG
        assert ttnn.to_memory_config(rows, ttnn.DRAM_MEMORY_CONFIG).memory_config() == ttnn.DRAM_MEMORY_CONFIG
        assert torch.allclose(ttnn.to_torch(1.0 / (rows * 0 + 4)).float(), torch.tensor(0.25))


def test_meshes_of_one_device():
    with opened() as device:
        x = torch.randn(2, 4, 32)
        spread = ttnn.from_torch(x, device=device, mesh_mapper=ttnn.ShardTensorToMesh(device, dim=0))
        assert torch.equal(ttnn.to_torch(spread, mesh_composer=ttnn.ConcatMeshToTensor(device, dim=0)), x)
        assert [one.shape for one in ttnn.get_device_tensors(spread)] == [(2, 4, 32)] and device.get_num_devices() == 1
    with raises(NotImplementedError, "a mesh of (2, 4)"):
        ttnn.open_mesh_device(ttnn.MeshShape(2, 4))
    cores = ttnn.num_cores_to_corerangeset(19, ttnn.CoreCoord(8, 8), row_wise=True)
    assert cores.num_cores() == 19 and cores.ranges()[-1].end == ttnn.CoreCoord(2, 2)
    assert ttnn.num_cores_to_corerangeset(19, ttnn.CoreCoord(8, 8)).ranges()[-1].end == ttnn.CoreCoord(2, 2)
    sharded = ttnn.create_sharded_memory_config((1, 1, 256, 64), ttnn.CoreGrid(y=2, x=4), ttnn.ShardStrategy.HEIGHT)
    assert sharded.is_sharded() and sharded.shard_spec.shape == (32, 64) and sharded.shard_spec.num_cores() == 8


def test_traces():
    with opened() as device:
        x, w = torch.randn(32, 64), torch.randn(64, 32)
        given, weight = tiles(x, device), tiles(w, device)
        trace = ttnn.begin_trace_capture(device, cq_id=0)
        hidden = ttnn.relu(given @ weight)
        heads = ttnn.split(hidden, 16, dim=1)
        result = heads[0] + heads[1] * 2
        ttnn.deallocate(hidden)
        with raises(RuntimeError, "Reads are not supported during trace capture."):
            ttnn.to_torch(result)
        with raises(RuntimeError, "Writes are not supported during trace capture."):
            tiles(x, device)
        ttnn.end_trace_capture(device, trace, cq_id=0)
        want = lambda t: (t @ w).relu()[:, :16] + (t @ w).relu()[:, 16:] * 2
        assert pcc(ttnn.to_torch(result), want(x)) > 0.999
        for seed in (1, 2):
            other = torch.randn(32, 64, generator=torch.Generator().manual_seed(seed))
            ttnn.copy_host_to_device_tensor(ttnn.from_torch(other, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT), given)
            assert pcc(ttnn.to_torch(result), want(other)) < 0.9
            ttnn.execute_trace(device, trace, cq_id=0, blocking=True)
            assert pcc(ttnn.to_torch(result), want(other)) > 0.999
        ttnn.release_trace(device, trace)
        with raises(RuntimeError, "does not exist"):
            ttnn.execute_trace(device, trace)
