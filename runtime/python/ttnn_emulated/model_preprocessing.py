"""ttnn.model_preprocessing: parameters of torch modules as TT-NN takes them."""

from __future__ import annotations

from typing import Any

import torch

from .places import from_torch
from .tensor import Tensor
from .types import DataType, Layout


class ModuleArgs(dict):
    """What a module was called with, by name: also as attributes."""

    __getattr__ = dict.__getitem__


class Conv2dArgs(ModuleArgs):
    """Of a convolution."""


class MaxPool2dArgs(ModuleArgs):
    """Of a pool."""


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
