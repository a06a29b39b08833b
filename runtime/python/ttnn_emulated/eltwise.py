"""Functions of one tensor, of two, and of three: tables of names, and what their parameters are called."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

import torch

from .calls import fail, function_name, into, on_device, run
from .tensor import Tensor, packed
from .types import FLOATS, DataType, MemoryConfig, SigmoidMode, float32

Number = Union[int, float]

# Of one tensor: parameters in TT-NN's order, with the op library's own names.
_unary: Dict[str, Tuple[str, ...]] = {
    name: ()
    for name in """abs acos acosh asin asinh atan atanh cbrt ceil cos cosh deg2rad digamma erf erfc erfinv exp2 expm1 eqz
    floor frac gez gtz hardmish hardsigmoid hardswish i0 i1 isfinite isinf isnan isneginf isposinf lez lgamma log log10
    log1p log2 log_sigmoid logical_not ltz mish neg nez rad2deg reciprocal relu relu6 round sign signbit silu sin sinh
    softsign square swish tan tanh tanhshrink trunc""".split()
}
_unary.update(
    celu=("alpha",),
    elu=("alpha",),
    exp=("fast_and_approximate_mode",),
    gelu=("fast_and_approximate_mode",),
    hardshrink=("lambd",),
    hardtanh=("min_val", "max_val"),
    heaviside=("value",),
    logit=(),
    leaky_relu=("negative_slope",),
    polygamma=("k",),
    rsqrt=("fast_and_approximate_mode",),
    selu=("scale", "alpha"),
    softplus=("beta", "threshold"),
    softshrink=("lambd",),
    sqrt=("fast_and_approximate_mode",),
    threshold=("threshold", "value"),
    xielu=("alpha_p", "alpha_n"),
)
_modes = ("fast_and_approximate_mode",)
# What TT-NN's keyword of the same meaning is called.
_spelt = {"relu6": {"upper_limit": "upper_limit"}}


def _unary_function(name: str, parameters: Sequence[str]) -> Callable[..., Tensor]:
    def function(
        input_tensor: Tensor,
        *args: Any,
        memory_config: Optional[MemoryConfig] = None,
        output_tensor: Optional[Tensor] = None,
        dtype: Optional[DataType] = None,
        sub_core_grids: Any = None,
        **options: Any,
    ) -> Tensor:
        if len(args) > len(parameters):
            raise TypeError(f"ttnn.{name}(): incompatible function arguments")
        params = dict(zip(parameters, args))
        for key, value in options.items():
            if key not in parameters and key not in _spelt.get(name, {}):
                raise NotImplementedError(f"ttnn.{name}: the argument {key} is not emulated")
            params[key] = value
        params = {key: value for key, value in params.items() if not (key in _modes and value is False)}
        place = memory_config or getattr(input_tensor, "_memory_config", None)
        (result,) = run(name, [input_tensor], [input_tensor.shape], params, dtype=dtype, memory_config=place)
        return into(output_tensor, result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of each element."
    return function


for _name, _parameters in _unary.items():
    globals()[_name] = _unary_function(_name, _parameters)


def sigmoid(
    input_tensor: Tensor,
    *,
    vector_mode: Any = None,
    mode: SigmoidMode = SigmoidMode.Accurate,
    memory_config: Optional[MemoryConfig] = None,
    output_tensor: Optional[Tensor] = None,
) -> Tensor:
    """1 / (1 + exp(-x)), in one of three modes."""
    params = {} if mode is SigmoidMode.Accurate else {"mode": mode.name}
    (result,) = run("sigmoid", [input_tensor], [input_tensor.shape], params, memory_config=memory_config)
    return into(output_tensor, result)


def sigmoid_accurate(input_tensor: Tensor, fast_and_approximate_mode: bool = False, **options: Any) -> Tensor:
    """The accurate mode of sigmoid."""
    return sigmoid(input_tensor, **options)


def clamp(
    input_tensor: Tensor,
    min: Optional[Number] = None,
    max: Optional[Number] = None,
    *,
    memory_config: Optional[MemoryConfig] = None,
    output_tensor: Optional[Tensor] = None,
    name: str = "clamp",
) -> Tensor:
    """Each element within two numbers."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        raise NotImplementedError(f"ttnn.{name}: bounds in tensors are not emulated")
    if min is None and max is None:
        raise fail("Only one of 'min' or 'max' can be None. Please provide one value")
    (result,) = run(name, [input_tensor], [input_tensor.shape], {"min": min, "max": max}, memory_config=memory_config)
    return into(output_tensor, result)


def clip(input_tensor: Tensor, min: Optional[Number] = None, max: Optional[Number] = None, **options: Any) -> Tensor:
    """clamp under another name."""
    return clamp(input_tensor, min, max, name="clip", **options)


def identity(input_tensor: Tensor, *, memory_config: Optional[MemoryConfig] = None, **options: Any) -> Tensor:
    """The same elements."""
    on_device("identity", input_tensor)
    return input_tensor._like(input_tensor._values, memory_config=memory_config)


# ---- of two tensors, or of one and a number --------------------------------------------------------------------------

_binary = {  # TT-NN's name: the op library's, and whether a number may stand for the second
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "eq": "eq",
    "ne": "ne",
    "gt": "gt",
    "ge": "ge",
    "lt": "lt",
    "le": "le",
    "maximum": "maximum",
    "minimum": "minimum",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "rsub": "rsub",
    "pow": "pow",
    "fmod": "fmod",
    "remainder": "remainder",
    "floor_div": "floor_div",
    "squared_difference": "squared_difference",
    "bias_gelu": "bias_gelu",
    "ldexp": "ldexp",
    "logaddexp": "logaddexp",
    "logaddexp2": "logaddexp2",
    "hypot": "hypot",
    "atan2": "atan2",
    "xlogy": "xlogy",
    "div_no_nan": "div_no_nan",
    "nextafter": "nextafter",
    "isclose": "isclose",
    "gcd": "gcd",
    "lcm": "lcm",
    "prelu": "prelu",
}
# Runners that take operands of one shape; theirs are spread out before.
_of_one_shape = ("ldexp", "logaddexp2", "nextafter", "prelu", "isclose", "div_no_nan", "squared_difference", "bias_gelu")


def broadcast(function: str, *tensors: Tensor) -> torch.Size:
    try:
        return torch.broadcast_shapes(*[tuple(tensor.shape) for tensor in tensors])
    except RuntimeError:
        shapes = " and ".join(str(tensor.shape) for tensor in tensors)
        raise fail(f"ttnn.{function}: Invalid broadcasting of {shapes}") from None


def spread(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor with this shape's sizes, as the device repeats rows and columns."""
    if tuple(tensor.shape) == tuple(shape):
        return tensor
    return tensor._like(tensor._values.expand(tuple(shape)).contiguous())


def binary(
    name: str,
    input_tensor_a: Tensor,
    input_tensor_b: Union[Tensor, Number],
    *,
    dtype: Optional[DataType] = None,
    memory_config: Optional[MemoryConfig] = None,
    output_tensor: Optional[Tensor] = None,
    activations: Sequence[Any] = (),
    input_tensor_a_activations: Sequence[Any] = (),
    input_tensor_b_activations: Sequence[Any] = (),
    fast_and_approximate_mode: Any = None,
    use_legacy: Any = None,
    sub_core_grids: Any = None,
    rounding_mode: Optional[str] = None,
) -> Tensor:
    if name == "prelu" and not isinstance(input_tensor_b, Tensor):  # one slope for all
        return globals()["leaky_relu"](input_tensor_a, float(input_tensor_b), memory_config=memory_config)
    function = _binary[name]
    if rounding_mode is not None:
        raise NotImplementedError(f"ttnn.{name}: rounding_mode is not emulated")
    a = _activated(input_tensor_a, input_tensor_a_activations)
    params: Dict[str, Any] = {}
    if activations:
        params["activations"] = [function_name(one) for one in activations]
    if isinstance(input_tensor_b, Tensor):
        b = _activated(input_tensor_b, input_tensor_b_activations)
        shape = broadcast(name, a, b)
        if function in _of_one_shape:
            a, b = spread(a, shape), spread(b, shape)
        operands = [a, b]
    else:
        shape, operands = a.shape, [a]
        params["scalar"] = float(input_tensor_b) if a.dtype in FLOATS else int(input_tensor_b)
    if function in _of_integers and all(one.dtype not in FLOATS for one in operands) and not activations:
        return into(output_tensor, _compared(function, a, operands[1] if len(operands) > 1 else input_tensor_b, dtype, memory_config))
    if dtype is float32 and a.dtype is not float32 and a.dtype in FLOATS:
        params["dtype"] = "float32"
    (result,) = run(function, operands, [shape], params, dtype=dtype, memory_config=memory_config or a._memory_config, name=name)
    return into(output_tensor, result)


# Of integers there is one answer, which is not rounded.
_of_integers = {name: getattr(torch, name) for name in ("eq", "ne", "gt", "ge", "lt", "le", "logical_and", "logical_or", "logical_xor")}


def _compared(function: str, a: Tensor, b: Union[Tensor, Number], dtype: Optional[DataType], memory_config: Any) -> Tensor:
    on_device(function, a, *([b] if isinstance(b, Tensor) else []))
    values = _of_integers[function](a._values, b._values if isinstance(b, Tensor) else torch.tensor(int(b)))
    dtype = dtype or a.dtype
    return a._like(packed(values, dtype), dtype=dtype, memory_config=memory_config or a._memory_config)


def _activated(tensor: Tensor, activations: Sequence[Any]) -> Tensor:
    for one in activations:
        tensor = globals()[function_name(one)](tensor)
    return tensor


def _binary_function(name: str) -> Callable[..., Tensor]:
    def function(input_tensor_a: Tensor, input_tensor_b: Union[Tensor, Number], **options: Any) -> Tensor:
        return binary(name, input_tensor_a, input_tensor_b, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of two tensors, or of a tensor and a number."
    return function


def _in_place(name: str) -> Callable[..., Tensor]:
    def function(input_tensor_a: Tensor, input_tensor_b: Union[Tensor, Number], **options: Any) -> Tensor:
        return into(input_tensor_a, binary(name, input_tensor_a, input_tensor_b, **options))

    function.__name__ = function.__qualname__ = name + "_"
    function.__doc__ = f"{name}, in the place of the first tensor."
    return function


for _name in _binary:
    globals()[_name] = _binary_function(_name)
    if _name in (
        "add",
        "subtract",
        "multiply",
        "divide",
        "gt",
        "lt",
        "ge",
        "le",
        "eq",
        "ne",
        "logical_and",
        "logical_or",
        "rsub",
        "bias_gelu",
        "squared_difference",
        "ldexp",
        "logaddexp",
        "logaddexp2",
    ):
        globals()[_name + "_"] = _in_place(_name)
sub, mul, div = subtract, multiply, divide  # noqa: F821
sub_, mul_, div_ = subtract_, multiply_, divide_  # noqa: F821


# ---- of three --------------------------------------------------------------------------------------------------------


def where(
    predicate: Tensor,
    value_true: Union[Tensor, Number],
    value_false: Union[Tensor, Number],
    *,
    memory_config: Optional[MemoryConfig] = None,
    output_tensor: Optional[Tensor] = None,
) -> Tensor:
    """Of one where the predicate is not zero, of the other elsewhere; tensors or numbers."""
    tensors = [one for one in (predicate, value_true, value_false) if isinstance(one, Tensor)]
    shape = broadcast("where", *tensors)
    if len(tensors) == 2:  # the library takes two tensors or two numbers
        like = tensors[1]
        number = value_false if value_true is like else value_true
        full = like._like(packed(torch.full(tuple(shape), float(number)), like.dtype))
        value_true, value_false = (like, full) if value_true is like else (full, like)
    params: Dict[str, Any] = {}
    operands: list = [("cond", predicate)]
    for key, value in (("a", value_true), ("b", value_false)):
        if isinstance(value, Tensor):
            operands.append((key, value))
        else:
            params[key] = float(value)
    dtype = next((one.dtype for one in (value_true, value_false) if isinstance(one, Tensor)), predicate.dtype)
    (result,) = run("where", operands, [shape], params, dtype=dtype, memory_config=memory_config)
    return into(output_tensor, result)


def _of_three(name: str, a: Tensor, b: Tensor, c: Tensor, value: Number, memory_config: Any) -> Tensor:
    shape = broadcast(name, a, b, c)
    (result,) = run(name, [spread(one, shape) for one in (a, b, c)], [shape], {"value": float(value)}, memory_config=memory_config)
    return result


def addcmul(a: Tensor, b: Tensor, c: Tensor, *, value: Number = 1.0, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """a + value b c."""
    return _of_three("addcmul", a, b, c, value, memory_config)


def addcdiv(a: Tensor, b: Tensor, c: Tensor, *, value: Number = 1.0, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """a + value b / c."""
    return _of_three("addcdiv", a, b, c, value, memory_config)


def mac(a: Tensor, b: Tensor, c: Tensor, *, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """a b + c."""
    shape = broadcast("mac", a, b, c)
    (result,) = run("mac", [spread(one, shape) for one in (a, b, c)], [shape], memory_config=memory_config)
    return result


def lerp(input: Tensor, end: Tensor, weight: Number, *, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """input + weight (end - input)."""
    if isinstance(weight, Tensor):
        raise NotImplementedError("ttnn.lerp: weights in a tensor are not emulated")
    shape = broadcast("lerp", input, end)
    (result,) = run("lerp", [spread(input, shape), spread(end, shape)], [shape], {"weight": float(weight)}, memory_config=memory_config)
    return result


def _gate(name: str) -> Callable[..., Tensor]:
    def function(input_tensor: Tensor, dim: int = -1, *, memory_config: Optional[MemoryConfig] = None) -> Tensor:
        if dim not in (-1, len(input_tensor.shape) - 1):
            raise fail(f"{name} is only supported along the last dim")
        shape = list(input_tensor.shape)
        shape[-1] //= 2
        (result,) = run(name, [input_tensor], [shape], {"dim": -1}, memory_config=memory_config)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The first half of the last dim times a function of the second."
    return function


def addalpha(input_tensor_a: Tensor, input_tensor_b: Tensor, alpha: Number, *, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """a + alpha b."""
    return binary("add", input_tensor_a, binary("multiply", input_tensor_b, alpha), memory_config=memory_config)


def subalpha(input_tensor_a: Tensor, input_tensor_b: Tensor, alpha: Number, *, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """a - alpha b."""
    return binary("subtract", input_tensor_a, binary("multiply", input_tensor_b, alpha), memory_config=memory_config)


glu, reglu, geglu, swiglu = (_gate(_name) for _name in ("glu", "reglu", "geglu", "swiglu"))
