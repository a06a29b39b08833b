"""Rewrites .pt2 files with ttc's reader and writer and checks, with stock PyTorch, that nothing changed.

usage: test_pt2_roundtrip.py PT2_REWRITE MODEL.pt2...

Each model is rewritten twice (the bytes must be equal), opened with torch.export.load, and run on the inputs of its
io file (NAME.io.safetensors; _dyn, _core and the like share that of their base), or seeded ones, next to the original:
outputs must be equal bit for bit. Guards and ranges must survive.
"""

import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch

warnings.filterwarnings("ignore")


def read_safetensors(path):
    import json

    dtypes = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
              "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] not in dtypes:
            continue
        begin, end = entry["data_offsets"]
        raw = bytearray(data[8 + size + begin:8 + size + end])
        dtype = dtypes[entry["dtype"]]
        flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def io_of(model):
    stem = model.stem
    while stem:
        candidate = model.with_name(stem + ".io.safetensors")
        if candidate.exists():
            return read_safetensors(candidate)
        stem = stem.rpartition("_")[0]
    return {}


def input_sets(program, io, static):
    """Lists of flat inputs: one per prefix of the io file, else one made from the placeholders' example shapes."""
    prefixes = sorted({name.split("in")[0] for name in io if "in" in name and name.rpartition("in")[2].isdigit()})
    for prefix in prefixes:
        if static and prefix.startswith("alt"):
            continue
        count = sum(name.startswith(prefix + "in") for name in io)
        yield [io[f"{prefix}in{i}"] for i in range(count)]
    if prefixes:
        return
    generator = torch.Generator().manual_seed(7)
    values = []
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in program.graph_signature.user_inputs:
            continue
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            sizes = [s if isinstance(s, int) else s.node.hint for s in value.shape]
            value = torch.randint(0, 4, sizes, generator=generator).to(value.dtype) if not value.is_floating_point() else torch.rand(sizes, generator=generator).to(value.dtype)
        values.append(value)
    yield values


def run(program, flat):
    """Calls the program on flat user inputs; constants that export specialised are filled in from the signature."""
    from torch.export.graph_signature import ConstantArgument
    from torch.utils._pytree import tree_flatten, tree_unflatten

    tensors = iter(flat)
    leaves = []
    for spec in program.graph_signature.input_specs:
        if spec.kind.name != "USER_INPUT":
            continue
        if isinstance(spec.arg, ConstantArgument):
            leaves.append(spec.arg.value)
        else:
            value = next(tensors)
            leaves.append(value.clone() if isinstance(value, torch.Tensor) else value)
    args, kwargs = tree_unflatten(leaves, program.call_spec.in_spec)
    module = program.module()
    outputs = tree_flatten(module(*args, **kwargs))[0]
    buffers = [b for _, b in sorted(module.named_buffers())]
    return [x for x in outputs + buffers + leaves if isinstance(x, torch.Tensor)]


def unknown_operators(model):
    import json
    import zipfile

    with zipfile.ZipFile(model) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        nodes = json.loads(archive.read(name))["graph_module"]["graph"]["nodes"]

    def known(target):
        scope = torch
        for part in target.split(".")[1:]:
            if not hasattr(scope, part):
                return False
            scope = getattr(scope, part)
        return True

    return sorted({n["target"] for n in nodes if n["target"].startswith("torch.ops.") and not known(n["target"])})


def same(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not a.numel():
        return True
    return bytes(a.contiguous().reshape(-1).view(torch.uint8)) == bytes(b.contiguous().reshape(-1).view(torch.uint8))


def check(tool, model, folder):
    """One line on what was compared; raises AssertionError where something differs."""
    copy, twin = folder / model.name, folder / ("twin_" + model.name)
    for target in (copy, twin):
        done = subprocess.run([tool, model, target], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert copy.read_bytes() == twin.read_bytes(), "two rewrites differ"
    assert sorted(p.name for p in folder.iterdir()) == sorted([copy.name, twin.name]), "something was left behind"
    unknown = unknown_operators(model)
    assert unknown_operators(copy) == unknown
    if unknown:
        return f"rewritten; PyTorch itself does not know {', '.join(unknown)}"
    before = torch.export.load(model)
    after = torch.export.load(copy)
    assert [str(s.kind) + str(s.target) for s in before.graph_signature.input_specs] == [str(s.kind) + str(s.target) for s in after.graph_signature.input_specs]
    assert len(before.graph.nodes) == len(after.graph.nodes), "another number of nodes"
    assert {str(k): str(v) for k, v in before.range_constraints.items()} == {str(k): str(v) for k, v in after.range_constraints.items()}
    assert before._guards_code == after._guards_code
    assert {k: v.stride() for k, v in before.state_dict.items()} == {k: v.stride() for k, v in after.state_dict.items()}
    static = not before.range_constraints
    compared = 0
    for flat in input_sets(before, io_of(model), static):
        torch.manual_seed(0)
        expected = run(before, flat)
        torch.manual_seed(0)
        actual = run(after, flat)
        assert len(expected) == len(actual)
        for index, (a, b) in enumerate(zip(expected, actual)):
            assert same(a, b), f"tensor {index} differs"
        compared += len(expected)
    assert compared, "nothing was compared"
    # What was loaded can be saved, loaded and decomposed again.
    torch.export.save(after, folder / "resaved.pt2")
    torch.export.load(folder / "resaved.pt2")
    return f"{compared} tensors equal"


def main():
    tool, models = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    passed = failed = 0
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"ok   {model.name}: {check(tool, model, pathlib.Path(folder))}", flush=True)
                passed += 1
            except Exception as error:
                print(f"FAIL {model.name}: {type(error).__name__}: {error}", flush=True)
                failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
