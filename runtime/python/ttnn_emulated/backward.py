"""Gradients of functions of one tensor: exp_bw(grad, x) and the like, each the calls of forward functions that TT-NN makes
of it, with their roundings. All give lists of tensors, one for each operand. No gradient was recorded from a card."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import eltwise as e
from . import places as _places
from .calls import fail, into
from .tensor import Tensor
from .types import MemoryConfig

Number = Union[int, float]
Memory = Optional[MemoryConfig]
Grads = List[Optional[Tensor]]
inf, nan = math.inf, math.nan


def in_place_of(made: Sequence[Any], given: Sequence[Optional[Tensor]], memory_config: Memory) -> Grads:
    """The gradients in the tensors that the caller gave for them, or where he wants them."""
    out: Grads = []
    for one, place in zip(made, list(given) + [None] * len(made)):
        if one is not None and place is None and memory_config not in (None, one._memory_config):
            one = one._like(one._values, memory_config=memory_config)
        out.append(one if one is None else into(place, one))
    return out


# ---- of one tensor: (grad, x, parameters...) -> its gradient -----------------------------------------------------------

_of_one: Dict[str, Callable[..., Tensor]] = {}


def _one(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    _of_one[function.__name__.strip("_")] = function
    return function


def zero(grad: Tensor, *others: Any) -> Tensor:
    return _places.zeros_like(grad)


def _signed_infinity(grad: Tensor) -> Tensor:
    return e.where(e.ltz(grad), -inf, inf)


def _infinite_at_zero(x: Tensor, grad: Tensor, result: Tensor, positive: float) -> Tensor:
    """Where x is 0: `positive` for positive gradients, its negative for negative ones."""
    at_zero = e.eqz(x)
    result = e.where(e.logical_and(at_zero, e.ltz(grad)), -positive, result)
    return e.where(e.logical_and(at_zero, e.gtz(grad)), positive, result)


for _name in ("ceil", "floor", "round", "trunc", "sign", "fill", "fill_zero"):
    _of_one[_name] = zero
_of_one.update(
    abs=lambda grad, x: grad * e.sign(x),
    asinh=lambda grad, x: grad * e.rsqrt(e.square(x) + 1.0),
    atan=lambda grad, x: grad * e.reciprocal(e.square(x) + 1.0),
    celu=lambda grad, x, alpha=1.0: e.where(x > 0.0, grad, grad * e.exp(x * (1.0 / alpha))),
    cos=lambda grad, x: grad * e.neg(e.sin(x)),
    deg2rad=lambda grad, x: grad * (math.pi / 180),
    elu=lambda grad, x, alpha=1.0: e.where(e.gtz(x), grad, grad * (e.exp(x) * alpha)),
    erf=lambda grad, x: (e.exp(e.neg(e.square(x))) * grad) * (2 / math.sqrt(math.pi)),
    erfc=lambda grad, x: (e.exp(e.neg(e.square(x))) * grad) * (-2 / math.sqrt(math.pi)),
    exp=lambda grad, x: grad * e.exp(x),
    exp2=lambda grad, x: grad * (e.exp2(x) * math.log(2)),
    expm1=lambda grad, x: grad * (e.expm1(x) + 1.0),
    frac=lambda grad, x: grad,
    hardshrink=lambda grad, x, lambd=0.5: e.where(e.eqz(e.hardshrink(x, lambd=lambd)), 0.0, grad),
    hardsigmoid=lambda grad, x: e.where(e.logical_or(x <= -3, x >= 3), 0.0, grad * (1.0 / 6)),
    hardswish=lambda grad, x: e.where(x < -3.0, 0.0, e.where(x <= 3.0, grad * (x * 0.3333 + 0.5), grad)),
    i0=lambda grad, x: grad * e.i1(x),
    leaky_relu=lambda grad, x, negative_slope=0.01: e.where(e.gtz(x), grad, grad * negative_slope),
    lgamma=lambda grad, x: grad * e.digamma(x),
    neg=lambda grad, x: e.neg(grad),
    rad2deg=lambda grad, x: grad * (180 / math.pi),
    relu=lambda grad, x: e.gtz(x) * grad,
    sin=lambda grad, x: grad * e.cos(x),
    softshrink=lambda grad, x, lambd=0.5: e.where(e.logical_or(x < -lambd, x > lambd), grad, 0.0),
    softsign=lambda grad, x: grad * e.reciprocal(e.square(e.abs(x) + 1.0)),
    square=lambda grad, x: (grad * 2.0) * x,
    tan=lambda grad, x: grad * (e.square(e.tan(x)) + 1.0),
    tanh=lambda grad, x: grad * e.rsub(e.square(e.tanh(x)), 1.0),
    tanhshrink=lambda grad, x: grad * e.square(e.tanh(x)),
    threshold=lambda grad, x, threshold, value: e.where(e.gtz(x + -threshold), grad, 0.0),
)


def _clamp(grad: Tensor, x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    if min is None and max is None:
        raise fail("Only one of 'min' or 'max' can be None. Please provide one value")
    if max is None:
        return grad * (x >= min)
    if min is None:
        return grad * (x <= max)
    if isinstance(min, Tensor):  # the comparisons of TT-NN's form with tensors
        return grad * e.logical_and(x <= min, x >= max)
    return grad * e.logical_and(x >= min, x <= max)


_of_one.update(clamp=_clamp, clip=_clamp)


@_one
def _hardtanh(grad: Tensor, x: Tensor, min: Number = -1.0, max: Number = 1.0) -> Tensor:
    return e.where(x <= min, 0.0, e.where(x >= max, 0.0, grad))


@_one
def _softplus(grad: Tensor, x: Tensor, beta: Number = 1.0, threshold: Number = 20.0) -> Tensor:
    scaled = x * beta
    power = e.exp(scaled)
    return e.where(e.gtz(scaled + -threshold), grad, (grad * power) * e.reciprocal(power + 1.0))


def check_rounding(rounding_mode: Optional[str]) -> None:
    if rounding_mode not in (None, "None", "trunc", "floor"):
        raise fail("Incorrect rounding mode (expected None, 'trunc', or 'floor')")


@_one
def _rdiv(grad: Tensor, x: Tensor, scalar: Number, rounding_mode: Optional[str] = None) -> Tensor:
    check_rounding(rounding_mode)
    if rounding_mode in ("trunc", "floor"):
        return zero(grad)
    result = e.where(e.nez(x), e.neg(grad) * (e.reciprocal(e.square(x)) * scalar), nan)
    return _infinite_at_zero(x, grad, result, -inf if scalar > 0 else inf) if scalar != 0 else result


@_one
def _pow(grad: Tensor, x: Tensor, exponent: Number) -> Tensor:
    if exponent < 0.0:
        raise fail("negative exponents are not supported; use recip(pow(input,abs(exponent)))")
    if exponent < 1e-6:
        return zero(x)
    power = e.pow(x, abs(exponent - 1.0))
    power = e.reciprocal(power) if exponent < 1.0 else power
    return e.where(e.lez(x), inf, (power * exponent) * grad)


@_one
def _rpow(grad: Tensor, x: Tensor, exponent: Number) -> Tensor:
    if exponent == 0.0:
        return zero(x)
    return e.where(e.ltz(x), nan, grad * (e.pow(x, exponent - 1) * exponent))


@_one
def _sqrt(grad: Tensor, x: Tensor) -> Tensor:
    result = grad * e.reciprocal(e.sqrt(x) * 2.0)
    return _infinite_at_zero(x, grad, e.where(e.lez(x), nan, result), inf)


@_one
def _rsqrt(grad: Tensor, x: Tensor) -> Tensor:
    result = (grad * e.pow(e.rsqrt(x), 3)) * -0.5
    result = e.where(e.ltz(x), nan, e.where(e.eqz(x), inf, result))
    return e.where(e.logical_and(e.eqz(x), e.eqz(grad)), nan, result)


@_one
def _multigammaln(grad: Tensor, x: Tensor) -> Tensor:
    result = grad * e.digamma(x)
    for shift in (-0.5, -1.0, -1.5):
        result = result + grad * e.digamma(x + shift)
    return result


@_one
def _log_sigmoid(grad: Tensor, x: Tensor) -> Tensor:
    negative = e.ltz(x)
    power = e.exp(e.neg(e.abs(x)))
    part = power * e.reciprocal(power + 1.0)
    return grad * (e.where(negative, 1.0, 0.0) - e.where(negative, 1.0, -1.0) * part)


@_one
def _sigmoid(grad: Tensor, x: Tensor) -> Tensor:
    y = e.sigmoid(x)
    return (y * e.rsub(y, 1.0)) * grad


@_one
def _silu(grad: Tensor, x: Tensor) -> Tensor:
    y = e.sigmoid(x)
    return (grad * y) * (e.rsub(y, 1.0) * x + 1.0)


@_one
def _selu(grad: Tensor, x: Tensor) -> Tensor:
    scaled = grad * 1.0507
    return e.where(e.gtz(x), scaled, (scaled * 1.673260) * e.exp(x))


@_one
def _relu6(grad: Tensor, x: Tensor) -> Tensor:
    inside = e.logical_and(e.gtz(x), x < 6.0)
    return e.where(x >= 6.0, 0.0, e.where(inside, grad, e.where(x <= 0.0, 0.0, 6.0)))


@_one
def _acosh(grad: Tensor, x: Tensor) -> Tensor:
    square = e.square(x)
    result = grad * e.rsqrt(square - 1.0)
    sign = e.signbit(grad) * -1.0
    nowhere = e.logical_or(square < 1.0, e.logical_and(e.eq(x, 1.0), e.eqz(grad)))
    edge = e.logical_and(x <= 1.0, x >= -1.0)
    return e.where(nowhere, nan, e.where(edge, (sign + e.eqz(sign)) * inf, result))


@_one
def _acos(grad: Tensor, x: Tensor) -> Tensor:
    result = grad * e.neg(e.rsqrt(e.neg(x) * x + 1.0))
    edge = e.sign(grad) * -inf
    result = e.where(e.logical_or(x < -1.0, x > 1.0), nan, result)
    return e.where(e.eq(x, -1.0), edge, e.where(e.eq(x, 1.0), edge, result))


@_one
def _asin(grad: Tensor, x: Tensor) -> Tensor:
    result = grad * e.rsqrt(e.neg(e.square(x)) + 1.0)
    above, below, edge = x + -1, x + 1, e.sign(grad) * inf
    result = e.where(e.eqz(below), edge, e.where(e.eqz(above), edge, result))
    return e.where(e.ltz(below), nan, e.where(e.gtz(above), nan, result))


@_one
def _atanh(grad: Tensor, x: Tensor) -> Tensor:
    result = grad * e.reciprocal(e.neg(e.square(x) - 1.0))
    result = e.where(e.eqz(grad), nan, result)
    result = e.where(e.logical_and(e.eqz(grad), e.eqz(x)), 0.0, result)
    edge = e.logical_and(e.logical_or(e.eq(x, 1), e.eq(x, -1)), e.nez(grad))
    result = e.where(edge, inf, result)
    return e.where(e.logical_and(e.eq(result, inf), e.ltz(grad)), -inf, result)


def _beyond(result: Tensor) -> Tensor:
    return e.where(result >= 3.4e38, inf, e.where(result <= -3.4e38, -inf, result))


@_one
def _sinh(grad: Tensor, x: Tensor) -> Tensor:
    infinite = e.sign(grad) * inf
    return _beyond(e.where(x > 88.5, infinite, e.where(x < -88.5, infinite, grad * e.cosh(x))))


@_one
def _cosh(grad: Tensor, x: Tensor) -> Tensor:
    sign = e.sign(grad)
    return _beyond(e.where(x > 88.5, sign * inf, e.where(x < -88.5, sign * -inf, grad * e.sinh(x))))


def _logit_inside(grad: Tensor, x: Tensor) -> Tensor:
    return grad * e.reciprocal(x * e.rsub(x, 1.0))


@_one
def _logit(grad: Tensor, x: Tensor) -> Tensor:
    inside = e.logical_and(x >= 0.0, x <= 1.0)
    result = e.where(e.eq(inside, 1.0), _logit_inside(grad, x), nan)
    return e.where(e.logical_or(e.eq(x, 0.0), e.eq(x, 1.0)), e.sign(grad) * inf, result)


@_one
def _logiteps(grad: Tensor, x: Tensor, eps: Number = 0.0) -> Tensor:
    outside = e.logical_or(x < eps, x > 1.0 - eps)
    edge = e.logical_or(e.eq(x, 0.0), e.eq(x, 1.0))
    result = e.where(edge, e.sign(grad) * inf, _logit_inside(grad, x))
    return e.where(e.eq(outside, 1.0), _places.full_like(x, nan if eps < 0 else 0.0), result)


@_one
def _log(grad: Tensor, x: Tensor) -> Tensor:
    at_zero = e.where(e.eqz(grad), nan, e.sign(grad) * inf)
    return e.where(e.eqz(x), at_zero, grad * e.reciprocal(x))


def _log_of_base(factor: float) -> Callable[[Tensor, Tensor], Tensor]:
    def function(grad: Tensor, x: Tensor) -> Tensor:
        at_zero = e.eqz(x)
        result = e.where(at_zero, _signed_infinity(grad), grad * e.reciprocal(x * factor))
        return e.where(e.logical_and(at_zero, e.eqz(grad)), nan, result)

    return function


_of_one.update(log10=_log_of_base(math.log(10)), log2=_log_of_base(math.log(2)))


@_one
def _log1p(grad: Tensor, x: Tensor) -> Tensor:
    more = x + 1.0
    result = e.where(e.eq(x, -1.0), _signed_infinity(grad), grad * e.reciprocal(more))
    return e.where(e.logical_and(e.eqz(more), e.eqz(grad)), nan, result)


@_one
def _reciprocal(grad: Tensor, x: Tensor) -> Tensor:
    at_zero = e.where(e.eqz(grad), nan, e.neg(e.sign(grad)) * inf)
    return e.where(e.eqz(x), at_zero, e.neg(grad) * e.reciprocal(e.square(x)))


@_one
def _digamma(grad: Tensor, x: Tensor) -> Tensor:
    result = grad * e.polygamma(x, 1)
    result = e.where(e.logical_and(e.eqz(x), e.eqz(grad)), nan, result)
    return _infinite_at_zero(x, grad, result, inf)


@_one
def _polygamma(grad: Tensor, x: Tensor, n: int) -> Tensor:
    result = grad * e.polygamma(x, n + 1)
    result = e.where(e.logical_and(x <= 0.0, e.eqz(grad)), nan, result)
    return _infinite_at_zero(x, grad, result, inf if n in (2, 4, 6, 8, 10) else -inf)


@_one
def _erfinv(grad: Tensor, x: Tensor) -> Tensor:
    result = ((e.exp(e.square(e.erfinv(x))) * grad) * math.sqrt(math.pi)) * 0.5
    edge = e.sign(grad) * inf
    result = e.where(e.logical_or(x < -1.0, x > 1.0), nan, result)
    return e.where(e.eq(x, -1.0), edge, e.where(e.eq(x, 1.0), edge, result))


@_one
def gelu(grad: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
    if approximate not in ("none", "tanh"):
        raise fail("Incorrect approximate mode (expected 'None', 'tanh')")
    if approximate == "none":  # one kernel of the card's: x phi(x) + Phi(x)
        density = e.exp(e.square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))
        return grad * ((e.erf(x * math.sqrt(0.5)) + 1.0) * 0.5 + x * density)
    beta, kappa = math.sqrt(2 / math.pi), 0.044715
    square = x * x
    inner = e.tanh((x + (square * x) * kappa) * beta)
    slope = (((square * kappa) * 3) + 1) * beta
    right = (e.neg((inner * inner) - 1) * (x * 0.5)) * slope
    return grad * ((inner + 1) * 0.5 + right)


@_one
def _div_no_nan(grad: Tensor, x: Tensor, scalar: Number) -> Tensor:
    return zero(x) if scalar == 0 else grad * (1 / scalar)


def _gradient_of_one(name: str) -> Callable[..., Grads]:
    gradient = _of_one[name]

    def function(
        grad_tensor: Tensor,
        input_tensor: Tensor,
        *args: Any,
        memory_config: Memory = None,
        input_grad: Optional[Tensor] = None,
        **options: Any,
    ) -> Grads:
        return in_place_of([gradient(grad_tensor, input_tensor, *args, **options)], [input_grad], memory_config)

    return named(function, name, "Gradient")


def named(function: Callable[..., Grads], name: str, what: str) -> Callable[..., Grads]:
    function.__name__ = function.__qualname__ = name + "_bw"
    function.__doc__ = f"{what} of {name}."
    return function


for _name in _of_one:
    globals()[_name + "_bw"] = _gradient_of_one(_name)
