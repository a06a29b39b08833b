"""torch.compile(backend="ttc")."""

import logging
import warnings

import torch
from helpers import agree, cloned, long, models, raises

logging.getLogger("ttc").setLevel(logging.ERROR)
kept_in_pytorch = ("custom_op", "quantized", "quantized_core")  # torch.export.load knows no such operators


def compiled(module, **kwargs):
    torch._dynamo.reset()
    return torch.compile(module, backend="ttc", **kwargs)


def agrees(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.load(models / f"{name}.pt2")
    args, kwargs = program.example_inputs
    with torch.no_grad():
        want = program.module()(*cloned(args), **cloned(kwargs))
        got = compiled(program.module())(*cloned(args), **cloned(kwargs))
    agree(got, want)


def test_models():
    for name in ("bert_small", "gpt2_small", "llama_small_decode", "vit_small_dyn", "vision_small", "input_mut", "hop_cond"):
        agrees(name)


@long
def test_all_models():
    names = sorted(path.stem for path in models.glob("*.pt2"))
    for name in names:
        if name not in kept_in_pytorch:
            agrees(name)


class Breaks(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

    def forward(self, x):
        x = torch.relu(self.a(x))
        if x.sum() > 1e9:  # a graph break: the value decides
            return x
        return self.b(x) + len(x)


def test_graph_breaks():
    import ttc.dynamo

    seen = []
    run = ttc.dynamo._Graph.shaped
    ttc.dynamo._Graph.shaped = lambda self, *a: seen.append(self) or run(self, *a)
    try:
        module, x = Breaks(), torch.randn(4, 32)
        with torch.no_grad():
            agree(compiled(module)(x), module(x))
    finally:
        ttc.dynamo._Graph.shaped = run
    assert len(set(map(id, seen))) == 2, "both sides of the break are on the device"


def test_shapes_and_weights_change():
    module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    made = compiled(module)
    with torch.no_grad():
        for rows in (4, 7, 40):
            x = torch.randn(rows, 32)
            agree(made(x), module(x))
        module[0].weight.mul_(-2)
        agree(made(x), module(x))
        module.load_state_dict({name: torch.randn_like(value) for name, value in module.state_dict().items()})
        agree(made(x), module(x))


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))

    def forward(self, x):
        self.seen.add_(x)
        return self.seen * self.scale


def test_buffers_are_written_where_they_are():
    ours, theirs = Counts(), Counts()
    made, place = compiled(ours), ours.seen.data_ptr()
    with torch.no_grad():
        for step in range(3):
            x = torch.full((4,), float(step + 1))
            agree(made(x), theirs(x))
            assert torch.equal(ours.seen, theirs.seen) and ours.seen.data_ptr() == place, step
        ours.seen.zero_()  # from outside
        assert torch.equal(made(x), x * ours.scale)


def test_gradients_flow():
    module, x = torch.nn.Linear(8, 8), torch.randn(4, 8)
    compiled(module)(x).square().sum().backward()
    ours = module.weight.grad.clone()
    module.zero_grad()
    module(x).square().sum().backward()
    assert torch.allclose(ours, module.weight.grad)


def test_refusals_fall_back():
    class Unique(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvalsh(x @ x.T), x.relu()

    x = torch.randn(6, 6)
    with torch.no_grad():
        agree(compiled(Unique())(x), Unique()(x), 0.98)

        with raises(Exception, "stay on the CPU"):
            compiled(Unique(), options={"require_full": True, "fallback": False})(x)
        agree(compiled(Unique(), options={"require_full": True})(x), Unique()(x), 1)


def test_options():
    module, x = torch.nn.Linear(64, 64), torch.randn(8, 64)
    with torch.no_grad():
        want = module(x)
        blocks = compiled(module, options={"weight_dtype": "bfloat4_b"})(x)
        agree(blocks, want, 0.95)
        assert not torch.equal(blocks, compiled(module)(x))
        exact = compiled(module, options={"numerics": "exact"})(x)
        import ttc

        assert torch.equal(exact, ttc.compile(module, (x,), numerics="exact")(x))
