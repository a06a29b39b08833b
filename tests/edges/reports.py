"""What run and check report: which modules the device has, what the host served, what each call took."""

import csv
import json
import signal
import sqlite3
import subprocess
import time

from common import ROOT, TTC, VIT, check, shared, ttc, want


@check
def fallbacks_that_nobody_expected_are_named(tmp):
    vit = shared("vit_gelu.pt2", VIT, "--fallback-op", "gelu")
    want(ttc("run", vit, "--compatibility", tmp / "c.json"), 0)
    report = json.loads((tmp / "c.json").read_text())
    assert report["modules_swapped"]["by_class"]["Linear"] == 13
    assert report["runtime_observed"]["successes_by_class"] == report["modules_swapped"]["by_class"]
    assert report["runtime_observed"]["fallbacks_by_class"] == {"GELUActivation": 2} and report["regressions"] == []
    path = "model.vit.layers.1.mlp.activation_fn"
    assert report["runtime_observed"]["fallbacks_by_module"][path] == "GELUActivation"

    expected = tmp / "expected.json"
    for names, code in ((["GELUActivation"], 0), (["gelu"], 0), (["module:*.activation_fn"], 0), ([path, "gelu"], 0), ([path], 1), ([], 1)):
        expected.write_text(json.dumps(names))
        ran = want(ttc("run", vit, "--expected-fallbacks", expected, "--json"), code)
        found = ran.json()["compatibility"]["regressions"]
        assert found == (["GELUActivation"] if code else []), (names, found)
    assert "model.vit.layers.0.mlp.activation_fn (GELUActivation): aten.gelu.default" in ran.err

    # An earlier report is a list as well; with all of it on the device its entries are idle.
    want(ttc("check", VIT, "--expected-fallbacks", tmp / "c.json"), 0, "which is on the device now")
    want(ttc("check", VIT, "--fallback-op", "gelu", "--expected-fallbacks", tmp / "c.json"), 0)
    want(ttc("check", VIT, "--fallback-op", "layer_norm", "--expected-fallbacks", tmp / "c.json"), 1, "aten.layer_norm.default")
    expected.write_text("{}")
    want(ttc("run", vit, "--expected-fallbacks", expected), 4, "an earlier report is what it takes")


@check
def what_a_run_left_to_the_host_was_not_planned(tmp):
    vit = shared("vit2.pt2", VIT)
    want(ttc("run", vit, "--dispatcher", "cpu", "--compatibility", tmp / "c.json"), 0, "left to the host: served by")
    report = json.loads((tmp / "c.json").read_text())
    assert report["summary"]["runtime_successes"] == 0 and "Linear" in report["regressions"]
    (tmp / "big.ir").write_text("model {}\ngraph main(%x: i64[4] user) {\n  %y: i64[4] = aten.add.Tensor(%x, 1)\n  return %y\n}\n")
    want(ttc("compile", tmp / "big.ir", "-o", tmp / "big.pt2"), 0)
    (tmp / "none.json").write_text("[]")
    for value, code in ((5, 0), (5000000000, 1)):
        ran = ttc("run", tmp / "big.pt2", "--input", "x=" + numbers(tmp, value),
                  "--expected-fallbacks", tmp / "none.json", "--json")
        assert ran.code == code, ran.err


def numbers(tmp, value):
    """int64[4], as .npy."""
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }".ljust(117) + "\n"
    path = tmp / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + value.to_bytes(8, "little") * 4)
    return f"@{path}"


@check
def timings_have_a_row_for_each_call_and_a_pivot(tmp):
    vit = shared("vit_gelu2.pt2", VIT, "--fallback-op", "gelu")
    want(ttc("run", vit, "--timings", tmp / "t.txt"), 2, "has to end in .csv")
    want(ttc("run", vit, "--loops", "3", "--timings", tmp / "t.csv"), 0)
    with open(tmp / "t.csv") as file:
        calls = list(csv.DictReader(file))
    with open(tmp / "t_pivot.csv") as file:
        pivot = list(csv.DictReader(file))
    assert list(calls[0]) == ["", "attrs", "module_name", "func_name", "duration", "backend", "device_cycles"]
    assert [c for c in pivot[0]][:2] == ["func_name", "module_name"]
    assert sum(int(row["Row_Count"]) for row in pivot) == len(calls) and len(calls) % 3 == 0
    for row in pivot:
        of = [c for c in calls if (c["func_name"], c["module_name"]) == (row["func_name"], row["module_name"])]
        took = [float(c["duration"]) for c in of]
        for column, value in (("Total_Duration", sum(took)), ("Min_Duration", min(took)), ("Max_Duration", max(took)),
                              ("Device_Cycles", sum(float(c["device_cycles"]) for c in of))):
            assert abs(float(row[column]) - value) <= 1e-9 * abs(value), (row, column, value)
    host = [row for row in pivot if float(row["Torch"]) > 0]
    assert {row["func_name"] for row in host} == {"aten::gelu"} and all(float(row["Device_Cycles"]) == 0 for row in host)
    assert json.loads(calls[1]["attrs"])["node"]
    want(ttc("run", vit, "--mode", "sel", "--timings", tmp / "u.csv"), 0, "--timings", "has no effect")
    assert not (tmp / "u.csv").exists()


@check
def a_node_that_fails_is_replayed_from_one_file(tmp):
    vit, node = shared("vit4.pt2", VIT), tmp / "node.pt2"
    flags = ["--mode", "sel", "--pcc", "0.9999999"]
    ran = want(ttc("compare", vit, *flags, "--reproducer", node, "--json"), 1, "wrote", "runs it again")
    failed = next(row for row in ran.json()["rows"] if not row["pass"])
    alone = want(ttc("compare", node, *flags, "--json"), 1, "the call that the file carries along").json()["rows"][0]
    assert all(alone[key] == failed[key] for key in ("node", "op", "module", "pcc", "max_abs")), (alone, failed)
    want(ttc("run", vit, "--reproducer", tmp / "none.pt2"), 0, "no node failed")
    want(ttc("compile", VIT, "-o", tmp / "v.pt2", "--reproducer", tmp / "none.ir"), 0, "no pass failed")
    want(ttc("run", vit, "--reproducer", tmp / "none.txt"), 2, "its name says no format")
    assert sorted(path.name for path in tmp.iterdir()) == ["node.pt2", "v.pt2"]


@check
def reports_are_whole_or_not_there_after_a_kill(tmp):
    vit = shared("vit3.pt2", VIT)
    io = str(ROOT / "models/vit_small.io.safetensors")
    lines = (["run", vit, "--loops", "3", "--timings", "t.csv", "--compatibility", "c.json", "--csv", "p.csv", "--telemetry", "d.json"],
             ["compare", vit, "--mode", "sel", "--pcc", "1", "--reproducer", "n.pt2"],
             ["verify", vit], ["compile", VIT, "-o", "s.pt2", "--io", io, "--min-pcc", "0.99", "--choice", "s.toml", "--pareto", "s.json"])
    for number, line in enumerate(lines):
        for wait in (0.05, 0.2, 0.35, 0.5):
            folder = tmp / f"{number}-{wait}"
            folder.mkdir()
            running = subprocess.Popen([TTC, *line], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(wait)
            running.send_signal(signal.SIGTERM)
            running.wait(60)
            for path in folder.iterdir():
                content = path.read_bytes()
                assert not path.name.startswith(".ttc-") and content, path
                if path.suffix == ".json":
                    json.loads(content)
                elif path.suffix == ".pt2":
                    want(ttc("inspect", path), 0)
                else:
                    assert content.endswith(b"\n"), path


@check
def traced_and_lightweight_are_normal_runs(tmp):
    vit = shared("vit5.pt2", VIT)
    assert "1 recorded, 3 replayed" in want(ttc("run", vit, "--mode", "TRACED", "--loops", "3", "--warmup", "1"), 0).out
    assert ttc("run", vit, "--mode", "traced", "--json").json()["traces"] == {"recorded": 1, "replayed": 0}
    want(ttc("run", vit, "--mode", "lightweight", "--timings", tmp / "t.csv", "--profile"), 0, "takes no times")
    assert not list(tmp.iterdir())


@check
def a_report_for_the_visualizer_has_what_lies_where(tmp):
    want(ttc("run", shared("vit2.pt2", VIT), "--ttnn-report", tmp / "ran"), 0)
    want(ttc("profile", VIT, "--arch", "p150", "--ttnn-report", tmp / "profiled", "--csv", tmp / "ops.csv"), 0)
    for folder in ("ran", "profiled"):
        assert json.loads((tmp / folder / "config.json").read_text())["report_name"].endswith(".pt2")
        with sqlite3.connect(tmp / folder / "db.sqlite") as base:
            linear = base.execute("select operation_id from operations where name = 'ttnn.linear'").fetchall()
            assert len(linear) > 8, linear
            for (operation,) in base.execute("select operation_id from operations").fetchall():
                held = sorted(base.execute("select address, address + max_size_per_bank from buffers where operation_id = ? and buffer_type = 0", (operation,)))
                assert held and all(end <= start for (_, end), (start, _) in zip(held, held[1:])), (folder, operation, held)
                touched = base.execute("select address from tensors where tensor_id in (select tensor_id from input_tensors where operation_id = ?1"
                                       " union select tensor_id from output_tensors where operation_id = ?1)", (operation,))
                assert {address for (address,) in touched} <= {address for address, _ in held}, (folder, operation)
            pages = base.execute("select page_address, bank_id from buffer_pages where operation_id = ?", linear[0]).fetchall()
            assert len({bank for _, bank in pages}) > 4
    rows = list(csv.DictReader(open(tmp / "ops.csv")))
    assert {row["AVAILABLE WORKER CORE COUNT"] for row in rows} == {"130"} and any("in0_block_w" in row["ATTRIBUTES"] for row in rows)
    (tmp / "file").write_text("")
    want(ttc("profile", VIT, "--ttnn-report", tmp / "file"), 2, "cannot be made a folder")


@check
def what_is_missing_is_ranked_by_what_it_would_bring(tmp):
    asked = ("--fallback-op", "gelu", "--fallback-op", "layer_norm")
    report = want(ttc("check", VIT, *asked, "--rank", "--json"), 0).json()
    gains = report["rank"]
    assert [gain["what"] for gain in gains] == ["aten.layer_norm.default", "aten.gelu.default"], gains
    assert [gain["nodes"] for gain in gains] == [5, 2] and gains[0]["us"] > gains[1]["us"] > 0
    # Together they are all that crosses the bus in the middle; what serves one leaves the transfers of the other.
    alone = want(ttc("check", VIT, *asked[:2], "--json"), 0).json()["transfers"]
    both, none = report["transfers"], want(ttc("check", VIT, "--json"), 0).json()["transfers"]
    assert gains[0]["transfers"]["count"] == both["count"] - alone["count"] > 0, (gains[0], both, alone)
    assert gains[1]["transfers"]["count"] == alone["count"] - none["count"] > 0, (gains[1], alone, none)
    assert want(ttc("check", VIT, "--rank", "--json"), 0).json()["rank"] == []
    assert "nothing is missing" in want(ttc("check", VIT, "--rank"), 0).out
    table = want(ttc("check", ROOT / "models" / "quantized.pt2", "--rank"), 0).out
    assert "aten.to.dtype" in table and "make_models.py" in table, table
    want(ttc("check", "--all", ROOT / "models", "--rank"), 2, "--rank is for one model")


def tracks_of(path):
    """Names of a trace's tracks, and their events; on each track an event is inside of another or beside it."""
    events = json.loads(path.read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tracks = {name: [] for (pid, _), name in names.items() if pid == 2}
    for event in events:
        if event["ph"] == "X" and event["pid"] == 2:
            tracks[names[event["pid"], event["tid"]]].append(event)
    for name, track in tracks.items():
        assert [e["ts"] for e in track] == sorted(e["ts"] for e in track), name
        around = []
        for event in track:
            end = event["ts"] + event["dur"]
            while around and around[-1] <= event["ts"] + 1e-6:
                around.pop()
            assert event["dur"] >= 0 and (not around or end <= around[-1] + 1e-6), (name, event)
            around.append(end)
    return tracks


@check
def a_trace_has_a_track_for_each_engine(tmp):
    profile = want(ttc("profile", VIT, "--trace", tmp / "profile.json", "--json"), 0).json()
    want(ttc("run", shared("vit2.pt2", VIT), "--trace", tmp / "run.json"), 0)
    engines = ["math", "unpack", "pack", "NoC", "DRAM", "dispatch", "PCIe"]
    for name in ("profile", "run"):
        tracks = tracks_of(tmp / f"{name}.json")
        assert list(tracks) == ["modules and ops", "host", *engines], list(tracks)
        ops = [e for e in tracks["modules and ops"] if e["cat"] != "module"]
        assert len(ops) > 30 and {"vit", "layers", "attention"} <= {e["name"] for e in tracks["modules and ops"] if e["cat"] == "module"}
        for engine in engines:
            assert tracks[engine] and sum(e["dur"] for e in tracks[engine]) <= sum(e["dur"] for e in ops) + 1e-6, (name, engine)
        linear = next(e for e in ops if e["name"] == "tt.linear")
        math = next(e for e in tracks["math"] if e["args"]["node"] == linear["args"]["node"])
        assert math["ts"] == linear["ts"] and 0 < math["dur"] <= linear["dur"] + 1e-6
        if name == "profile":
            assert abs(sum(e["dur"] for e in ops) - profile["total"]["us"]) < 1e-6 * profile["total"]["us"]
