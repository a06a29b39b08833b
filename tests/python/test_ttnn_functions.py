"""Functions of the emulated TT-NN that are made of others: gradients, losses, complex tensors, integers, whole modules."""

import contextlib

import torch
import torch.nn.functional as F
import ttc
from helpers import exact, pcc, raises

ttnn = ttc.as_ttnn(replace=True)


def tiles(x, device, dtype=None):
    return ttnn.from_torch(x, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


# Where a function is defined; its parameters behind the tensors.
RANGES = {"acosh": (1.5, 9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9), "logit": (0.1, 0.9),
          "log": (0.1, 9), "log2": (0.1, 9), "log10": (0.1, 9), "log1p": (0.1, 9), "sqrt": (0.1, 9), "rsqrt": (0.5, 9), "lgamma": (1, 9),
          "digamma": (1, 9), "reciprocal": (0.5, 9), "multigammaln": (2.5, 9), "polygamma": (1, 9), "pow": (0.5, 4), "rpow": (0.5, 4),
          "rdiv": (0.5, 9), "xlogy": (0.5, 4), "tan": (-1, 1), "i0": (-3, 3), "div": (0.5, 4), "hypot": (0.5, 4), "atan2": (0.5, 4)}  # fmt: skip
PARAMETERS = {"polygamma": (1,), "pow": (2.0,), "rdiv": (3.0,), "addalpha": (0.5,), "subalpha": (0.5,), "hardtanh": (-1.0, 1.0),
              "threshold": (0.5, 0.0), "clamp": (-1.0, 1.0), "clip": (-1.0, 1.0)}  # fmt: skip
PAIRS = (
    """add addalpha atan2 bias_gelu div hypot ldexp logaddexp logaddexp2 max min mul rsub squared_difference sub subalpha xlogy""".split()
)


def test_gradients_are_those_of_torch():
    of_one = """abs acos acosh asin asinh atan atanh ceil celu clamp clip cos cosh deg2rad digamma elu erf erfc erfinv exp exp2 expm1
    floor frac gelu hardshrink hardsigmoid hardswish hardtanh i0 leaky_relu lgamma log log10 log1p log2 log_sigmoid logit multigammaln
    neg polygamma pow rad2deg rdiv reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh softplus softshrink softsign sqrt
    square tan tanh tanhshrink threshold trunc""".split()
    generator = torch.Generator().manual_seed(7)
    with ttnn.manage_device(device_id=0) as device:
        for name in of_one + PAIRS:
            low, high = RANGES.get(name, (-4, 4))
            sizes = 2 if name in PAIRS else 1
            given = [(torch.rand(1, 1, 32, 64, generator=generator) * (high - low) + low).bfloat16() for _ in range(sizes)]
            grad = torch.randn(1, 1, 32, 64, generator=generator).bfloat16()
            function = getattr(ttnn, name + "_bw")
            made = function(tiles(grad, device), *[tiles(one, device) for one in given], *PARAMETERS.get(name, ()))
            wanted = function.golden_function(grad.float(), *[one.float().requires_grad_() for one in given], *PARAMETERS.get(name, ()))
            assert len(made) == len(wanted), name
            for one, other in zip(made, wanted):
                other = torch.zeros_like(grad) if other is None else other
                assert torch.equal(ttnn.to_torch(one).float(), other) or pcc(ttnn.to_torch(one), other) > 0.999, name


def test_a_gradient_of_one_operand_alone_goes_into_a_tensor_that_is_given():
    a, b, grad = (torch.randn(32, 32).bfloat16() for _ in range(3))
    with ttnn.manage_device(device_id=0) as device:
        place = tiles(torch.zeros(32, 32).bfloat16(), device)
        made = ttnn.mul_bw(tiles(grad, device), tiles(a, device), tiles(b, device), are_required_outputs=[False, True], other_grad=place)
        assert made[0] is None and made[1] is place and pcc(ttnn.to_torch(place), grad.float() * a.float()) > 0.9999
        with raises(RuntimeError, "At least one gradient"):
            ttnn.mul_bw(tiles(grad, device), tiles(a, device), tiles(b, device), are_required_outputs=[False, False])


def test_an_activation_without_a_grid_is_an_op_of_its_own():
    x, w, b = torch.randn(64, 96).bfloat16(), torch.randn(96, 64).bfloat16(), torch.randn(1, 64).bfloat16()
    with exact(), ttnn.manage_device(device_id=0) as device:
        given, row = [tiles(one, device) for one in (x, w)], tiles(b, device)
        for dtype in (ttnn.bfloat16, ttnn.bfloat8_b):
            apart = ttnn.gelu(ttnn.linear(*given, bias=row, dtype=dtype), fast_and_approximate_mode=False)
            behind = ttnn.linear(*given, bias=row, dtype=dtype, activation="gelu")
            assert torch.equal(ttnn.to_torch(apart), ttnn.to_torch(behind))
        fused = ttnn.linear(*given, bias=row, activation="gelu", core_grid=ttnn.CoreGrid(y=1, x=1))
        assert pcc(ttnn.to_torch(fused), ttnn.to_torch(ttnn.linear(*given, bias=row, activation="gelu"))) > 0.9999
        approximate = ttnn.linear(*given, bias=row, activation=ttnn.UnaryWithParam(ttnn.UnaryOpType.GELU, True))
        assert torch.equal(
            ttnn.to_torch(approximate), ttnn.to_torch(ttnn.gelu(ttnn.linear(*given, bias=row), fast_and_approximate_mode=True))
        )


def test_norms_add_a_residual_first_and_a_bias_last():
    x, r = torch.randn(2, 40, 96).bfloat16(), torch.randn(2, 40, 96).bfloat16()
    w, b = torch.randn(1, 96).bfloat16(), torch.randn(1, 96).bfloat16()
    wanted = F.rms_norm(x.float() + r.float(), (96,), w.float()[0], 1e-6) + b.float()
    for mode in (contextlib.nullcontext, exact):
        with mode(), ttnn.manage_device(device_id=0) as device:
            for wide in (False, True):
                config = ttnn.WormholeComputeKernelConfig(ttnn.MathFidelity.HiFi4, False, wide, False)
                made = ttnn.rms_norm(tiles(x, device), epsilon=1e-6, weight=tiles(w, device), bias=tiles(b, device),
                                     residual_input_tensor=tiles(r, device), compute_kernel_config=config)  # fmt: skip
                assert pcc(ttnn.to_torch(made), wanted) > 0.9999


def test_attention_softmax_with_a_causal_mask_takes_its_rows():
    x = torch.randn(1, 4, 64, 64).bfloat16()
    mask = torch.full((1, 1, 64, 64), -1e9).triu(1).bfloat16()
    wanted = torch.softmax(x.float() / 8 + mask.float(), -1)
    with ttnn.manage_device(device_id=0) as device:
        given = tiles(x, device)
        made = ttnn.transformer.attention_softmax_(given, head_size=64, attention_mask=tiles(mask, device), causal_mask=True)
        assert made is given and pcc(ttnn.to_torch(made), wanted) > 0.999


def test_queries_may_have_keys_and_values_of_another_tensor():
    q, kv = torch.randn(1, 32, 64).bfloat16(), torch.randn(1, 32, 128).bfloat16()
    split = ttnn.transformer.split_query_key_value_and_split_heads
    with ttnn.manage_device(device_id=0) as device:
        apart = split(tiles(q, device), tiles(kv, device), num_heads=2)
        together = split(tiles(torch.cat([q, kv], -1), device), num_heads=2)
        assert all(torch.equal(ttnn.to_torch(a), ttnn.to_torch(b)) for a, b in zip(apart, together))


def test_integers_are_exact_up_to_their_last_bit():
    a, b = torch.tensor([[2**31 - 1, -(2**31), 123456789, 5]], dtype=torch.int32), torch.tensor([[1, -1, 987654321, 3]], dtype=torch.int32)
    with ttnn.manage_device(device_id=0) as device:
        given = [ttnn.from_torch(one, dtype=ttnn.int32, layout=ttnn.TILE_LAYOUT, device=device) for one in (a, b)]
        for name in ("add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "eq", "lt"):
            wanted = getattr(torch, name)(a, b).to(torch.int32)
            assert torch.equal(ttnn.to_torch(getattr(ttnn, name)(*given)), wanted), name
        assert torch.equal(ttnn.to_torch(ttnn.div(*given, rounding_mode="floor")), torch.div(a, b, rounding_mode="floor"))
        assert torch.equal(ttnn.to_torch(ttnn.bitwise_left_shift(given[0], 3)), a << 3)
        assert torch.equal(ttnn.to_torch(ttnn.bitwise_not(given[0])), ~a)


def test_complex_tensors():
    a, b = torch.randn(1, 1, 32, 32, dtype=torch.complex64), torch.randn(1, 1, 32, 32, dtype=torch.complex64)
    with ttnn.manage_device(device_id=0) as device:
        pair = lambda x: ttnn.complex_tensor(*[tiles(one.bfloat16(), device) for one in (x.real, x.imag)])  # noqa: E731
        joined = lambda x: torch.complex(ttnn.to_torch(x.real).float(), ttnn.to_torch(x.imag).float())  # noqa: E731
        for made, wanted in ((ttnn.multiply(pair(a), pair(b)), a * b), (ttnn.conj(pair(a)), a.conj()), (ttnn.reciprocal(pair(a)), 1 / a)):
            assert pcc(torch.view_as_real(joined(made)), torch.view_as_real(wanted.resolve_conj())) > 0.999
        assert pcc(ttnn.to_torch(ttnn.abs(pair(a))), a.abs()) > 0.999 and pcc(ttnn.to_torch(ttnn.angle(pair(a))), a.angle()) > 0.99


def test_losses_and_quantised_values():
    a, b = torch.randn(1, 1, 32, 64).bfloat16(), torch.randn(1, 1, 32, 64).bfloat16()
    with ttnn.manage_device(device_id=0) as device:
        mean = ttnn.mse_loss(tiles(a, device), tiles(b, device), reduction=ttnn.LossReductionMode.MEAN)
        assert abs(float(ttnn.to_torch(mean).flatten()[0]) - float(F.mse_loss(a.float(), b.float()))) < 0.05
        whole = ttnn.quantize(tiles(a, device), 0.05, 3)
        wanted = (a.double() / 0.05 + 3).round().clamp(-128, 127).int()
        assert torch.equal(ttnn.to_torch(whole), wanted)
        assert pcc(ttnn.to_torch(ttnn.dequantize(whole, 0.05, 3)), a) > 0.99


def test_parameters_of_a_module_by_its_names():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(10, 32)
            self.layers = torch.nn.ModuleList([torch.nn.Linear(32, 64), torch.nn.Linear(64, 32, bias=False)])
            self.norm = torch.nn.LayerNorm(32)

    from ttnn.model_preprocessing import ParameterList, preprocess_model_parameters

    model = Block()
    with ttnn.manage_device(device_id=0) as device:
        parameters = preprocess_model_parameters(initialize_model=lambda: model, device=device)
        assert isinstance(parameters.layers, ParameterList) and "bias" not in parameters.layers[1]
        assert torch.equal(ttnn.to_torch(parameters.layers[0].weight), model.layers[0].weight.T.bfloat16())
        assert tuple(parameters.norm.bias.shape) == (1, 32) and parameters.norm.weight.device() is device
        kept = preprocess_model_parameters(initialize_model=lambda: model, convert_to_ttnn=lambda module, name: name != "layers.0")
        assert isinstance(kept.layers[0].weight, torch.Tensor) and "ttnn.Tensor(shape=" in repr(kept)
        custom = preprocess_model_parameters(initialize_model=lambda: model, custom_preprocessor=lambda module, name: {"here": 1})
        assert custom.here == 1
        with raises(RuntimeError, "at least two parameters"):
            preprocess_model_parameters(initialize_model=lambda: model, custom_preprocessor=lambda module: None)


def test_pages_are_those_of_the_buffers():
    """One of each tile, one of each row; a result that is given adds none, a tensor that is gone has none."""
    ttnn = ttc.as_ttnn()
    pages = ttnn._ttnn.reports.get_buffer_pages
    with ttnn.manage_device(device_id=0) as device:
        make = {"device": device, "dtype": ttnn.bfloat16, "memory_config": ttnn.L1_MEMORY_CONFIG}
        a = ttnn.from_torch(torch.rand(40, 70), layout=ttnn.TILE_LAYOUT, **make)
        assert len(pages(device)) == 6 and {one.buffer_type for one in pages(device)} == {"L1"}
        rows = ttnn.from_torch(torch.rand(3, 5, 16), layout=ttnn.ROW_MAJOR_LAYOUT, **make)
        assert len(pages(device)) == 6 + 15
        b = ttnn.eq(a, a, dtype=ttnn.bfloat16)
        assert len(pages([device])) == 6 + 15 + 6
        ttnn.eq(a, a, output_tensor=b)
        assert len(pages(device)) == 6 + 15 + 6
        ttnn.deallocate(rows)
        del b
        assert len(pages(device)) == 6
