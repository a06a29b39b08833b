"""ttc.tt_lib: the program of TT-Dispatch's document, its known issue, and operators on tensors of a device."""

import torch
from helpers import raises
from ttc import UsageError, tt_lib


def test_the_documents_program():
    device = tt_lib.device.CreateDevice(tt_lib.device.Arch.GRAYSKULL, 7)
    x = tt_lib.tensor.Tensor(torch.arange(64.0).reshape(2, 32) / 64)
    with raises(UsageError, "initiali"):
        x.to(device)
    tt_lib.device.InitializeDevice(device)
    assert device.profile == "e150" and device.pcie_slot == 7 and device.is_initialized
    with raises(UsageError, "slot"):
        tt_lib.device.CreateDevice(tt_lib.device.Arch.WORMHOLE, 7)
    host = tt_lib.device.GetHost()
    assert host.threads > 0 and host.isa
    there = tt_lib.tensor.softmax(x.to(device), -1)
    assert there.is_on_device and there.storage == "bfloat16, TILE, DRAM" and there.shape == (2, 32)
    out = there.to(host)
    assert not out.is_on_device and torch.allclose(out.torch().sum(-1), torch.ones(2), atol=0.01)
    tt_lib.device.CloseDevice(device)
    assert device.is_closed
    with raises(UsageError, "closed"):
        there.torch()


def test_a_device_that_goes_before_its_tensors():
    def compute():
        device = tt_lib.device.CreateDevice("n150", 8)
        tt_lib.device.InitializeDevice(device)
        return tt_lib.tensor.exp(tt_lib.tensor.Tensor(torch.zeros(4, 4)).to(device))

    out = compute()
    with raises(UsageError, ""):
        out.torch()


def test_operators_by_name():
    device = tt_lib.device.CreateDevice(tt_lib.device.Arch.BLACKHOLE, 9)
    tt_lib.device.InitializeDevice(device)
    with raises(UsageError, "default"):
        tt_lib.device.GetDefaultDevice()
    tt_lib.device.SetDefaultDevice(device)
    assert tt_lib.device.GetDefaultDevice().name == device.name
    a, b = torch.full((32, 64), 2.0), torch.full((32, 64), 3.0)
    made = tt_lib.tensor.op("aten::add.Tensor", a, b, alpha=2)
    assert made.is_on_device and torch.equal(made.torch(), torch.full((32, 64), 8.0))
    both = tt_lib.tensor.cat([made, tt_lib.tensor.Tensor(a)], 0)
    assert both.shape == (64, 64) and torch.equal(both.torch()[32:], a)
    assert torch.equal(tt_lib.tensor.op("tt.relu", -a, exact=True).torch(), torch.zeros(32, 64))
    with raises(UsageError, "dict"):
        tt_lib.tensor.relu({})
    made.deallocate()
    tt_lib.device.SetDefaultDevice(None)
    tt_lib.device.CloseDevice(device)
