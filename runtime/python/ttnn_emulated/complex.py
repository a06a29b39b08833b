"""Complex tensors: pairs of tensors, and the calls on them that TT-NN makes of its functions of real ones."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import eltwise as e
from . import places
from .calls import fail
from .tensor import Tensor
from .types import MemoryConfig

Memory = Optional[MemoryConfig]


class ComplexTensor:
    """A real and an imaginary part."""

    def __init__(self, real_imag: Tuple[Tensor, Tensor]) -> None:
        self.real, self.imag = real_imag

    def __getitem__(self, index: int) -> Tensor:
        return (self.real, self.imag)[index]

    def deallocate(self) -> None:
        self.real.deallocate()
        self.imag.deallocate()


def complex_tensor(real: Tensor, imag: Tensor) -> ComplexTensor:
    """Of a real and an imaginary part of one shape."""
    if tuple(real.shape) != tuple(imag.shape):
        raise fail("Tensor shapes of real and imag should be identical")
    return ComplexTensor((real, imag))


def real(input_tensor: ComplexTensor, *, memory_config: Memory = None) -> Tensor:
    """The real part."""
    return input_tensor.real


def imag(input_tensor: ComplexTensor, *, memory_config: Memory = None) -> Tensor:
    """The imaginary part."""
    return input_tensor.imag


def angle(input_tensor: ComplexTensor, *, memory_config: Memory = None) -> Tensor:
    """The angle of each number."""
    return e.atan2(input_tensor.imag, input_tensor.real)


def is_imag(input_tensor: ComplexTensor, *, memory_config: Memory = None) -> Tensor:
    """1 where the real part is 0."""
    return e.eqz(input_tensor.real)


def is_real(input_tensor: ComplexTensor, *, memory_config: Memory = None) -> Tensor:
    """1 where the imaginary part is 0."""
    return e.eqz(input_tensor.imag)


def conj(input_tensor: ComplexTensor, *, memory_config: Memory = None) -> ComplexTensor:
    """The numbers with the other sign of their imaginary part."""
    return ComplexTensor((input_tensor.real, e.neg(input_tensor.imag)))


def polar(input_tensor: ComplexTensor, *, memory_config: Memory = None) -> ComplexTensor:
    """Numbers of their lengths and angles."""
    length, at = input_tensor
    return ComplexTensor((length * e.cos(at), length * e.sin(at)))


def _product(a: ComplexTensor, b: ComplexTensor) -> ComplexTensor:
    return ComplexTensor((a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]))


def _length(x: ComplexTensor) -> Tensor:
    return e.hypot(x[0], x[1])


def _inverse(x: ComplexTensor) -> ComplexTensor:
    factor = e.reciprocal(e.square(x[0]) + e.square(x[1]))
    return ComplexTensor((x[0] * factor, e.neg(x[1]) * factor))


def _negative(x: ComplexTensor) -> ComplexTensor:
    return ComplexTensor((e.neg(x[0]), e.neg(x[1])))


def _nan_where(condition: Tensor, x: ComplexTensor) -> ComplexTensor:
    return ComplexTensor((e.where(condition, math.nan, x[0]), e.where(condition, math.nan, x[1])))


def _is_zero(x: ComplexTensor) -> Tensor:
    return e.logical_and(e.eqz(x[0]), e.eqz(x[1]))


# ---- gradients ----------------------------------------------------------------------------------------------------------


def _direction(grad: Tensor, x: ComplexTensor) -> ComplexTensor:
    length = _length(x)
    zero, factor = e.eqz(length), e.reciprocal(length)
    return ComplexTensor(tuple(e.where(zero, 0.0, grad * (part * factor)) for part in (x[0], x[1])))


def polar_bw(grad: ComplexTensor, input_tensor: ComplexTensor, *, memory_config: Memory = None) -> List[ComplexTensor]:
    """Gradients of the lengths and the angles."""
    made = polar(input_tensor)
    length = _length(made)
    zero, factor = e.eqz(length), e.reciprocal(length)
    unit = ComplexTensor(tuple(e.where(zero, 0.0, part * factor) for part in (made[0], made[1])))
    turned = ComplexTensor((places.zeros_like(input_tensor.real), places.ones_like(input_tensor.imag)))
    back = conj(grad)
    return [ComplexTensor((_product(back, unit).real, _product(back, _product(made, turned)).real))]


def imag_bw(grad: Tensor, input_tensor: ComplexTensor, *, memory_config: Memory = None) -> List[ComplexTensor]:
    """The gradient of the imaginary part."""
    return [ComplexTensor((places.zeros_like(input_tensor.real), grad))]


def real_bw(grad: Tensor, input_tensor: ComplexTensor, *, memory_config: Memory = None) -> List[ComplexTensor]:
    """The gradient of the real part."""
    return [ComplexTensor((grad, places.zeros_like(input_tensor.real)))]


def angle_bw(grad: Tensor, input_tensor: Any, *, memory_config: Memory = None) -> List[Any]:
    """The gradient of the angle; of real numbers zero."""
    if isinstance(input_tensor, Tensor):
        return [places.zeros_like(grad)]
    zero = _is_zero(input_tensor)
    factor = e.reciprocal(e.square(input_tensor[0]) + e.square(input_tensor[1]))
    parts = (e.neg(input_tensor[1]), input_tensor[0])
    return [ComplexTensor(tuple(e.where(zero, 0.0, grad * (part * factor)) for part in parts))]


def conj_bw(grad: ComplexTensor, input_tensor: ComplexTensor, *, memory_config: Memory = None) -> List[ComplexTensor]:
    """The gradient's conjugate."""
    return [conj(grad)]


def _reciprocal_bw(grad: ComplexTensor, x: ComplexTensor) -> List[ComplexTensor]:
    inverse = _inverse(x)
    return [_nan_where(_is_zero(x), _product(_negative(grad), conj(_product(inverse, inverse))))]


def _scaled(x: ComplexTensor, factor: float) -> ComplexTensor:
    return ComplexTensor((x[0] * factor, x[1] * factor))


def _div_bw(grad: ComplexTensor, a: ComplexTensor, b: ComplexTensor) -> List[ComplexTensor]:
    inverse, zero = _inverse(b), _is_zero(b)
    first = _product(grad, _inverse(conj(b)))
    second = _product(_negative(grad), conj(_product(_product(a, inverse), inverse)))
    return [_nan_where(zero, first), _nan_where(zero, second)]


# The forms with complex operands of functions that real tensors have too.
_forms: Dict[str, Callable[..., Any]] = {
    "abs": _length,
    "reciprocal": _inverse,
    "add": lambda a, b: ComplexTensor((a[0] + b[0], a[1] + b[1])),
    "subtract": lambda a, b: ComplexTensor((a[0] - b[0], a[1] - b[1])),
    "multiply": _product,
    "divide": lambda a, b: _product(a, _inverse(b)),
    "abs_bw": lambda grad, x: [_direction(grad, x)],
    "reciprocal_bw": _reciprocal_bw,
    "add_bw": lambda grad, a, b, alpha=1.0: [grad, _scaled(grad, alpha)],
    "sub_bw": lambda grad, a, b, alpha=1.0: [grad, _scaled(_negative(grad), alpha)],
    "mul_bw": lambda grad, a, b: [_product(grad, conj(b)), _product(grad, conj(a))],
    "div_bw": _div_bw,
}
_forms.update({short: _forms[name] for short, name in (("sub", "subtract"), ("mul", "multiply"), ("div", "divide"))})


def with_complex(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of real tensors, which hands complex operands to their own form."""
    form = _forms[name]

    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(one, ComplexTensor) for one in args):
            kwargs.pop("memory_config", None)
            return form(*args, **kwargs)
        return function(*args, **kwargs)

    call.__dict__.update(function.__dict__)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


def complex_names() -> List[str]:
    """The functions that have a form with complex operands."""
    return list(_forms)
