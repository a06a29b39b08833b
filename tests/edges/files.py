"""What ttc writes, and what a file knows of itself."""

import json
import os
import shutil
import signal
import stat
import subprocess
import time

from common import BERT, TINY, TTC, VIT, check, shared, ttc, want


@check
def devices_pipes_and_folders_are_not_replaced(tmp):
    pipe = tmp / "pipe.safetensors"
    os.mkfifo(pipe)
    (tmp / "folder.pt2").mkdir()
    want(ttc("run", TINY, "--mode", "cpu", "--save-outputs", pipe), 2, "it is a pipe")
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    want(ttc("run", TINY, "--mode", "cpu", "--csv", "/dev/null"), 2, "it is a device")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    want(ttc("compile", TINY, "-o", tmp / "folder.pt2"), 2, "it is a directory")
    want(ttc("compile", TINY, "-o", "/dev/null"), 2, "its name says no format")


@check
def links_are_followed(tmp):
    (tmp / "there").mkdir()
    (tmp / "link.pt2").symlink_to("there/to.pt2")
    want(ttc("compile", TINY, "-o", tmp / "link.pt2"), 0)
    assert (tmp / "link.pt2").is_symlink() and (tmp / "there/to.pt2").read_bytes()[:2] == b"PK"


@check
def an_input_is_not_overwritten(tmp):
    model = tmp / "m.pt2"
    shutil.copy(TINY, model)
    os.link(model, tmp / "other.pt2")
    before = model.read_bytes()
    want(ttc("compile", model, "-o", model), 2, "it is read by the same command", "--force")
    want(ttc("compile", model, "-o", tmp / "other.pt2"), 2, "it is read by the same command")
    want(ttc("run", model, "--mode", "cpu", "--trace", model), 2, "it is read by the same command")
    rules = tmp / "rules.yaml"
    rules.write_text('version: "1.0"\n')
    want(ttc("run", model, "--dispatch-config", rules, "--telemetry", rules), 2, "it is read by the same command")
    assert model.read_bytes() == before
    want(ttc("compile", model, "-o", model, "--force"), 0)
    assert model.read_bytes() != before


@check
def the_name_of_an_output_says_its_format(tmp):
    for name in ("x.onnx", "x", "x.PT3"):
        want(ttc("compile", TINY, "-o", tmp / name), 2, "its name says no format", ".pt or .pt2")
    want(ttc("compile", VIT, "-o", tmp / "x.PT"), 0)
    assert b"constants.pkl" in (tmp / "x.PT").read_bytes()
    assert sorted(p.name for p in tmp.iterdir()) == ["x.PT"]


@check
def a_signal_leaves_nothing_behind(tmp):
    big = tmp / "big.ir"
    big.write_text('model {}\ngraph main(%x: f32[8, 2048] user, $w: f32[8192, 2048] parameter "w" = splat(0.5)) {\n'
                   "  %y: f32[8, 8192] = aten.linear.default(%x, $w)\n  return %y\n}\n")
    began = time.monotonic()
    want(ttc("compile", big, "-o", tmp / "big.pt2"), 0)
    whole = time.monotonic() - began  # a guess: the first run may have waited for what later ones find in memory
    os.remove(tmp / "big.pt2")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        killed = 0
        for attempt in range(12):  # at twelve moments of a run, its start the first
            running = subprocess.Popen([TTC, "compile", big, "-o", tmp / "big.pt2"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(whole * attempt / 12)
            running.send_signal(number)
            code, there = running.wait(60), sorted(os.listdir(tmp))
            assert code in (0, -number), code
            if there == ["big.ir"]:
                assert code == -number, there
                killed += 1
                continue
            assert there == ["big.ir", "big.pt2"], there
            want(ttc("verify", tmp / "big.pt2"), 0)  # whatever stands under its name is whole
            os.remove(tmp / "big.pt2")
            whole *= 0.8  # it was done already
        assert killed, "it was always done before the signal came"


@check
def standard_output_that_cannot_be_written_is_an_error(tmp):
    for flags in ([], ["--json"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TTC, "archs", *flags], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 2 and b"cannot write standard output" in done.stderr


@check
def a_file_knows_its_arch(tmp):
    p150 = shared("p150.pt2", VIT, "--arch", "p150")
    assert ttc("run", p150, "--json").json()["arch"] == "p150"
    assert "p150" in want(ttc("run", p150), 0).out
    ran = want(ttc("run", p150, "--arch", "n300"), 0, "was rewritten for p150")
    assert "n300, one of its 2 chips" in ran.out
    own = next(a for a in ttc("archs", "--json").json()["archs"] if a["name"] == "n150")
    own.update(name="mine", clock_mhz=500)
    (tmp / "mine.json").write_text(json.dumps(own))
    want(ttc("compile", VIT, "-o", tmp / "mine.pt2", "--arch", tmp / "mine.json"), 0)
    os.remove(tmp / "mine.json")
    assert ttc("run", tmp / "mine.pt2", "--json").json()["arch"] == "mine"


@check
def shapes_that_nobody_gave_are_named(tmp):
    bert = shared("bert3.pt2", BERT)
    want(ttc("run", bert, "--shape", "a_0=4x20"), 2, "nobody gave the sizes", "a_1=", "--shape")


@check
def a_graph_without_its_weights_is_told(tmp):
    want(ttc("compile", TINY, "-o", tmp / "x.pt2", "--dump-dir", tmp / "d", "--dump-after", "canonicalize"), 0)
    dump = next((tmp / "d").glob("*canonicalize*"))
    want(ttc("compile", dump, "-o", tmp / "y.pt2"), 0, "carries no weights")


@check
def only_what_a_killed_process_left_is_removed(tmp):
    kept = [".ttc-notes", ".ttc-1-2", ".ttc-1-2-3x", ".ttc-1-2-", ".ttc-"]
    for name in [*kept, ".ttc-1-2-3"]:
        (tmp / name).mkdir()
        (tmp / name / "inside").write_text("a line")
    want(ttc("compile", TINY, "-o", tmp / "tiny.pt2"), 0)
    assert sorted(os.listdir(tmp)) == sorted([*kept, "tiny.pt2"]), os.listdir(tmp)
    assert all((tmp / name / "inside").exists() for name in kept)


@check
def two_results_do_not_share_a_file(tmp):
    (tmp / "folder").mkdir()
    (tmp / "link").symlink_to("folder")
    for command, first, second in (
        (("run", TINY, "--mode", "cpu"), ("--csv", tmp / "a.csv"), ("--timings", tmp / "folder/../a.csv")),
        (("run", TINY, "--mode", "cpu"), ("--trace", tmp / "folder/a.json"), ("--telemetry", tmp / "link/a.json")),
        (("compile", VIT, "--min-pcc", "0.5"), ("-o", tmp / "x.pt2"), ("--pareto", tmp / "x.pt2")),
    ):
        want(ttc(*command, *first, *second), 2, second[0], "name the same file")
        assert not list((tmp / "folder").iterdir())
    assert sorted(os.listdir(tmp)) == ["folder", "link"], os.listdir(tmp)


@check
def a_link_to_itself_and_a_name_that_is_no_page_s_are_refused(tmp):
    (tmp / "loop.pt2").symlink_to("loop.pt2")
    want(ttc("compile", TINY, "-o", tmp / "loop.pt2"), 2, "symbolic links")
    want(ttc("report", TINY, "-o", tmp / "page.txt"), 2, "a page's name ends in .html")
    assert os.listdir(tmp) == ["loop.pt2"] and (tmp / "loop.pt2").is_symlink()
