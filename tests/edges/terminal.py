"""Colour, width, progress, help, completion, options from a file."""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import time

from common import BERT, IO, ROOT, TTC, VIT, check, shared, ttc, want


def on_terminal(*args, columns=80, env=None, until=None):
    """Standard output and error as a terminal shows them; ended when `until` was seen."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    running = subprocess.Popen([TTC, *map(str, args)], stdout=child, stderr=child, cwd=ROOT, env=env)
    os.close(child)
    out, end = b"", time.time() + 60
    while time.time() < end:
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
        if until and until.search(out.decode(errors="replace")):
            running.terminate()
    os.close(parent)
    running.kill() if running.poll() is None and time.time() >= end else None
    return running.wait(), out.decode()


@check
def colour_is_for_terminals_that_want_it(tmp):
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    red = "\x1b[1;31merror:"
    assert red in on_terminal("run", "nofile", env=env)[1]
    assert red not in on_terminal("run", "nofile", env=dict(env, NO_COLOR="1"))[1]
    assert red not in on_terminal("run", "nofile", env=dict(env, TERM="dumb"))[1]
    assert red not in ttc("run", "nofile", env=env).err
    assert red in ttc("run", "nofile", "--color", "always", env=env).err


@check
def tables_fit_the_terminal(tmp):
    for columns in (100, 79):
        for listed in ("ops", "passes", "modules", "dispatchers"):
            code, out = on_terminal(listed, columns=columns)
            assert code == 0 and max(len(line) for line in out.splitlines()) <= columns, (listed, columns)
    assert max(len(line) for line in ttc("run", "--help").out.splitlines()) <= 100


@check
def long_work_shows_progress_on_a_terminal_only(tmp):
    line = re.compile(r"running \S+: \d+/\d+, [0-9.e+]+/s, .* s left")
    out = on_terminal("run", VIT, "--loops", "1000000", until=line)[1]
    assert line.search(out), out[-300:]
    assert "left" not in ttc("run", VIT, "--loops", "2").err


# Products of which each takes a while with exact numerics: together long on any machine, and stopped once it has told.
PRODUCTS = ("graph main(%x0: bf16[1024, 1024] user) {\n" +
            "".join(f"  %x{i + 1}: bf16[1024, 1024] = aten.matmul.default(%x{i}, %x{i})\n" for i in range(64)) +
            "  return %x64\n}\n")


@check
def a_single_run_and_a_chain_of_short_phases_show_progress(tmp):
    model = tmp / "products.ir"
    model.write_text(PRODUCTS)
    line = re.compile(r"running: [1-9]\d*/\d+, [0-9.e+]+/s, .* s left")
    out = on_terminal("run", model, "--input", "x0=rand:0", "--numerics", "exact", until=line)[1]
    assert line.search(out), out[-300:]
    # Many files, none of which takes a second.
    line = re.compile(r"checking \([^)]+\): [1-9]\d*/\d+, .* s left")
    out = on_terminal("check", "--all", "models", until=line)[1]
    assert line.search(out), out[-300:]


@check
def verbose_says_more(tmp):
    plain, more = ttc("compile", VIT, "-o", tmp / "x.pt2"), ttc("compile", VIT, "-o", tmp / "x.pt2", "-v")
    assert "replace:" in more.err and "writing: " in more.err and "replace:" not in plain.err
    assert f"wrote {tmp}/x.pt2" in plain.err


def a_call_of_each_command(tmp):
    """Most of them have notes or warnings to say."""
    vit = shared("vit-quiet.pt2", VIT, "--keep-original", "--arch", "p150")
    idle = ("--fallback-op", "nonesuch")
    return {
        "archs": [], "bench": [vit, "--loops", "2", "--arch", "n150"], "bisect": [BERT, "--io", IO, "--pcc", "0.5"],
        "check": [VIT, *idle], "compare": [VIT],
        "compile": [VIT, "-o", tmp / "c.pt2", "--min-pcc", "0.5", "--io", ROOT / "models/vit_small.io.safetensors", *idle],
        "completion": ["bash"], "diff": [VIT, VIT], "dispatchers": [], "emit": [VIT, "-o", tmp / "program", "--overwrite", *idle],
        "explain": ["tt.linear", "--shape", "32x64,64x64"], "inspect": [vit, "-v"],
        "extract": [BERT, "--module", "model.encoder.layer.0", "--io", IO, "-o", tmp / "layer.pt2"],
        "model": ["fit", ROOT / "tests/data/gemm.csv"], "modules": [], "ops": [], "passes": [], "profile": [VIT, "--arch", "p150"],
        "replay": [ROOT / "tests/data/golden", "--filter", "softmax"], "report": [VIT, "-o", tmp / "r.html"],
        "run": [vit, "--arch", "n150", "--reproducer", tmp / "node.pt2"], "undo": [vit, "-o", tmp / "original.pt"],
        "verify": [vit]}


@check
def quiet_leaves_results_and_errors_only(tmp):
    calls = a_call_of_each_command(tmp)
    commands = re.findall(r"^  ([a-z]+)  ", ttc("--help").out.split("Subcommands:")[1], re.M)
    assert sorted(calls) == sorted(commands), set(calls) ^ set(commands)
    bare = lambda text: re.sub(r"[\d\s.e+-]+", "", text)  # times differ, and with them widths
    said = set()
    for command, args in calls.items():
        plain, quiet = ttc(command, *args), want(ttc(command, *args, "-q"), 0)
        want(plain, 0)
        assert quiet.err == "" and bare(quiet.out) == bare(plain.out), (command, quiet.err, quiet.out, plain.out)
        said |= {command} if plain.err else set()
    assert said >= {"bench", "check", "compare", "compile", "emit", "extract", "report", "run", "undo", "verify"}, said
    for args in (["run", "nofile"], ["compile", VIT], ["run", VIT, "--pcc", "0.9"], ["check", VIT, "--min-device"]):
        plain, quiet = ttc(*args), ttc(*args, "-q")
        assert quiet.code == plain.code != 0 and plain.err.endswith(quiet.err) and quiet.err.startswith("error:"), args
    # What a flag asks to be told, and what fails the command under --strict, is no note.
    want(ttc("check", VIT, "--fallback-op", "nonesuch", "--strict", "-q"), 1, "warning: ", "hint: ", "error: ")
    want(ttc("check", VIT, "--stats", "-q"), 0, "replace")
    want(ttc("run", VIT, "--dispatcher", "debug", "-q"), 0, "debug: ")


@check
def help_has_groups_defaults_and_an_example(tmp):
    out = ttc("run", "--help").out
    for text in ("Inputs:", "Execution:", "Dispatch:", "Every command:", "fast|exact", "[fast]", "Example:\n  ttc run "):
        assert text in out, text
    for name in ("compile", "check", "compare", "bench", "replay", "explain", "inspect"):
        assert "Example:" in ttc(name, "--help").out, name


@check
def completion_knows_flags_and_values(tmp):
    for shell in ("bash", "zsh", "fish"):
        out = want(ttc("completion", shell), 0).out
        assert "numerics" in out and "fast exact" in out and "p150" in out, shell
        program = shutil.which(shell)
        if program:
            assert subprocess.run([program, "-n"], input=out.encode(), capture_output=True).returncode == 0, shell
    script = ttc("completion", "bash").out + (
        "\nCOMP_WORDS=(ttc run --numerics e); COMP_CWORD=3; _ttc; echo ${COMPREPLY[@]}"
        "\nCOMP_WORDS=(ttc comp); COMP_CWORD=1; _ttc; echo ${COMPREPLY[@]}"
        "\nCOMP_WORDS=(ttc compile --weight); COMP_CWORD=2; _ttc; echo ${COMPREPLY[@]}")
    said = subprocess.run(["bash"], input=script.encode(), capture_output=True).stdout.decode().splitlines()
    assert said == ["exact", "compare compile completion", "--weight-dtype"], said


@check
def options_come_from_a_file(tmp):
    options = tmp / "ttc.toml"
    options.write_text('[run]\nnumerics = "exact"\nshape = ["a_0=2x10", "a_1=2x10", "a_2=2x10"]\n[compile]\narch = "p150"\n')
    out = ttc("run", BERT, "--options", options, "--json").json()
    assert out["numerics"] == "exact" and out["outputs"][0]["shape"] == [2, 10, 64]
    assert ttc("run", BERT, "--options", options, "--json", "--numerics", "fast").json()["numerics"] == "fast"
    assert ttc("compile", BERT, "--options", options, "-o", tmp / "x.pt2", "--json").json()["arch"] == "p150"
    options.write_text("[run]\nnumerisc = 'exact'\n")
    want(ttc("run", BERT, "--options", options), 2, "ttc.toml", "did you mean '--numerics'?")
    want(ttc("run", BERT, "--options", "nofile.toml"), 4, "nofile.toml")
    for text, wrong in (("[rum]\nloops = 2\n", "no subcommand is called 'rum'"), ("[run.more]\nloops = 2\n", "'run.more'"),
                        ("options = 'other.toml'\n", "has no --options"), ("plugin = 'lib.so'\n", "has no --plugin")):
        options.write_text(text)
        want(ttc("run", BERT, "--options", options), 2, "ttc.toml", wrong)
