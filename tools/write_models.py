"""Writes models as make_models.py describes: each form, held against the eager model, and what goes in and out of it."""

import copy

import torch
from torch.export import Dim


def seeded(kind):
    torch.manual_seed(0)
    return kind()


def flat(outputs):
    return [x for x in torch.utils._pytree.tree_flatten(outputs)[0] if isinstance(x, torch.Tensor)]


def named(prefix, kind, tensors):
    return {f"{prefix}{kind}{i}": t.detach().clone().contiguous() for i, t in enumerate(tensors)}


def save_io(path, tensors):
    from safetensors.torch import save_file
    save_file(tensors, path)


def save(program, path):
    torch.export.save(program, path)
    print(f"{path.name}: {path.stat().st_size} bytes", flush=True)


def compare(what, expected, actual, tolerance=1e-4):
    for a, b in zip(expected, actual, strict=True):
        if not torch.allclose(a.double() if a.is_floating_point() else a, b.double() if b.is_floating_point() else b, rtol=tolerance, atol=tolerance, equal_nan=True):
            raise SystemExit(f"{what}: outputs differ from the eager model")


def make_transformer(kind, name, folder):
    for attention in getattr(kind, "attentions", ("sdpa", "eager")):
        torch.manual_seed(0)
        model = kind(attention).eval().requires_grad_(False)
        stem = name if attention == "sdpa" else name + "_eager"
        torch.manual_seed(1)
        first, second = (kind.inputs(*shape) for shape in kind.shapes)
        out, alt = flat(model(*first)), flat(model(*second))
        save_io(folder / f"{stem}.io.safetensors", named("", "in", first) | named("", "out", out) | named("alt.", "in", second) | named("alt.", "out", alt))
        static = torch.export.export(model, first)
        save(static, folder / f"{stem}.pt2")
        compare(stem, out, flat(static.module()(*first)))
        dynamic = torch.export.export(model, first, dynamic_shapes=kind.dynamic())
        save(dynamic, folder / f"{stem}_dyn.pt2")
        compare(stem + "_dyn", alt, flat(dynamic.module()(*second)))
        if getattr(kind, "has_core", True):
            core = dynamic.run_decompositions()
            save(core, folder / f"{stem}_dyn_core.pt2")
            compare(stem + "_dyn_core", alt, flat(core.module()(*second)))
        traced = torch.jit.trace(model, first, check_trace=False)
        traced.save(folder / f"{stem}.pt")
        compare(stem + ".pt", alt, flat(torch.jit.load(folder / f"{stem}.pt")(*second)))


def make_static(kind, name, folder):
    model = seeded(kind).eval().requires_grad_(False)
    torch.manual_seed(1)
    inputs = kind.inputs()
    out = flat(model(*inputs))
    save_io(folder / f"{name}.io.safetensors", named("", "in", inputs) | named("", "out", out))
    program = torch.export.export(model, inputs)
    save(program, folder / f"{name}.pt2")
    compare(name, out, flat(program.module()(*inputs)))


def make_decode(kind, name, folder):
    def fresh():  # exporters run the model, which writes its buffers
        return seeded(kind).eval().requires_grad_(False)

    steps = [(torch.tensor([[token]]), torch.tensor([[position]])) for position, token in enumerate((5, 17, 200, 31))]
    model = fresh()
    outputs = [flat(model(*step)) for step in steps]
    io = {}
    for i, (step, out) in enumerate(zip(steps, outputs)):
        io |= named(f"step{i}.", "in", step) | named(f"step{i}.", "out", out)
    save_io(folder / f"{name}.io.safetensors", io)
    program = torch.export.export(fresh(), steps[0])
    save(program, folder / f"{name}.pt2")
    save(program.run_decompositions(), folder / f"{name}_core.pt2")
    traced = torch.jit.trace(fresh(), steps[0], check_trace=False)
    for _, buffer in traced.named_buffers():
        if buffer.shape[-2:] == (kind.length, 8) or not buffer.dim():
            buffer.zero_()  # tracing ran one step
    traced.save(folder / f"{name}.pt")
    for what, run in ((name, torch.export.load(folder / f"{name}.pt2").module()), (name + "_core", torch.export.load(folder / f"{name}_core.pt2").module()),
                      (name + ".pt", torch.jit.load(folder / f"{name}.pt"))):
        for step, out in zip(steps, outputs):
            compare(what, out, flat(run(*step)))


def make_kv(kind, name, folder):
    """Later steps leave the keys and values out: they are those that the step before returned."""
    model = seeded(kind).eval().requires_grad_(False)
    torch.manual_seed(4)
    kv, io = [torch.randn(1, 2, 7, 8) for _ in range(4)], {}
    sample = (torch.tensor([[9]]), torch.tensor([[7]]), *(t.clone() for t in kv))
    for i, token in enumerate((9, 17, 200, 31)):
        step = (torch.tensor([[token]]), torch.tensor([[7 + i]]))
        logits, *new = model(*step, *kv)
        io |= named(f"step{i}.", "in", [*step, *(kv if i == 0 else [])]) | named(f"step{i}.", "out", [logits, *new])
        kv = new
    save_io(folder / f"{name}.io.safetensors", io)
    length = tuple({2: Dim.DYNAMIC} for _ in kv)
    program = torch.export.export(model, sample, dynamic_shapes=(None, None, length))
    save(program, folder / f"{name}.pt2")
    traced = torch.jit.trace(model, sample, check_trace=False)
    traced.save(folder / f"{name}.pt")


def make_format_test(model, args, name, folder, kwargs=None, dynamic=None):
    torch.manual_seed(2)
    kwargs = kwargs or {}
    model = model.eval()
    fresh = copy.deepcopy(model)
    inputs = copy.deepcopy(args)
    io = named("", "in", args) | named("", "out", flat(fresh(*inputs, **kwargs)))
    save_io(folder / f"{name}.io.safetensors", io)
    program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic)
    save(program, folder / f"{name}.pt2")
    if name not in ("custom_op", "prims"):  # the decompositions of which need more than a graph
        save(program.run_decompositions(), folder / f"{name}_core.pt2")
