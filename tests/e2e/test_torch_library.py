"""Compiles models with ttc and checks, with stock PyTorch and the tt operator library, that the result is the same program.

usage: test_torch_library.py TTC LIBTTRT_TORCH MODEL...

Each model (.pt2 or TorchScript .pt) is compiled to its own format, run by `ttc run`, and opened with torch.export.load or
torch.jit.load after torch.ops.load_library. The outputs must be equal bit for bit, on every shape the io file holds
(NAME.io.safetensors; _dyn, _core and the like share that of their base) where the model's dims are free. What PyTorch does
with an exported program must keep them and the tt operators: decompose, export again, compile, unflatten, save again.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch

from test_pt2_roundtrip import io_of, read_safetensors

warnings.filterwarnings("ignore")


def ttc(tool, *args):
    done = subprocess.run([tool, *map(str, args)], capture_output=True, text=True)
    # 1: a comparison with the expected float32 outputs fell below its threshold, which is not what this test is about.
    if done.returncode not in (0, 1):
        sys.exit(f"ttc {' '.join(map(str, args))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def io_path(model):
    stem = model.name.removesuffix(model.suffix)
    while stem:
        candidate = model.with_name(stem + ".io.safetensors")
        if candidate.exists():
            return candidate
        stem = stem.rpartition("_")[0]
    sys.exit(f"{model}: no io file")


def prefixes(model, io):
    free = "_dyn" in model.stem or model.suffix == ".pt"
    if "in0" in io:
        return [""] + (["alt."] if free and "alt.in0" in io else [])
    return ["step0."]


def kinds(block):
    """The operators of a TorchScript graph or block, those of nested blocks included."""
    return [kind for node in block.nodes() for kind in [node.kind(), *(k for inner in node.blocks() for k in kinds(inner))]]


def operators(program):
    """The names of all operators, those in the bodies of cond, while_loop and map included."""
    if isinstance(program, torch.jit.ScriptModule):
        return kinds(program.inlined_graph)
    bodies = [module for module in program.modules() if isinstance(getattr(module, "graph", None), torch.fx.Graph)]
    return [str(node.target) for body in bodies for node in body.graph.nodes]


def leaves(value):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def count_tt(program):
    return sum(name.startswith(("tt.", "tt::")) for name in operators(program))


def rewritten(tool, file):
    return "rewritten" in json.loads(subprocess.run([tool, "inspect", file, "--json"], capture_output=True, text=True).stdout)


def check_tools(tool, file, input_sets, work):
    """Programs that PyTorch's tools make of the compiled one: the same results on all shapes, by the same operators."""
    program = torch.export.load(file)
    free = len(input_sets) > 1
    auto = tuple({d: torch.export.Dim.AUTO for d in range(t.dim())} if free else None for t in input_sets[0])
    again = work / "again.pt2"
    torch.export.save(program, again)
    if not rewritten(tool, again):
        sys.exit(f"{file.name}: saved again, the file has no manifest")
    expected = [leaves(program.module()(*inputs)) for inputs in input_sets]  # of a module of its own each: state starts anew
    made = {"decomposed": program.run_decompositions().module(),
            "saved again": torch.export.load(again).module(),
            "exported again": torch.export.export(program.module(), input_sets[0], dynamic_shapes=auto).module(),
            "unflattened": torch.export.unflatten(program),
            "compiled": torch.compile(program.module(), backend="aot_eager")}
    for what, module in made.items():
        if what != "compiled" and count_tt(module) != count_tt(program.module()):
            sys.exit(f"{file.name} {what}: {count_tt(module)} tt operators of {count_tt(program.module())}")
        for inputs, wanted in zip(input_sets, expected):
            got = leaves(module(*inputs))
            if len(got) != len(wanted) or not all(torch.equal(a, b) for a, b in zip(got, wanted)):
                sys.exit(f"{file.name} {what}: other outputs")


def check(tool, model, work):
    compiled = work / ("compiled" + model.suffix)
    io_file = io_path(model)
    io = io_of(model)
    names = prefixes(model, io)
    ttc(tool, "compile", model, "-o", compiled, "--io", io_file)
    program = torch.export.load(compiled).module() if model.suffix == ".pt2" else torch.jit.load(compiled)
    for prefix in names:
        outputs = work / "outputs.safetensors"
        outputs.unlink(missing_ok=True)
        ttc(tool, "run", compiled, "--io", io_file, "--save-outputs", outputs, *(["--io-prefix", prefix.rstrip(".")] if prefix else []))
        ran = read_safetensors(outputs)
        inputs = [io[f"{prefix}in{i}"] for i in range(sum(name.startswith(prefix + "in") for name in io))]
        with torch.no_grad():
            result = program(*inputs)
        leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if not leaves:
            sys.exit(f"{model}: no outputs")
        for i, leaf in enumerate(leaves):
            mine = ran[f"out{i}"]
            if leaf.dtype != mine.dtype or leaf.shape != mine.shape or not torch.equal(leaf.nan_to_num(), mine.nan_to_num()):
                worst = (leaf.double() - mine.double()).abs().max() if leaf.shape == mine.shape else f"{list(leaf.shape)} and {list(mine.shape)}"
                sys.exit(f"{model.name} {prefix}out{i}: PyTorch and ttc run differ: {worst}")
    count = count_tt(program)
    if model.suffix == ".pt2":
        check_tools(tool, compiled, [tuple(io[f"{name}in{i}"] for i in range(len(inputs))) for name in names], work)
    if count == 0:
        sys.exit(f"{model.name}: the compiled file has no tt operators")
    print(f"{model.name}: {len(names)} shapes, {count} tt nodes, equal")


def main():
    tool, library, *models = sys.argv[1:]
    torch.ops.load_library(str(pathlib.Path(library).resolve()))
    torch.set_num_threads(2)
    for model in models:
        with tempfile.TemporaryDirectory() as work:
            check(tool, pathlib.Path(model), pathlib.Path(work))


if __name__ == "__main__":
    main()
