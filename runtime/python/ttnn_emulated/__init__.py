"""TT-NN's Python API on the emulated device.

    import ttc
    ttc.as_ttnn()                     # from here on `import ttnn` is this module, where no real one is loaded
    import ttnn

Tensors hold what the card's formats hold, calls run through the op records' kernels; TTRT_NUMERICS=exact in the
environment chooses the silicon's arithmetic, TTRT_ARCH the device. What is missing raises NotImplementedError with the
op's name: `python -m ttnn_emulated coverage` prints the table.
"""

from __future__ import annotations

import types as _modules
from typing import Any

from . import backward as _backward
from . import backward_of_several as _backward_of_several
from . import caches as _caches
from . import collectives as _collectives
from . import complex as _complex
from . import composed as _composed
from . import configs as _configs
from . import decoding as _decoding
from . import eltwise as _eltwise
from . import files as _files
from . import golden as _golden
from . import mesh as _mesh
from . import moreh as _moreh
from . import movement as _movement
from . import norms_in_parts as _norms_in_parts
from . import places as _places
from . import products as _products
from . import shards as _shards
from . import specs as _specs
from . import system as _system
from . import _ttnn, model_preprocessing, operations, tracer, transformer, types  # noqa: F401
from . import trace as _trace
from . import vision as _vision
from .coverage import missing_function as _missing
from .device import (  # noqa: F401
    Arch,
    CloseDevice,
    CreateDevice,
    Device,
    GetDefaultDevice,
    GetNumAvailableDevices,
    GetNumPCIeDevices,
    MeshDevice,
    SetDefaultDevice,
    close_device,
    close_mesh_device,
    get_arch_name,
    is_blackhole,
    is_wormhole_b0,
    manage_device,
    open_device,
    open_mesh_device,
    record_event,
    synchronize_device,
    wait_for_event,
)
from .tensor import Tensor

__version__ = "0.81.0+ttc"


def _export(module: Any, skip: tuple = ()) -> None:
    for name, value in vars(module).copy().items():
        own = getattr(value, "__module__", module.__name__) in (module.__name__, types.__name__)
        if not name.startswith("_") and own and not isinstance(value, _modules.ModuleType) and name not in skip:
            globals().setdefault(name, value)


def _make_traceable() -> None:
    """In their modules, so that operators of tensors and names of other modules are remembered too."""
    host = {"from_torch": "Writes", "as_tensor": "Writes", "to_device": "Writes", "copy_host_to_device_tensor": "Writes"}
    host |= {"to_torch": "Reads", "from_device": "Reads"}
    for module in (
        _eltwise, _products, _movement, _places, _vision, _caches, _composed, _moreh, _collectives, _shards, _norms_in_parts, _decoding,
        transformer,
    ):  # fmt: skip
        for name, value in vars(module).copy().items():
            if name.startswith("_") or not isinstance(value, _modules.FunctionType) or value.__module__ != module.__name__:
                continue
            setattr(module, name, _trace.not_captured(value, host[name]) if name in host else _trace.traced(value))


_make_traceable()
_golden.attach("", _eltwise, elementwise=True)
_golden.attach("", _composed, elementwise=True)
for _module in (_products, _movement, _places):
    _golden.attach("", _module)
for _module in (_backward, _backward_of_several):
    _golden.attach_gradients(_module)
_golden.attach("transformer", transformer)
get_golden_function, attach_golden_function = _golden.get_golden_function, _golden.attach_golden_function
_typing = ("Any", "Optional", "Sequence", "Union", "Number", "Memory", "Pair", "Config", "Dims", "Outputs", "annotations")
_inside = (
    "in_place_of",
    "named",
    "zero",
    "gelu_",
    "check_rounding",
    "applied",
    "activated",
    "with_complex",
    "complex_names",
    "inf",
    "nan",
    "in_dest",
    "Grads",
    "gelu_",
)
_export(types, _typing + ("padded", "FLOATS", "BLOCKS"))
for _module in (
    _eltwise, _products, _movement, _places, _files, _vision, _mesh, _trace, _composed, _backward, _backward_of_several, _system, _complex,
    _moreh, _collectives, _specs, _shards, _norms_in_parts, _configs
):  # fmt: skip
    _export(_module, _typing + ("binary", "broadcast", "spread", "getitem", "traced", "not_captured", *_inside))
for _name in _complex.complex_names():
    globals()[_name] = _complex.with_complex(_name, globals()[_name])
CONFIG, cluster = _system.CONFIG, _system.cluster


plus_one = _decoding.plus_one
fill_cache, update_cache = _caches.fill_cache, _caches.update_cache
kv_cache = _modules.SimpleNamespace(
    fill_cache_for_user_=_caches.fill_cache_for_user_, update_cache_for_token_=_caches.update_cache_for_token_
)


core = _modules.SimpleNamespace(divup=_mesh.divup, roundup=_mesh.roundup)


def get_fallback_function(function: Any) -> Any:
    """The function itself: nothing here needs another."""
    return function


class _Experimental:
    """ttnn.experimental."""

    nlp_create_qkv_heads = staticmethod(transformer.nlp_create_qkv_heads)
    nlp_concat_heads = staticmethod(transformer.nlp_concat_heads)
    rotary_embedding = staticmethod(transformer.rotary_embedding)
    view = staticmethod(_movement.view)
    slice_write = staticmethod(_movement.slice_write)
    gelu_bw = staticmethod(_backward.gelu_bw)
    typecast = staticmethod(_places.typecast)
    fast_reduce_nc = staticmethod(_products.fast_reduce_nc)
    intimg = staticmethod(_products.intimg)
    concatenate_heads = staticmethod(transformer.nlp_concat_heads)
    split_query_key_value_and_split_heads = staticmethod(transformer.split_heads_of_images)
    rotate_half = staticmethod(transformer.rotate_half)
    all_gather_async = staticmethod(_collectives.all_gather_async)
    all_reduce_async = staticmethod(_collectives.all_reduce_async)
    reduce_scatter_minimal_async = staticmethod(_collectives.reduce_scatter_minimal_async)
    MinimalMatmulConfig = _configs.MinimalMatmulConfig
    paged_update_cache = staticmethod(_decoding.paged_update_cache)
    paged_fused_update_cache = staticmethod(_decoding.paged_fused_update_cache)
    paged_fill_cache = staticmethod(_decoding.paged_fill_cache)
    rotary_embedding_llama = staticmethod(_decoding.rotary_embedding_llama)
    rotary_embedding_llama_fused_qk = staticmethod(_decoding.rotary_embedding_llama_fused_qk)
    nlp_create_qkv_heads_decode = staticmethod(_decoding.nlp_create_qkv_heads_decode)
    nlp_create_qkv_heads_falcon7b = staticmethod(_decoding.nlp_create_qkv_heads_falcon7b)
    nlp_concat_heads_decode = staticmethod(_decoding.nlp_concat_heads_decode)
    nlp_kv_cache_load_slice = staticmethod(_decoding.nlp_kv_cache_load_slice)
    convert_to_chw = staticmethod(_decoding.convert_to_chw)
    convert_to_hwc = staticmethod(_decoding.convert_to_hwc)
    minimal_matmul = staticmethod(_products.minimal_matmul)

    def __getattr__(self, name: str) -> Any:
        return _missing("experimental", name)


experimental = _Experimental()


def _operators() -> None:
    """The operators of Tensor."""
    for name, function in {
        "add": _eltwise.add,
        "sub": _eltwise.subtract,
        "mul": _eltwise.multiply,
        "truediv": _eltwise.divide,
        "matmul": _products.matmul,
        "pow": _eltwise.pow,
        "eq": _eltwise.eq,
        "ne": _eltwise.ne,
        "gt": _eltwise.gt,
        "ge": _eltwise.ge,
        "lt": _eltwise.lt,
        "le": _eltwise.le,
    }.items():
        setattr(Tensor, f"__{name}__", lambda a, b, f=function: f(a, b))
    Tensor.__radd__ = lambda a, b: _eltwise.add(a, b)
    Tensor.__rmul__ = lambda a, b: _eltwise.multiply(a, b)
    Tensor.__rsub__ = lambda a, b: _eltwise.rsub(a, b)
    Tensor.__rtruediv__ = lambda a, b: _eltwise.multiply(_eltwise.reciprocal(a), b)
    Tensor.__neg__ = lambda a: _eltwise.neg(a)
    Tensor.__getitem__ = _movement.getitem
    Tensor.__hash__ = object.__hash__


_operators()


def __getattr__(name: str) -> Any:
    return _missing("", name)
