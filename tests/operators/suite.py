"""Programs of one public ATen operator each, from the operators' own schemas: do they load, run, agree, and run on the device?

  suite.py TTC [--per N] [--some N] [--seed S] [--only GLOB] [--keep DIR]

Every functional overload that gives a tensor is called with arguments drawn for the types and names of its schema (ranks
0 to 5, sizes 0 and 1, ragged sizes, several dtypes, zeros, infinities and denormals among the values) until LibTorch
takes N of these calls (default 2) or 60 tries are over. Each call is exported as a .pt2 and, every third, traced as a
.pt; `ttc check --all` compiles, runs and compares them. A program agrees where its row is ok and no element is off by
more than the format's share of the largest, or than three times what LibTorch itself is off by in bfloat16.
--some takes that many overloads only, drawn by the seed. Prints a table; fails where fewer than 99 % agree (of few programs:
where more than one does not), or of all overloads fewer than DEVICE run wholly on the device.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import torch


warnings.filterwarnings("ignore")

AGREE, DEVICE = 0.99, 0.85
BOUND = 0.02  # of the largest element: a product of some dozens of bfloat16 numbers, summed
SHAPES = [(), (1,), (5,), (0,), (2, 3), (33, 40), (1, 7), (4, 4), (2, 0, 3), (2, 3, 4), (3, 1, 5), (2, 3, 5, 5), (1, 4, 8, 8), (2, 1, 3, 4, 4), (1, 2, 3, 2, 2)]
DTYPES = [torch.float32] * 7 + [torch.int64] * 2 + [torch.bool, torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.uint8]
# Without a result of their own: memory as it was found, what a build lacks, other layouts, other devices' operators.
LEFT_OUT = ("*empty*", "*rand*", "*_like.out", "*sparse*", "*nested*", "*quantize*", "*cudnn*", "*miopen*", "*mkldnn*", "*_jagged*", "*mps*", "*fbgemm*",
            "*_to_copy*", "to", "*fake_quant*", "*_cuda*", "*pin_memory*", "*names*", "*rename*", "*align_*", "*refine*", "*_coalesc*", "*ccol*", "*crow*",
            "*resize*", "*from_file*", "*_foreach*", "*_fused*", "*_amp*", "*set_data*", "*requires_grad*", "*_debug*", "*_test*", "*_print*", "*record_stream*",
            "*rnn*", "*lstm*", "*gru*", "*fft*", "*stft*", "*dropout*", "*bernoulli*", "*multinomial*", "*poisson*", "*binomial*", "*normal*", "*_efficient*",
            "*_flash*", "*_scaled_dot_product*", "*transformer_encoder*", "*native_multi_head*", "*lobpcg*", "*_make_dual*", "*_fw_primal*", "*_standard_gamma*",
            "*dirichlet*", "*exponential*", "*geometric*", "*cauchy*", "*storage*", "*_cslt*", "*convert_indices*", "*int4*", "*int8*", "*_wrapped*", "*_batch_norm_impl*",
            "*rrelu*", "*svd*", "*eig*", "*qr*", "*lu_*", "*_lu*", "*pca*", "*triangular_solve*")


class Gave(Exception):
    """No argument can be made for this type."""


def tensor(random_, shape, dtype, name):
    if name in ("index", "indices", "offsets") or dtype == torch.int64 and name in ("target", "labels"):
        return torch.randint(0, 3, shape)
    if name in ("mask", "condition", "cond"):
        return torch.rand(shape) > 0.5
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype == torch.uint8 else -4, 6, shape).to(dtype)
    values = torch.randn(shape, dtype=torch.float32) * random_.choice([1, 1, 1, 3, 0.1])
    if values.numel() > 3 and random_.random() < 0.15:
        flat = values.view(-1)
        for value in (0.0, float("inf"), -float("inf"), 1e-40):
            flat[random_.randrange(len(flat))] = value
    return (values.abs() if random_.random() < 0.25 else values).to(dtype)


class Arguments:
    """One draw for all arguments of a schema, which know of one another."""

    def __init__(self, random_):
        self.random = random_
        self.shape = random_.choice(SHAPES)
        self.dtype = random_.choice(DTYPES)
        self.tensors = 0

    def related(self):
        shape, choose = self.shape, self.random.random()
        if choose < 0.55 or not shape:
            return shape
        if choose < 0.7:
            return shape[:-2] + (shape[-1], shape[-2]) if len(shape) > 1 else shape
        if choose < 0.85:
            return tuple(1 if self.random.random() < 0.4 else n for n in shape)
        return shape[self.random.randrange(len(shape)):] or self.random.choice(SHAPES)

    def integer(self, name):
        rank = max(len(self.shape), 1)
        if "dim" in name or "axis" in name:
            return self.random.randrange(-rank, rank)
        small = {"groups": (1,), "stride": (1, 2), "dilation": (1, 2), "padding": (0, 1), "kernel_size": (2, 3), "k": (0, 1, 2), "start": (0, 1, -2), "end": (1, 2, 3, 100),
                 "step": (1, 2), "diagonal": (0, 1, -1), "offset": (0, 1, -1), "n": (1, 2, 3), "num_classes": (6, 8), "chunks": (1, 2, 3), "reduction": (0, 1, 2)}
        return self.random.choice(small.get(name, (0, 1, 2, 3)))

    def integers(self, name, length):
        if name in ("size", "shape", "output_size", "sizes") and self.random.random() < 0.6:
            return list(self.random.choice([self.shape, (2,) + self.shape, (-1,), self.shape[-2:]]))
        if name in ("dim", "dims", "axis", "axes", "dim_self", "dim_other"):
            rank = max(len(self.shape), 1)
            return self.random.sample(range(rank), self.random.randint(0 if self.random.random() < 0.1 else 1, rank))
        return [self.integer(name) for _ in range(length or self.random.choice([1, 2, 2, 3]))]

    def of(self, type_, name):
        kind = type_.kind()
        if kind == "OptionalType":
            inner = type_.getElementType()
            if str(inner) in ("Generator", "Layout", "Device", "MemoryFormat") or self.random.random() < 0.5:
                return None
            return self.of(inner, name)
        if kind == "ListType":
            inner = type_.getElementType()
            if str(inner) == "int":
                return self.integers(name, None)
            if str(inner) == "bool":
                return [self.random.random() < 0.5 for _ in range(2)]
            if str(inner) == "float":
                return [self.random.choice([0.5, 1.0, 2.0]) for _ in range(2)]
            return [self.of(inner, name) for _ in range(self.random.choice([1, 2, 2, 3]))]
        if kind == "TensorType":
            self.tensors += 1
            dtype = self.dtype if self.random.random() < 0.85 else self.random.choice(DTYPES)
            shape = self.shape if self.tensors == 1 else self.related()
            return tensor(self.random, shape, torch.int64 if self.tensors == 1 and name in ("indices", "index") else dtype, name)
        if kind in ("IntType", "SymIntType"):
            return self.integer(name)
        if kind == "FloatType":
            return self.random.choice([0.0, 0.5, 1.0, 2.0, 1e-5, -1.5])
        if kind == "BoolType":
            return self.random.random() < 0.5
        if kind == "NumberType":
            return self.random.choice([0, 1, 2, -1, 0.5, 2.5, -1.5])
        if kind == "StringType":
            return self.random.choice(["none", "mean", "sum", "amax", "linear", "reflect", "trunc", "floor", "tanh", "ij", "constant"])
        raise Gave(kind)


class Call(torch.nn.Module):
    """The operator on tensors that are inputs; everything else is part of the program."""

    def __init__(self, op, args, kwargs):
        super().__init__()
        self.op, self.args, self.kwargs = op, args, kwargs

    def forward(self, *tensors):
        given = iter(tensors)

        def place(value):
            if isinstance(value, torch.Tensor):
                return next(given)
            return [place(item) for item in value] if isinstance(value, list) else value

        result = self.op(*[place(value) for value in self.args], **{name: place(value) for name, value in self.kwargs.items()})
        return tuple(result) if isinstance(result, (tuple, list)) else result


def tensors_of(values):
    out = []
    for value in values:
        out += tensors_of(value) if isinstance(value, (list, tuple)) else [value] if isinstance(value, torch.Tensor) else []
    return out


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(a.isnan(), b.isnan())


def draw(op, schema, random_):
    """A call that LibTorch takes, its inputs and outputs; None where this draw is none."""
    draws = Arguments(random_)
    try:
        args = [draws.of(argument.type, argument.name) for argument in schema.arguments if not argument.kwarg_only]
        kwargs = {argument.name: draws.of(argument.type, argument.name) for argument in schema.arguments
                  if argument.kwarg_only and (not argument.has_default_value() or random_.random() < 0.3)}
        module = Call(op, args, {name: value for name, value in kwargs.items() if value is not None})
        inputs = tensors_of([*args, *kwargs.values()])
        results = [tensors_of([module(*[x.clone() for x in inputs])]) for _ in range(2)]
    except Exception:
        return None
    outputs = results[0]
    plain = all(x.layout == torch.strided and not x.is_complex() and x.device.type == "cpu" and x.numel() < 1 << 20 for x in inputs + outputs)
    # What the device packs has no NaN: it becomes an infinity.
    if not inputs or not outputs or not plain or any(x.isnan().any() for x in outputs if x.is_floating_point()) or not all(same(a, b) for a, b in zip(*results)):
        return None
    return module, tuple(inputs), [x.detach().clone().contiguous() for x in outputs]


def write_safetensors(path, tensors):
    names = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
             torch.int16: "I16", torch.int8: "I8", torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.bool: "BOOL"}
    header, data = {}, b""
    for name, value in tensors.items():
        raw = bytes(value.contiguous().reshape(-1).view(torch.uint8).tolist()) if value.numel() else b""
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def overloads(only):
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        if not schema.name.startswith("aten::") or name.endswith("_") or name.startswith("_") or any(fnmatch.fnmatch(name, glob) for glob in LEFT_OUT):
            continue
        if any(a.is_out or (a.alias_info is not None and a.alias_info.is_write) for a in schema.arguments) or not fnmatch.fnmatch(name, only):
            continue
        if not any("Tensor" in str(r.type) for r in schema.returns):
            continue
        packet = getattr(torch.ops.aten, name, None)
        op = getattr(packet, schema.overload_name or "default", None)
        if op is not None:
            yield f"{name}.{schema.overload_name or 'default'}", op, schema


def export_calls(name, op, schema, folder, options):
    """Writes the programs of one overload."""
    random_ = random.Random(f"{options.seed} {name}")
    torch.manual_seed(random_.randrange(1 << 32))
    count = 0
    for _ in range(60):
        call = draw(op, schema, random_)
        if call is None:
            continue
        module, inputs, outputs = call
        stem = f"{name}-{count}"
        try:
            if random_.random() < 0.33:
                torch.jit.trace(module, inputs, check_trace=False).save(str(folder / f"{stem}.pt"))
            else:
                torch.export.save(torch.export.export(module, inputs, strict=False), folder / f"{stem}.pt2")
        except Exception:
            continue
        names = [f"in{i}" for i in range(len(inputs))] + [f"out{i}" for i in range(len(outputs))]
        write_safetensors(folder / f"{stem}.io.safetensors", dict(zip(names, [*inputs, *outputs])))
        count += 1
        if count == options.per:
            return


def make(folder, options):
    """Writes the programs; the number of overloads, and how many of them have one."""
    found = sorted(overloads(options.only), key=lambda one: one[0])
    if options.some:
        found = random.Random(options.seed).sample(found, min(options.some, len(found)))
    torch.set_num_threads(1)
    warm = Call(torch.ops.aten.abs.default, [torch.ones(1)], {})  # what exporting imports, once for all children
    torch.export.save(torch.export.export(warm, (torch.ones(1),), strict=False), folder / "warm.pt2")
    (folder / "warm.pt2").unlink()
    for name, op, schema in found:
        child = os.fork()  # LibTorch ends the process on some arguments
        if child == 0:
            try:
                sys.stdout = sys.stderr = open(os.devnull, "w")
                export_calls(name, op, schema, folder, options)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    made = {path.name.rpartition("-")[0] for path in folder.glob("*.io.safetensors")}
    return len(found), len(made)


def agrees(row):
    if row["status"] != "ok":
        return False
    allowed = max(BOUND, 3 * (row["baseline_max_rel"] or 0))
    return row["max_rel"] is None or row["max_rel"] <= allowed or row["nodes"]["device"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ttc")
    parser.add_argument("--per", type=int, default=2)
    parser.add_argument("--some", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="*")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        drawn, made = make(folder, options)
        done = subprocess.run([options.ttc, "check", "--all", folder, "--baseline", "--json", "-q"], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(done.stdout + done.stderr)
        rows = json.loads(done.stdout)["models"]
        if options.keep:
            (folder / "rows.json").write_text(done.stdout)
    loaded = [row for row in rows if row["status"] != "refused"]
    ran = [row for row in loaded if row["runs"] > 0]
    agree = [row for row in ran if agrees(row)]
    # Nothing of it stays on the host; where constants are all that is left of it, nothing is computed at all.
    device = [row for row in rows if row["status"] != "refused" and row["nodes"]["device"] == row["nodes"]["total"]]
    nothing = [row for row in device if row["nodes"]["total"] == 0]
    for row in rows:
        if row not in agree:
            print(f"  {row['model']}: {row['status']} {row['detail']} (off by {row['max_rel']}, LibTorch {row['baseline_max_rel']})")
    reasons = collections.Counter(op for row in rows for ops in row["refusals"].values() for op in ops)
    print("on the host most often:", ", ".join(f"{op} {count}" for op, count in reasons.most_common(12)))
    print(f"{drawn} overloads, {made} of them with a call that LibTorch takes and exports")
    for what, part in (("programs", rows), ("load", loaded), ("run", ran), ("agree", agree), ("wholly on the device", device), ("of these constants", nothing)):
        print(f"{what:<21} {len(part):>6} {100 * len(part) / max(len(rows), 1):6.1f} %")
    good = len(rows) - len(agree) <= max(1, (1 - AGREE) * len(rows)) and len(rows) > 0
    good = good and (options.some > 0 or options.only != "*" or len(device) >= DEVICE * len(rows))
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
