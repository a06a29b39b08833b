"""Each op record in torch's tracer: sizes that are symbols, and what they are for numbers.

usage: test_torch_fakes.py OP_CALLS LIBTTRT_TORCH [PER_RECORD]

PER_RECORD calls (default 2) of each record that OP_CALLS prints, and more until one keeps a symbol, are made on fake tensors
all of whose dims are symbols; where an operator takes sizes or positions, those are symbols too. Results must have, put in numbers, the dtypes and sizes that the operator gives for numbers,
and each record must keep a symbol at least once: one whose rule turns symbols into numbers would make torch.compile and
torch.export fix the model's shapes without a word.
"""

import json
import pathlib
import re
import subprocess
import sys
import warnings

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.utils import _pytree

warnings.filterwarnings("ignore")

# Besides the records' cases; tt.to_device and tt.to_host are calls of every program.
TRANSFERS = [{"op": "tt.to_device", "args": [{"tensor": [3, 40], "dtype": "float32"}, "bfloat16"]},
             {"op": "tt.to_host", "args": [{"tensor": [3, 40], "dtype": "bfloat16"}, {"dtype": "float32"}]}]


def tensors(value):
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def in_numbers(value):
    if isinstance(value, torch.SymInt):
        return value.node.hint
    if isinstance(value, torch.Tensor):
        return torch.empty([in_numbers(size) for size in value.shape], dtype=value.dtype, device="meta")
    return value


class Calls:
    """Calls on fake tensors; equal sizes of a call are the same symbol."""

    def __init__(self):
        self.mode = FakeTensorMode(shape_env=ShapeEnv())
        self.mode.cache_enabled = False  # no call is made twice

    def fake(self, sizes, dtype):
        symbols = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DUCK] * len(sizes))
        return self.mode.from_tensor(torch.empty(sizes, dtype=dtype), symbolic_context=symbols)

    def symbol(self, number):
        return self.fake([number], torch.uint8).shape[0] if 1 < number < 2**31 else number

    def argument(self, value, may_be_symbol):
        if isinstance(value, list):
            return [self.argument(item, may_be_symbol) for item in value]
        if isinstance(value, dict):
            if "packed" in value:
                return self.fake([1], torch.uint8)
            if "float" in value:
                return float(value["float"])
            dtype = getattr(torch, value["dtype"])
            return self.fake(value["tensor"], dtype) if "tensor" in value else dtype
        return self.symbol(value) if may_be_symbol and type(value) is int else value

    def run(self, op, values):
        formal = op._schema.arguments
        symbols = re.findall(r"(?:SymInt|Scalar)\S* (\w+)", str(op._schema))
        made = [self.argument(value, argument.name in symbols) for value, argument in zip(values, formal, strict=True)]
        args = [value for value, argument in zip(made, formal) if not argument.kwarg_only]
        named = {argument.name: value for value, argument in zip(made, formal) if argument.kwarg_only}
        numbers = op(*_pytree.tree_map(in_numbers, args), **named)
        with self.mode, enable_python_dispatcher():  # as tracers do
            return op(*args, **named), numbers


def main():
    op_calls, library, *more = sys.argv[1:]
    per_record = int(more[0]) if more else 2
    torch.ops.load_library(str(pathlib.Path(library).resolve()))
    lines = subprocess.run([op_calls], check=True, capture_output=True, text=True).stdout.splitlines()
    kept, seen = set(), {}
    for call in TRANSFERS + [json.loads(line) for line in lines]:
        name = call["op"]
        if seen.get(name, 0) >= per_record and name in kept:
            continue
        seen[name] = seen.get(name, 0) + 1
        symbolic, numbers = Calls().run(getattr(torch.ops.tt, name.removeprefix("tt.")).default, call["args"])
        for traced, number in zip(tensors(symbolic), tensors(numbers), strict=True):
            sizes = [in_numbers(size) for size in traced.shape]
            if sizes != list(number.shape) or traced.dtype != number.dtype:
                sys.exit(f"{call}: {list(traced.shape)} is {traced.dtype} {sizes}, for numbers it is {number.dtype} {list(number.shape)}")
            if any(isinstance(size, torch.SymInt) for size in traced.shape):
                kept.add(name)
    # Operators that are made of others are traced as these.
    operators = {name.replace("::", ".") for name in torch._C._dispatch_get_all_op_names() if name.startswith("tt::")
                 and not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")}
    if missing := sorted(operators - kept):
        sys.exit(f"no symbol is kept by {', '.join(missing)}")
    print(f"{sum(seen.values())} calls, {len(kept)} operators keep symbols")


if __name__ == "__main__":
    main()
