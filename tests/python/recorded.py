"""Recorded blocks as programs in TT-NN's Python: `python recorded.py FILE.safetensors` prints the program of a file.

A file's metadata lists the calls of a block over its inputs; the program makes them under their public names. What it
gives is compared with what was recorded, call by call (on recorded operands) and from end to end."""

import json
import pathlib
import struct
import sys

import torch

_dtypes = {"BF16": torch.bfloat16, "F32": torch.float32, "I32": torch.int32, "U32": torch.int32}


def read(path: pathlib.Path) -> tuple:
    """The case, and its tensors by name."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    case = json.loads(header.pop("__metadata__")["case"])
    tensors = {}
    for name, one in header.items():
        start, end = one["data_offsets"]
        dtype = _dtypes[one["dtype"]]
        raw = bytearray(data[8 + size + start : 8 + size + end])
        tensors[name] = torch.frombuffer(raw, dtype=dtype).reshape(one["shape"]) if raw else torch.empty(one["shape"], dtype=dtype)
    return case, tensors


_spaces = {
    "nlp_create_qkv_heads": "experimental.",
    "nlp_concat_heads": "experimental.",
    "rotary_embedding": "experimental.",
    "scaled_dot_product_attention": "transformer.",
}
_keywords = {  # operands behind the first that TT-NN takes by keyword
    "linear": {2: "bias"},
    "layer_norm": {1: "weight", 2: "bias", 3: "residual_input_tensor"},
    "rms_norm": {1: "weight"},
    "attention_softmax_": {1: "attention_mask"},
}
_positional = ("shape", "perm", "scalar", "start", "end")
_flags = ("residual_input_tensor", "attention_mask")  # say that an operand is there


def statement(call: dict) -> str:
    """One call as a line of Python."""
    op = call["op"].split(".")[-1]
    place = call["op"][: -len(op)] or _spaces.get(op, "")
    keywords = _keywords.get(op, {})
    operands = [f'v["{name}"]' for name in call["inputs"]]
    if op == "concat":
        operands = [f"[{', '.join(operands)}]"]
    given = [f"{keywords[i]}={one}" if i in keywords else one for i, one in enumerate(operands)]
    values = {name: value for name, value in call["args"].items() if name not in _flags}
    given = (
        [one for one in given if "=" not in one]
        + [repr(values.pop(name)) for name in _positional if name in values]
        + [one for one in given if "=" in one]
    )
    for name, value in values.items():
        given.append(f"{name}=ttnn.{value}_LAYOUT" if name == "layout" else f"{name}={value!r}")
    results = ", ".join(f'v["{name}"]' for name in call["outputs"])
    return f"{results} = ttnn.{place}{op}({', '.join(given)})"


# ---- single calls, whose parameters a recording names in its own way -------------------------------------------------

_names = {  # parameters that TT-NN takes under another keyword, or by position
    "transpose": {"dims": "*"},
    "permute": {"perm": "", "dims": ""},
    "reshape": {"shape": ""},
    "expand": {"shape": ""},
    "repeat": {"repeats": ""},
    "repeat_interleave": {"repeats": "repeats"},
    "pad": {"padding": ""},
    "slice": {"start": "starts", "end": "ends", "step": "steps"},
    "split": {"size": "split_size"},
    "chunk": {"chunks": "num_chunks"},
    "lerp": {"weight": ""},
    "pow": {"scalar": ""},
    "fill": {"value": ""},
}
_scalars = "add subtract multiply divide eq ne gt ge lt le maximum minimum floor_div fmod remainder rsub".split()
_reductions = ("sum", "mean", "max", "min", "prod", "var", "std")
_by_keyword = {
    "linear": ("a", "b", "bias=bias"),
    "layer_norm": ("x", "weight=w", "bias=b", "residual_input_tensor=residual"),
    "rms_norm": ("x", "weight=w"),
    "scaled_dot_product_attention": ("q", "k", "v", "attn_mask=mask"),
    "attention_softmax": ("x", "attention_mask=mask"),
    "attention_softmax_": ("x", "attention_mask=mask"),
    "scale_mask_softmax": ("x", "mask=mask"),
    "batch_norm": ("x", "running_mean=mean", "running_var=var", "weight=w", "bias=b"),
    "conv2d": ("input_tensor=x", "weight_tensor=weight", "bias_tensor=bias"),
    "where": ("cond", "a", "b"),
}
_more_spaces = {"attention_softmax": "transformer.", "attention_softmax_": "transformer.", "concatenate_heads": "transformer.",
                "split_query_key_value_and_split_heads": "transformer.", "scaled_dot_product_attention_decode": "transformer."}  # fmt: skip


def single(case: dict) -> str:
    """A case of one call as a line of Python; "" where TT-NN has no such call, or where it can't be told what was called."""
    op, params = case["op"], dict(case.get("params", {}))
    inputs = [one["name"] for one in case["inputs"]]
    if op.endswith("_block") or op in ("sequence", "moreh_sum") or "ids" in params:
        return ""
    if op == "host_pack_unpack":
        form = f'dtype=ttnn.{params["format"]}, layout=ttnn.TILE_LAYOUT, device=v["a"].device()'
        return f'v["out0"] = ttnn.from_torch(ttnn.to_torch(v["a"]), {form})'
    given = [f'v["{name}"]' for name in inputs]
    if op in _by_keyword:
        spelled = [one.split("=") for one in _by_keyword[op]]
        given = [(f"{one[0]}=" if len(one) > 1 else "") + f'v["{one[-1]}"]' for one in spelled if one[-1] in inputs]
    if op in ("concat", "stack"):
        given = [f"[{', '.join(given if len(given) > 1 else given * 2)}]"]
    for flag in ("residual_input_tensor", "attention_mask", "attn_mask"):
        params.pop(flag, None)
    if params.get("epsilon") == "default":
        params.pop("epsilon")
    if op in _reductions:  # recorded with the dim where the results have it
        params["keepdim"] = len(case["outputs"][0]["shape"]) == len(case["inputs"][0]["shape"])
    if op in ("nlp_create_qkv_heads",):
        params.setdefault("transpose_k_heads", False)
    if op == "scaled_dot_product_attention":
        params.setdefault("is_causal", False)
        chunks = {f"{name}_size": params.pop(name) for name in ("q_chunk", "k_chunk") if name in params}
        if "exp_approx_mode" in params:
            chunks["exp_approx_mode"] = params.pop("exp_approx_mode")
        if chunks:
            given.append(f"program_config=ttnn.SDPAProgramConfig({', '.join(f'{name}={value}' for name, value in chunks.items())})")
    if op in ("where", "gather"):
        given += [repr(params.pop(name)) for name in ("a", "b") if name in params]
        given = given[:1] + [repr(params.pop("dim"))] + given[1:] if op == "gather" else given
    if op in _scalars and "scalar" in params:
        given.append(repr(params.pop("scalar")))
    if op.endswith("pool2d") and "kernel_size" in params:
        area = params["input_h"] * params["input_w"] * params["channels"]
        given.append(f"batch_size={_volume(case['inputs'][0]['shape']) // area}")
    if op == "conv2d":
        area = params["input_height"] * params["input_width"] * params["in_channels"]
        given.append(f"batch_size={_volume(case['inputs'][0]['shape']) // area}")
    keywords = []
    for name, value in params.items():
        spelled = _names.get(op, {}).get(name, name)
        if value is None:
            continue
        if name in ("to", "out_dtype", "dtype"):
            keywords.append(f"dtype=ttnn.{value}")
        elif name == "layout":
            keywords.append(f"layout=ttnn.{value}_LAYOUT")
        elif op == "sigmoid" and name == "mode":
            keywords.append(f"mode=ttnn.SigmoidMode.{value}")
        elif spelled == "*":
            given += [repr(one) for one in value]
        elif spelled == "":
            given.append(repr(value))
        else:
            keywords.append(f"{spelled}={value!r}")
    config = case.get("compute_config") or {}
    if config:
        members = ", ".join(f"{name}={'ttnn.MathFidelity.' if name == 'math_fidelity' else ''}{value}" for name, value in config.items())
        keywords.append(f"{'compute_config' if op == 'conv2d' else 'compute_kernel_config'}=ttnn.WormholeComputeKernelConfig({members})")
    positional = [one for one in given if "=" not in one.split("(")[0]]
    given = positional + [one for one in given if one not in positional]
    results = ", ".join(f'v["out{i}"]' for i in range(len(case["outputs"])))
    space = _spaces.get(op, _more_spaces.get(op, ""))
    return f"{results} = ttnn.{space}{op}({', '.join(given + keywords)})"


def _volume(shape: list) -> int:
    volume = 1
    for size in shape:
        volume *= size
    return volume


def program(case: dict) -> str:
    """The block as a function of its values."""
    lines = [f'"""{case["name"]}: {case.get("note", "")}"""', "", "import ttnn", "", "", "def block(v):"]
    calls = case.get("params", {}).get("calls")
    body = [statement(call) for call in calls] if calls is not None else [single(case)]
    return "\n".join(lines + [f"    {line}" for line in body]) + "\n"


class Checked(dict):
    """Values of which each that was recorded is compared; later calls then read the recorded ones, or what was given."""

    def __init__(self, inputs: dict, recorded: dict, follow: bool) -> None:
        super().__init__(inputs)
        self.recorded, self.follow, self.wrong, self.seen = recorded, follow, [], 0

    def __setitem__(self, name, value) -> None:
        import ttnn

        expected = self.recorded[name]
        got, want = ttnn.to_torch(value).float(), ttnn.to_torch(expected).float()
        self.seen += 1
        if got.shape != want.shape or not torch.equal(got.view(torch.int32), want.view(torch.int32)):
            self.wrong.append(name)
        super().__setitem__(name, value if self.follow else expected)


def run(path: pathlib.Path, device) -> dict:
    """How many results a block has, and which differ, by how it was run."""
    import ttnn

    case, tensors = read(path)

    def tensor(described, values):
        dtype = getattr(ttnn, described["dtype"])
        return ttnn.from_torch(
            values.reshape(described["shape"]),
            dtype=dtype,
            layout=getattr(ttnn, described["layout"].replace("host", "ROW_MAJOR") + "_LAYOUT"),
            device=device,
        )

    found = {}
    scope = {}
    exec(compile(program(case), str(path), "exec"), scope)  # noqa: S102  a program of ours
    for how, follow in (("call by call", False), ("end to end", True)):
        inputs = {one["name"]: tensor(one, tensors["in_" + one["name"]]) for one in case["inputs"]}
        recorded = {f"out{i}": tensor({"layout": "TILE", **one}, tensors[f"out{i}"]) for i, one in enumerate(case["outputs"])}
        values = Checked(inputs, recorded, follow)
        scope["block"](values)
        found[how] = (values.seen, values.wrong)
    return found


if __name__ == "__main__":
    print(program(read(pathlib.Path(sys.argv[1]))[0]), end="")
