"""ttnn.model_preprocessing: parameters of torch modules as TT-NN takes them, by the modules' names."""

from __future__ import annotations

import inspect
import pathlib
import shutil
from typing import Any, Callable, Dict, Optional, Union

import torch

from .places import from_torch, to_device
from .tensor import Tensor
from .types import DataType, Layout, bfloat16, int32, uint8, uint16, uint32

_of_torch = {torch.uint8: uint8, torch.int16: uint16, torch.int32: int32, torch.int64: uint32}


class ModuleArgs(dict):
    """What a module was called with, by name: also as attributes."""

    __getattr__ = dict.__getitem__
    __delattr__ = dict.__delitem__


class Conv2dArgs(ModuleArgs):
    """Of a convolution."""


class ConvTranspose2dArgs(ModuleArgs):
    """Of a transposed convolution."""


class MaxPool2dArgs(ModuleArgs):
    """Of a pool."""


class GroupNormArgs(ModuleArgs):
    """Of a norm over groups."""


class ParameterList(list):
    """Parameters of a ModuleList's modules."""

    def __contains__(self, index: Any) -> bool:
        return isinstance(index, int) and index < len(self)

    def __repr__(self) -> str:
        return _text(self)


class ParameterDict(dict):
    """Parameters by their names: also as attributes."""

    __getattr__ = dict.__getitem__
    __delattr__ = dict.__delitem__

    def __repr__(self) -> str:
        return _text(self)


Parameters = Union[ParameterDict, ParameterList]


def _text(value: Any, indent: str = "") -> str:
    if isinstance(value, (ParameterDict, ParameterList, ModuleArgs)):
        named = isinstance(value, dict)
        if not value:
            return "{}" if named else "[]"
        inner = indent + "  "
        items = [f"{key}: {_text(one, inner)}" for key, one in value.items()] if named else [_text(one, inner) for one in value]
        lines = ",\n".join(inner + one for one in items)
        return ("{\n" if named else "[\n") + lines + f"\n{indent}" + ("}" if named else "]")
    if isinstance(value, Tensor):
        return f"ttnn.Tensor(shape={value.shape}, layout={value.layout}, dtype={value.dtype})"
    if isinstance(value, torch.Tensor):
        return f"torch.Tensor(shape={value.shape}, dtype={value.dtype})"
    return repr(value)


def make_parameter_dict(dictionary: dict) -> ParameterDict:
    """A dictionary of dictionaries, whose entries are attributes too."""
    if isinstance(dictionary, ParameterDict):
        return dictionary
    plain = lambda value: isinstance(value, dict) and not isinstance(value, ModuleArgs)  # noqa: E731
    return ParameterDict({key: make_parameter_dict(value) if plain(value) else value for key, value in dictionary.items()})


# ---- the parameters of one module -----------------------------------------------------------------------------------------


def preprocess_linear_weight(weight: torch.Tensor, *, dtype: DataType, layout: Layout = Layout.TILE, **options: Any) -> Tensor:
    """A weight [N, K] as [K, N]."""
    return from_torch(weight.T.contiguous(), dtype=dtype, layout=layout)


def preprocess_linear_bias(bias: torch.Tensor, *, dtype: DataType, layout: Layout = Layout.TILE, **options: Any) -> Tensor:
    """A bias [N] as one row."""
    return from_torch(bias.reshape((1, -1)), dtype=dtype, layout=layout)


def preprocess_layernorm_parameter(parameter: torch.Tensor, *, dtype: DataType, layout: Layout = Layout.TILE) -> Tensor:
    """A weight or bias [N] as one row."""
    return from_torch(parameter.reshape((1, -1)), dtype=dtype, layout=layout)


def preprocess_embedding_weight(weight: torch.Tensor, *, dtype: DataType, layout: Layout = Layout.ROW_MAJOR) -> Tensor:
    """A table as it is, in rows."""
    return from_torch(weight, dtype=dtype, layout=layout)


def fold_batch_norm2d_into_conv2d(conv: torch.nn.Conv2d, bn: torch.nn.BatchNorm2d) -> tuple:
    """The weight and bias of a convolution that does what it and the norm behind it do."""
    if not bn.track_running_stats:
        raise RuntimeError("BatchNorm2d must have track_running_stats=True to be folded into Conv2d")
    scale = bn.weight / torch.sqrt(bn.running_var + bn.eps)
    before = 0 if conv.bias is None else conv.bias
    return conv.weight * scale[:, None, None, None], (before - bn.running_mean) * scale + bn.bias


def default_preprocessor(model: torch.nn.Module, name: str, ttnn_module_args: Any = None) -> ParameterDict:
    """The parameters of a linear layer, a layer norm or a table; of others nothing."""
    made: Dict[str, Tensor] = {}
    if isinstance(model, torch.nn.Linear):
        made["weight"] = preprocess_linear_weight(model.weight, dtype=bfloat16)
        if model.bias is not None:
            made["bias"] = preprocess_linear_bias(model.bias, dtype=bfloat16)
    elif isinstance(model, torch.nn.LayerNorm):
        for key, parameter in model.named_parameters():
            made[key] = preprocess_layernorm_parameter(parameter, dtype=bfloat16)
    elif isinstance(model, torch.nn.Embedding):
        made["weight"] = preprocess_embedding_weight(model.weight, dtype=bfloat16)
    return make_parameter_dict(made)


def _own(model: torch.nn.Module, name: str, convert: bool) -> Dict[Any, Any]:
    """The parameters of a module itself, without those of its children."""
    parameters = {key: one for key, one in model.named_parameters() if "." not in key}
    if not convert:
        if isinstance(model, torch.nn.Linear):
            parameters["weight"] = model.weight.T.contiguous()
        return parameters
    known = default_preprocessor(model, name)
    if known:
        return known
    return {key: from_torch(one, dtype=_of_torch.get(one.dtype, bfloat16)) for key, one in parameters.items()}


def _custom(preprocessor: Callable[..., Any], model: torch.nn.Module, name: str, convert: Callable[..., bool], args: Any) -> Any:
    names = list(inspect.signature(preprocessor).parameters)
    if len(names) < 2:
        raise RuntimeError("Custom preprocessor must have at least two parameters: model and name")
    offered = {"ttnn_module_args": args, "convert_to_ttnn": convert}
    for one in names[2:]:
        if one not in offered:
            raise RuntimeError(f"Unsupported parameter: {one}")
    return preprocessor(model, name, **{one: offered[one] for one in names[2:]})


def convert_torch_model_to_ttnn_model(
    model: torch.nn.Module,
    *,
    convert_to_ttnn: Callable[..., bool],
    custom_preprocessor: Optional[Callable[..., Any]],
    name: str,
    ttnn_module_args: Any = None,
) -> Parameters:
    """The parameters of a module and of those in it."""

    def of(child: torch.nn.Module, key: Any) -> Parameters:
        inner = ttnn_module_args.get(key) if isinstance(ttnn_module_args, dict) else None
        return convert_torch_model_to_ttnn_model(child, convert_to_ttnn=convert_to_ttnn, custom_preprocessor=custom_preprocessor,
                                                 name=f"{name}.{key}" if name else f"{key}", ttnn_module_args=inner)  # fmt: skip

    if isinstance(model, torch.nn.ModuleList):
        return ParameterList([of(child, index) for index, child in enumerate(model.children())])
    if custom_preprocessor is not None:
        made = _custom(custom_preprocessor, model, name, convert_to_ttnn, ttnn_module_args)
        if made:
            return make_parameter_dict(made)
    parameters = make_parameter_dict(_own(model, name, convert_to_ttnn(model, name)))
    for key, child in model.named_children():
        inner = of(child, int(key) if key.isdigit() else key)
        if inner:
            parameters[int(key) if key.isdigit() else key] = inner
    return parameters


def move_to_device(object: Any, device: Any) -> Any:
    """The parameters with those of TT-NN's on the device."""
    if isinstance(object, ParameterDict):
        for key, value in list(object.items()):
            object[key] = move_to_device(value, device)
    elif isinstance(object, ParameterList):
        object[:] = [move_to_device(one, device) for one in object]
    elif isinstance(object, Tensor):
        return to_device(object, device)
    return object


# ---- kept in files --------------------------------------------------------------------------------------------------------


def _dump(path: pathlib.Path, parameters: Any) -> None:
    from .files import dump_tensor

    path.mkdir(parents=True)
    for key, value in parameters.items() if isinstance(parameters, dict) else enumerate(parameters):
        place = path / str(key)
        if isinstance(value, (ParameterDict, ParameterList)):
            _dump(place, value)
        elif isinstance(value, Tensor):
            dump_tensor(f"{place}.tensorbin", value)
        elif isinstance(value, torch.Tensor):
            torch.save(value.detach(), f"{place}.pt")
        else:
            raise RuntimeError(f"Unsupported type: {type(value)}")


def _load(path: pathlib.Path) -> Parameters:
    from .files import load_tensor

    found: Dict[Any, Any] = {}
    for one in path.iterdir():
        if one.name == "version.txt":
            continue
        key = int(one.stem) if one.stem.isdigit() else one.stem
        found[key] = _load(one) if one.is_dir() else torch.load(one) if one.suffix == ".pt" else load_tensor(one)
    if found and all(isinstance(key, int) for key in found):
        return ParameterList([found[key] for key in sorted(found)])
    return ParameterDict(found)


def _made(initialize_model: Callable[[], torch.nn.Module], convert: Any, custom: Any, prefix: str) -> Parameters:
    model = initialize_model().eval()
    return convert_torch_model_to_ttnn_model(
        model, convert_to_ttnn=convert or (lambda *args: True), custom_preprocessor=custom, name=prefix or ""
    )


def preprocess_model_parameters(
    *,
    model_name: Optional[str] = None,
    version: Optional[str] = None,
    initialize_model: Optional[Callable[[], torch.nn.Module]] = None,
    convert_to_ttnn: Optional[Callable[..., bool]] = None,
    custom_preprocessor: Optional[Callable[..., Any]] = None,
    device: Any = None,
    prefix: str = "",
) -> Parameters:
    """A model's parameters on the device; with a name they are kept in files, for calls with that name and version."""
    from .system import CONFIG

    if model_name is None or CONFIG.model_cache_path is None:
        if initialize_model is None:
            raise RuntimeError("initialize_model is required when cache is disabled")
        parameters = _made(initialize_model, convert_to_ttnn, custom_preprocessor, prefix)
        return parameters if device is None else move_to_device(parameters, device)
    place = pathlib.Path(CONFIG.model_cache_path) / model_name.replace("/", "_")
    stamp = place / "version.txt"
    if not (stamp.exists() and stamp.read_text() == str(version)):
        if initialize_model is None:
            raise RuntimeError(f"No model in the cache of the name {model_name}: initialize_model is required")
        shutil.rmtree(place, ignore_errors=True)
        _dump(place, _made(initialize_model, convert_to_ttnn, custom_preprocessor, prefix))
        stamp.write_text(str(version))
    parameters = _load(place)
    return parameters if device is None else move_to_device(parameters, device)


def preprocess_model(*, run_model: Optional[Callable[..., Any]] = None, reader_patterns_cache: Any = None, **options: Any) -> Parameters:
    """preprocess_model_parameters; what modules are called with is not traced."""
    if run_model is not None:
        raise NotImplementedError("ttnn.model_preprocessing.preprocess_model: run_model is not emulated")
    return preprocess_model_parameters(**options)
