"""How programs are laid out over the cores, and images cut into parts."""

from __future__ import annotations

import enum
from typing import Any


class _ProgramConfig:
    """How a program is laid out over the cores. Members are kept; those that decide numbers are honoured."""

    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self.__dict__.items())})"


class MatmulMultiCoreReuseProgramConfig(_ProgramConfig):
    pass


class MatmulMultiCoreReuseMultiCastProgramConfig(_ProgramConfig):
    pass


class MatmulMultiCoreReuseMultiCast1DProgramConfig(_ProgramConfig):
    pass


class MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(_ProgramConfig):
    pass


class SDPAProgramConfig(_ProgramConfig):
    pass


class SoftmaxDefaultProgramConfig(_ProgramConfig):
    pass


class SoftmaxShardedMultiCoreProgramConfig(_ProgramConfig):
    pass


class LayerNormDefaultProgramConfig(_ProgramConfig):
    pass


class LayerNormShardedMultiCoreProgramConfig(_ProgramConfig):
    pass


class DispatchCoreConfig(_ProgramConfig):
    """Which cores dispatch, for open_device: no other cores are fewer for it here."""

    def __init__(self, type: Any = None, axis: Any = None, fabric_tensix_config: Any = None) -> None:
        super().__init__(type=type, axis=axis, fabric_tensix_config=fabric_tensix_config)


class Conv2dConfig(_ProgramConfig):
    pass


Conv1dConfig = Conv2dConfig


class SliceType(enum.Enum):
    """Along which side images are computed in parts, or that they are not."""

    L1Full = "L1Full"
    DRAMSliceHeight = "DRAMSliceHeight"
    DRAMSliceWidth = "DRAMSliceWidth"


class Op2DSliceConfig(_ProgramConfig):
    SliceTypeEnum = SliceType


class Conv2dSliceConfig(Op2DSliceConfig):
    pass


Conv2dL1Full = Op2DL1Full = SliceType.L1Full
Conv2dDRAMSliceHeight = Op2DDRAMSliceHeight = SliceType.DRAMSliceHeight
Conv2dDRAMSliceWidth = Op2DDRAMSliceWidth = SliceType.DRAMSliceWidth
Conv2dL1FullSliceConfig = Conv2dSliceConfig(slice_type=Conv2dL1Full)


class MinimalMatmulConfig(_ProgramConfig):
    pass


class MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig(_ProgramConfig):
    pass
