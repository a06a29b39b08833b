"""The host, devices, and single operators on tensors, under the names of Tenstorrent's tt_lib.

    from ttc import tt_lib
    device = tt_lib.device.CreateDevice(tt_lib.device.Arch.GRAYSKULL, 0)
    tt_lib.device.InitializeDevice(device)
    x = tt_lib.tensor.Tensor(torch.randn(32, 32)).to(device)
    y = tt_lib.tensor.softmax(x, -1).to(tt_lib.device.GetHost()).torch()
    tt_lib.device.CloseDevice(device)

A device may go before its tensors, in any scope: reading one of them is a UsageError then, and nothing else happens.
"""

from . import device, tensor

__all__ = ["device", "tensor"]
