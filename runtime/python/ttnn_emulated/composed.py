"""Functions that TT-NN makes of others of its own: the same calls, with their roundings."""

from __future__ import annotations

import enum
import functools
from typing import Any, Callable, List, Optional, Sequence, Union

import torch

from . import eltwise as e
from . import movement, places, products
from .calls import fail, into, on_device, run
from .tensor import Tensor, packed
from .types import FLOATS, DataType, Layout, MemoryConfig, UnaryWithParam, int32, uint16, uint32

Number = Union[int, float]
Memory = Optional[MemoryConfig]


class LossReductionMode(enum.Enum):
    NONE = 0
    SUM = 1
    MEAN = 2


def _placed(result: Tensor, memory_config: Memory, output_tensor: Optional[Tensor] = None) -> Tensor:
    if memory_config not in (None, result._memory_config):
        result = result._like(result._values, memory_config=memory_config)
    return into(output_tensor, result)


# ---- of one tensor -----------------------------------------------------------------------------------------------------


def _lgamma_of_steps(x: Tensor) -> Tensor:
    """Lanczos' series, as multigammaln has it."""
    less = x - 1.0
    factors = (76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 0.1208650973866179e-2, -0.5395239384953e-5)
    series = None
    for i, factor in enumerate(factors):
        term = e.reciprocal(less + float(i + 1)) * factor
        series = term + 1.0 if series is None else series + term
    base = less + 5.5
    result = (((less + 0.5) * e.log(base)) + 0.918938531357171) + e.log(series)
    result = result - base
    return e.where(e.eq(x, 2.0), 0.0, e.where(e.eq(x, 1.0), 0.0, result))


def multigammaln(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension 4."""
    result = _lgamma_of_steps(input_tensor)
    for less in (0.5, 1.0, 1.5):
        result = result + _lgamma_of_steps(input_tensor - less)
    return _placed(result + 3.434189657547, memory_config)


def _of_last_two(input_tensor: Tensor) -> tuple:
    size = input_tensor.shape[-1] * input_tensor.shape[-2]
    centred = input_tensor - products.mean(input_tensor, (-2, -1), True)
    return centred, products.sum(e.square(centred), (-2, -1), True, scalar=1.0 / size)


def var_hw(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """The variance over the last two dims."""
    return _placed(_of_last_two(input_tensor)[1], memory_config)


def std_hw(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """The standard deviation over the last two dims."""
    return _placed(e.sqrt(_of_last_two(input_tensor)[1]), memory_config)


def normalize_hw(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """With mean 0 and variance 1 over the last two dims."""
    centred, variance = _of_last_two(input_tensor)
    return _placed(centred * e.reciprocal(e.sqrt(variance)), memory_config)


def normalize_global(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """With mean 0 and variance 1 over all elements of a tensor of four dims."""
    shape = input_tensor.shape
    if len(shape) != 4:
        raise fail("Cannot support non-rank 4 Tensor")
    flat = movement.reshape(input_tensor, (1, 1, shape[2], shape[3] * shape[1] * shape[0]))
    return movement.reshape(normalize_hw(flat, memory_config=memory_config), shape)


def rpow(input_tensor: Tensor, exponent: Number, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """A number to the power of each element."""
    base = places.full_like(input_tensor, exponent)
    return _placed(e.pow(base, input_tensor), memory_config, options.get("output_tensor"))


def rdiv(
    input_tensor: Tensor, value: Number, *, rounding_mode: Optional[str] = None, memory_config: Memory = None, **options: Any
) -> Tensor:
    """A number over each element, rounded down or towards 0 where that is asked."""
    if rounding_mode not in (None, "None", "trunc", "floor"):
        raise fail("Incorrect rounding mode (expected None, 'trunc', or 'floor')")
    result = e.reciprocal(input_tensor) * value
    result = e.trunc(result) if rounding_mode == "trunc" else e.floor(result) if rounding_mode == "floor" else result
    return _placed(result, memory_config, options.get("output_tensor"))


def relu_max(input_tensor: Tensor, upper_limit: Number, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """relu, up to a limit."""
    return _placed(e.relu(e.minimum(input_tensor, upper_limit)), memory_config, options.get("output_tensor"))


def relu_min(input_tensor: Tensor, lower_limit: Number, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """relu, from a limit on."""
    return _placed(e.relu(e.maximum(input_tensor, lower_limit)), memory_config, options.get("output_tensor"))


def polyval(input_tensor: Tensor, coeffs: Sequence[Number], *, memory_config: Memory = None) -> Tensor:
    """A polynomial of each element, of its coefficients from the highest power on."""
    if len(coeffs) == 1:
        return places.full_like(input_tensor, coeffs[0], memory_config=memory_config)
    result = input_tensor * coeffs[0]
    for one in coeffs[1:-1]:
        result = input_tensor * (result + one)
    return _placed(result + coeffs[-1], memory_config)


def unary_chain(input_tensor: Tensor, ops_chain: Sequence[Any], *, memory_config: Memory = None, **options: Any) -> Tensor:
    """One function behind the other."""
    for one in ops_chain:
        input_tensor = applied(one, input_tensor)
    return _placed(input_tensor, memory_config, options.get("output_tensor"))


def applied(function: Any, x: Tensor) -> Tensor:
    """A function that a call names: "gelu", UnaryOpType.RELU, UnaryWithParam(UnaryOpType.LEAKY_RELU, 0.1)."""
    return e.activated(x, function if isinstance(function, UnaryWithParam) else UnaryWithParam(function))


def logical_not_(input_tensor: Tensor, **options: Any) -> Tensor:
    """logical_not in the place of its input."""
    return into(input_tensor, e.logical_not(input_tensor, **options))


# ---- of integers, which are not rounded ---------------------------------------------------------------------------------


def _integers(name: str, *tensors: Any) -> None:
    on_device(name, *[one for one in tensors if isinstance(one, Tensor)])
    for one in tensors:
        if isinstance(one, Tensor) and one.dtype in FLOATS:
            raise fail(f"ttnn.{name}: integers are expected, not {one.dtype}")


def _shift(name: str, of_bits: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]) -> Callable[..., Tensor]:
    def function(
        input_tensor: Tensor, shift_bits: Any, *, memory_config: Memory = None, output_tensor: Any = None, **options: Any
    ) -> Tensor:
        _integers(name, input_tensor, shift_bits)
        width = 16 if input_tensor.dtype is uint16 else 32
        by = shift_bits._values if isinstance(shift_bits, Tensor) else torch.tensor(int(shift_bits))
        values = of_bits(input_tensor._values, by.long().clamp(0, 63), width)
        values = torch.where((by < 0) | (by >= width), torch.zeros_like(values), values)
        return into(
            output_tensor,
            input_tensor._like(packed(values, input_tensor.dtype), memory_config=memory_config or input_tensor._memory_config),
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}: bits moved by a number, or by numbers of a tensor."
    return function


bitwise_left_shift = _shift("bitwise_left_shift", lambda x, by, width: x << by)
logical_left_shift = _shift("logical_left_shift", lambda x, by, width: x << by)
bitwise_right_shift = _shift("bitwise_right_shift", lambda x, by, width: x >> by)
logical_right_shift = _shift("logical_right_shift", lambda x, by, width: (x & (2**width - 1)) >> by)


def bitwise_not(input_tensor: Tensor, *, memory_config: Memory = None, output_tensor: Optional[Tensor] = None, **options: Any) -> Tensor:
    """The other bits."""
    _integers("bitwise_not", input_tensor)
    made = input_tensor._like(packed(~input_tensor._values, input_tensor.dtype), memory_config=memory_config or input_tensor._memory_config)
    return into(output_tensor, made)


_bits = {"float32": torch.float32, "int32": torch.int32, "uint32": torch.int32, "bfloat16": torch.bfloat16, "uint16": torch.int16}


def bitcast(input_tensor: Tensor, dtype: DataType, *, memory_config: Memory = None, output_tensor: Optional[Tensor] = None) -> Tensor:
    """The same bits as another format of their width."""
    on_device("bitcast", input_tensor)
    held, wanted = _bits.get(input_tensor.dtype.value), _bits.get(dtype.value)
    if held is None or wanted is None or held.itemsize != wanted.itemsize:
        raise fail(f"bitcast: {input_tensor.dtype} and {dtype} do not have the same size")
    values = input_tensor._values.to(held).view(wanted)
    made = input_tensor._like(packed(values, dtype), dtype=dtype, memory_config=memory_config or input_tensor._memory_config)
    return into(output_tensor, made)


# ---- of two -------------------------------------------------------------------------------------------------------------


def isclose(input_tensor_a: Tensor, input_tensor_b: Tensor, *, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False,
            memory_config: Memory = None) -> Tensor:  # fmt: skip
    """1 where two elements differ by no more than atol + rtol |b|, in TT-NN's steps; with its own bounds the recorded call."""
    if (rtol, atol, equal_nan) == (1e-05, 1e-08, False):
        return e.binary("isclose", input_tensor_a, input_tensor_b, memory_config=memory_config)
    a, b = input_tensor_a, input_tensor_b
    if not equal_nan:
        a, b = e.where(e.isnan(a), 1.0, a), e.where(e.isnan(b), 0.0, b)
    bound = e.abs(b) * rtol + atol
    return e.where(e.le(e.abs(a - b), bound, memory_config=memory_config), 1.0, 0.0, memory_config=memory_config)


def outer(input_tensor_a: Tensor, input_tensor_b: Tensor, *, memory_config: Memory = None) -> Tensor:
    """[1, 1, N, M] of the products of two vectors' elements."""
    for one in (input_tensor_a, input_tensor_b):
        if sum(size == 1 for size in one.shape) < 3:
            raise fail("3 dimensions are required to be 1 for use with outer product")
    a = movement.reshape(input_tensor_a, (1, 1, input_tensor_a.logical_volume(), 1))
    b = movement.reshape(input_tensor_b, (1, 1, 1, input_tensor_b.logical_volume()))
    return products.matmul(places.to_layout(a, Layout.TILE), places.to_layout(b, Layout.TILE), memory_config=memory_config)


def _loss(name: str, of_difference: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def function(
        input_reference: Tensor, input_prediction: Tensor, reduction: LossReductionMode = LossReductionMode.NONE,
        *, memory_config: Memory = None, **options: Any,
    ) -> Tensor:  # fmt: skip
        reduction = options.get("loss_mode", reduction)
        result = of_difference(input_reference - input_prediction)
        if reduction is LossReductionMode.SUM:
            result = products.sum(result)
        elif reduction is LossReductionMode.MEAN:
            result = products.mean(result)
        return _placed(result, memory_config)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of a prediction: of each element, their sum or their mean."
    return function


mse_loss, l1_loss = _loss("mse_loss", lambda d: e.square(d)), _loss("l1_loss", lambda d: e.abs(d))


class BcastOpMath(enum.Enum):
    ADD = 0
    SUB = 1
    MUL = 2


class BcastOpDim(enum.Enum):
    H = 0
    W = 1
    HW = 2


def bcast(
    input_a: Tensor, input_b: Tensor, math_op: BcastOpMath, dim: BcastOpDim, *, memory_config: Memory = None, **options: Any
) -> Tensor:
    """A sum, difference or product with a row, a column or a value of each matrix."""
    function = {BcastOpMath.ADD: e.add, BcastOpMath.SUB: e.subtract, BcastOpMath.MUL: e.multiply}[math_op]
    return into(options.get("output_tensor"), function(input_a, input_b, memory_config=memory_config))


def alt_complex_rotate90(input_tensor: Tensor, *, memory_config: Memory = None) -> Tensor:
    """Each pair (a, b) of the last dim as (-b, a)."""
    if input_tensor.shape[-1] % 2:
        raise fail("Input tensor's last dimension must be a multiple of 2")
    on_device("alt_complex_rotate90", input_tensor)
    pairs = input_tensor._values.unflatten(-1, (-1, 2))
    values = torch.stack([-pairs[..., 1], pairs[..., 0]], -1).flatten(-2)
    return input_tensor._like(packed(values, input_tensor.dtype), memory_config=memory_config or input_tensor._memory_config)


# ---- gates and sums with a factor ----------------------------------------------------------------------------------------


def _gate(name: str) -> Callable[..., Tensor]:
    def function(input_tensor: Tensor, dim: int = -1, *, memory_config: Memory = None) -> Tensor:
        if dim not in (-1, len(input_tensor.shape) - 1):
            raise fail(f"{name} is only supported along the last dim")
        shape = list(input_tensor.shape)
        shape[-1] //= 2
        (result,) = run(name, [input_tensor], [shape], {"dim": -1}, memory_config=memory_config)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The first half of the last dim times a function of the second."
    return function


def addalpha(input_tensor_a: Tensor, input_tensor_b: Tensor, alpha: Number, *, memory_config: Memory = None) -> Tensor:
    """a + alpha b."""
    return e.add(input_tensor_a, e.multiply(input_tensor_b, alpha), memory_config=memory_config)


def subalpha(input_tensor_a: Tensor, input_tensor_b: Tensor, alpha: Number, *, memory_config: Memory = None) -> Tensor:
    """a - alpha b."""
    return e.subtract(input_tensor_a, e.multiply(input_tensor_b, alpha), memory_config=memory_config)


glu, reglu, geglu, swiglu = (_gate(_name) for _name in ("glu", "reglu", "geglu", "swiglu"))


# ---- of indices ---------------------------------------------------------------------------------------------------------


def index_fill(input: Tensor, dim: int, index: Tensor, value: Number, *, memory_config: Memory = None) -> Tensor:
    """One value at these positions of a dim."""
    on_device("index_fill", input, index)
    values = input._values.index_fill(dim, index._values.flatten().long(), value)
    return input._like(packed(values, input.dtype), memory_config=memory_config or input._memory_config)


def indexed_fill(batch_id: Tensor, input_tensor_a: Tensor, input_tensor_b: Tensor, *, memory_config: Memory = None, dim: int = 0) -> Tensor:
    """The first tensor with slices of the second at these positions of a dim."""
    on_device("indexed_fill", batch_id, input_tensor_a, input_tensor_b)
    rows = batch_id._values.flatten().long()
    values = input_tensor_a._values.clone().index_copy_(dim, rows, input_tensor_b._values.narrow(dim, 0, rows.numel()))
    return input_tensor_a._like(packed(values, input_tensor_a.dtype), memory_config=memory_config or input_tensor_a._memory_config)


def _filled(
    N: int, C: int, H: int, W: int, hOnes: int, wOnes: int, any: Tensor, inside: float, outside: float, memory_config: Memory
) -> Tensor:
    values = torch.full((N, C, H, W), float(outside))
    values[..., :hOnes, :wOnes] = inside
    return any._like(packed(values, any.dtype), memory_config=memory_config or any._memory_config)


def fill_rm(N: int, C: int, H: int, W: int, hOnes: int, wOnes: int, any: Tensor, val_hi: Number, val_lo: Number,
            *, memory_config: Memory = None) -> Tensor:  # fmt: skip
    """One value in the first rows and columns, another elsewhere."""
    return _filled(N, C, H, W, hOnes, wOnes, any, val_hi, val_lo, memory_config)


def fill_ones_rm(N: int, C: int, H: int, W: int, hOnes: int, wOnes: int, any: Tensor, *, memory_config: Memory = None) -> Tensor:
    """Ones in the first rows and columns, zeros elsewhere."""
    return _filled(N, C, H, W, hOnes, wOnes, any, 1.0, 0.0, memory_config)


def nonzero(input_tensor: Tensor, *, memory_config: Memory = None, **options: Any) -> List[Tensor]:
    """How many elements of a row [1, 1, 1, N] are not zero, and their positions first."""
    on_device("nonzero", input_tensor)
    found = input_tensor._values.flatten().nonzero().flatten()
    places_of = torch.zeros(input_tensor.logical_volume(), dtype=torch.int64)
    places_of[: found.numel()] = found
    count = torch.tensor([found.numel()] + [0] * 7).reshape(1, 1, 1, 8)
    shape = (1, 1, 1, input_tensor.logical_volume())
    like = functools.partial(input_tensor._like, dtype=uint32, layout=Layout.ROW_MAJOR, memory_config=memory_config)
    return [like(count), like(places_of.reshape(shape))]


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, memory_config: Memory = None, **options: Any) -> Tensor:
    """The input with elements of another tensor added at these numbers along a dim, in its format at each step."""
    on_device("scatter_add", input, index, src)
    values = input._values.clone()
    for i in range(index.shape[dim]):  # several may meet at one place
        at, part = index._values.narrow(dim, i, 1).long(), src._values.narrow(dim, i, 1)
        at, part = at, part[tuple(slice(0, size) for size in at.shape)]
        values = packed(values.scatter(dim, at, values.gather(dim, at) + part), input.dtype)
    return input._like(values, memory_config=memory_config or input._memory_config)


# ---- quantised values ----------------------------------------------------------------------------------------------------


def _along(value: Any, axis: Optional[int], like: Tensor) -> Any:
    """A scale or zero point: a number, or a tensor whose elements belong to an axis."""
    if not isinstance(value, Tensor):
        return value
    shape = [1] * len(like.shape)
    if axis is not None:
        shape[axis] = value.logical_volume()
    return value._values.reshape(shape).double()


def quantize(input_tensor: Tensor, scale: Any, zero_point: Any, *, axis: Optional[int] = None, memory_config: Memory = None,
             **options: Any) -> Tensor:  # fmt: skip
    """Floats as integers of -128 to 127: x / scale + zero point, rounded to even."""
    on_device("quantize", input_tensor)
    values = input_tensor._values.double() / _along(scale, axis, input_tensor) + _along(zero_point, axis, input_tensor)
    values = values.round().clamp(-128, 127).long()
    made = input_tensor._like(values, dtype=int32, memory_config=memory_config or input_tensor._memory_config)
    return into(options.get("output_tensor"), made)


def dequantize(input_tensor: Tensor, scale: Any, zero_point: Any, *, axis: Optional[int] = None, memory_config: Memory = None,
               dtype: Optional[DataType] = None, **options: Any) -> Tensor:  # fmt: skip
    """Integers as floats: (x - zero point) scale."""
    from .types import bfloat16

    on_device("dequantize", input_tensor)
    dtype = dtype or bfloat16
    values = (input_tensor._values.double() - _along(zero_point, axis, input_tensor)) * _along(scale, axis, input_tensor)
    made = input_tensor._like(packed(values, dtype), dtype=dtype, memory_config=memory_config or input_tensor._memory_config)
    return into(options.get("output_tensor"), made)


def requantize(input_tensor: Tensor, in_scale: Any, in_zero_point: Any, out_scale: Any, out_zero_point: Any,
               *, axis: Optional[int] = None, memory_config: Memory = None, **options: Any) -> Tensor:  # fmt: skip
    """Integers of one scale as those of another."""
    on_device("requantize", input_tensor)
    values = (input_tensor._values.double() - _along(in_zero_point, axis, input_tensor)) * _along(in_scale, axis, input_tensor)
    values = values / _along(out_scale, axis, input_tensor) + _along(out_zero_point, axis, input_tensor)
    made = input_tensor._like(values.round().clamp(-128, 127).long(), memory_config=memory_config or input_tensor._memory_config)
    return into(options.get("output_tensor"), made)
