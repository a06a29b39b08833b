"""Convolutions, pools and what else has images: [batch, height, width, channels], or [1, 1, batch height width, channels]."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

import torch

from . import eltwise
from .calls import fail, function_name, run
from .tensor import Tensor
from .types import DataType, Layout, MemoryConfig, WormholeComputeKernelConfig

Pair = Union[int, Sequence[int]]
Memory = Optional[MemoryConfig]


def _pair(name: str, value: Pair) -> List[int]:
    sizes = [value, value] if isinstance(value, int) else [int(one) for one in value]
    if len(sizes) == 4 and sizes[0] == sizes[1] and sizes[2] == sizes[3]:  # top, bottom, left, right
        sizes = [sizes[0], sizes[2]]
    if len(sizes) != 2:
        raise NotImplementedError(f"ttnn.{name}: {tuple(sizes)} is not emulated, the same on both sides is")
    return sizes


def _only(name: str, **given: Any) -> None:
    """Arguments that are emulated with one value only: argument=(value, the only one)."""
    for argument, (value, only) in given.items():
        if value != only:
            raise NotImplementedError(f"ttnn.{name}: {argument}={value} is not emulated")


def _windows(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]) -> List[int]:
    return [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(size, kernel, stride, padding)]


def conv2d(
    *,
    input_tensor: Tensor,
    weight_tensor: Tensor,
    device: Any = None,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Pair,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    dtype: Optional[DataType] = None,
    bias_tensor: Optional[Tensor] = None,
    conv_config: Any = None,
    compute_config: Optional[WormholeComputeKernelConfig] = None,
    memory_config: Memory = None,
    slice_config: Any = None,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
) -> Any:
    """A convolution with a weight [out, in / groups, height, width], which may lie on the host."""
    kernel, steps, sides = _pair("conv2d", kernel_size), _pair("conv2d", stride), _pair("conv2d", padding)
    _only("conv2d", dilation=(_pair("conv2d", dilation), [1, 1]))
    if input_tensor.logical_volume() != batch_size * input_height * input_width * in_channels:
        raise fail(f"conv2d: an input of shape {input_tensor.shape} is no batch of {batch_size} images")
    place = input_tensor.device() or device
    put = lambda tensor: tensor if tensor is None or tensor.device() is not None else tensor._like(tensor._values, device=place)
    x, weight, bias = put(input_tensor), put(weight_tensor), put(bias_tensor)
    height, width = _windows((input_height, input_width), kernel, steps, sides)
    params = {
        "in_channels": in_channels,
        "out_channels": out_channels,
        "input_height": input_height,
        "input_width": input_width,
        "kernel_size": kernel,
        "stride": steps,
        "padding": sides,
        "groups": max(groups, 1),  # TT-NN takes 0 for no groups
    }
    images = x._values.reshape(batch_size, 1, input_height * input_width, in_channels)
    made = []
    for image in images:  # the library has one at a time
        operands = [("x", x._like(image.unsqueeze(0))), ("weight", weight)] + ([("bias", bias)] if bias is not None else [])
        shape = (1, 1, height * width, out_channels)
        (one,) = run(
            "conv2d", operands, [shape], params, dtype=dtype, layout=Layout.TILE, memory_config=memory_config, config=compute_config
        )
        made.append(one)
    result = made[0] if batch_size == 1 else made[0]._like(torch.cat([one._values for one in made], 2))
    activation = getattr(conv_config, "activation", None)
    if activation:  # behind the rounding here, which is the same for relu
        result = getattr(eltwise, function_name(activation))(result)
    out: Tuple[Any, ...] = (result,)
    if return_output_dim:
        out += ((height, width),)
    if return_weights_and_bias:
        out += ((weight, bias),)
    return out if len(out) > 1 else result


def _pool(
    name: str, x: Tensor, batch: int, h: int, w: int, channels: int, kernel: Pair, stride: Pair, padding: Pair, memory: Memory, **more: Any
) -> Tensor:
    sizes, steps, sides = _pair(name, kernel), _pair(name, stride), _pair(name, padding)
    height, width = _windows((h, w), sizes, steps, sides)
    params = {"channels": channels, "input_h": h, "input_w": w, "kernel_size": sizes, "stride": steps, "padding": sides, **more}
    (result,) = run(name, [x], [(1, 1, batch * height * width, channels)], params, memory_config=memory)
    return result


def max_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair = (1, 1),
    ceil_mode: bool = False,
    *,
    memory_config: Memory = None,
    **options: Any,
) -> Tensor:
    """The largest element of each window."""
    _only("max_pool2d", dilation=(_pair("max_pool2d", dilation), [1, 1]), ceil_mode=(ceil_mode, False),
          return_indices=(options.get("return_indices", False), False))  # fmt: skip
    return _pool("max_pool2d", input_tensor, batch_size, input_h, input_w, channels, kernel_size, stride, padding, memory_config)


def avg_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
    *,
    memory_config: Memory = None,
    **options: Any,
) -> Tensor:
    """The mean of each window."""
    _only("avg_pool2d", ceil_mode=(ceil_mode, False), divisor_override=(divisor_override, None))
    return _pool("avg_pool2d", input_tensor, batch_size, input_h, input_w, channels, kernel_size, stride, padding, memory_config,
                 count_include_pad=count_include_pad)  # fmt: skip


def global_avg_pool2d(input_tensor: Tensor, *, memory_config: Memory = None, dtype: Optional[DataType] = None) -> Tensor:
    """The mean of each channel of [batch, height, width, channels]."""
    shape = (input_tensor.shape[0], 1, 1, input_tensor.shape[-1])
    (result,) = run("global_avg_pool2d", [input_tensor], [shape], dtype=dtype, memory_config=memory_config)
    return result


def upsample(input_tensor: Tensor, scale_factor: Any, *, mode: str = "nearest", memory_config: Memory = None, **options: Any) -> Tensor:
    """Images so many times as large: nearest or bilinear."""
    scales = [scale_factor, scale_factor] if isinstance(scale_factor, (int, float)) else list(scale_factor)
    batch, height, width, channels = input_tensor.shape
    shape = (batch, int(height * scales[0]), int(width * scales[1]), channels)
    (result,) = run("upsample", [input_tensor], [shape], {"scale_factor": scales, "mode": mode}, memory_config=memory_config)
    return result


def batch_norm(
    input: Tensor,
    *,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    training: bool = False,
    eps: float = 1e-05,
    momentum: float = 0.1,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    output: Optional[Tensor] = None,
    memory_config: Memory = None,
    compute_kernel_config: Optional[WormholeComputeKernelConfig] = None,
) -> Tensor:
    """Each channel of [batch, channels, height, width] by statistics that are given."""
    if training or running_mean is None or running_var is None:
        raise NotImplementedError("ttnn.batch_norm: statistics of the batch are not emulated")
    operands = [("x", input), ("mean", running_mean), ("var", running_var)]
    operands += [(name, one) for name, one in (("w", weight), ("b", bias)) if one is not None]
    (result,) = run("batch_norm", operands, [input.shape], {"eps": eps}, memory_config=memory_config, config=compute_kernel_config)
    return result
