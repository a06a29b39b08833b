"""Emitted programs: what they give on the emulated TT-NN, what they load, and how they read."""

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from helpers import models, pcc, tool
from safetensors.torch import load_file, save_file

SAME_BITS = ("vit_small", "bert_small", "gpt2_small", "llama_small", "bert_small_dyn", "vit_small_dyn_core", "owlvit_small")


def emitted(model: str, folder: pathlib.Path, *flags: str) -> pathlib.Path:
    base = model.removesuffix("_core").removesuffix("_dyn")
    program = folder / model
    io = models / f"{base}.io.safetensors"
    command = [tool, "emit", models / f"{model}.pt2", "-o", program, "--io", io, "--json", *flags]
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["refused"] == []
    return program


def loaded(program: pathlib.Path) -> dict:
    """The program's modules."""
    modules = {}
    for name in ("parameters", "model"):
        spec = importlib.util.spec_from_file_location(name, program / f"{name}.py")
        modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[name])
    return modules


@contextlib.contextmanager
def opened(program: pathlib.Path, numerics: str):
    """A call of the program's forward() with its weights on a device."""
    import ttc

    ttnn = ttc.as_ttnn()
    os.environ["TTRT_NUMERICS"] = numerics
    device = ttnn.open_device(device_id=0)
    try:
        modules = loaded(program)
        parameters = modules["parameters"].load_parameters(device)
        yield lambda *inputs: modules["model"].forward(*inputs, parameters=parameters, device=device)
    finally:
        ttnn.close_device(device)
        os.environ.pop("TTRT_NUMERICS")


def outputs(program: pathlib.Path, numerics: str) -> list:
    """What run.py's call gives, in this process."""
    vectors = load_file(program / "vectors.safetensors")
    inputs = [vectors[f"in{i}"] for i in range(len(vectors)) if f"in{i}" in vectors]
    with opened(program, numerics) as forward:
        given = forward(*inputs)
    return list(given) if isinstance(given, tuple) else [given]


def run_by_tool(model: str, folder: pathlib.Path, *flags: str) -> dict:
    base = model.removesuffix("_core").removesuffix("_dyn")
    saved = folder / f"{model}.ref.safetensors"
    io = models / f"{base}.io.safetensors"
    command = [tool, "run", models / f"{model}.pt2", "--io", io, "--save-outputs", saved, "-q", *flags]
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return load_file(saved)


def test_exact_numerics_give_the_bits_of_the_tool():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in SAME_BITS:
            expected = run_by_tool(model, folder, "--numerics", "exact")
            given = outputs(emitted(model, folder), "exact")
            assert len(given) == len(expected)
            for i, one in enumerate(given):
                assert torch.equal(one, expected[f"out{i}"]), f"{model} out{i}"


def test_caches_stay_on_the_device():
    """Four tokens of a decoder that writes its buffers: the last one's bits depend on all before."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expected = run_by_tool("llama_small_decode", folder, "--numerics", "exact", "--io-steps")
        program = emitted("llama_small_decode", folder)
        assert "torch.ops" not in (program / "model.py").read_text()
        steps = load_file(models / "llama_small_decode.io.safetensors")
        with opened(program, "exact") as forward:
            for step in range(4):
                last = forward(steps[f"step{step}.in0"], steps[f"step{step}.in1"])
            assert torch.equal(last, expected["out0"])


def test_fast_numerics_give_the_same_correlation():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in ("vit_small", "gpt2_small"):
            program = emitted(model, folder)
            expected = load_file(program / "vectors.safetensors")
            own = run_by_tool(model, folder)
            for i, one in enumerate(outputs(program, "fast")):
                assert abs(pcc(one, expected[f"out{i}"]) - pcc(own[f"out{i}"], expected[f"out{i}"])) < 2e-4, model


def test_block_formats_come_as_they_are_packed():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        flags = ("--weight-dtype", "bfloat8_b")
        compiled = folder / "vit.pt2"
        subprocess.run([str(tool), "compile", str(models / "vit_small.pt2"), "-o", str(compiled), "-q", *flags], check=True)
        program = emitted("vit_small", folder, *flags)
        saved = folder / "ref.safetensors"
        io = models / "vit_small.io.safetensors"
        command = [tool, "run", compiled, "--io", io, "--numerics", "exact", "--save-outputs", saved, "-q"]
        subprocess.run([str(word) for word in command], check=True)
        assert torch.equal(outputs(program, "exact")[0], load_file(saved)["out0"])


def test_tensor_files_hold_what_was_written():
    import ttc

    ttnn = ttc.as_ttnn()
    values = torch.randn(2, 5, 70)
    with tempfile.TemporaryDirectory() as name:
        for dtype in (ttnn.bfloat16, ttnn.float32, ttnn.bfloat8_b, ttnn.bfloat4_b):
            for layout in (ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT):
                if layout is ttnn.ROW_MAJOR_LAYOUT and dtype in (ttnn.bfloat8_b, ttnn.bfloat4_b):
                    continue
                tensor = ttnn.from_torch(values, dtype=dtype, layout=layout)
                ttnn.dump_tensor(f"{name}/one.tensorbin", tensor)
                again = ttnn.load_tensor(f"{name}/one.tensorbin")
                assert (again.dtype, again.layout, again.shape) == (dtype, layout, tensor.shape)
                assert torch.equal(ttnn.to_torch(again), ttnn.to_torch(tensor))
        ids = ttnn.from_torch(torch.arange(40, dtype=torch.int32).reshape(4, 10), dtype=ttnn.uint32)
        ttnn.dump_tensor(f"{name}/ids.tensorbin", ids)
        assert torch.equal(ttnn.to_torch(ttnn.load_tensor(f"{name}/ids.tensorbin")), ttnn.to_torch(ids))
        pathlib.Path(f"{name}/cut.tensorbin").write_bytes(pathlib.Path(f"{name}/ids.tensorbin").read_bytes()[:100])
        try:
            ttnn.load_tensor(f"{name}/cut.tensorbin")
            raise AssertionError("a cut file was read")
        except RuntimeError as error:
            assert "cut.tensorbin" in str(error) or "truncated" in str(error)


def test_programs_read_well():
    """The linter's own rules for what Python has a right and a wrong way to do."""
    ruff = shutil.which("ruff", path=f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    assert ruff, "setup.sh installs ruff beside Python"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        programs = [str(emitted(model, folder)) for model in ("vit_small", "llama_small", "bert_small_dyn")]
        rules = ["--isolated", "--select", "E,F,W,I,N,B", "--line-length", "130", "--ignore", "I001"]
        found = subprocess.run([ruff, "check", *rules, *programs], capture_output=True, text=True)
        assert found.returncode == 0, found.stdout


def test_the_command_writes_a_program_and_compares_it():
    with tempfile.TemporaryDirectory() as name:
        program = emitted("vit_small", pathlib.Path(name))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "ttnn_emulated", "run", str(program / "run.py")]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert ran.returncode == 0 and "out0: PCC 0.99" in ran.stdout, ran.stdout + ran.stderr
        strict = subprocess.run([*command, "--min-pcc", "1.1"], capture_output=True, text=True, env=environment)
        assert strict.returncode == 1 and "too low" in strict.stdout


def same_bits_of_text(text: str, name: str = "model") -> str:
    """Emits a graph, and compares its program with the tool on the call that comes with it. Gives model.py."""
    with tempfile.TemporaryDirectory() as folder:
        graph, program, saved = f"{folder}/{name}.ir", pathlib.Path(folder) / "program", f"{folder}/ref.safetensors"
        pathlib.Path(graph).write_text(text)
        made = subprocess.run([str(tool), "emit", graph, "-o", str(program), "--json", "--require-full"], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        said = json.loads(made.stdout)
        assert said["host_calls"] == 0 and said["warnings"] == [], said
        command = [tool, "run", graph, "--io", program / "vectors.safetensors", "--numerics", "exact", "--save-outputs", saved, "-q"]
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        expected = load_file(saved)
        for i, one in enumerate(outputs(program, "exact")):
            assert torch.equal(one, expected[f"out{i}"]), f"out{i} of {text}"
        return (program / "model.py").read_text()


def test_functions_of_images_have_channels_last():
    text = same_bits_of_text(
        """graph main(%x: f32[2, 3, 13, 11] user, $w: f32[8, 3, 3, 3] parameter "a.weight" = rand(1), $b: f32[8] parameter "a.bias" = rand(2), $v: f32[8, 1, 3, 2] parameter "d.weight" = rand(3), $t: f32[8, 4, 2, 2] parameter "t.weight" = rand(4), $s: f32[8] parameter "s" = rand(5)) {
  %c: f32[2, 8, 7, 6] = aten.conv2d.default(%x, $w, $b, [2, 2], [1, 1])
  %r: f32[2, 8, 7, 6] = aten.tanh.default(%c)
  %d: f32[2, 8, 7, 5] = aten.conv2d.default(%r, $v, none, [1, 1], [1, 0], [1, 1], 8)
  %m: f32[2, 8, 4, 3] = aten.max_pool2d.default(%d, [3, 3], [2, 2], [1, 1], [1, 1], true)
  %n: f32[2, 8, 2, 2] = aten.avg_pool2d.default(%m, [3, 2], [2, 1], [1, 0], false, false)
  %p: f32[2, 8, 2, 2] = aten.prelu.default(%n, $s)
  %u: f32[2, 8, 4, 6] = aten.upsample_nearest2d.vec(%p, none, [2.0, 3.0])
  %l: f32[2, 8, 8, 12] = aten.upsample_bilinear2d.vec(%u, [8, 12], false, none)
  %g: f32[2, 8, 3, 5] = aten.adaptive_avg_pool2d.default(%l, [3, 5])
  %y: f32[2, 4, 5, 9] = aten.convolution.default(%g, $t, none, [2, 2], [1, 1], [1, 1], true, [1, 1], 1)
  return %y, %r
}
"""
    )
    assert "(parameters.a.weight, parameters.a.bias) = ttnn.conv2d(" in text
    assert text.count("ttnn.permute(") <= 6, text  # where a stretch of such functions begins or ends


def test_functions_of_one_dim_are_of_images_one_high():
    same_bits_of_text(
        """graph main(%x: f32[2, 4, 20] user, $w: f32[6, 2, 5] parameter "a.weight" = rand(1), $m: f32[6] buffer "m" = rand(2), $v: f32[6] buffer "v" = splat(0.5)) {
  %c: f32[2, 6, 18] = aten.conv1d.default(%x, $w, none, [1], [1], [1], 2)
  %n: f32[2, 6, 18] = aten.tanh.default(%c)
  %b: f32[2, 6, 18] = aten.batch_norm.default(%n, none, none, $m, $v, false, 0.1, 0.001, true)
  %p: f32[2, 6, 9] = aten.max_pool1d.default(%b, [2])
  %u: f32[2, 6, 18] = aten.upsample_nearest1d.default(%p, [18])
  return %u
}
"""
    )


def test_reductions_and_places():
    same_bits_of_text(
        """graph main(%x: f32[4, 5, 40] user) {
  %a: f32[4, 5] = aten.var.correction(%x, [-1], correction=1)
  %b: f32[4, 40] = aten.prod.dim_int(%x, 1)
  %c: f32[4, 5, 1] = aten.linalg_vector_norm.default(%x, 2, [-1], true)
  %d: f32[4, 5, 40] = aten.log_softmax.int(%x, -1)
  %e: f32[4, 5], %f: i64[4, 5] = aten.min.dim(%x, -1)
  %g: i64[4, 5] = aten.argmin.default(%x, -1)
  %h: bool[4, 5, 40] = aten.isnan.default(%x)
  return %a, %b, %c, %d, %e, %f, %g, %h
}
"""
    )


def test_indices_count_from_the_end_too():
    text = same_bits_of_text(
        """graph main(%x: f32[4, 5, 40] user, $i: i64[3] constant "i" = [-1, 0, -4], $j: i64[3] constant "j" = [1, 2, 3]) {
  %a: f32[3, 5, 40] = aten.index.Tensor(%x, [$i])
  %b: f32[3, 40] = aten.index.Tensor(%x, [$i, $j])
  return %a, %b
}
"""
    )
    assert text.count("ttnn.remainder(") == 1  # of the indices that may be negative


def test_control_flow_is_pythons():
    with tempfile.TemporaryDirectory() as name:
        for model, word in (("hop_cond", "    if "), ("hop_map", "    for "), ("tiny", "    if ")):
            program, saved = pathlib.Path(name) / model, f"{name}/{model}.ref.safetensors"
            command = [tool, "emit", models / f"{model}.pt2", "-o", program, "--require-full", "-q"]
            subprocess.run([str(word) for word in command], check=True)
            assert word in (program / "model.py").read_text(), model
            vectors = program / "vectors.safetensors"
            command = [tool, "run", models / f"{model}.pt2", "--io", vectors, "--numerics", "exact", "--save-outputs", saved, "-q"]
            subprocess.run([str(word) for word in command], check=True, capture_output=True)
            expected = load_file(saved)
            for i, one in enumerate(outputs(program, "exact")):
                if f"out{i}" in expected:
                    assert torch.equal(torch.as_tensor(one), expected[f"out{i}"]), f"{model} out{i}"


def test_groups_of_rows_have_a_product_each():
    text = same_bits_of_text(
        """graph main(%x: f32[60, 40] user, $w: f32[4, 40, 48] parameter "w" = rand(1), $ends: i32[4] constant "ends" = [7, 7, 41, 60]) {
  %y: f32[60, 48] = aten._grouped_mm.default(%x, $w, $ends)
  %z: f32[60, 48] = aten.relu.default(%y)
  return %z
}
"""
    )
    assert text.count("grouped_matmul(") == 2  # the function and its call


def test_borders_and_rows_taken_more_than_once():
    text = same_bits_of_text(
        """graph main(%x: f32[2, 3, 40, 50] user, %z: f32[3, 50] user) {
  %a: f32[3, 130] = aten.pad.default(%z, [40, 40], "reflect")
  %b: f32[2, 3, 60, 70] = aten.upsample_nearest2d.vec(%x, [60, 70], none)
  return %a, %b
}
"""
    )
    assert text.count("ttnn.slice(") <= 3, text  # in loops, not one below the other


def test_borders_of_free_sizes():
    """Each mode, before and behind, at other sizes than the model was emitted with."""

    class Borders(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple:
            pads = ((3, 5, "reflect"), (0, 4, "replicate"), (2, 0, "replicate"), (6, 1, "circular"))
            return tuple(torch.nn.functional.pad(x, (a, b), mode) for a, b, mode in pads)

    sizes = {"x": {0: torch.export.Dim("rows", max=64), 2: torch.export.Dim("width", min=10, max=200)}}
    with tempfile.TemporaryDirectory() as name:
        path, program = f"{name}/borders.pt2", pathlib.Path(name) / "program"
        torch.export.save(torch.export.export(Borders(), (torch.randn(4, 3, 40),), dynamic_shapes=sizes), path)
        subprocess.run([str(tool), "emit", path, "-o", str(program), "--require-full", "-q"], check=True)
        x = torch.randn(5, 3, 77).bfloat16().float()
        with opened(program, "exact") as forward:
            for given, wanted in zip(forward(x), Borders()(x)):
                assert torch.equal(given, wanted)


def test_what_stays_on_the_host_is_there_for_the_tool_too():
    """The bits of the tool where it keeps on the host what the program does."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program, io = folder / "program", models / "vision_small.io.safetensors"
        command = [tool, "emit", models / "vision_small.pt2", "-o", program, "--io", io, "--json"]
        said = json.loads(subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout)
        assert [one["op"] for one in said["refused"]] == ["tt.upsample"] and said["host_calls"] == 1
        compiled, saved = folder / "same.pt2", folder / "ref.safetensors"
        command = [tool, "compile", models / "vision_small.pt2", "-o", compiled, "-q"]
        for key in ("fallback_op", "fallback_node"):
            for one in said[key]:
                command += [f"--{key.replace('_', '-')}", one]
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        command = [tool, "run", compiled, "--io", io, "--numerics", "exact", "--save-outputs", saved, "-q"]
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        expected = load_file(saved)
        for i, one in enumerate(outputs(program, "exact")):
            assert torch.equal(one, expected[f"out{i}"]), i


class Remembers(torch.nn.Module):
    """A state that begins empty, and has the batch's sizes from the first call on."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(32, 32)
        self.register_buffer("state", torch.zeros(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(self.state) == 0:
            self.state = torch.zeros(x.shape[0], 32)
        y = torch.tanh(self.inner(x) + self.state)
        self.state = y
        return y


def test_a_state_that_begins_empty_has_other_sizes_later():
    torch.manual_seed(0)
    module, x = Remembers().eval(), torch.randn(5, 32)
    with tempfile.TemporaryDirectory() as name:
        path, program = pathlib.Path(name) / "remembers.pt", pathlib.Path(name) / "program"
        torch.jit.script(module).save(str(path))
        save_file({"in0": x}, f"{name}/io.safetensors")
        subprocess.run([str(tool), "emit", str(path), "-o", str(program), "--io", f"{name}/io.safetensors", "-q"], check=True)
        with torch.no_grad(), opened(program, "exact") as forward:
            for _ in range(3):
                assert pcc(forward(x), module(x)) > 0.999


def test_what_has_no_spelling_is_a_torch_call_or_an_error():
    with tempfile.TemporaryDirectory() as name:
        text = pathlib.Path(name) / "sort.ir"
        text.write_text(
            "graph main(%x: f32[4, 64] user) {\n"
            "  %a: f32[4, 64] = aten.relu.default(%x)\n"
            "  %b: f32[4, 64] = aten.special_airy_ai.default(%a)\n"
            "  %y: f32[4, 64] = aten.neg.default(%b)\n"
            "  return %y\n}\n"
        )
        command = [str(tool), "emit", str(text), "-o", f"{name}/program", "--json"]
        made = subprocess.run(command, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        said = json.loads(made.stdout)
        assert said["host_calls"] >= 1 and said["refused"][0]["op"] == "tt.airy_ai"
        assert "torch.ops.aten.special_airy_ai.default" in (pathlib.Path(name) / "program/model.py").read_text()
        full = subprocess.run([*command, "--require-full", "--overwrite"], capture_output=True, text=True)
        assert full.returncode == 3 and "tt.airy_ai" in full.stdout + full.stderr
        again = subprocess.run(command, capture_output=True, text=True)
        assert again.returncode == 2 and "--overwrite" in again.stdout + again.stderr


def test_groups_of_channels_are_rows_of_a_norm():
    text = same_bits_of_text(
        """graph main(%x: f32[2, 6, 7, 9] user, $w: f32[6] parameter "w" = rand(1), $b: f32[6] parameter "b" = rand(2)) {
  %y: f32[2, 6, 7, 9] = aten.group_norm.default(%x, 3, $w, $b, 0.001)
  %z: f32[2, 6, 7, 9] = aten.instance_norm.default(%y, none, none, none, none, true, 0.1, 1e-05, true)
  %p: f32[2, 6, 3, 3] = aten.adaptive_avg_pool2d.default(%z, [3, 3])
  return %y, %p
}
"""
    )
    assert "ttnn.layer_norm(" in text and "ttnn.to_layout(" in text


def test_numbers_of_a_channel_are_rounded_as_the_host_packs_them():
    """337 lies between two numbers of bfloat16."""
    same_bits_of_text(
        """graph main(%x: f32[2, 4, 5, 8] user, $m: f32[4] buffer "m" = splat(2.25), $v: f32[4] buffer "v" = splat(337.0)) {
  %y: f32[2, 4, 5, 8] = aten.batch_norm.default(%x, none, none, $m, $v, false, 0.1, 0.001, true)
  return %y
}
"""
    )


def test_whole_models_of_images_and_rows_in_rows():
    """Nested maps, group norms, batch norms behind convolutions: the bits of the tool, and code without a complaint."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = emitted("vmap", folder)
        expected = run_by_tool("vmap", folder, "--numerics", "exact")
        for i, one in enumerate(outputs(program, "exact")):
            assert torch.equal(one, expected[f"out{i}"]), f"vmap out{i}"
        programs = [str(program)]
        for model in ("vision_small.pt", "vision_small_dyn.pt2", "prims.pt2"):  # some of whose operators stay with torch
            programs.append(str(folder / model))
            io = models / f"{model.partition('.')[0].removesuffix('_dyn')}.io.safetensors"
            subprocess.run([str(tool), "emit", str(models / model), "-o", programs[-1], "--io", str(io), "-q"], check=True)
            outputs(pathlib.Path(programs[-1]), "fast")
        ruff = shutil.which("ruff", path=f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        rules = ["--isolated", "--select", "E,F,W,I,N,B", "--line-length", "130", "--ignore", "I001"]
        found = subprocess.run([ruff, "check", *rules, *programs], capture_output=True, text=True)
        assert found.returncode == 0, found.stdout
