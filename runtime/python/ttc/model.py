"""Models: compiling, loading, running."""

from __future__ import annotations

import io
import json
import os
import pathlib
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import torch

from ._library import native
from .errors import UsageError
from .reports import Comparison, CompileReport, Profile, RunReport
from .tensors import Given

Source = Union[str, os.PathLike, "Model", torch.export.ExportedProgram, torch.jit.ScriptModule, torch.nn.Module]
PerModule = Union[str, Mapping[str, Any], Sequence[str]]
Shapes = Union[str, Sequence[str], Mapping[str, Union[str, Sequence[int]]]]
Replacements = Union[Mapping[str, Any], Sequence[Union[str, Mapping[str, Any]]]]


class Model:
    """A model that runs: ``ttc.load`` and ``ttc.compile`` make them.

    Call it with torch tensors, numpy arrays or numbers, in the order of the signature or by name; lists and tuples of
    them are taken apart. Elements are not copied: inputs that the model writes are written where they are, outputs are
    torch tensors (arrays where only arrays were given) over the library's memory. One output comes bare, several as a
    tuple. While it runs, other threads of Python run too. Buffers keep their values from call to call.
    """

    def __init__(self, model: Any, report: Optional[CompileReport], session: Dict[str, Any]) -> None:
        self._model = model
        self._session_options = session
        self._session: Any = None
        self._inputs: List[dict] = model.inputs()
        self._outputs: List[dict] = model.outputs()
        self.report = report
        """What the compile did; None for a file that was rewritten before."""

    # ---- what it is

    @property
    def inputs(self) -> List[dict]:
        """Name, kind, type and dims of each input; a free dim is its symbol."""
        return [dict(one) for one in self._inputs]

    @property
    def outputs(self) -> List[dict]:
        return [dict(one) for one in self._outputs]

    @property
    def arch(self) -> str:
        """The architecture it was rewritten for."""
        return self._model.arch

    @property
    def path(self) -> str:
        return self._model.path

    def save(self, path: Union[str, os.PathLike]) -> None:
        """Writes it as .pt2, or TorchScript where the name ends in .pt; stock PyTorch opens both."""
        self._model.save(os.fspath(path))

    # ---- running

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outputs = self.run(args, kwargs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any] = {}, keep: Sequence[int] = ()) -> List[Any]:
        """As a call, always with a list of outputs. Those whose positions `keep` has stay on the device where nothing
        on the host needs them, and may be inputs of the next run."""
        given = Given()
        for value in self._in_order(args, kwargs):
            given.add(value)
        outputs = self.session.run(given.tensors, list(keep))
        given.written_back()
        return given.results(outputs, self._outputs)

    def _in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> List[Any]:
        # None stands for an argument that the model was made without.
        flat: List[Any] = []
        for value in args:
            flat.extend(leaf for leaf in _leaves(value) if leaf is not None)
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        if not kwargs:
            return flat
        names = [one["name"] for one in self._inputs]
        rest: Dict[str, Any] = {}
        for name, value in kwargs.items():
            leaves = _leaves(value)
            nested = isinstance(value, (list, tuple, dict))
            rest.update({f"{name}.{i}": leaf for i, leaf in enumerate(leaves)} if nested else {name: value})
        for name in names[len(flat) :]:
            if name not in rest:
                break
            flat.append(rest.pop(name))
        if rest:
            raise UsageError(f"no input is left for {', '.join(rest)}", f"the inputs are {', '.join(names)}")
        return flat

    @property
    def session(self) -> Any:
        if self._session is None:
            self._session = native.Session(self._model, json.dumps(self._session_options))
        return self._session

    def cancel(self) -> None:
        """Ends the run under way in another thread, which raises ``ttc.errors.Cancelled``."""
        self.session.cancel()

    def reset(self) -> None:
        """Back to the buffers of the file."""
        self.session.reset()

    def run_report(self) -> RunReport:
        """What served the last run."""
        return RunReport(self.session.report())

    def profile(self) -> Profile:
        """What each op cost; empty unless the model was made with ``profile=True``."""
        return Profile(self.session.profile())

    def memory(self) -> List[dict]:
        """DRAM and L1 of its device."""
        return self.session.memory()

    def __repr__(self) -> str:
        takes = ", ".join(f"{one['name']}: {one['text']}" for one in self._inputs)
        gives = ", ".join(one["text"] for one in self._outputs)
        return f"<ttc model for {self.arch or 'the CPU'}: ({takes}) -> {gives}>"

    def _repr_html_(self) -> str:
        import html

        text = f"<p>{html.escape(repr(self)[1:-1])}</p>"
        return text + (self.report._repr_html_() if self.report is not None else "")


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, Mapping):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    return [value]


# ---- options ---------------------------------------------------------------------------------------------------------


def _per_module(value: PerModule) -> List[str]:
    """["GLOB=VALUE"], in the order that they were given in."""

    def text(one: Any) -> str:
        return ("on" if one else "off") if isinstance(one, bool) else str(one)

    if isinstance(value, Mapping):
        return [f"{glob}={text(one)}" for glob, one in value.items()]
    return [text(value)] if isinstance(value, (str, bool)) else [text(one) for one in value]


def _replacements(value: Replacements) -> str:
    """As --replace-file has them."""
    if isinstance(value, Mapping):
        return json.dumps(value)
    texts = [one for one in value if isinstance(one, str)]
    maps = [one for one in value if not isinstance(one, str)]
    for one in texts:
        if "=" not in one:
            raise UsageError(f"replace: '{one}' is not CLASS=TO")
    first = [dict(one.split("=", 1) for one in texts)] if texts else []
    return json.dumps(first + maps)


def _shapes(value: Shapes) -> Dict[str, Union[str, List[int]]]:
    if isinstance(value, Mapping):
        return {key: one if isinstance(one, str) else list(one) for key, one in value.items()}
    texts = [value] if isinstance(value, str) else list(value)
    for one in texts:
        if not isinstance(one, str) or "=" not in one:
            raise UsageError(f"shape: {one!r} is not NAME=8x128")
    return dict(one.split("=", 1) for one in texts)


def options_text(given: Mapping[str, Any]) -> str:
    """Options that somebody gave (None: nobody did), as the library takes them."""
    out: Dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name in ("weight_dtype", "fidelity", "fp32_acc"):
            value = _per_module(value)
        elif name == "replace":
            value = _replacements(value)
        elif name == "input" and isinstance(value, Mapping):
            value = [f"{key}={one}" for key, one in value.items()]
        elif name == "shape":
            value = _shapes(value)
        elif isinstance(value, str) and name in _lists:
            value = [value]
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        elif isinstance(value, (tuple, list)):
            value = [os.fspath(one) for one in value]
        out[name] = value
    return json.dumps(out)


_lists = ("exclude", "fallback_op", "fallback_module", "fallback_node", "input", "passes", "disable", "embed_tests", "carry")


def native_model(source: Source, args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None) -> Any:
    """The library's model of a path, an exported program, a TorchScript module, or an nn.Module, which is exported."""
    if isinstance(source, Model):
        return source._model
    if isinstance(source, (str, os.PathLike)):
        return native.Model.load(os.fspath(source))
    if isinstance(source, torch.jit.ScriptModule):
        return _saved(source, torch.jit.save, source.state_dict())
    if isinstance(source, torch.nn.Module):
        if args is None and kwargs is None:
            raise UsageError("a module is exported with example inputs", "args=(x, ...)")
        with torch.no_grad():
            source = torch.export.export(source, tuple(args or ()), dict(kwargs or {}))
    if not isinstance(source, torch.export.ExportedProgram):
        raise UsageError(f"a {type(source).__name__} is no model", "give a path, an ExportedProgram, or a module with args=")
    return _saved(source, torch.export.save, source.state_dict)


in_memory_bytes = 64 << 20
"""Models with larger weights pass through a file, whose pages are mapped, and not through memory twice."""


def _saved(source: Any, save: Any, weights: Mapping[str, Any]) -> Any:
    if sum(one.nbytes for one in weights.values() if isinstance(one, torch.Tensor)) <= in_memory_bytes:
        file = io.BytesIO()
        save(source, file)
        return native.Model.from_bytes(file.getvalue(), "model.pt2")
    with tempfile.TemporaryDirectory(prefix="ttc-") as folder:  # what is mapped outlives its name
        path = os.path.join(folder, "model.pt2")
        save(source, path)
        return native.Model.load(path)


# ---- the functions ---------------------------------------------------------------------------------------------------


def compile(
    model: Source,
    args: Optional[Sequence[Any]] = None,
    kwargs: Optional[Mapping[str, Any]] = None,
    *,
    numerics: str = "fast",
    mode: str = "device",
    profile: bool = False,
    arch: Optional[str] = None,
    replace: Optional[Replacements] = None,
    replace_file: Optional[Union[str, os.PathLike]] = None,
    exclude: Optional[Union[str, Sequence[str]]] = None,
    fallback_op: Optional[Union[str, Sequence[str]]] = None,
    fallback_module: Optional[Union[str, Sequence[str]]] = None,
    fallback_node: Optional[Union[str, Sequence[str]]] = None,
    require_full: Optional[bool] = None,
    weight_dtype: Optional[PerModule] = None,
    activation_dtype: Optional[str] = None,
    fidelity: Optional[PerModule] = None,
    fp32_acc: Optional[Union[bool, PerModule]] = None,
    shape: Optional[Shapes] = None,
    input: Optional[Union[Mapping[str, Any], Sequence[str]]] = None,
    io: Optional[Union[str, os.PathLike]] = None,
    passes: Optional[Sequence[str]] = None,
    disable: Optional[Union[str, Sequence[str]]] = None,
    stop_after: Optional[str] = None,
    rewrite_limit: Optional[int] = None,
    verify_each: Optional[bool] = None,
    reproducer: Optional[Union[str, os.PathLike]] = None,
    keep_original: Optional[bool] = None,
    embed_tests: Optional[Sequence[Union[str, os.PathLike]]] = None,
    test_pcc: Optional[float] = None,
) -> Model:
    """Rewrites a model for the device: a path (.pt2, TorchScript), an ExportedProgram, or an nn.Module with example
    inputs `args` and `kwargs`.

    `numerics`, `mode` and `profile` are those of ``ttc.load``; all others are the flags of ``ttc compile``:

    - arch: an architecture profile (``ttc.archs()``), n150 where none is given, or a profile file
    - replace: {"torch.nn.Linear": "TTNNLinear"}, a list of such maps (passes in order), or ["CLASS=TO", ...]
    - exclude, fallback_op, fallback_module, fallback_node: globs that stay on the CPU
    - weight_dtype: "bfloat8_b", {"encoder.*": "bfloat8_b"} or ["encoder.*=bfloat8_b", ...]; the last that matches wins
    - fidelity, fp32_acc: likewise, "HiFi2" and True
    - require_full: raises ``Unsupported`` where anything stays on the CPU
    - shape: {"x": (1, 128)}, sizes of free dims
    - keep_original, embed_tests, test_pcc: what the file carries along

    The report is the result's ``report``. Raises ``ttc.Error``."""
    given = {name: value for name, value in locals().items() if name in _compile_names}
    made, report = native.compile(native_model(model, args, kwargs), options_text(given))
    return Model(made, CompileReport(report), {"numerics": numerics, "mode": mode, "profile": profile})


_compile_names = frozenset(native.compile_option_names())


def check(model: Source, args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None, **options: Any) -> CompileReport:
    """What ``ttc.compile`` with these options would put on the device, and why not the rest."""
    _known(options, _compile_names, "check")
    return CompileReport(native.check(native_model(model, args, kwargs), options_text(options)))


def load(
    path: Union[str, os.PathLike],
    arch: Optional[str] = None,
    numerics: str = "fast",
    *,
    mode: str = "device",
    profile: bool = False,
    dispatcher: Optional[str] = None,
    dispatch_mode: Optional[str] = None,
    dispatch_config: Optional[Union[str, os.PathLike]] = None,
    static_kernels: Optional[Mapping[str, str]] = None,
    stream_weights: Optional[bool] = None,
) -> Model:
    """A model file, to be called. One that was not rewritten is compiled with default options, as ``ttc run`` does.

    `numerics` is fast or exact (the silicon's arithmetic bit for bit); `mode` device, normal (what falls back to the
    CPU is an error) or cpu; the others are those of ``ttc run``."""
    model = native.Model.load(os.fspath(path))
    report = None
    if not model.is_rewritten:
        model, found = native.compile(model, options_text({"arch": arch}))
        report = CompileReport(found)
    session = {
        "numerics": numerics,
        "mode": mode,
        "profile": profile,
        "arch": arch,
        "dispatcher": dispatcher,
        "dispatch_mode": dispatch_mode,
        "dispatch_config": None if dispatch_config is None else os.fspath(dispatch_config),
        "static_kernels": None if static_kernels is None else dict(static_kernels),
        "stream_weights": stream_weights,
    }
    return Model(model, report, {name: value for name, value in session.items() if value is not None})


_compare_names = frozenset(native.compare_option_names())


def compare(model: Source, inputs: Optional[Sequence[Any]] = None, **options: Any) -> Comparison:
    """Runs the model twice, node by node, on the device and in LibTorch (against="cpu"), exact or fast numerics.

    `inputs` are tensors in the order of the signature; else the flags of ``ttc compare`` say what is given:
    io="x.safetensors", input={"x": "zeros"}, numerics, against, by="module", pcc, max_rel, mode, ..."""
    _known(options, _compare_names, "compare")
    source = native_model(model)
    if inputs is None:
        return Comparison(native.compare(source, options_text(options)))
    if "io" in options:
        raise UsageError("inputs are given twice: inputs and io")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "inputs.safetensors"
        write_safetensors(path, {f"in{i}": value for i, value in enumerate(inputs)})
        return Comparison(native.compare(source, options_text({**options, "io": path})))


_safetensors_names = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def write_safetensors(path: pathlib.Path, tensors: Mapping[str, Any]) -> None:
    """Tensors by name, in the format of ``--io``."""
    header, parts, at = {}, [], 0
    for name, value in tensors.items():
        tensor = torch.as_tensor(value).detach().contiguous().cpu()
        if tensor.dtype not in _safetensors_names:
            raise UsageError(f"{name}: tensors of {tensor.dtype} can't be written")
        data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        header[name] = {
            "dtype": _safetensors_names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + len(data)],
        }
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def _known(options: Mapping[str, Any], names: frozenset, function: str) -> None:
    for name in options:
        if name not in names:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'; options are {sorted(names)}")
