"""The way of a user, against recorded silicon: the recorded blocks as torch modules, exported, compiled, emitted. Where
a block is the same, its program makes the calls that were recorded, and each gives the recorded bits."""

import pathlib
import subprocess
import tempfile

import blocks
import recorded
import torch
from helpers import exact, root, tool
from safetensors.torch import save_file
from test_emit import loaded

COMPUTING = ("embedding", "linear", "layer_norm", "rms_norm", "softmax", "scaled_dot_product_attention", "add", "multiply",
             "matmul", "rotary_embedding")  # fmt: skip


class Recorder:
    """TT-NN, whose computing calls are remembered: name, keywords, result."""

    def __init__(self, module, calls: list) -> None:
        self._module, self._calls = module, calls

    def __getattr__(self, name: str):
        found = getattr(self._module, name)
        if name in ("transformer", "experimental"):
            return Recorder(found, self._calls)
        if name not in COMPUTING:
            return found

        def call(*args, **keywords):
            result = found(*args, **keywords)
            self._calls.append((name, keywords, result.to_torch()))
            return result

        return call


def expected_keywords(args: dict) -> dict:
    return {name: args[name] for name in ("epsilon", "is_causal", "dim") if name in args}


def activation(keywords: dict):
    given = keywords.get("activation")
    return given.name if given is not None else None


def check(path: pathlib.Path, folder: pathlib.Path) -> None:
    import ttc

    ttnn = ttc.as_ttnn()
    case, values = recorded.read(path)
    module, given = blocks.block(path.stem, {name[3:]: one if one.dtype == torch.int32 else one.float()
                                             for name, one in values.items() if name.startswith("in_")})  # fmt: skip
    wanted = [call for call in case["params"]["calls"] if call["op"].split(".")[-1] in COMPUTING]
    torch.export.save(torch.export.export(module, given), folder / "block.pt2")
    save_file({f"in{i}": one.contiguous() for i, one in enumerate(given)}, folder / "io.safetensors")
    command = [tool, "emit", folder / "block.pt2", "-o", folder / path.stem, "--io", folder / "io.safetensors", "-q"]
    if "bfloat8_b" in path.stem:
        command += ["--weight-dtype", "bfloat8_b"]
    if path.stem.endswith("_ops"):  # recorded with attention's products one by one
        command += ["--disable", "raise-attention"]
    subprocess.run([str(word) for word in command], check=True)
    made: list = []
    with exact(), ttnn.manage_device(device_id=0) as device:
        program = loaded(folder / path.stem)
        program["model"].ttnn = Recorder(ttnn, made)
        program["model"].forward(*given, parameters=program["parameters"].load_parameters(device), device=device)
    assert [name for name, _, _ in made] == [call["op"].split(".")[-1] for call in wanted], path.stem
    for (name, keywords, result), call in zip(made, wanted):
        where = f"{path.stem}: {name} {call['outputs'][0]}"
        for key, value in expected_keywords(call["args"]).items():
            assert keywords.get(key, value) == value or keywords[key] % result.ndim == value % result.ndim, where
        assert activation(keywords) == call["args"].get("activation"), where
        assert torch.equal(result.flatten().float(), values[call["outputs"][0]].flatten().float()), where


def test_programs_of_torch_modules_make_the_recorded_calls():
    files = [path for path in sorted((root / "tests/data/golden").glob("A_*.safetensors")) if "transformer" not in path.stem]
    assert len(files) >= 4
    for path in files:
        with tempfile.TemporaryDirectory() as name:
            check(path, pathlib.Path(name))
