"""What the tests share."""

import contextlib
import os
import pathlib

import torch

root = pathlib.Path(__file__).resolve().parents[2]
models = root / "models"
tool = pathlib.Path(os.environ.get("TTC_BUILD", root / "build")) / "ttc"


def pcc(a: torch.Tensor, b: torch.Tensor) -> float:
    """Pearson correlation; of constant values 1 where equal."""
    a, b = a.detach().double().flatten(), b.detach().double().flatten()
    if torch.equal(a, b):
        return 1.0
    a, b = a - a.mean(), b - b.mean()
    scale = a.norm() * b.norm()
    return float(a @ b / scale) if scale > 0 else 0.0


@contextlib.contextmanager
def exact():
    """TT-NN on the emulated device computes as the silicon does."""
    os.environ["TTRT_NUMERICS"] = "exact"
    try:
        yield
    finally:
        del os.environ["TTRT_NUMERICS"]


def leaves(value) -> list:
    return torch.utils._pytree.tree_leaves(value)


def cloned(value):
    return torch.utils._pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, value)


def agree(got, want, least: float = 0.99) -> None:
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want), (len(got), len(want))
    for x, y in zip(got, want):
        if not isinstance(y, torch.Tensor):
            assert x == y, (x, y)
            continue
        assert x.dtype == y.dtype and x.shape == y.shape, (x.dtype, y.dtype, x.shape, y.shape)
        if y.numel() == 0 or bool((y == y.flatten()[0]).all()):  # nothing to correlate
            assert torch.allclose(x.double(), y.double(), rtol=0.01, atol=1e-4), (x, y)
        else:
            assert pcc(x, y) >= least, pcc(x, y)


def long(case):
    """Runs with --all only."""
    case.long = True
    return case


class raises:
    """A block that has to end in this exception, whose text has this in it."""

    def __init__(self, kind, text: str = "") -> None:
        self.kind, self.text = kind, text

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace) -> bool:
        assert kind is not None, f"nothing was raised where {self.kind.__name__} was expected"
        if not issubclass(kind, self.kind):
            return False
        assert self.text in str(value), str(value)
        self.value = value
        return True
