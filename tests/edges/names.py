"""Names that match nothing, and options without effect."""

import json
import os

from common import BERT, IO, ROOT, VIT, check, safetensors, shared, ttc, want


@check
def names_that_match_nothing_are_told(tmp):
    ran = want(ttc("compile", BERT, "-o", tmp / "x.pt2", "--exclude", "no.such.*", "--fallback-op", "aten.lin",
                   "--fallback-module", "zz", "--fallback-node", "zz", "--weight-dtype", "nomodule*=bfloat8_b", "--fidelity",
                   "zz=LoFi", "--fp32-acc", "zz=on", "--stop-after", "raise-linear", "--json", "--disable", "place"), 0,
               "--exclude no.such.* matches no module", "--fallback-op aten.lin matches no operator",
               "--fallback-module zz matches", "--fallback-node zz matches", "--weight-dtype nomodule* matches",
               "--fidelity zz matches", "--fp32-acc zz matches")
    assert len(ran.json()["warnings"]) >= 7
    want(ttc("compile", BERT, "-o", tmp / "y.pt2", "--replace", "torch.nn.Linaer=tt.linear"), 0,
         "matches no class", "did you mean 'torch.nn.Linear'?")
    want(ttc("compile", BERT, "-o", tmp / "z.pt2", "--exclude", "no.such.*", "--strict"), 1, "--exclude no.such.*")
    assert not (tmp / "z.pt2").exists()
    want(ttc("compile", BERT, "-o", tmp / "w.pt2", "--replace", "torch.nn.LayerNorm=tt.linear"), 0, "replaces nothing")


@check
def a_replacement_map_is_read_or_refused_by_name(tmp):
    file = tmp / "map.json"
    def compiled(text, code, *said, flags=()):
        file.write_text(text)
        return want(ttc("check", VIT, "--replace-file", file, "--json", *flags), code, *said)
    compiled('{"torch.nn.Linear": "TTNNLinaer"}', 4, "map.json: torch.nn.Linear=TTNNLinaer", "did you mean 'TTNNLinear'?")
    compiled('[{"torch.nn.Linear": {"weight_dtype": "bfloat8_b"}}]', 4, "no \"op\"")
    compiled('{"torch.nn.Linear": {"op": "TTNNLinear", "wieght": "x"}}', 4, "there is no 'wieght'", "weight_dtype")
    compiled('{"torch.nn.Linear": {"op": "TTNNLinear", "weight_dtype": "int4"}}', 4, "torch.nn.Linear, weight_dtype", "int4")
    compiled('{"torch.nn.Linear": "TTNNLinear", "torch.nn.Linear": "tt.linear"}', 4, "is there twice")
    compiled('{"module:re:(": "TTNNLinear"}', 2, "no regular expression")
    compiled('["TTNNLinear"]', 4, "expected an object")
    want(ttc("check", VIT, "--replace", "ViTAtention=TTNNViTSelfAttention"), 0, "did you mean 'ViTAttention'?")
    want(ttc("check", VIT, "--replace", "ViTAtention=TTNNViTSelfAttention", "--strict"), 1, "matches no class")
    # A later map sees what is left: nothing, here.
    compiled('[{"Linear": "TTNNLinear"}, {"Linear": "TTNNLinearLLama"}]', 0,
             f"--replace-file {file}: Linear=TTNNLinearLLama replaces nothing")
    ran = compiled('{"module:*.mlp.fc1": {"op": "TTNNLinear", "weight_dtype": "bfloat4_b", "fidelity": "LoFi"}}', 0)
    rows = ran.json()["modules"]
    assert {(r["weight_format"], r["fidelity"]) for r in rows} == {("bfloat4_b", "LoFi")} and len(rows) == 2, rows
    assert {s["path"] for s in ran.json()["swapped"]} == {r["path"] for r in rows}
    # Without fallback a refusal is an error: no gelu alone reads the second layer.
    compiled('{"module:re:.*fc2": {"op": "TTNNLinearGelu", "fallback": false}}', 3, "has no fallback", "PatternNearMiss")
    compiled('{"module:re:.*fc1": {"op": "TTNNLinearGelu", "fallback": false}}', 0)


@check
def names_that_match_are_no_warning(tmp):
    want(ttc("compile", BERT, "-o", tmp / "x.pt2", "--strict", "--fallback-op", "gelu", "--exclude", "*.dense",
             "--weight-dtype", "*=bfloat8_b", "--fidelity", "*=HiFi2"), 0)


@check
def questions_about_operators_that_are_not_there_are_told(tmp):
    want(ttc("check", BERT, "--what-if", "aten.foo.default"), 0, "--what-if aten.foo.default matches no operator")
    want(ttc("check", BERT, "--why", "nonode"), 2, "nonode")


@check
def rules_for_another_operation_are_refused(tmp):
    rules = tmp / "rules.yaml"
    rules.write_text('version: "1.0"\ndispatch_rules:\n  - {operation: tt.lyer_norm, kernel: tt.layer_norm.host}\n')
    want(ttc("run", VIT, "--dispatch-config", rules), 4, "rules.yaml: line 3", "serves tt.layer_norm, not 'tt.lyer_norm'")
    rules.write_text('version: "1.0"\ndispatch_rules:\n  - {operation: tt.add, kernel: tt.softmax.device}\n')
    want(ttc("run", VIT, "--dispatch-config", rules), 4, "serves tt.softmax, not 'tt.add'")
    rules.write_text('version: "1.0"\nkernel_denies: [tt.sofmax.device]\n')
    want(ttc("run", VIT, "--dispatch-config", rules), 0, "warning:", "matches no kernel", "'tt.softmax.device'")
    want(ttc("run", VIT, "--static-kernel", "tt.add=tt.softmax.device"), 2, "serves tt.softmax")
    want(ttc("run", VIT, "--static-kernel", "tt.gather=tt.gather.device"), 0, "the model has no tt.gather")


@check
def a_configuration_is_read_or_said_to_be_idle(tmp):
    want(ttc("run", VIT, "--dispatch-config", "nofile.yaml"), 4, "nofile.yaml: no such file")
    want(ttc("run", VIT, "--dispatch-config", "nofile.yaml", "--dispatch-mode", "auto"), 4, "no such file")
    rules = tmp / "rules.yaml"
    rules.write_text('version: "1.0"\ndispatch_rules:\n  - {operation: tt.softmax, kernel: tt.softmax.host}\n')
    want(ttc("run", VIT, "--dispatch-config", rules, "--dispatch-mode", "dynamic"), 0, "has no effect")
    want(ttc("run", VIT, "--mode", "cpu", "--dispatch-config", rules, "--numerics", "exact"), 0, "--numerics, --dispatch-config have no effect: --mode cpu uses no device")


@check
def nodes_count_the_same_wherever_they_are_counted(tmp):
    once = shared("counted.pt2", BERT)
    counts = [ttc("check", BERT, "--json").json()["nodes"], ttc("check", once, "--json").json()["nodes"],
              ttc("run", once, "--io", IO, "--json").json()["nodes"]]
    assert len({(c["total"], c["device"], c["cpu"]) for c in counts}) == 1, counts


@check
def what_is_rewritten_cannot_be_changed_again(tmp):
    rewritten = shared("once.pt2", VIT)
    want(ttc("compile", rewritten, "-o", tmp / "x.pt2", "--weight-dtype", "*=bfloat4_b"), 0, "was rewritten before",
         "--weight-dtype", "compile the file that was exported")
    want(ttc("compile", rewritten, "-o", tmp / "x.pt2"), 0)


@check
def a_rewritten_script_is_read_by_every_command(tmp):
    rewritten = shared("once.pt", VIT)
    for command in (["check"], ["profile"], ["compile", "-o", tmp / "again.pt"], ["report", "-o", tmp / "r.html"],
                    ["emit", "-o", tmp / "program"], ["diff", rewritten], ["verify"]):
        ran = ttc(command[0], rewritten, *command[1:])
        assert ran.code in (0, 2, 3), (command, ran.code, ran.err)  # what wants shapes says so; nothing is a bug
        assert "bug of ttc" not in ran.err and "next to nothing" not in ran.err, (command, ran.err)
    # LibTorch's part of it, too, although the file does not say the dtypes of its values.
    for command in (["run", "--mode", "cpu", "--pcc", "0.999"], ["compare"]):
        want(ttc(command[0], rewritten, *command[1:], "--io", VIT.replace(".pt2", ".io.safetensors")), 0)


@check
def passes_that_replace_nothing_are_told(tmp):
    ran = want(ttc("compile", VIT, "-o", tmp / "x.pt2", "--passes", "canonicalize,dce"), 0, "puts anything on the device")
    assert "UserExcluded" in ran.out and "Unimplemented" not in ran.out
    want(ttc("compile", VIT, "-o", tmp / "x.pt2", "--passes", "canonicalize,replace", "--stop-after", "dce"), 0,
         "--stop-after dce has no effect")


@check
def a_model_without_shapes_is_a_warning(tmp):
    want(ttc("compile", ROOT / "models/bert_small.pt", "-o", tmp / "x.pt"), 0, "warning:", "carries no shapes", "--shape")


@check
def options_that_nothing_asks_for_are_told(tmp):
    vit, recorded = shared("vit_idle.pt2", VIT), ("--io", VIT.replace(".pt2", ".io.safetensors"))
    dyn = VIT.replace(".pt2", "_dyn.pt2")
    for args, said in (
        (("run", vit, *recorded, "--seed", "3"), "--seed has no effect"),
        (("run", dyn, *recorded, "--shape", "a_0=9x3x32x32"), "--shape a_0 has no effect: the input is given"),
        (("run", vit, "--mode", "cpu", "--memory-report", "--numerics", "fast"), "--memory-report has no effect"),
        (("run", vit, "--mode", "cpu", "--numerics", "fast"), "--numerics has no effect: --mode cpu"),
        (("run", vit, "--dispatch-setting", "validate_on_reload=false"), "validate_on_reload=false has no effect"),
        (("compare", vit, "--static-kernel", "tt.gelu=tt.gelu.host"), "the model has no tt.gelu"),
        (("diff", vit, vit, "--input", "a_0=zeros"), "--input has no effect: without --values"),
        (("extract", VIT, "--module", "model.classifier", "-o", tmp / "m.pt2", *recorded, "--seed", "3"), "--seed has no effect"),
        (("check", VIT, "--dump-dir", tmp / "dumps"), "--dump-dir"),
        (("check", VIT, "--why", "linear", "--rank", "--what-if", "linear"), "--what-if, --rank have no effect"),
        (("check", VIT, "--rank", "--what-if", "linear"), "--what-if has no effect"),
        (("check", VIT, "--fidelity", "*=LoFi", "--fidelity", "*=HiFi2"), "--fidelity * has no effect"),
        (("check", VIT, "--weight-dtype", "model.classifier=bfloat4_b", "--weight-dtype", "*=bfloat8_b"),
         "--weight-dtype model.classifier has no effect: what it matches takes what is given later"),
        (("emit", vit, "--md", "--overwrite"), "--overwrite has no effect"),
        (("report", vit, "-o", tmp / "page.html", "--replace", "torch.nn.Linear=tt.linear", "--stats"), "--replace, --stats have no effect"),
        (("explain", "tt.relu", "--shape", "32x64", "--weight-dtype", "bfloat8_b"), "--weight-dtype has no effect"),
        (("ops", "--md", "--json"), "--md has no effect: --json"),
        (("profile", vit, "--top", "3", "--by", "op", "--json"), "--top has no effect: --json"),
    ):
        said = want(ttc(*args), 0, said).err
        assert said.count("has no effect") + said.count("have no effect") <= 2, said
        want(ttc(*args, "--strict"), 1)
    assert not (tmp / "dumps").exists()
    # What has an effect is not told.
    for args in (("run", dyn, "--shape", "a_0=2x3x32x32", "--seed", "3"), ("run", vit, "--input", "a_0=rand", "--seed", "3"),
                 ("check", VIT, "--weight-dtype", "*=bfloat8_b", "--weight-dtype", "model.classifier=bfloat4_b"),
                 ("compile", VIT, "-o", tmp / "search.pt2", *recorded, "--min-pcc", "0.99"),
                 ("emit", vit, "--md", "--json"), ("profile", vit, "--top", "3", "--by", "op", "--md")):
        said = want(ttc(*args, "--strict"), 0).err
        assert "no effect" not in said, said


@check
def what_would_check_nothing_or_overwrite_itself_is_refused(tmp):
    vit, golden = shared("vit_idle2.pt2", VIT), ROOT / "tests/data/golden"
    (tmp / "none.json").write_text("[]")
    (tmp / "models").mkdir()
    (tmp / "models/vit.pt2").symlink_to(VIT)
    for args, said in (
        (("check", VIT, "--why", "linear", "--expected-fallbacks", tmp / "none.json"), "--expected-fallbacks checks nothing"),
        (("check", "--all", tmp / "models", "--dump-dir", tmp / "dumps", "--dump-after", "all"), "--dump-dir is for one model"),
        (("check", "--all", tmp / "models", "--reproducer", tmp / "r.ir"), "--reproducer is for one model"),
        (("compile", VIT, "-o", tmp / "x.pt2", "--test-pcc", "0.9"), "--test-pcc checks nothing"),
        (("compile", vit, "-o", tmp / "x.pt2", "--min-pcc", "0.9"), "is rewritten already"),
        (("report", vit, "-o", tmp / "page.html", "--require-full"), "--require-full checks nothing"),
        (("replay", golden, "--numerics", "exact", "--pcc", "0.9"), "--pcc checks nothing"),
        (("replay", golden, "--numerics", "fast", "--max-ulp", "1"), "--max-ulp checks nothing"),
        (("replay", golden, "--against", "exact"), "compares the cases with themselves"),
        (("explain", "tt.add", "--shape", "32x64,32x64", "--arg", "alhpa=1"), "did you mean 'alpha'?"),
        (("explain", "tt.add", "--shape", "32x64,32x64", "--arg", "alpha=1", "--arg", "alpha=2"), "--arg gives 'alpha' twice"),
        (("explain", "tt.add", "--config", "a.yaml", "--dispatch-config", "b.yaml"), "are one flag"),
        (("run", vit, "--static-kernel", "tt.linear=tt.linear.host", "--static-kernel", "tt.linear=tt.linear.1d"), "--static-kernel gives 'tt.linear' twice"),
        (("run", vit, "--dispatch-setting", "cache_size=3", "--dispatch-setting", "cache_size=4"), "--dispatch-setting gives 'cache_size' twice"),
    ):
        want(ttc(*args), 2, said)
    assert sorted(os.listdir(tmp)) == ["models", "none.json"], os.listdir(tmp)


@check
def a_value_for_an_argument_at_its_default_is_refused(tmp):
    file = ROOT / "tests/data/ts/default.pt"
    for name in ("in1", "scale"):
        io = safetensors(tmp / "io.safetensors", in0=([2], [1.0, 2.0]), **{name: ([2], [3.0, 4.0])})
        want(ttc("run", file, "--io", io), 2, f"input '{name}' is given, but TorchScript declares a default for", "which ttc took")
    io = safetensors(tmp / "io.safetensors", in0=([2], [1.0, 2.0]), out0=([2], [2.0, 3.0]))
    want(ttc("run", file, "--io", io), 0)


@check
def outputs_that_are_numbers_are_saved(tmp):
    (tmp / "m.ir").write_text("graph main(%x: f32[2] user) {\n  %y: f32[2] = aten.exp.default(%x)\n  return %y, 7, true, 2.5\n}\n")
    io = safetensors(tmp / "io.safetensors", in0=([2], [0.0, 0.0]))
    want(ttc("run", tmp / "m.ir", "--io", io, "--save-outputs", tmp / "out.safetensors"), 0)
    saved = (tmp / "out.safetensors").read_bytes()
    header = json.loads(saved[8 : 8 + int.from_bytes(saved[:8], "little")])
    kinds = {name: (one["dtype"], one["shape"]) for name, one in header.items() if name != "__metadata__"}
    assert kinds == {"out0": ("F32", [2]), "out1": ("I64", []), "out2": ("BOOL", []), "out3": ("F64", [])}, kinds
