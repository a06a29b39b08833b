"""Convolutions, pools and what else has images: [batch, height, width, channels], or [1, 1, batch height width, channels]."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

from .calls import fail, function_name, run
from .tensor import Tensor
from .types import DataType, Layout, MemoryConfig, WormholeComputeKernelConfig, bfloat16

Pair = Union[int, Sequence[int]]
Memory = Optional[MemoryConfig]


def _pair(value: Pair) -> List[int]:
    return [value, value] if isinstance(value, int) else [int(one) for one in value]


def _borders(name: str, value: Pair) -> List[int]:
    """[height, width], or [top, bottom, left, right] where they differ."""
    sizes = _pair(value)
    if len(sizes) == 4 and sizes[0] == sizes[1] and sizes[2] == sizes[3]:
        sizes = [sizes[0], sizes[2]]
    if len(sizes) not in (2, 4):
        raise fail(f"{name}: padding has two numbers or four, not {len(sizes)}")
    return sizes


def _around(borders: Sequence[int]) -> Tuple[int, int]:
    """What the borders add to the height and to the width."""
    return (2 * borders[0], 2 * borders[1]) if len(borders) == 2 else (borders[0] + borders[1], borders[2] + borders[3])


def _only(name: str, **given: Any) -> None:
    """Arguments that are emulated with one value only: argument=(value, the only one)."""
    for argument, (value, only) in given.items():
        if value != only:
            raise NotImplementedError(f"ttnn.{name}: {argument}={value} is not emulated")


def _windows(size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], borders: Sequence[int],
             dilation: Sequence[int] = (1, 1), ceil: bool = False) -> List[int]:  # fmt: skip
    out = []
    for n, k, s, p, d, before in zip(size, kernel, stride, _around(borders), dilation, borders if len(borders) == 2 else borders[::2]):
        left = n + p - d * (k - 1) - 1
        count = (-(-left // s) if ceil else left // s) + 1
        if ceil and (count - 1) * s >= n + before:  # no window begins behind the image
            count -= 1
        out.append(count)
    return out


def _convolution(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    device: Any,
    images: Tuple[int, int, int, int],
    out_channels: int,
    sizes: Tuple[int, int],
    params: Dict[str, Any],
    dtype: Optional[DataType],
    conv_config: Any,
    compute_config: Optional[WormholeComputeKernelConfig],
    memory_config: Memory,
    return_output_dim: bool,
    return_weights_and_bias: bool,
) -> Any:
    batch, height, width, channels = images
    if x.logical_volume() != batch * height * width * channels:
        raise fail(f"{name}: an input of shape {x.shape} is no batch of {batch} images")
    place = x.device() or device
    put = lambda tensor: tensor if tensor is None or tensor.device() is not None else tensor._like(tensor._values, device=place)
    x, weight, bias = put(x), put(weight), put(bias)
    wanted = getattr(conv_config, "weights_dtype", None)
    activation = getattr(conv_config, "activation", None)
    params |= {
        "in_channels": channels,
        "out_channels": out_channels,
        "batch_size": batch,
        "input_height": height,
        "input_width": width,
        "weights_dtype": (wanted or weight.dtype).value,
        "activation": function_name(activation) if activation else None,
    }
    operands = [("x", x), ("weight", weight)] + ([("bias", bias)] if bias is not None else [])
    shape = (1, 1, batch * sizes[0] * sizes[1], out_channels)
    (result,) = run(name, operands, [shape], params, dtype=dtype, layout=Layout.TILE, memory_config=memory_config, config=compute_config)
    out: Tuple[Any, ...] = (result,)
    if return_output_dim:
        out += (tuple(sizes),)
    if return_weights_and_bias:
        out += ((weight, bias),)
    return out if len(out) > 1 else result


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
    kernel, steps, gaps, borders = _pair(kernel_size), _pair(stride), _pair(dilation), _borders("conv2d", padding)
    height, width = _windows((input_height, input_width), kernel, steps, borders, gaps)
    params = {"kernel_size": kernel, "stride": steps, "padding": borders, "dilation": gaps}
    params["groups"] = max(groups, 1)  # TT-NN takes 0 for no groups
    return _convolution("conv2d", input_tensor, weight_tensor, bias_tensor, device,
                        (batch_size, input_height, input_width, in_channels), out_channels, (height, width), params, dtype,
                        conv_config, compute_config, memory_config, return_output_dim, return_weights_and_bias)  # fmt: skip


def conv_transpose2d(
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
    output_padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    dtype: Optional[DataType] = None,
    bias_tensor: Optional[Tensor] = None,
    conv_config: Any = None,
    compute_config: Optional[WormholeComputeKernelConfig] = None,
    mirror_kernel: bool = True,
    memory_config: Memory = None,
    dram_slice_config: Any = None,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
) -> Any:
    """A transposed convolution with a weight [in, out / groups, height, width], which may lie on the host."""
    _only("conv_transpose2d", mirror_kernel=(mirror_kernel, True))
    kernel, steps, gaps, more = _pair(kernel_size), _pair(stride), _pair(dilation), _pair(output_padding)
    borders = _borders("conv_transpose2d", padding)
    height, width = (
        (n - 1) * s - p + d * (k - 1) + m + 1
        for n, s, p, d, k, m in zip((input_height, input_width), steps, _around(borders), gaps, kernel, more)
    )
    params = {"kernel_size": kernel, "stride": steps, "padding": borders, "dilation": gaps, "output_padding": more}
    params["groups"] = max(groups, 1)
    return _convolution("conv_transpose2d", input_tensor, weight_tensor, bias_tensor, device,
                        (batch_size, input_height, input_width, in_channels), out_channels, (height, width), params, dtype,
                        conv_config, compute_config, memory_config, return_output_dim, return_weights_and_bias)  # fmt: skip


def _pool(
    name: str,
    x: Tensor,
    image: Tuple[int, int, int, int],
    sizes: Sequence[int],
    params: Dict[str, Any],
    memory: Memory,
    dtype: Optional[DataType],
    layout: Optional[Layout],
) -> Tensor:
    batch, height, width, channels = image
    shape = (1, 1, batch * sizes[0] * sizes[1], channels)
    params |= {"channels": channels, "input_h": height, "input_w": width}
    (result,) = run(name, [x], [shape], params, dtype=dtype, layout=layout, memory_config=memory)
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
    return_indices: bool = False,
    dtype: DataType = bfloat16,
    output_layout: Layout = Layout.ROW_MAJOR,
    **options: Any,
) -> Tensor:
    """The largest element of each window."""
    _only("max_pool2d", return_indices=(return_indices, False))
    kernel, steps, gaps, borders = _pair(kernel_size), _pair(stride), _pair(dilation), _borders("max_pool2d", padding)
    _only("max_pool2d", padding=(len(borders), 2))
    sizes = _windows((input_h, input_w), kernel, steps, borders, gaps, ceil_mode)
    params = {"kernel_size": kernel, "stride": steps, "padding": borders, "dilation": gaps, "ceil_mode": ceil_mode}
    return _pool("max_pool2d", input_tensor, (batch_size, input_h, input_w, channels), sizes, params, memory_config, dtype,
                 output_layout)  # fmt: skip


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
    dtype: DataType = bfloat16,
    output_layout: Layout = Layout.ROW_MAJOR,
    **options: Any,
) -> Tensor:
    """The mean of each window."""
    kernel, steps, borders = _pair(kernel_size), _pair(stride), _borders("avg_pool2d", padding)
    _only("avg_pool2d", padding=(len(borders), 2))
    sizes = _windows((input_h, input_w), kernel, steps, borders, ceil=ceil_mode)
    params = {"kernel_size": kernel, "stride": steps, "padding": borders, "ceil_mode": ceil_mode}
    params |= {"count_include_pad": count_include_pad, "divisor": divisor_override}
    return _pool("avg_pool2d", input_tensor, (batch_size, input_h, input_w, channels), sizes, params, memory_config, dtype,
                 output_layout)  # fmt: skip


def _adaptive(name: str) -> Callable[..., Tensor]:
    def function(
        input_tensor: Tensor,
        batch_size: int,
        input_h: int,
        input_w: int,
        channels: int,
        output_size: Pair,
        *,
        memory_config: Memory = None,
        compute_kernel_config: Optional[WormholeComputeKernelConfig] = None,
        dtype: DataType = bfloat16,
        output_layout: Layout = Layout.ROW_MAJOR,
        **options: Any,
    ) -> Tensor:
        sizes = _pair(output_size)
        return _pool(name, input_tensor, (batch_size, input_h, input_w, channels), sizes, {"output_size": sizes}, memory_config, dtype,
                     output_layout)  # fmt: skip

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Windows that divide the image evenly into so many."
    return function


adaptive_avg_pool2d, adaptive_max_pool2d = _adaptive("adaptive_avg_pool2d"), _adaptive("adaptive_max_pool2d")


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


def _batch_statistics(x: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], momentum: float) -> Tuple[Tensor, Tensor]:
    """Mean and variance of each channel, which move the running ones towards them."""
    from .calls import into
    from .products import mean, var

    found = mean(x, (0, 2, 3), True), var(x, (0, 2, 3), True, correction=0)
    for running, new in zip((running_mean, running_var), found):
        if running is not None:
            into(running, running * (1.0 - momentum) + new * momentum)
    return found


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
    if training:
        running_mean, running_var = _batch_statistics(input, running_mean, running_var, momentum)
    elif running_mean is None or running_var is None:
        raise fail("running_mean and running_var must be defined in evaluation mode")
    operands = [("x", input), ("mean", running_mean), ("var", running_var)]
    operands += [(name, one) for name, one in (("w", weight), ("b", bias)) if one is not None]
    (result,) = run("batch_norm", operands, [input.shape], {"eps": eps}, memory_config=memory_config, config=compute_kernel_config)
    return result


def _row_of(parameter: Tensor, channels: int) -> Tensor:
    """Channels from where create_group_norm_weight_bias_rm lays them: chunks of equal size, each filled up to whole tiles."""
    values = parameter._values.flatten()
    for chunks in range(1, channels + 1):
        size = channels // chunks
        if channels % chunks == 0 and -(-size // 32) * 32 * chunks == values.numel():
            return parameter._like(values.reshape(chunks, -1)[:, :size].reshape(1, channels), layout=Layout.TILE)
    return parameter._like(values[:channels].reshape(1, channels), layout=Layout.TILE)


def group_norm(
    input_tensor: Tensor,
    *,
    num_groups: int,
    epsilon: float = 1e-12,
    input_mask: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    memory_config: Memory = None,
    dtype: Optional[DataType] = None,
    output_layout: Optional[Layout] = None,
    compute_kernel_config: Optional[WormholeComputeKernelConfig] = None,
    **options: Any,
) -> Tensor:
    """Mean 0 and variance 1 of each group of channels of [batch, 1, height width, channels]."""
    batch, _, area, channels = input_tensor.shape
    if channels % num_groups:
        raise fail(f"channels must be divisible by groups: {channels}, {num_groups}")
    turned = input_tensor._values.reshape(batch, area, channels).transpose(1, 2).contiguous()
    x = input_tensor._like(turned, layout=Layout.TILE, memory_config=None)
    operands = [x] + [_row_of(one, channels) for one in (weight, bias) if one is not None]
    params = {"channels": channels, "groups": num_groups, "eps": epsilon}
    (made,) = run("group_norm", operands, [x.shape], params, dtype=dtype, config=compute_kernel_config)
    values = made._values.transpose(1, 2).reshape(input_tensor.shape).contiguous()
    return made._like(values, layout=output_layout or input_tensor.layout, memory_config=memory_config or input_tensor._memory_config)


def conv1d(
    *,
    input_tensor: Tensor,
    weight_tensor: Tensor,
    device: Any = None,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_length: int,
    kernel_size: int,
    stride: int = 1,
    padding: Any = 0,
    dilation: int = 1,
    return_output_dim: bool = False,
    **options: Any,
) -> Any:
    """A convolution along one dim, of [batch, 1, length, channels]: one over images of one column."""
    weight = weight_tensor._like(weight_tensor._values.unsqueeze(-1)) if len(weight_tensor.shape) == 3 else weight_tensor
    sides = (padding, padding) if isinstance(padding, int) else tuple(padding)
    if len(set(sides)) > 1:
        raise NotImplementedError(f"ttnn.conv1d: padding {sides} is not emulated, the same on both sides is")
    made = conv2d(input_tensor=input_tensor, weight_tensor=weight, device=device, in_channels=in_channels, out_channels=out_channels,
                  batch_size=batch_size, input_height=input_length, input_width=1, kernel_size=(kernel_size, 1), stride=(stride, 1),
                  padding=(sides[0], 0), dilation=(dilation, 1), return_output_dim=return_output_dim, **options)  # fmt: skip
    if not return_output_dim:
        return made
    result, (length, _), *rest = made
    return (result, length, *rest)


def get_conv_output_dim(input: int, window: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> int:
    """How many windows there are along a dim."""
    return (input + 2 * pad - dilation * (window - 1) - 1) // stride + 1


def prepare_conv_weights(*, weight_tensor: Tensor, **options: Any) -> Tensor:
    """The weight as it is: convolutions take it so."""
    return weight_tensor


def prepare_conv_bias(*, bias_tensor: Tensor, **options: Any) -> Tensor:
    """The bias as it is."""
    return bias_tensor


def create_group_norm_input_mask(
    num_channel: int, num_groups: int, num_cores_across_channel: int, data_type: Any = None, *args: Any
) -> Tensor:
    """Which columns of a core's tiles are whose: group_norm has the groups without it."""
    return Tensor(_columns_of_groups(num_channel, num_groups), data_type or bfloat16, None, Layout.TILE)


def create_group_norm_input_negative_mask(
    num_channel: int, num_groups: int, num_cores_across_channel: int, data_type: Any = None, *args: Any
) -> Tensor:
    """The columns that are not a group's."""
    return Tensor(1.0 - _columns_of_groups(num_channel, num_groups), data_type or bfloat16, None, Layout.TILE)


def _columns_of_groups(channels: int, groups: int) -> torch.Tensor:
    group = channels // groups
    mask = torch.zeros(1, groups, 32, -(-group // 32) * 32 + (0 if group % 32 == 0 else 32))
    for i in range(groups):
        first = i * group % 32
        mask[:, i, :, first : first + group] = 1.0
    return mask


def create_group_norm_weight_bias_rm(input_tensor: torch.Tensor, num_channels: int, num_cores_x: int) -> torch.Tensor:
    """A weight or bias of channels as [1, 1, rows, 32]: each core's chunk filled up with zeros."""
    chunks = input_tensor.reshape(num_cores_x, num_channels // num_cores_x)
    return torch.nn.functional.pad(chunks, (0, -chunks.shape[-1] % 32)).reshape(1, 1, -1, 32)
