"""Whether something was compared, counted, fits."""

import json
import os

from common import BERT, IO, ROOT, VIT, check, safetensors, shared, ttc, want


@check
def a_threshold_needs_something_to_compare(tmp):
    for flag in ("--pcc", "--atol", "--rtol"):
        want(ttc("run", VIT, flag, "0.9"), 2, "no outputs to compare with", "--io")
    want(ttc("run", VIT, "--pcc", "0.9", "--json"), 2)


@check
def a_folder_is_not_fine_where_nothing_was_compared(tmp):
    (tmp / "m").mkdir()
    (tmp / "m/size.ir").write_text("model {}\ngraph main(%x: f32[2, 3] user) {\n  %y: f32[2, 3] = aten.relu.default(%x)\n  return none\n}\n")
    want(ttc("compile", tmp / "m/size.ir", "-o", tmp / "m/size.pt2"), 0)
    ran = want(ttc("check", "--all", tmp / "m", "--json"), 1)
    assert [row["status"] for row in ran.json()["models"]] == ["failed"], ran.out


@check
def a_filter_that_selects_no_case_fails(tmp):
    want(ttc("replay", ROOT / "tests/data/golden", "--filter", "nonesuch"), 1, "nonesuch")


@check
def nodes_count_for_what_served_them(tmp):
    bert = shared("bert.pt2", BERT, "--weight-dtype", "*=bfloat8_b")
    ran = want(ttc("run", bert, "--io", IO, "--dispatcher", "cpu", "--min-device-fraction", "0.99", "--json"), 1,
               "ran on the device")
    assert ran.json()["nodes"]["device"] == 0 and ran.json()["device"]["cycles"] == 0
    env = dict(os.environ, TT_SYMBIOTE_DISPATCHER="cpu")
    assert ttc("run", bert, "--io", IO, "--json", env=env).json()["nodes"]["device"] == 0


@check
def a_profile_has_a_row_for_each_kernel_that_served(tmp):
    bert = shared("bert2.pt2", BERT)
    rules = tmp / "rules.yaml"
    rules.write_text('version: "1.0"\ndispatch_rules:\n  - {operation: tt.layer_norm, kernel: tt.layer_norm.host}\n')
    out = ttc("run", bert, "--io", IO, "--dispatch-config", rules, "--profile", "--json").json()
    rows = [op for op in out["ops"] if op["op"] == "tt.layer_norm"]
    assert rows and all(r["kernel"] == "tt.layer_norm.host" and r["place"] == "cpu" and r["cycles"] == 0 for r in rows)
    # Whatever the modules are called: calls of a row are calls of its kernel.
    assert sum(op["calls"] for op in out["ops"] if op["kernel"].endswith(".host")) == len(rows)


@check
def memory_that_does_not_fit_is_told(tmp):
    small = next(a for a in ttc("archs", "--json").json()["archs"] if a["name"] == "n150")
    small.update(name="small", dram_bank_bytes=73728, dram_banks=1)  # less than an attention's operands and its result
    (tmp / "small.json").write_text(json.dumps(small))
    shape = ("--shape", "a_0=2x32", "--shape", "a_1=2x32")
    ran = want(ttc("check", BERT, "--arch", tmp / "small.json", *shape), 0)
    assert "DOES NOT FIT" in ran.out and "small has" in ran.out, ran.out
    ran = want(ttc("compile", BERT, "-o", tmp / "x.pt2", "--arch", tmp / "small.json", "--require-full", "--json"), 3,
               "small has")
    assert ran.json()["memory"]["fits"] is False and not (tmp / "x.pt2").exists()


@check
def a_model_larger_than_the_memory_runs_with_streamed_weights(tmp):
    (tmp / "small.json").write_text('{"base": "n150", "name": "small", "dram_banks": 1, "dram_bank_bytes": 163840}')
    made = want(ttc("compile", BERT, "-o", tmp / "small.pt2", "--arch", tmp / "small.json", "--json"), 0).json()
    assert made["memory"]["fits"] is False and made["memory"]["streamed"] is True, made["memory"]
    assert "does not fit at once" in made["summary"] and "weights will be streamed" in made["summary"], made["summary"]
    want(ttc("compile", BERT, "-o", tmp / "x.pt2", "--arch", tmp / "small.json", "--require-full"), 3, "small has")
    whole, few = tmp / "whole.safetensors", tmp / "few.safetensors"
    want(ttc("run", shared("bert3.pt2", BERT), "--io", IO, "--save-outputs", whole), 0)
    run = ("run", tmp / "small.pt2", "--io", IO)
    out = want(ttc(*run, "--save-outputs", few, "--json", "--profile", "--memory-report"), 0).json()
    assert whole.read_bytes() == few.read_bytes()
    weights = out["weights"]
    assert 0 < weights["streamed"] < weights["total"] and 0 < weights["us"] < out["transfers"]["us"], weights
    moved = [op for op in out["ops"] if op["kernel"] == "weights"]
    assert sum(op["bytes"] for op in moved) == weights["bytes"] and sum(op["calls"] for op in moved) == weights["moves"]
    assert out["memory"]["dram"]["peak_per_bank"] <= 163840
    assert f"{weights['streamed']} of {weights['total']} weights streamed" in want(ttc(*run), 0).out
    want(ttc(*run, "--stream-weights", "off"), 3, "Out of Memory", "--stream-weights auto")


@check
def the_environment_s_run_mode_wins(tmp):
    for mode, means in (("SEL", "sel"), ("DPL_NO_ERROR_PROP", "dpl-no-error-prop")):
        ran = want(ttc("run", VIT, "--json", env=dict(os.environ, TT_SYMBIOTE_RUN_MODE=mode)), 0)
        assert ran.json()["mode"] == means and len(ran.json()["rows"]) > 20, ran.out
    env = dict(os.environ, TT_SYMBIOTE_RUN_MODE="CPU")
    assert ttc("run", VIT, "--json", env=env).json()["nodes"]["device"] == 0
    want(ttc("run", VIT, env=dict(os.environ, TT_SYMBIOTE_RUN_MODE="SELL")), 2, "did you mean 'sel'")
    want(ttc("run", VIT, "--mode", "dlp"), 2, "did you mean 'dpl'")


@check
def a_node_below_its_threshold_is_named_with_its_source(tmp):
    ran = ttc("compare", VIT, "--mode", "sel", "--pcc", "0.99999999")
    assert ran.code == 1 and "first below its threshold" in ran.out and "modeling_vit.py:" in ran.out, ran.out


INTEGER_POSITIONS = """graph main(%x: i64[4] user) {
  %i: i64[4] = aten.argsort.stable(%x, stable=false)
  return %i
}
"""
POSITIONS = """model {}
graph main(%x: f32[2, 4, 2] user) {
  %v: f32[2, 2, 2], %i: i64[2, 2, 2] = aten.topk.default(%x, 2, 1)
  %a: i64[] = aten.argmax.default(%x)
  %b: i64[2, 1, 2] = aten.argmin.default(%x, 1, keepdim=true)
  %c: i64[2, 2] = aten.squeeze.dim(%b, 1)
  return %v, %i, %a, %c
}
"""


@check
def positions_of_equal_values_are_told_and_do_not_pass(tmp):
    # 1.001 is 1 in bfloat16. Along dim 1: the largest two in column 0 are the last and the first, on the device the first.
    rows = [1.0, 0.5, -1.0, 0.25, 0.0, 0.125, 1.001, -2.0]
    x = rows + [2 * n for n in rows]
    (tmp / "m.ir").write_text(POSITIONS)
    want(ttc("compile", tmp / "m.ir", "-o", tmp / "m.pt2"), 0)
    right = [3, 0, 0, 1, 3, 0, 0, 1]  # positions, then column by column
    io = safetensors(tmp / "m.io.safetensors", in0=([2, 4, 2], x), out1=([2, 2, 2], right), out2=([], [14]), out3=([2, 2], [1, 3, 1, 0]))
    ran = want(ttc("run", tmp / "m.pt2", "--io", io, "--json"), 1)
    top, largest, smallest = (check.get("note", "") for check in ran.json()["checks"])
    assert top == "4 of 8 indices differ (tt.topk): 4 of values that are equal in the run's bfloat16", top
    assert largest == "1 of 1 index differs (tt.argmax): 1 of values that are equal in the run's bfloat16", largest
    assert smallest == "1 of 4 indices differ (tt.argmin): 1 of values up to 125 % of the largest apart", smallest
    assert "out1: " + top in ttc("run", tmp / "m.pt2", "--io", io).out
    row = want(ttc("check", "--all", tmp, "--json"), 1).json()["models"][0]
    assert row["status"] == "inaccurate" and "equal in the run's bfloat16" in row["detail"], row
    (tmp / "i.ir").write_text(INTEGER_POSITIONS)
    of_integers = safetensors(tmp / "i.io.safetensors", in0=([4], [1, 0, 1, 0]), out0=([4], [3, 1, 2, 0]))
    note = want(ttc("run", tmp / "i.ir", "--io", of_integers, "--json"), 1).json()["checks"][0]["note"]
    assert note == "4 of 4 indices differ (tt.argsort): 4 of values that are equal in the run's int32", note
    for mode in ("dpl", "sel"):
        rows = ttc("compare", tmp / "m.pt2", "--io", io, "--mode", mode, "--json").json()["rows"]
        notes = {row["node"]: row.get("note") for row in rows if row["op"] == "output"}
        assert notes["out1"] == top and notes["out2"] == largest and notes["out3"] is None, (mode, notes)


@check
def what_is_given_twice_is_told(tmp):
    dyn = VIT.replace(".pt2", "_dyn.pt2")
    for flag, one, other in (("--shape", "a_0=2x3x32x32", "a_0=9x3x32x32"), ("--input", "a_0=zeros", "a_0=ones")):
        want(ttc("run", dyn, flag, one, flag, other), 2, f"{flag} gives input 'a_0' twice")
    want(ttc("check", dyn, "--shape", "a_0=2x3x32x32", "--shape", "a_0=9x3x32x32"), 2, "--shape gives input 'a_0' twice")
    want(ttc("check", dyn, "--shape", "a_0=f64:2x3x32x32"), 2, "the model takes f32[")
    io = ("--io", VIT.replace(".pt2", ".io.safetensors"))
    want(ttc("run", VIT, *io, "--input", "a_0=zeros"), 1, "--input makes another 'a_0'")


@check
def what_is_beyond_the_stop_does_not_run(tmp):
    # It puts nothing on the device, and leaving it out has no effect.
    want(ttc("check", VIT, "--stop-after", "canonicalize", "--disable", "place"), 0, "puts anything on the device",
         "--disable place has no effect")
    want(ttc("check", VIT, "--rewrite-limit", "-5"), 2, "must lie between -1 and")


@check
def what_a_mode_or_command_does_not_check_is_refused(tmp):
    vit, io = shared("vit6.pt2", VIT), ("--io", VIT.replace(".pt2", ".io.safetensors"))
    for gate in (("--atol", "1e-9"), ("--rtol", "0"), ("--min-device-fraction", "1"), ("--baseline",), ("--baseline-model", VIT)):
        want(ttc("run", vit, *io, "--mode", "sel", *gate), 2, f"{gate[0]} checks nothing: --mode sel compares")
    options = tmp / "sel.toml"
    options.write_text('[run]\nmode = "sel"\natol = 1e-9\n')
    want(ttc("run", vit, *io, "--options", options), 2, "--atol checks nothing")
    (tmp / "none.json").write_text("[]")
    want(ttc("run", vit, "--mode", "cpu", "--expected-fallbacks", tmp / "none.json"), 2, "--expected-fallbacks checks nothing")


@check
def flags_of_a_folder_and_of_a_model_are_told_apart(tmp):
    for flag in (("--pcc", "0.9"), ("--md",), ("--baseline",), ("--time-limit", "5")):
        want(ttc("check", VIT, *flag), 2, f"{flag[0]} is for a folder of models")
    for flag in (("--why", "linear"), ("--what-if", "gelu"), ("--rank",)):
        want(ttc("check", "--all", ROOT / "models", *flag), 2, f"{flag[0]} is for one model")


@check
def a_search_takes_a_model_whose_modules_may_stay_on_the_host(tmp):
    vit, io = shared("vit6.pt2", VIT), ("--io", VIT.replace(".pt2", ".io.safetensors"))
    want(ttc("bisect", VIT, "--require-full"), 2, "--require-full checks nothing")
    want(ttc("bisect", vit, *io, "--pcc", "0.99999"), 2, "is rewritten already")


@check
def nothing_is_compared_with_itself_or_with_another_model(tmp):
    vit, io = shared("vit6.pt2", VIT), ("--io", VIT.replace(".pt2", ".io.safetensors"))
    want(ttc("run", vit, *io, "--baseline-model", BERT), 2, "is no baseline: it does not take these inputs")
    want(ttc("compare", vit, *io, "--numerics", "exact", "--against", "exact"), 2, "compares the run with itself")


@check
def warnings_of_a_folder_s_models_count(tmp):
    (tmp / "tiny.pt2").write_bytes((ROOT / "models/tiny.pt2").read_bytes())
    said = ttc("check", "--all", tmp, "--fallback-op", "zz", "--json")
    assert said.code == 0 and said.json()["warnings"] == ["--fallback-op zz matches no operator of the model"], said.out
    want(ttc("check", "--all", tmp, "--fallback-op", "zz", "--strict"), 1, "--strict: --fallback-op zz")


@check
def what_the_host_serves_has_no_device_time(tmp):
    vit = shared("vit6.pt2", VIT)
    bench = ("bench", vit, "--dispatcher", "cpu", "--loops", "1", "--warmup", "0")
    assert ttc(*bench, "--json").json()["nodes"]["device"] == 0
    assert "0/48 nodes on device, the host served 48" in want(ttc(*bench), 0).out
    priced = want(ttc("profile", vit, "--dispatcher", "cpu", "--json"), 0).json()
    assert priced["total"]["host_nodes"] == 48 and not any(op["kernel"] for op in priced["ops"]), priced["total"]
    # What rewriting made of one node in several parts counts for that node when the file is looked at again.
    assert ttc("check", vit, "--json").json()["nodes"] == {"total": 48, "device": 48, "cpu": 0}


@check
def flags_without_effect_are_warnings(tmp):
    vit = shared("vit6.pt2", VIT)
    idle = ("--loops", "7", "--warmup", "3", "--profile", "--memory-report", "--ttnn-report", tmp / "folder")
    want(ttc("run", vit, "--mode", "sel", *idle), 0, "--loops, --warmup, --profile, --ttnn-report, --memory-report have no effect")
    want(ttc("run", vit, "--mode", "sel", *idle, "--strict"), 1)
    assert not list(tmp.iterdir())
    want(ttc("verify", vit, "--dispatcher", "cpu", "--numerics", "exact"), 0, "--numerics, --dispatcher have no effect: there is nothing to run")


@check
def fallbacks_that_are_expected_and_not_there_are_warnings(tmp):
    (tmp / "names.json").write_text('["NoSuch"]')
    for strict, code in (((), 0), (("--strict",), 1)):
        want(ttc("check", VIT, "--expected-fallbacks", tmp / "names.json", *strict), code, "expects NoSuch, which is on the device")
