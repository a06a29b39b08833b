"""Golden functions: what each function computes, in torch. `ttnn.get_golden_function(ttnn.exp)`."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
import torch.nn.functional as F

from .calls import function_name

Golden = Callable[..., Any]

# Where torch has the function under another name, or none.
_elementwise: Dict[str, Golden] = {
    "addalpha": lambda a, b, alpha: torch.add(a, b, alpha=alpha),
    "bcast": lambda a, b, math_op, dim: {"ADD": torch.add, "SUB": torch.sub, "MUL": torch.mul}[math_op.name](a, b),
    "bias_gelu": lambda a, b: F.gelu(torch.add(a, b)),
    "bitwise_left_shift": torch.bitwise_left_shift,
    "bitwise_right_shift": torch.bitwise_right_shift,
    "cbrt": lambda x: x.sign() * x.abs().pow(1 / 3),
    "div": lambda a, b, rounding_mode=None, **options: torch.div(a, b, rounding_mode=None if rounding_mode == "None" else rounding_mode),
    "divide": lambda a, b, rounding_mode=None, **options: torch.div(a, b, rounding_mode=None if rounding_mode == "None" else rounding_mode),
    "prelu": lambda x, weight: F.prelu(x, torch.as_tensor(weight, dtype=x.dtype).reshape(-1)),
    "div_no_nan": lambda a, b: torch.where(torch.as_tensor(b) == 0, torch.zeros_like(a), a / b),
    "eqz": lambda x: torch.eq(x, 0),
    "floor_div": torch.floor_divide,
    "gez": lambda x: torch.ge(x, 0),
    "gtz": lambda x: torch.gt(x, 0),
    "hardmish": lambda x: x * (x + 2.8).clamp(0.0, 5.0) / 5,
    "heaviside": lambda x, value: torch.heaviside(x, torch.tensor(value, dtype=x.dtype)),
    "i1": torch.special.i1,
    "identity": torch.clone,
    "multigammaln": lambda x: torch.special.multigammaln(x.float(), 4).to(x.dtype),
    "outer": lambda a, b: torch.outer(a.flatten(), b.flatten())[None, None],
    "polyval": lambda x, coeffs: functools.reduce(lambda y, one: y * x + one, coeffs, torch.zeros_like(x)),
    "relu_max": lambda x, upper_limit: torch.relu(x.clamp(max=upper_limit)),
    "relu_min": lambda x, lower_limit: torch.relu(x.clamp(min=lower_limit)),
    "unary_chain": lambda x, ops_chain: functools.reduce(lambda y, one: golden_of_activation(one)(y), ops_chain, x),
    "var_hw": lambda x: torch.var(x, (-2, -1), keepdim=True, correction=0),
    "std_hw": lambda x: torch.std(x, (-2, -1), keepdim=True, correction=0),
    "normalize_hw": lambda x: (x - x.mean((-2, -1), keepdim=True)) / x.std((-2, -1), keepdim=True, correction=0),
    "normalize_global": lambda x: (x - x.mean()) / x.std(correction=0),
    "mse_loss": lambda a, b, reduction=None, **options: _loss(F.mse_loss, a, b, options.get("loss_mode", reduction)),
    "l1_loss": lambda a, b, reduction=None, **options: _loss(F.l1_loss, a, b, options.get("loss_mode", reduction)),
    "bitwise_not": torch.bitwise_not,
    "logical_left_shift": torch.bitwise_left_shift,
    "logical_right_shift": torch.bitwise_right_shift,
    "lez": lambda x: torch.le(x, 0),
    "log_sigmoid": F.logsigmoid,
    "ltz": lambda x: torch.lt(x, 0),
    "mac": lambda a, b, c: a * b + c,
    "nez": lambda x: torch.ne(x, 0),
    "polygamma": lambda x, k: torch.polygamma(int(k), x),
    "rdiv": lambda x, value, **options: torch.div(torch.full_like(x, value), x, **options),
    "rpow": lambda x, value: torch.pow(value, x),
    "rsub": lambda a, b: torch.sub(b, a),
    "sigmoid_accurate": torch.sigmoid,
    "squared_difference": lambda a, b: torch.square(torch.sub(a, b)),
    "subalpha": lambda a, b, alpha: torch.sub(a, b, alpha=alpha),
    "swish": F.silu,
}


def _loss(of: Golden, a: torch.Tensor, b: torch.Tensor, reduction: Any) -> torch.Tensor:
    return of(a, b, reduction=getattr(reduction, "name", str(reduction)).lower())


def _gate(activation: Golden) -> Golden:
    def function(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
        a, b = x.chunk(2, dim)
        return a * activation(b)

    return function


def _product(a: torch.Tensor, b: torch.Tensor, transpose_a: bool, transpose_b: bool) -> torch.Tensor:
    a, b = (a.transpose(-1, -2) if transpose_a else a), (b.transpose(-1, -2) if transpose_b else b)
    return a @ b.to(a.dtype)


def _matmul(a: torch.Tensor, b: torch.Tensor, transpose_a: bool = False, transpose_b: bool = False) -> torch.Tensor:
    return _product(a, b, transpose_a, transpose_b)


def golden_of_activation(activation: Any) -> Golden:
    """What an activation computes, by its name or UnaryOpType."""
    if activation is None:
        return lambda x: x
    name = function_name(activation)
    if name in ("gelu_approx", "gelu_approximate"):
        return functools.partial(F.gelu, approximate="tanh")
    found = _elementwise.get(name) or getattr(torch, name, None) or getattr(F, name, None)
    if found is None:
        raise RuntimeError(f"{activation} is not supported as activation function")
    return found


def _linear(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: Optional[torch.Tensor] = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    activation: Any = None,
) -> torch.Tensor:
    out = _product(a, b, transpose_a, transpose_b)
    if bias is not None:
        out = out + (bias[0] if bias.dim() == 2 else bias)
    return golden_of_activation(activation)(out)


def _layer_norm(
    x: torch.Tensor,
    epsilon: float = 1e-12,
    weight: Optional[torch.Tensor] = None,
    bias: Optional[torch.Tensor] = None,
    residual_input_tensor: Optional[torch.Tensor] = None,
    eps: Optional[float] = None,
) -> torch.Tensor:
    epsilon = epsilon if eps is None else eps
    x = x if residual_input_tensor is None else x + residual_input_tensor
    row = [None if one is None else one.reshape(-1) for one in (weight, bias)]
    return F.layer_norm(x, (x.shape[-1],), row[0], row[1], epsilon)


def _rms_norm(x: torch.Tensor, weight: Optional[torch.Tensor] = None, epsilon: float = 1e-12) -> torch.Tensor:
    out = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
    return out if weight is None else out * weight


def _attention_softmax(x: torch.Tensor, head_size: Optional[int] = None, attention_mask: Optional[torch.Tensor] = None) -> torch.Tensor:
    x = x if head_size is None else x / math.sqrt(head_size)
    return torch.softmax(x if attention_mask is None else x + attention_mask, -1)


def _split(
    x: torch.Tensor,
    kv: Optional[torch.Tensor] = None,
    *,
    num_heads: int,
    num_kv_heads: Optional[int] = None,
    transpose_key: bool = True,
) -> List[torch.Tensor]:
    x = x if kv is None else torch.cat([x, kv], -1)
    pairs = num_kv_heads or num_heads
    width = x.shape[-1] // (num_heads + 2 * pairs)
    batch, rows = x.shape[0], x.shape[-2]
    parts = x.split([num_heads * width, pairs * width, pairs * width], -1)
    q, k, v = (one.reshape(batch, rows, -1, width).transpose(1, 2) for one in parts)
    return [q, k.transpose(-1, -2) if transpose_key else k, v]


def _concatenated(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def _joined(tensors: Sequence[torch.Tensor], dim: int = 0, groups: int = 1) -> torch.Tensor:
    parts = [one.chunk(groups, dim) for one in tensors]
    return torch.cat([part[group] for group in range(groups) for part in parts], dim)


def _repeated(x: torch.Tensor, repeats: Any) -> torch.Tensor:
    return x.repeat(*repeats) if isinstance(repeats, (tuple, list)) else x.repeat(repeats)


_others: Dict[str, Golden] = {
    "linear": _linear,
    "matmul": _matmul,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "embedding": lambda indices, weight: F.embedding(indices.long(), weight.reshape(weight.shape[-2:])),
    "softmax": lambda x, dim=-1: torch.softmax(x, dim),
    "concat": _joined,
    "tril": lambda x, diagonal=0: torch.tril(x, diagonal),
    "triu": lambda x, diagonal=0: torch.triu(x, diagonal),
    "fill": lambda x, value: torch.full_like(x, value),
    "repeat": _repeated,
    "glu": _gate(torch.sigmoid),
    "reglu": _gate(torch.relu),
    "geglu": _gate(F.gelu),
    "swiglu": _gate(F.silu),
    "max": lambda x, dim=None, keepdim=False: torch.amax(x, () if dim is None else dim, keepdim),
    "min": lambda x, dim=None, keepdim=False: torch.amin(x, () if dim is None else dim, keepdim),
    "transformer.attention_softmax": _attention_softmax,
    "transformer.attention_softmax_": _attention_softmax,
    "transformer.concatenate_heads": _concatenated,
    "transformer.split_query_key_value_and_split_heads": _split,
}

# Torch's own, under the same name, for the functions that only move, reduce or scan.
_same = (
    "permute reshape transpose squeeze unsqueeze stack sum mean var std argmax topk sort cumsum cumprod where addcmul addcdiv lerp".split()
)
_of_the_device = ("device", "memory_config", "dtype", "output_tensor", "compute_kernel_config", "program_config", "core_grid")


def _plain(function: Golden) -> Golden:
    """Without what only a device needs."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{key: value for key, value in kwargs.items() if key not in _of_the_device})

    return call


def golden_of(name: str, elementwise: bool) -> Optional[Golden]:
    """Of a function's name in TT-NN, with its dots; of element-wise ones torch's own where it has one."""
    found = _others.get(name)
    base = name.rstrip("_")
    if found is None and elementwise:
        found = _elementwise.get(base) or getattr(torch, base, None) or getattr(F, base, None)
    if found is None and name in _same:
        found = getattr(torch, name)
    return None if found is None else _plain(found)


def attach(space: str, module: Any, elementwise: bool = False) -> None:
    """Gives a module's functions their golden_function."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            found = golden_of(f"{space}.{name}" if space else name, elementwise)
            if found is not None:
                value.golden_function = found


def _gradients(forward: Golden) -> Golden:
    """Of a forward function's golden one: what autograd gives for each tensor that wants a gradient."""

    def call(grad: torch.Tensor, *args: Any, **kwargs: Any) -> List[Any]:
        tensors = [one for one in args if isinstance(one, torch.Tensor) and one.requires_grad]
        for one in tensors:
            one.retain_grad()
        forward(*args, **kwargs).backward(gradient=grad)
        return [one.grad for one in tensors]

    return call


# Whose gradient is that of two tensors.
_of_pairs: Dict[str, Golden] = {
    "max": torch.maximum,
    "min": torch.minimum,
    "concat": lambda a, b, dim=0: torch.cat([a, b], dim),
    "bias_gelu": lambda a, b, approximate="none": F.gelu(a + b, approximate=approximate),
    "logiteps": lambda x, eps=None: torch.logit(x, eps),
    "log_sigmoid": F.logsigmoid,
    "prod": lambda x, dim=None: x.prod() if dim is None else x.prod(dim, keepdim=True),
    "fill": torch.fill,
    "fill_zero": lambda x: x * 0,
    "assign": lambda x, *others: x * 1,
}


def attach_gradients(module: Any) -> None:
    """Gives a module's functions of gradients theirs."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and name.endswith("_bw"):
            base = name.removesuffix("_bw")
            found = _of_pairs.get(base) or golden_of(base, True)
            if found is not None:
                value.golden_function = _gradients(found)


def get_golden_function(operation: Any) -> Golden:
    """What computes in torch what a function of TT-NN's computes."""
    found = getattr(operation, "golden_function", None)
    if found is None:
        raise RuntimeError(f"{getattr(operation, '__name__', operation)} does not have a golden function")
    return found


def attach_golden_function(operation: Any, golden_function: Optional[Golden] = None, **options: Any) -> None:
    """Says what computes in torch what a function computes."""
    operation.golden_function = golden_function or options.get("golden_function")
