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


def program(case: dict) -> str:
    """The block as a function of its values."""
    lines = [f'"""{case["name"]}: {case.get("note", "")}"""', "", "import ttnn", "", "", "def block(v):"]
    return "\n".join(lines + [f"    {statement(call)}" for call in case["params"]["calls"]]) + "\n"


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
            values.reshape(described["shape"]), dtype=dtype, layout=getattr(ttnn, described["layout"] + "_LAYOUT"), device=device
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
