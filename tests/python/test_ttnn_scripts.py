"""ttnn_emulated: what others' scripts and tests need of it beside numbers."""

import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import ttnn_emulated
from helpers import agree, raises, root
from test_ttnn import opened, tiles

ttnn = ttnn_emulated


def ran(code: str, *folders: str) -> str:
    """What a program prints, with these folders on its path."""
    path = os.pathsep.join([*folders, str(root / "runtime/python")])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_folder_of_that_name_is_no_real_ttnn():
    with tempfile.TemporaryDirectory() as place:
        (pathlib.Path(place) / "ttnn").mkdir()
        (pathlib.Path(place) / "ttnn/tutorial.txt").write_text("")
        assert "emulated" in ran("import ttc; print(ttc.as_ttnn().__name__)", place)
        (pathlib.Path(place) / "ttnn/__init__.py").write_text("")
        with raises(AssertionError, "a real ttnn is installed"):
            ran("import ttc; ttc.as_ttnn()", place)


def test_the_top_level_module_is_installed_on_request_and_never_before_a_real_one():
    ours = str(root / "runtime/python/top_level")
    used = "import ttnn; import ttnn_emulated; assert ttnn is ttnn_emulated; from ttnn.device import Arch; assert Arch is ttnn.Arch"
    ran(used, ours)
    ran("import ttc; assert ttc.as_ttnn().__name__ == 'ttnn_emulated'", ours)
    with tempfile.TemporaryDirectory() as place:
        (pathlib.Path(place) / "ttnn").mkdir()
        (pathlib.Path(place) / "ttnn/__init__.py").write_text("real = True")
        ran("import ttnn; assert ttnn.real", place, ours)
        with raises(AssertionError, "two modules ttnn"):
            ran("import ttnn", ours, place)


def test_modules_are_the_same_under_both_names():
    code = (
        "import ttc; a = ttc.as_ttnn(); import ttnn.device, ttnn.types; assert ttnn.device.Arch is a.Arch and ttnn.types.Layout is a.Layout"
    )
    ran(code + "; from ttnn.operations.activations import get_golden_function_for_activation")


def test_golden_functions_are_what_the_calls_compute():
    x, y = torch.rand(2, 64) + 0.5, torch.rand(2, 64) + 0.5
    with opened() as device:
        for function in (ttnn.exp, ttnn.gelu, ttnn.cbrt, ttnn.hardmish, ttnn.log_sigmoid, ttnn.swiglu, ttnn.rms_norm):
            agree(ttnn.to_torch(function(tiles(x, device))).float(), ttnn.get_golden_function(function)(x))
        for function in (ttnn.add, ttnn.rsub, ttnn.squared_difference, ttnn.sub_, ttnn.maximum):
            agree(ttnn.to_torch(function(tiles(x, device), tiles(y, device))).float(), ttnn.get_golden_function(function)(x, y))
        fused, split = torch.randn(1, 32, 192), ttnn.transformer.split_query_key_value_and_split_heads
        got = [ttnn.to_torch(one).float() for one in split(tiles(fused, device), num_heads=2)]
        agree(got, ttnn.get_golden_function(split)(fused, num_heads=2))
    with raises(RuntimeError, "does not have a golden function"):
        ttnn.get_golden_function(ttnn.from_torch)


def test_programs_are_counted():
    with opened() as device:
        x, wide = tiles(torch.randn(32, 32), device), tiles(torch.randn(32, 64), device)
        ttnn.exp(x), ttnn.exp(x, queue_id=0)
        assert device.num_program_cache_entries() == 1
        ttnn.exp(wide), ttnn.log(x)
        assert device.num_program_cache_entries() == 3
        device.set_program_cache_misses_allowed(False)
        ttnn.exp(x)
        with raises(RuntimeError, "program cache miss"):
            ttnn.sqrt(x)
        device.clear_program_cache()
        assert device.num_program_cache_entries() == 0


def test_signatures_with_several_forms():
    x, y = torch.randn(1, 1, 32, 32), torch.randn(1, 1, 32, 32)
    with opened() as device:
        a, b = tiles(x, device), tiles(y, device)
        placed = ttnn.pad(a, [1, 1, 64, 96], [0, 0, 32, 0], 3.0)
        want = torch.nn.functional.pad(x.bfloat16(), (0, 64, 32, 0), value=3.0)
        assert torch.equal(ttnn.to_torch(placed), want) and torch.equal(ttnn.to_torch(ttnn.pad(a, [(32, 0), (0, 64)], 3.0)), want)
        with raises(RuntimeError, "is not within"):
            ttnn.pad(a, [1, 1, 32, 32], [0, 0, 1, 0], 0.0)
        joined = ttnn.to_torch(ttnn.concat([a, b], -1, groups=2))
        assert torch.equal(joined, torch.cat([x[..., :16], y[..., :16], x[..., 16:], y[..., 16:]], -1).bfloat16())
        with raises(RuntimeError, "Dimension out of range"):
            ttnn.squeeze(a, 4)
        agree(ttnn.to_torch(ttnn.prelu(a, 0.25)).float(), torch.nn.functional.leaky_relu(x, 0.25))
        bias, rows = torch.zeros(1, 1, 32, 32), tiles(torch.randn(1, 1, 64, 32), device)
        bias[..., 0, :] = torch.randn(32)
        assert torch.equal(
            ttnn.to_torch(ttnn.linear(rows, a, bias=tiles(bias, device))),
            ttnn.to_torch(ttnn.linear(rows, a, bias=tiles(bias[..., :1, :], device))),
        )


def test_integers_compare_exactly():
    a, b = torch.tensor([[2**31 - 1, -5, 7]], dtype=torch.int32), torch.tensor([[2**31 - 2, -5, 8]], dtype=torch.int32)
    with opened() as device:
        x, y = (ttnn.from_torch(one, layout=ttnn.TILE_LAYOUT, device=device) for one in (a, b))
        for name in ("eq", "ne", "gt", "ge", "lt", "le"):
            found = getattr(ttnn, name)(x, y)
            assert found.dtype is ttnn.int32 and torch.equal(ttnn.to_torch(found), getattr(torch, name)(a, b).int()), name
        assert ttnn.to_torch(ttnn.gt(x, 6)).tolist() == [[1, 0, 1]]


def test_a_reshape_to_the_same_shape_is_the_same_memory():
    with opened() as device:
        x = tiles(torch.randn(32, 64), device)
        same = ttnn.reshape(x, (32, 64))
        ttnn.deallocate(x)
        with raises(RuntimeError, "Buffer is not allocated"):
            same + same
