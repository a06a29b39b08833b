"""Functions of one tensor, of two, and of three: tables of names, and what their parameters are called."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

import torch

from .calls import fail, function_name, into, on_device, run
from .tensor import Tensor, exact_numerics, packed
from .types import FLOATS, DataType, MemoryConfig, SigmoidMode, UnaryWithParam, float32, int32

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
_of_one_integer: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "abs": torch.abs,
    "eqz": lambda x: x == 0,
    "gez": lambda x: x >= 0,
    "gtz": lambda x: x > 0,
    "lez": lambda x: x <= 0,
    "logical_not": lambda x: x == 0,
    "ltz": lambda x: x < 0,
    "neg": torch.neg,
    "nez": lambda x: x != 0,
    "relu": torch.relu,
    "sign": torch.sign,
    "signbit": lambda x: x < 0,
    "square": torch.square,
}
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
            if key in _modes and key not in parameters and not (value and exact_numerics()):
                continue  # a mode that the library's function has and the recorded one lacks: fast numerics have none
            if name == "round" and key == "decimals":
                if value:  # rounded with so many digits behind the point: between two products, for which nothing is recorded
                    scaled = binary("multiply", input_tensor, 10.0**value)
                    return into(output_tensor, binary("multiply", function(scaled, memory_config=memory_config), 10.0**-value))
                continue
            if key not in parameters and key not in _spelt.get(name, {}):
                raise NotImplementedError(f"ttnn.{name}: the argument {key} is not emulated")
            params[key] = value
        params = {key: value for key, value in params.items() if not (key in _modes and value is False)}
        if name in _of_one_integer and input_tensor.dtype not in FLOATS and not params:
            on_device(name, input_tensor)
            values = packed(_of_one_integer[name](input_tensor._values), dtype or input_tensor.dtype)
            place = memory_config or input_tensor._memory_config
            return into(output_tensor, input_tensor._like(values, dtype=dtype or input_tensor.dtype, memory_config=place))
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
    mode: Optional[SigmoidMode] = None,
    fast_and_approximate_mode: bool = False,
    memory_config: Optional[MemoryConfig] = None,
    output_tensor: Optional[Tensor] = None,
    sub_core_grids: Any = None,
) -> Tensor:
    """1 / (1 + exp(-x)), in one of three modes."""
    mode = mode or (SigmoidMode.FastApproximate if fast_and_approximate_mode else SigmoidMode.Accurate)
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
    if min is None and max is None:
        raise fail("Only one of 'min' or 'max' can be None. Please provide one value")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        made = _within(input_tensor, min, max)
        return into(output_tensor, made if memory_config is None else made._like(made._values, memory_config=memory_config))
    if input_tensor.dtype not in FLOATS:
        on_device(name, input_tensor)
        bounds = [None if one is None else int(one) for one in (min, max)]
        values = input_tensor._values.clamp(*bounds)
        return into(output_tensor, input_tensor._like(values, memory_config=memory_config or input_tensor._memory_config))
    (result,) = run(name, [input_tensor], [input_tensor.shape], {"min": min, "max": max}, memory_config=memory_config)
    return into(output_tensor, result)


def _within(x: Tensor, low: Optional[Tensor], high: Optional[Tensor]) -> Tensor:
    """The functions that TT-NN makes of bounds in tensors."""
    g = globals()
    if high is None:
        return where(g["ge"](x, low), x, low)
    if low is None:
        return where(g["le"](x, high), x, high)
    below = g["minimum"](x, high)
    inside = where(g["eq"](low, 0.0), g["relu"](below), g["maximum"](below, low))
    return where(g["gt"](low, high), high, inside)


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
    if name == "prelu" and isinstance(input_tensor_b, (list, tuple)):
        input_tensor_b = input_tensor_b[0]
    if name == "bias_gelu" and not isinstance(input_tensor_b, Tensor):
        made = globals()["gelu"](binary("add", input_tensor_a, input_tensor_b), fast_and_approximate_mode=True)
        return into(output_tensor, made)
    if name == "prelu" and isinstance(input_tensor_b, Tensor) and len(input_tensor_b.shape) == 1:  # a slope for each channel
        shape = [input_tensor_b.shape[0] if i == 1 else 1 for i in range(len(input_tensor_a.shape))]
        input_tensor_b = input_tensor_b._like(input_tensor_b._values.reshape(shape), layout=input_tensor_a.layout)
    if name == "prelu" and not isinstance(input_tensor_b, Tensor):  # one slope for all
        return globals()["leaky_relu"](input_tensor_a, float(input_tensor_b), memory_config=memory_config)
    if not isinstance(input_tensor_a, Tensor) and isinstance(input_tensor_b, Tensor):  # a number first
        input_tensor_a = input_tensor_b._like(packed(torch.full(tuple(input_tensor_b.shape), input_tensor_a), input_tensor_b.dtype))
    function = _binary[name]
    if name == "divide" and (rounding_mode not in (None, "None") or (input_tensor_a.dtype is int32 and dtype in (None, float32))):
        made = _rounded_quotient(input_tensor_a, input_tensor_b, None if rounding_mode == "None" else rounding_mode)
        return into(output_tensor, made if memory_config is None else made._like(made._values, memory_config=memory_config))
    a = _activated(input_tensor_a, input_tensor_a_activations)
    params: Dict[str, Any] = {}
    integers = input_tensor_a.dtype not in FLOATS
    fused = [one for one in activations if not integers and getattr(one, "param", None) is None and function_name(one) in _behind]
    if len(fused) < len(activations):  # what is not fused is a function of its own
        before = {"input_tensor_a_activations": input_tensor_a_activations, "input_tensor_b_activations": input_tensor_b_activations}
        made = binary(name, input_tensor_a, input_tensor_b, dtype=dtype, memory_config=memory_config, rounding_mode=rounding_mode, **before)
        return into(output_tensor, _activated(made, activations))
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


def _rounded_quotient(a: Tensor, b: Union[Tensor, Number], rounding_mode: Optional[str]) -> Tensor:
    """A quotient rounded down or towards 0, computed in float32; of integers exact, or in float32 where it is not rounded."""
    from .places import typecast

    if rounding_mode not in (None, "trunc", "floor"):
        raise fail("Incorrect rounding mode (expected None, 'trunc', or 'floor')")
    if a.dtype is int32 and rounding_mode is not None:
        on_device("div", a, *([b] if isinstance(b, Tensor) else []))
        divisor = b._values if isinstance(b, Tensor) else torch.tensor(int(b))
        values = torch.div(a._values, divisor.where(divisor != 0, torch.ones_like(divisor)), rounding_mode=rounding_mode)
        return a._like(packed(values.where(divisor != 0, torch.full_like(values, -1)), int32))
    if isinstance(b, Tensor) or a.dtype is int32:
        wide = [typecast(one, float32) if isinstance(one, Tensor) else one for one in (a, b)]
        result = binary("divide", wide[0], wide[1])
    else:
        result = binary("divide", a, b)
    result = result if rounding_mode is None else globals()[rounding_mode](result)
    return typecast(result, a.dtype) if a.dtype in FLOATS else result


# Of integers there is one answer, which is not rounded: kept here, as the library's values are float32.
_of_integers: Dict[str, Callable[..., torch.Tensor]] = {
    name: getattr(torch, name)
    for name in """eq ne gt ge lt le logical_and logical_or logical_xor maximum minimum add subtract multiply bitwise_and bitwise_or
    bitwise_xor gcd lcm""".split()
}
_of_integers.update(
    rsub=lambda a, b: b - a,
    squared_difference=lambda a, b: (a - b) ** 2,
    remainder=lambda a, b: torch.remainder(a, b.where(b != 0, torch.ones_like(b))),
    fmod=lambda a, b: torch.fmod(a, b.where(b != 0, torch.ones_like(b))),
)


def _compared(function: str, a: Tensor, b: Union[Tensor, Number], dtype: Optional[DataType], memory_config: Any) -> Tensor:
    on_device(function, a, *([b] if isinstance(b, Tensor) else []))
    values = _of_integers[function](a._values, b._values if isinstance(b, Tensor) else torch.tensor(int(b)))
    dtype = dtype or a.dtype
    return a._like(packed(values, dtype), dtype=dtype, memory_config=memory_config or a._memory_config)


def _activated(tensor: Tensor, activations: Sequence[Any]) -> Tensor:
    for one in activations:
        tensor = activated(tensor, one)
    return tensor


# What a fused function of this name is, where it is no function of the same name with the same mode: its own name, and
# how many of its parameters are a mode's.
_behind = ("relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "exp", "sqrt", "square", "abs", "neg")  # which the library has in one call
_fused = {"gelu_approx": ("gelu", True), "gelu_approximate": ("gelu", True), "recip": ("reciprocal", None), "swish": ("silu", None)}
_numbers = {"add_unary_sfpu": "add", "sub_unary_sfpu": "subtract", "mul_unary_sfpu": "multiply", "div_unary_sfpu": "divide"}
_numbers.update(power="pow", power_iterative="pow", rsub="rsub")


def activated(tensor: Tensor, function: Any) -> Tensor:
    """A function that a call names, behind it: "gelu", UnaryOpType.RELU, UnaryWithParam(UnaryOpType.LEAKY_RELU, 0.1)."""
    if isinstance(function, (tuple, list)):  # (UnaryOpType.GELU, True)
        function = UnaryWithParam(*function) if len(function) > 1 else function[0]
    name, param = function_name(function).lower(), getattr(function, "param", None)
    if name in _numbers:
        return binary(_numbers[name], tensor, param)
    name, mode = _fused.get(name, (name, None))
    found = globals().get(name)
    if found is None:
        raise NotImplementedError(f"ttnn: the fused function {name} is not emulated")
    if mode is not None:
        return found(tensor, fast_and_approximate_mode=mode)
    given = [] if param is None else list(param) if isinstance(param, (list, tuple)) else [param]
    names = _unary.get(name, ())
    if names == _modes:  # a mode is a number here; gelu without one is the approximate one, but for its name alone
        bare = name == "exp" or (name == "gelu" and isinstance(function, UnaryWithParam))
        return found(tensor, fast_and_approximate_mode=bool(given[0]) if given else bare)
    return found(tensor, *given[: len(names)])


def in_dest(function: Any) -> Optional[str]:
    """The library's name of a function that a product computes in Dest; None where that is a function of its own."""
    if isinstance(function, (tuple, list)):
        function = UnaryWithParam(*function) if len(function) > 1 else function[0]
    name, param = function_name(function).lower(), getattr(function, "param", None)
    if name == "gelu":  # the accurate one
        accurate = not isinstance(function, UnaryWithParam) or (param is not None and not param)
        return "gelu" if accurate else None
    return name if name in ("relu", "silu") and param is None else None


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
    if _name != "isclose":  # which has bounds: composed.py
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
        "logical_xor",
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
    sub_core_grids: Any = None,
) -> Tensor:
    """Of one where the predicate is not zero, of the other elsewhere; tensors or numbers."""
    on_device("where", *[one for one in (predicate, value_true, value_false) if isinstance(one, Tensor)])
    tensors = [one for one in (predicate, value_true, value_false) if isinstance(one, Tensor)]
    shape = broadcast("where", *tensors)
    dtype = next((one.dtype for one in (value_true, value_false) if isinstance(one, Tensor)), predicate.dtype)
    if dtype not in FLOATS or predicate.dtype not in FLOATS:  # nothing is rounded
        a, b = (one._values if isinstance(one, Tensor) else torch.tensor(one) for one in (value_true, value_false))
        values = packed(torch.where(predicate._values != 0, a, b).expand(tuple(shape)), dtype)
        return into(output_tensor, predicate._like(values, dtype=dtype, memory_config=memory_config or predicate._memory_config))
    if len(tensors) == 2:  # the library takes two tensors or two numbers
        like = tensors[1]
        number = value_false if value_true is like else value_true
        full = like._like(packed(torch.full(tuple(like.shape), float(number)), like.dtype))
        value_true, value_false = (like, full) if value_true is like else (full, like)
    params: Dict[str, Any] = {}
    operands: list = [("cond", predicate)]
    for key, value in (("a", value_true), ("b", value_false)):
        if isinstance(value, Tensor):
            operands.append((key, value))
        else:
            params[key] = float(value)
    (result,) = run("where", operands, [shape], params, dtype=dtype, memory_config=memory_config)
    return into(output_tensor, result)


def _of_three(name: str, a: Tensor, b: Tensor, c: Tensor, value: Number, memory_config: Any) -> Tensor:
    if not isinstance(c, Tensor):  # a number for the last
        c = b._like(packed(torch.full(tuple(b.shape), float(c)), b.dtype))
    shape = broadcast(name, a, b, c)
    (result,) = run(name, [spread(one, shape) for one in (a, b, c)], [shape], {"value": float(value)}, memory_config=memory_config)
    return result


def addcmul(a: Tensor, b: Tensor, c: Any, *, value: Number = 1.0, memory_config: Optional[MemoryConfig] = None,
            output_tensor: Optional[Tensor] = None, **options: Any) -> Tensor:  # fmt: skip
    """a + value b c."""
    return into(output_tensor, _of_three("addcmul", a, b, c, value, memory_config))


def addcdiv(a: Tensor, b: Tensor, c: Any, *, value: Number = 1.0, memory_config: Optional[MemoryConfig] = None,
            output_tensor: Optional[Tensor] = None, **options: Any) -> Tensor:  # fmt: skip
    """a + value b / c."""
    return into(output_tensor, _of_three("addcdiv", a, b, c, value, memory_config))


def mac(a: Any, b: Any, c: Any, *, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """a b + c."""
    if not all(isinstance(one, Tensor) for one in (a, b, c)):
        a, b = (a, b) if isinstance(a, Tensor) else (b, a)
        return binary("add", binary("multiply", a, b), c, memory_config=memory_config)
    shape = broadcast("mac", a, b, c)
    (result,) = run("mac", [spread(one, shape) for one in (a, b, c)], [shape], memory_config=memory_config)
    return result


def lerp(input: Tensor, end: Tensor, weight: Number, *, memory_config: Optional[MemoryConfig] = None) -> Tensor:
    """input + weight (end - input)."""
    if isinstance(weight, Tensor):  # TT-NN's steps
        return binary("add", input, binary("multiply", weight, binary("subtract", end, input)), memory_config=memory_config)
    shape = broadcast("lerp", input, end)
    (result,) = run("lerp", [spread(input, shape), spread(end, shape)], [shape], {"weight": float(weight)}, memory_config=memory_config)
    return result
