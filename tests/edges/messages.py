"""What errors say, and in which form; what explains a choice."""

import csv
import json
import os
import re
import shutil
import subprocess

from common import BERT, IO, ROOT, TINY, TTC, VIT, check, safetensors, shared, ttc, want


@check
def errors_are_json_where_json_is_asked_for(tmp):
    error = want(ttc("run", "nofile.pt2", "--json"), 4).json()
    assert error["file"] == "nofile.pt2" and error["exit"] == 4 and "No such file" in error["error"]
    error = want(ttc("compile", VIT, "--json", "--weight-dytpe", "X"), 2).json()
    assert error["exit"] == 2 and "did you mean '--weight-dtype'?" == error["hint"]
    full = want(ttc("compile", VIT, "-o", tmp / "x.pt2", "--fallback-op", "linear", "--require-full", "--json"), 3).json()
    assert full["exit"] == 3 and full["fallbacks"] and any(f["reason"] == "UserExcluded" for f in full["fallbacks"])
    assert not list(tmp.iterdir())


@check
def whatever_bytes_come_in_utf8_goes_out(tmp):
    name = os.fsencode(tmp) + b"/q\xff.pt2"
    shutil.copy(TINY, name)
    done = subprocess.run([TTC, b"inspect", name, b"--json"], capture_output=True)
    assert done.returncode == 0 and json.loads(done.stdout.decode())["file"].endswith(".pt2")
    done = subprocess.run([TTC, b"compile", name, b"--json", b"-o", os.fsencode(tmp) + b"/r\xff.pt2"], capture_output=True)
    assert done.returncode == 0 and json.loads(done.stdout.decode())
    (tmp / "bad.yaml").write_bytes(b"version: '1.0'\ndispatch_rules:\n  - {operation: tt.add, kernel: 'tt.\xff'}\n")
    (tmp / "bad.json").write_bytes(b'{"torch.nn.Linear\xff": "tt.linear"}')
    (tmp / "bad.ir").write_bytes(b"model {}\ngraph \xff")
    for args in (["run", VIT, "--dispatch-config", tmp / "bad.yaml"], ["check", VIT, "--replace-file", tmp / "bad.json"],
                 ["inspect", tmp / "bad.ir"], [b"inspect", b"\xff\xfe"], [b"run", VIT, b"--io", b"\xff"],
                 [b"compile", VIT, b"-o", b"x.\xff"]):
        done = subprocess.run([TTC, *args], capture_output=True, cwd=ROOT)
        assert done.returncode in (2, 4), args
        done.stderr.decode(), done.stdout.decode()


@check
def misspelt_flags_and_values_have_suggestions(tmp):
    want(ttc("compile", VIT, "--weight-dytpe", "X"), 2, "no flag '--weight-dytpe'", "did you mean '--weight-dtype'?")
    want(ttc("compile", "--hlp"), 2, "no flag '--hlp'", "did you mean '--help'?")
    want(ttc("compile", VIT, "--no-such-thing-at-all"), 2, "ttc compile --help lists them")
    want(ttc("run", VIT, "--numerics", "exakt"), 2, "'exakt' is none of fast|exact", "did you mean 'exact'?")
    want(ttc("run", VIT, "--pcc", "2"), 2, "must lie between -1 and 1, got 2")
    want(ttc("run", VIT, "surplus"), 2, "takes no argument 'surplus'")
    want(ttc("rnu", VIT), 2, "did you mean 'run'?")


@check
def explain_asks_for_what_is_missing(tmp):
    want(ttc("explain", "tt.layer_norm", "--shape", "32x64"), 2, "needs normalized_size", "--arg normalized_size=64")
    want(ttc("explain", "tt.layer_norm", "--shape", "32x64", "--arg", "normalized_size=64"), 0)


@check
def a_rule_may_choose_what_taste_would_not(tmp):
    rules = tmp / "rules.yaml"
    rules.write_text('version: "1.0"\ndispatch_rules:\n  - {operation: tt.linear, kernel: tt.linear.2d}\n')
    chosen = ttc("explain", "tt.linear", "--shape", "32x64,64x64", "--config", rules, "--json").json()["chosen"]
    assert chosen["kernel"] == "tt.linear.2d"
    assert ttc("explain", "tt.linear", "--shape", "32x64,64x64", "--json").json()["chosen"]["kernel"] == "tt.linear.1d"


@check
def a_rule_that_does_not_apply_is_no_error(tmp):
    rules = tmp / "rules.yaml"
    rules.write_text('version: "1.0"\ndispatch_rules:\n  - {operation: tt.softmax, kernel: tt.softmax.device}\n')
    out = ttc("run", VIT, "--dispatch-config", rules, "--telemetry", tmp / "t.json", "--json").json()
    orchestrator = out["dispatch"]["orchestrator"]
    assert orchestrator["total_errors"] == 0 and orchestrator["fallbacks_between_modes"] > 0


@check
def the_debug_dispatcher_names_node_and_kernel(tmp):
    ran = want(ttc("run", VIT, "--dispatcher", "debug", "--dispatch-mode", "dynamic", "--loops", "2"), 0)
    lines = [line for line in ran.err.splitlines() if line.startswith("debug: ")]
    served = [line for line in lines if re.fullmatch(r"debug: \S+: served by tt\.\S+", line)]
    assert len(served) > len(set(served)), "one line a call"
    assert any(": selected" in line for line in lines) and "warning" not in ran.err


@check
def a_table_of_operations_opens_in_perf_tools(tmp):
    bert = shared("bert4.pt2", BERT)
    want(ttc("run", bert, "--io", IO, "--csv", tmp / "v.csv"), 0)
    rows = list(csv.DictReader(open(tmp / "v.csv")))
    assert rows and not [r for r in rows if r["OP TYPE"] == "signpost"]
    matmul = next(r for r in rows if r["OP CODE"].startswith("Matmul"))
    assert matmul["INPUT_0_MEMORY"] == "DEV_0_DRAM_INTERLEAVED"
    # As the op library takes them by themselves; what moves values has none.
    fidelities = {r["OP CODE"]: r["MATH FIDELITY"] for r in rows if r["OP TYPE"] == "tt_dnn_device"}
    assert fidelities["MatmulDeviceOperation"] == fidelities["ScaledDotProductAttentionDeviceOperation"] == "HiFi2", fidelities
    assert fidelities["LayerNormDeviceOperation"] == "HiFi4" and fidelities["BinaryNgDeviceOperation"] == "", fidelities


@check
def warnings_of_libtorch_are_notes(tmp):
    model = tmp / "same.ir"
    model.write_text('model {}\ngraph main(%x: f32[1, 1, 6] user, $w: f32[1, 1, 2] parameter "w" = splat(0.5)) {\n'
                     '  %y: f32[1, 1, 6] = aten.conv1d.padding(%x, $w, none, [1], "same", [1], 1)\n  return %y\n}\n')
    ran = want(ttc("run", model, "--mode", "cpu"), 0, "note: LibTorch: Using padding='same'")
    assert "[W" not in ran.err and "Convolution.cpp" not in ran.err


TEXTS = """model {}
graph main(%x: f32[2, 3] user, %d: dict<str, str> user, %names: list<str> user, %n: int user) {
  %v: str = aten.__getitem__.Dict_str(%d, key="what")
  %e: bool = aten.eq.str(%v, b="negate")
  %y: f32[2, 3] = prim.if(%e) {
    %m: f32[2, 3] = aten.neg.default(%x)
    return %m
  } {
    return %x
  }
  %l: int = aten.len.t(%names)
  %z: f32[2, 3] = aten.mul.Scalar(%y, %l)
  return %z
}
"""


@check
def texts_and_items_of_dicts_and_lists_can_be_given(tmp):
    model = tmp / "texts.ir"
    model.write_text(TEXTS)
    x = [1.0, -2.0, 3.0, 0.5, 0.0, -4.0]
    texts = ("run", model, "--mode", "cpu", "--input", "names.0=a", "--input", "names.1=b")
    given = (*texts, "--input", "n=1")
    for what, factor in (("negate", -2), ("keep", 2)):
        io = safetensors(tmp / "x.safetensors", x=([2, 3], x), out0=([2, 3], [factor * v for v in x]))
        want(ttc(*given, "--io", io, "--input", f"d.what={what}"), 0)
        want(ttc(*given, "--io", io, "--input", f"d.what={'keep' if factor < 0 else 'negate'}"), 1)
    want(ttc(*given), 2, "input 'd' is not given, and takes dict<str, str>", "--input d.KEY=VALUE gives an item")
    want(ttc(*given, "--input", "d=negate"), 2, "--input d=negate: the model takes dict<str, str> there", "d.KEY")
    want(ttc(*given, "--input", "d.what=keep", "--input", "names=c"), 2, "is given whole and by its item 'names.0'")
    want(ttc(*given, "--input", "d.what=keep", "--input", "names.3=c"), 2, "'names.2' is not given")
    # A number that is none is an error, not 0.
    want(ttc(*texts, "--input", "d.what=keep", "--input", "n=two"), 2, "--input n=two: the model takes int there")
    for idle in ("d.what=keep", "names.0=a"):
        ran = want(ttc("check", model, "--input", idle), 0, f"--input {idle} has no effect", "each run takes its own")
        want(ttc("check", model, "--input", idle, "--strict"), 1)
    want(ttc("check", TINY, "--input", "x=3"), 0, "has no effect")
    want(ttc("check", TINY, "--input", "z=3"), 2, "no input 'z'", "did you mean 'x'?")
    want(ttc("check", TINY, "--shape", "z=3"), 2, "no input 'z'", "did you mean 'x'?")


@check
def a_program_of_a_file_without_shapes_asks_for_them(tmp):
    traced, io = ROOT / "models/bert_small.pt", ("--io", IO)
    want(ttc("compile", traced, "-o", tmp / "bert.pt", *io), 0)
    want(ttc("emit", tmp / "bert.pt", "-o", tmp / "none"), 3, "the file holds no shapes", "--shape NAME=8x128 or --io FILE")
    assert not (tmp / "none").exists()
    want(ttc("emit", tmp / "bert.pt", "-o", tmp / "io", *io), 0)
    shapes = [flag for name in ("input_ids", "attention_mask", "input") for flag in ("--shape", f"{name}=i64:2x10")]
    want(ttc("emit", tmp / "bert.pt", "-o", tmp / "shapes", *shapes), 0)
    assert (tmp / "shapes/model.py").exists()
    program = want(ttc("emit", tmp / "bert.pt", "--md", "--json", *io), 0).json()["program"]
    assert "import ttnn" in program
    # The dtype of --shape is that of the input that is made; another than the file's is an error.
    want(ttc("run", traced, *shapes), 0)
    want(ttc("run", BERT, "--shape", "a_0=f32:2x16"), 2, "--shape a_0: the model takes i64")
