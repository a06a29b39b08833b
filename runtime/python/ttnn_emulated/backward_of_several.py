"""Gradients of functions of several tensors, and of what moves elements: see backward.py."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

from . import eltwise as e
from . import movement as _movement
from . import places as _places
from . import products as _products
from .backward import Grads, Memory, Number, check_rounding, gelu, in_place_of, inf, named, nan, zero
from .calls import fail, on_device
from .tensor import Tensor
from .types import BLOCKS


# ---- of two tensors: (grad, a, b, parameters...) -> both gradients ------------------------------------------------------


def _lesser_and_greater(grad: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    half, rest = grad * 0.5, b - a
    tied = e.eqz(rest) * half
    return e.ltz(rest) * grad + tied, e.gtz(rest) * grad + tied


def _atan2(grad: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    factor = grad * e.reciprocal(e.square(e.hypot(a, b)))
    origin = e.logical_and(e.eqz(a), e.eqz(b))
    return e.where(origin, nan, b * factor), e.where(origin, nan, e.neg(a) * factor)


def _xlogy(grad: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    log = e.where(e.ltz(b), nan, e.log(b))
    log = e.where(e.logical_and(e.eqz(a), b <= 0.0), 0.0, log)
    second = e.where(e.eqz(b), e.sign(grad) * inf, grad * (a * e.reciprocal(b)))
    return grad * log, second


def _hypot(grad: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    factor = e.reciprocal(e.hypot(a, b))
    return grad * (a * factor), grad * (b * factor)


def _ldexp(grad: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    first = grad * e.exp2(b)
    return first, a * (first * math.log(2))


def _log_of_sum(power: Callable[[Tensor], Tensor]) -> Callable[..., Tuple[Tensor, Tensor]]:
    def function(grad: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
        if any(one.dtype in BLOCKS for one in (grad, a, b)):
            raise fail("BFLOAT8_B/BFLOAT4_B dtypes are not supported !!")
        return grad * e.reciprocal(power(b - a) + 1), grad * e.reciprocal(power(a - b) + 1)

    return function


def _squared_difference(grad: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    first = (grad * (a - b)) * 2
    return first, first * -1


def _div(grad: Tensor, a: Tensor, b: Union[Tensor, Number], rounding_mode: Optional[str] = None) -> Sequence[Tensor]:
    check_rounding(rounding_mode)
    if not isinstance(b, Tensor):
        if rounding_mode in ("trunc", "floor"):
            return [zero(grad)]
        return [grad * (1.0 / b) if b != 0 else e.where(e.eqz(grad), nan, e.sign(grad) * inf)]
    if rounding_mode in ("trunc", "floor"):
        return zero(grad), zero(grad)
    at_zero, flat, sign = e.eqz(b), e.eqz(grad), e.sign(grad)
    first = e.where(at_zero, e.where(flat, nan, sign * inf), grad * e.reciprocal(b))
    infinite = e.where(flat, nan, e.where(e.eqz(a), nan, (e.sign(a) * -inf) * sign))
    return first, e.where(at_zero, infinite, e.neg(grad) * (a * e.reciprocal(e.square(b))))


def _bias_gelu(grad: Tensor, a: Tensor, b: Union[Tensor, Number], approximate: str = "none") -> Sequence[Tensor]:
    made = gelu(grad, a + b, approximate)
    return [made, made] if isinstance(b, Tensor) else [made]


_of_two: Dict[str, Callable[..., Sequence[Tensor]]] = {
    "add": lambda grad, a, b, alpha=1.0: (grad, grad * 1.0) if isinstance(b, Tensor) else [grad],
    "addalpha": lambda grad, a, b, alpha=1.0: (grad, grad * alpha),
    "assign": lambda grad, a, b=None: (grad, _places.clone(grad)) if isinstance(b, Tensor) else [grad],
    "atan2": _atan2,
    "bias_gelu": _bias_gelu,
    "div": _div,
    "fmod": lambda grad, a, b: (grad, e.neg(grad) * e.div(a, b, rounding_mode="trunc")) if isinstance(b, Tensor) else [grad],
    "hypot": _hypot,
    "ldexp": _ldexp,
    "logaddexp": _log_of_sum(e.exp),
    "logaddexp2": _log_of_sum(e.exp2),
    "max": _lesser_and_greater,
    "min": lambda grad, a, b: tuple(reversed(_lesser_and_greater(grad, a, b))),
    "mul": lambda grad, a, b: (grad * b, grad * a) if isinstance(b, Tensor) else [grad * b],
    "remainder": lambda grad, a, b: (grad, e.neg(grad) * e.div(a, b, rounding_mode="floor")) if isinstance(b, Tensor) else [grad],
    "rsub": lambda grad, a, b: (e.neg(grad), grad),
    "squared_difference": _squared_difference,
    "sub": lambda grad, a, b, alpha=1.0: (grad, e.neg(grad) * 1.0) if isinstance(b, Tensor) else [grad],
    "subalpha": lambda grad, a, b, alpha=1.0: (grad, e.neg(grad) * alpha),
    "xlogy": _xlogy,
}


def _gradients_of_two(
    name: str,
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    other_tensor: Any,
    *args: Any,
    memory_config: Memory = None,
    are_required_outputs: Optional[Sequence[bool]] = None,
    input_grad: Optional[Tensor] = None,
    other_grad: Optional[Tensor] = None,
    **options: Any,
) -> Grads:
    made = list(_of_two[name](grad_tensor, input_tensor_a, other_tensor, *args, **options))
    if are_required_outputs is not None:
        if not any(are_required_outputs):
            raise fail("At least one gradient is expected to be calculated.")
        made = [one if wanted else None for one, wanted in zip(made, are_required_outputs)]
    return in_place_of([_places.clone(one) if one is grad_tensor else one for one in made], [input_grad, other_grad], memory_config)


def _gradient_of_two(name: str) -> Callable[..., Grads]:
    def function(grad_tensor: Tensor, input_tensor_a: Tensor, other: Any = None, *args: Any, **options: Any) -> Grads:
        for key in ("other_tensor", "input_tensor_b", "scalar", "bias"):
            other = options.pop(key, None) if other is None else other
        return _gradients_of_two(name, grad_tensor, input_tensor_a, other, *args, **options)

    return named(function, name, "Gradients of both operands")


for _name in _of_two:
    globals()[_name + "_bw"] = _gradient_of_two(_name)


# ---- of three, and of what moves ---------------------------------------------------------------------------------------


def addcmul_bw(grad_tensor: Tensor, input_tensor: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1.0,
               *, memory_config: Memory = None) -> Grads:  # fmt: skip
    """Gradients of the three operands of addcmul."""
    made = [_places.clone(grad_tensor), (grad_tensor * tensor2) * value, (grad_tensor * tensor1) * value]
    return in_place_of(made, [], memory_config)


def addcdiv_bw(grad_tensor: Tensor, input_tensor: Tensor, tensor1: Tensor, tensor2: Tensor, value: Number = 1.0,
               *, memory_config: Memory = None) -> Grads:  # fmt: skip
    """Gradients of the three operands of addcdiv."""
    at_zero, flat = e.eqz(tensor2), e.eqz(grad_tensor)
    first = (grad_tensor * value) * e.reciprocal(tensor2)
    second = ((e.neg(grad_tensor) * value) * tensor1) * e.reciprocal(e.square(tensor2))
    made = [_places.clone(grad_tensor)]
    made += [e.where(at_zero, e.where(flat, nan, edge), one) for edge, one in ((inf, first), (-inf, second))]
    return in_place_of(made, [], memory_config)


def where_bw(grad_tensor: Tensor, condition: Tensor, input_tensor: Tensor, other_tensor: Tensor, *, memory_config: Memory = None,
             are_required_outputs: Sequence[bool] = (True, True), input_grad: Optional[Tensor] = None,
             other_grad: Optional[Tensor] = None) -> Grads:  # fmt: skip
    """Gradients of both values of where."""
    made = [e.where(condition, grad_tensor, 0.0), e.where(condition, 0.0, grad_tensor)]
    made = [one if wanted else None for one, wanted in zip(made, are_required_outputs)]
    return in_place_of(made, [input_grad, other_grad], memory_config)


def lerp_bw(grad_tensor: Tensor, input_tensor: Tensor, end: Tensor, weight: Any, *, memory_config: Memory = None) -> Grads:
    """Gradients of input and end of lerp, and of a weight that is a tensor."""
    if not isinstance(weight, Tensor):
        return in_place_of([grad_tensor * (1.0 - weight), grad_tensor * weight], [], memory_config)
    made = [grad_tensor * e.rsub(weight, 1.0), grad_tensor * weight, grad_tensor * (end - input_tensor)]
    return in_place_of(made, [], memory_config)


def concat_bw(grad_tensor: Tensor, input_tensor_a: Tensor, other_tensor: Tensor, dim: int = 0, *, memory_config: Memory = None,
              are_required_outputs: Sequence[bool] = (True, True), input_grad: Optional[Tensor] = None,
              other_grad: Optional[Tensor] = None, **options: Any) -> Grads:  # fmt: skip
    """The gradient's parts that belong to each tensor."""
    size = input_tensor_a.shape[dim]
    parts = [_movement.narrow(grad_tensor, dim, 0, size), _movement.narrow(grad_tensor, dim, size, other_tensor.shape[dim])]
    made = [one if wanted else None for one, wanted in zip(parts, are_required_outputs)]
    return in_place_of(made, [input_grad, other_grad], memory_config)


def repeat_bw(grad_tensor: Tensor, input_tensor: Tensor, shape: Sequence[int], *, memory_config: Memory = None) -> Grads:
    """The gradient summed over the repeats of a dim: the first or the second."""
    if 0 in tuple(shape):
        return in_place_of([zero(input_tensor)], [], memory_config)
    dim = 0 if shape[0] > 1 else 1
    return in_place_of([_products.sum(grad_tensor, dim, True)], [], memory_config)


def prod_bw(grad_tensor: Tensor, input_tensor: Tensor, dim: Optional[int] = None, *, memory_config: Memory = None) -> Grads:
    """The product over each element, times the gradient; along a dim or of all elements."""
    product = _products.prod(input_tensor, dim, dim is not None)
    if dim is None:
        first = _movement.slice(grad_tensor, [0] * len(grad_tensor.shape), [1] * len(grad_tensor.shape))
        return in_place_of([e.reciprocal(input_tensor) * (_movement.reshape(product, first.shape) * first)], [], memory_config)
    if grad_tensor.shape[dim] != 1:  # its first elements along the dim count
        grad_tensor = _movement.narrow(grad_tensor, dim, 0, 1)
    return in_place_of([e.reciprocal(input_tensor) * (product * grad_tensor)], [], memory_config)


def embedding_bw(input_tensor: Tensor, weight: Tensor, output_grad: Tensor, *, memory_config: Memory = None, dtype: Any = None) -> Tensor:
    """The table's gradient: each row the sum of the gradients of its uses."""
    device = on_device("embedding_bw", input_tensor, weight, output_grad)
    device.remember_program("embedding_bw", tuple(input_tensor.shape), tuple(weight.shape), output_grad.dtype, dtype)
    rows = input_tensor._values.flatten().long()
    table = weight._values.new_zeros(weight.shape[-2:]).index_add(0, rows, output_grad._values.reshape(rows.numel(), -1))
    return Tensor(table.reshape(weight.shape), dtype or output_grad.dtype, output_grad.device(), output_grad.layout, memory_config)
