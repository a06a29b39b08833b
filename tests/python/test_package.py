"""ttc.compile, load, check and compare; memory that is shared; errors; the interpreter's lock."""

import pathlib
import pickle
import re
import subprocess
import tempfile
import threading
import time
import warnings
from typing import Optional

import numpy
import torch
import ttc
from helpers import agree, cloned, leaves, models, pcc, raises, root

import_seconds = 0.0  # suite.py measures it
tool = pathlib.Path(ttc.ops_library()).parent / "ttc"


def program(name: str) -> torch.export.ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.load(models / f"{name}.pt2")


class Mlp(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(64, 128), torch.nn.Linear(128, 32)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


class Twice(torch.nn.Module):
    """A module that is called twice, the second time before the output's transfer."""

    def __init__(self):
        super().__init__()
        self.block = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.LayerNorm(32), torch.nn.GELU())

    def forward(self, x):
        return self.block(self.block(x))


def test_import_is_quick():
    assert import_seconds < 0.3, import_seconds


def test_compile_of_all_sources():
    exported, module = program("bert_small"), Mlp()
    args, kwargs = exported.example_inputs
    want = exported.module()(*args, **kwargs)
    io = models / "bert_small.io.safetensors"  # TorchScript carries no shapes
    for source, options in ((exported, {}), (models / "bert_small.pt2", {}), (str(models / "bert_small.pt"), {"io": io})):
        model = ttc.compile(source, **options)
        agree(model(*args, **kwargs), want)
        assert model.report.cpu_nodes == 0 and model.report.nodes > 0
    x = torch.randn(8, 64)
    agree(ttc.compile(module, (x,))(x), module(x).detach())
    script = torch.jit.trace(module, (x,))
    agree(ttc.compile(script, shape={"x": "f32:8x64"})(x), module(x).detach())
    with raises(ttc.UsageError, "example inputs"):
        ttc.compile(module)
    with raises(ttc.UsageError, "is no model"):
        ttc.compile(3)


def test_large_models_pass_through_a_file():
    x, kept = torch.randn(8, 64), ttc.model.in_memory_bytes
    want = ttc.compile(Mlp(), (x,), keep_original=True)(x)
    ttc.model.in_memory_bytes = 0
    try:
        for source in (Mlp(), torch.export.export(Mlp(), (x,))):
            model = ttc.compile(source, (x,), keep_original=True)
            assert torch.equal(model(x), want)
            with tempfile.TemporaryDirectory() as folder:
                model.save(folder + "/m.pt2")
                assert torch.equal(ttc.load(folder + "/m.pt2")(x), want)
    finally:
        ttc.model.in_memory_bytes = kept


def test_options_are_the_command_lines():
    listed = lambda command: set(
        re.findall(r"^  (?:-\w,)?--([a-z0-9-]+)", subprocess.run([tool, command, "--help"], capture_output=True, text=True).stdout, re.M)
    )
    everywhere = {"json", "verbose", "quiet", "strict", "force", "color", "threads", "options", "plugin"}
    printed = {"dump-dir", "dump-before", "dump-after", "print-pipeline", "time-passes", "stats"}
    searched = {"min-pcc", "min-snr", "max-top1-drop", "pareto", "choice"}
    flags = {name.replace("-", "_") for name in listed("compile") - everywhere - printed - searched - {"output", "help"}}
    import inspect

    session = {"model", "args", "kwargs", "numerics", "mode", "profile"}
    assert set(inspect.signature(ttc.compile).parameters) - session == flags
    flags = {name.replace("-", "_") for name in listed("compare") - everywhere - {"help", "reproducer", "stream-weights"}}
    flags = {name for name in flags if not name.startswith("dispatch") and name != "static_kernel"}
    from ttc._library import native

    assert set(native.compare_option_names()) == flags


def test_options_count():
    x = torch.randn(8, 64)
    full = ttc.compile(Mlp(), (x,))
    blocks = ttc.compile(Mlp(), (x,), weight_dtype={"*": "bfloat16", "up": "bfloat4_b"}, fidelity="LoFi", fp32_acc=True)
    formats = {row["path"]: (row["weight_format"], row["fidelity"]) for row in blocks.report.modules if row["op"] == "tt.linear"}
    assert formats == {"up": ("bfloat4_b", "LoFi"), "down": ("bfloat16", "LoFi")}, formats
    assert blocks.report.weight_bytes_out < full.report.weight_bytes_out
    kept = ttc.check(Mlp(), (x,), fallback_module="down")
    assert kept.cpu_nodes == 1 and kept.fallbacks[0]["module"] == "down"
    with raises(ttc.Unsupported) as error:
        ttc.compile(Mlp(), (x,), fallback_module=["down"], require_full=True)
    assert error.value.exit_code == 3
    only = ttc.check(Mlp(), (x,), replace=["module:up=TTNNLinear"])
    assert [row["path"] for row in only.modules] == ["up"]
    assert ttc.check(Mlp(), (x,), replace={"module:up": "TTNNLinear"}).modules == only.modules
    for shape in ("x=4x32", ["x=4x32"], {"x": "4x32"}, {"x": [4, 32]}):
        assert ttc.check(torch.jit.script(Twice().eval()), shape=shape).nodes == 6, shape
    with raises(ttc.UsageError, "NAME=8x128"):
        ttc.check(torch.jit.script(Twice().eval()), shape=[4, 32])
    with raises(TypeError, "wight_dtype"):
        ttc.check(Mlp(), (x,), wight_dtype="bfloat8_b")


def test_numerics_are_those_of_the_tool():
    x = torch.randn(8, 64)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.pt2"
        ttc.compile(Mlp(), (x,)).save(path)
        fast, exact = ttc.load(path), ttc.load(path, numerics="exact")
        assert fast.arch == "n150" and fast.report is None
        agree(exact(x), fast(x), 0.999)
        assert not torch.equal(exact(x), fast(x))
        ttc.register_ops()
        stock = torch.export.load(path).module()
        assert torch.equal(stock(x), fast(x))
    plain = ttc.load(models / "vit_small.pt2", arch="p150")
    assert plain.arch == "p150" and plain.report.nodes > 0


def test_modules_that_are_called_twice_unflatten():
    ttc.register_ops()
    inputs = (torch.randn(4, 32),)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "twice.pt2"
        for model in (torch.export.export(Twice().eval(), inputs), torch.jit.trace(Twice().eval(), inputs)):
            ttc.compile(model, shape={"x": "4x32"}).save(path)
            program = torch.export.load(path)
            nested = torch.export.unflatten(program)
            assert torch.equal(nested(*inputs), program.module()(*inputs))
            assert hasattr(nested.block, "0")


class Scaled(torch.nn.Module):
    def forward(self, x, scale: Optional[torch.Tensor] = None):
        return x + 1 if scale is None else x * scale


def test_none_is_an_argument_that_is_not_there():
    x = torch.randn(4, 8)
    for model in (ttc.compile(Scaled(), (x, None)), ttc.compile(torch.jit.script(Scaled()))):
        agree(model(x, None), x + 1, 0.999)
        assert torch.equal(model(x, scale=None), model(x))
        with raises(ttc.UsageError):
            model(x, x)
        with raises(ttc.UsageError):
            model(None)


class Passes(torch.nn.Module):
    def forward(self, x, y):
        return x, x + y


def test_memory_is_shared():
    from ttc import tensors

    for made in (torch.randn(5, 7), torch.ones(3, dtype=torch.int64), torch.randn(4).bfloat16()):
        view = tensors.of_torch(made)
        assert view.address == made.data_ptr() and tensors.to_torch(view).data_ptr() == made.data_ptr()
    array = numpy.arange(6.0).reshape(2, 3)
    given = tensors.Given()
    given.add(array)
    assert given.tensors[0].address == array.ctypes.data
    # What is handed through keeps its memory, and the memory its owner.
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    first, total = ttc.compile(Passes(), (x, y))(x, y)
    assert first.data_ptr() == x.data_ptr()
    copy = first.clone()
    del x
    torch.randn(4, 4)
    assert torch.equal(first, copy)
    assert total.data_ptr() not in (first.data_ptr(), y.data_ptr())


def test_inputs_are_written_where_they_are():
    exported = program("input_mut")
    args, kwargs = exported.example_inputs
    model, theirs, ours = ttc.compile(exported), cloned(args), cloned(args)
    exported.module()(*theirs, **cloned(kwargs))
    places = [x.data_ptr() for x in leaves(ours)]
    model(*ours, **cloned(kwargs))
    assert places == [x.data_ptr() for x in leaves(ours)]
    changed = [i for i, (a, b) in enumerate(zip(leaves(args), leaves(theirs))) if not torch.equal(a, b)]
    assert changed
    for i in changed:
        assert pcc(leaves(ours)[i], leaves(theirs)[i]) > 0.99
    # Where the memory can't be handed over as it is, what was written comes back all the same.
    strided = [x.t().contiguous().t() if x.dim() == 2 else x.repeat_interleave(2)[::2] if x.dim() == 1 else x for x in leaves(cloned(args))]
    model(*strided, **cloned(kwargs))
    for i in changed:
        assert torch.equal(strided[i], leaves(ours)[i])


def test_arrays_numbers_and_names():
    x = torch.randn(8, 64)
    model, frozen = ttc.compile(Mlp(), (x,)), x.numpy().copy()
    want = model(x)
    frozen.flags.writeable = False
    for array in (x.numpy(), frozen, numpy.asfortranarray(x.numpy()), x.flip(0).numpy()[::-1]):
        got = model(array)
        assert isinstance(got, numpy.ndarray) and (got == want.numpy()).all()
    assert torch.equal(model(x=x), want)
    assert torch.equal(model([x]), want)
    with raises(ttc.UsageError, "no input is left for z"):
        model(x, z=x)
    with raises(ttc.UsageError, "a str"):
        model("x")
    with raises(ttc.UsageError, "dense"):
        model(x.to_sparse())
    with raises(ttc.UsageError, "takes 1 inputs, 2 are given"):
        model(x, x)


def test_errors():
    with raises(ttc.BadFile, "cannot open") as error:
        ttc.load("/nonexistent/model.pt2")
    assert error.value.exit_code == 4 and error.value.file == "/nonexistent/model.pt2"
    assert isinstance(error.value, ttc.Error) and isinstance(error.value, RuntimeError)
    with raises(ttc.UsageError, "is none of bfloat16") as error:
        ttc.compile(models / "tiny.pt2", weight_dtype="bfloat9")
    assert error.value.exit_code == 2 and isinstance(error.value, ValueError)
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is ttc.UsageError and again.hint == error.value.hint
    with raises(ttc.UsageError, "hint: "):
        ttc.compile(models / "tiny.pt2", arch="n15")
    codes = {kind.kind: kind.exit_code for kind in ttc.Error.__subclasses__()}
    assert codes == {"failed": 1, "usage": 2, "unsupported": 3, "bad_file": 4, "cancelled": 1, "bug": 70}


def test_other_threads_go_on_and_cancel():
    model = ttc.compile(torch.nn.Linear(1024, 1024), (torch.randn(1024, 1024),), numerics="exact")
    x = torch.randn(1024, 1024)
    ended, found = [], []

    def run():
        try:
            found.append(model(x))
        finally:
            ended.append(time.perf_counter())

    thread = threading.Thread(target=run)
    count, start = 0, time.perf_counter()
    thread.start()
    while not ended:
        count += 1
        time.sleep(0.0005)
    thread.join()
    took = ended[0] - start
    # With the lock held there would be a handful of turns, before the run and after it.
    assert count > max(10, took / 0.1), (count, took)


class Loop(torch.nn.Module):
    def forward(self, x):
        for _ in range(400):
            x = torch.tanh(x) @ x
        return x


def test_a_run_is_cancelled():
    x = torch.randn(256, 256)
    model = ttc.compile(Loop(), (x,), numerics="exact")
    model.session
    threading.Timer(0.2, model.cancel).start()
    with raises(ttc.Cancelled):
        model(x)


def test_reports_in_notebooks():
    model = ttc.compile(Mlp(), (torch.randn(8, 64),), fallback_module="down", profile=True)
    html = model.report._repr_html_()
    assert "<table>" in html and "down" in html and model.report.summary in html
    assert model.report.to_dict()["arch"] == "n150" and "down" in str(model.report)
    model(torch.randn(8, 64))
    assert model.run_report().runs == 1 and model.run_report().cpu_nodes == 1
    assert any(row["kernel"].startswith("tt.linear") for row in model.profile())
    for shown in (model, model.run_report(), model.profile()):
        assert "<" in shown._repr_html_()


def test_compare():
    io = models / "bert_small.io.safetensors"
    found = ttc.compare(models / "bert_small.pt2", io=io)
    assert found and found.worst is not None and len(found.rows) > 10
    assert "<table>" in found._repr_html_()
    strict = ttc.compare(models / "bert_small.pt2", io=io, pcc=1.0)
    assert not strict and strict.first_failure is not None and "background" in strict._repr_html_()
    exported = program("bert_small")
    given = ttc.compare(ttc.compile(exported), leaves(exported.example_inputs), against="exact", by="module")
    assert given and len(given.rows) < len(found.rows)


def test_caches_stay_on_the_device():
    class Grows(torch.nn.Module):
        def forward(self, cache, x):
            return cache + x, (cache * x).sum()

    x = torch.randn(32, 32)
    model = ttc.compile(Grows(), (x, x))
    cache, total = model.run([x, x], keep=[0])
    assert cache.is_resident and isinstance(total, torch.Tensor)
    again, _ = model.run([cache, x])
    agree(again, 3 * x, 0.999)


def test_signatures_and_versions():
    model = ttc.compile(models / "bert_small_dyn.pt2")
    assert any(isinstance(dim, str) for one in model.inputs for dim in one["dims"])
    assert ttc.__version__ and "n150" in ttc.archs() and "tt.linear" in ttc.ops() and "TTNNLinear" in ttc.modules()
    assert (root / "runtime/python/ttc/py.typed").exists()


def test_types_name_what_the_library_has():
    """The stub of the compiled part, name by name: what type checkers know is what there is."""
    import ast

    from ttc._library import native

    def members(body: list) -> set:
        made = {one.name for one in body if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
        made |= {one.target.id for one in body if isinstance(one, ast.AnnAssign)}
        return {name for name in made if not name.startswith("_")}

    def public(found) -> set:
        return {name for name in vars(found) if not name.startswith("_")}

    stub = ast.parse((root / "runtime/python/ttc/_ttc.pyi").read_text())
    assert members(stub.body) == public(native)
    for one in stub.body:
        if isinstance(one, ast.ClassDef):
            assert members(one.body) == public(getattr(native, one.name)), one.name
