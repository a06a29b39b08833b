"""A kill at any moment: what stands under a result's name is whole, and what is unfinished goes with the next run.

What stands in a folder changes at calls of the operating system only, so kill_at_call.cpp, preloaded into ttc, kills it
before the n-th of these: the same places on a machine of any speed.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess

from common import ROOT, TTC, VIT, check, shared, ttc, want

SHIM = pathlib.Path(TTC).parent / "kill_at_call.so"
VIT_IO = str(ROOT / "models/vit_small.io.safetensors")

def killed_at(call, line, folder):
    """Whether the run was killed: false where it has fewer calls."""
    env = {**os.environ, "LD_PRELOAD": str(SHIM), "TTC_KILL_AT": str(call)}
    done = subprocess.run([TTC, *line], cwd=folder, env=env, capture_output=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()[:300]
    return done.returncode != 0


def calls_of(line, folder):
    count = folder / "count"
    env = {**os.environ, "LD_PRELOAD": str(SHIM), "TTC_KILL_COUNT": str(count)}
    done = subprocess.run([TTC, *line], cwd=folder, env=env, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[:300]
    calls = int(count.read_text())
    count.unlink()
    return calls


def contents(path):
    """What the folder holds: the temporary ones, which begin with a point, aside."""
    return {one.relative_to(path).as_posix(): one.read_bytes() for one in sorted(path.rglob("*"))
            if one.is_file() and not one.relative_to(path).parts[0].startswith(".")}


def check_whole(path, expected):
    content = path.read_bytes()
    if content in expected:
        return
    if path.suffix == ".pt2":
        want(ttc("verify", path), 0)
    elif path.suffix == ".json":
        json.loads(content)
    else:
        assert content.endswith(b"\n"), path


def survives(tmp, line, results):
    """`line` is killed at many of its calls, with nothing there yet and with the results of another run there."""
    first = tmp / "first"
    first.mkdir()
    calls = calls_of(line, first)
    new = contents(first)
    assert all((first / name).exists() for name in results), (sorted(new), results)
    last = range(max(calls - 7, 1), calls + 1)  # where names are given
    moments = sorted({*last, *(1 + calls * i // 8 for i in range(8))})
    for old in ({}, new) if results else ({},):
        folder = tmp / ("over" if old else "fresh")
        folder.mkdir()
        for name, content in old.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        left = 0
        for moment in moments:
            killed = killed_at(moment, line, folder)
            assert killed or moment > calls - 3, f"done before call {moment} of {calls}"
            there = contents(folder)
            for name in results:
                path = folder / name
                if path.is_dir():
                    inside = {key: value for key, value in there.items() if key.startswith(name + "/")}
                    was = {key for key in old if key.startswith(name + "/")}
                    assert set(inside) in ({key for key in new if key.startswith(name + "/")}, was), (moment, name, sorted(inside))
                elif path.exists():
                    check_whole(path, (new.get(name), old.get(name)))
                else:
                    assert name not in old, f"killed at call {moment}: {name} is gone"
                if not old and path.exists():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            left += sum(path.name.startswith(".ttc-") for path in folder.iterdir())
        if results:
            assert subprocess.run([TTC, *line], cwd=folder, capture_output=True, timeout=120).returncode == 0
        names = {path.name for path in folder.iterdir()}
        assert not [name for name in names if name.startswith(".")], f"left behind ({left} times): {sorted(names)}"


@check
def a_compile_that_is_killed_leaves_whole_files(tmp):
    survives(tmp, ["compile", VIT, "-o", "m.pt2", "--weight-dtype", "*=bfloat8_b"], ["m.pt2"])


@check
def embedding_tests_that_is_killed_leaves_whole_files(tmp):
    survives(tmp, ["compile", VIT, "-o", "m.pt2", "--embed-tests", VIT_IO, "--keep-original"], ["m.pt2"])


@check
def a_search_that_is_killed_leaves_whole_files(tmp):
    survives(tmp, ["compile", VIT, "-o", "s.pt2", "--io", VIT_IO, "--min-pcc", "0.99", "--choice", "s.toml", "--pareto", "s.json"],
             ["s.pt2", "s.toml", "s.json"])


@check
def a_verify_that_is_killed_leaves_the_file_as_it_was(tmp):
    model = tmp / "v.pt2"
    want(ttc("compile", VIT, "-o", model, "--embed-tests", VIT_IO), 0)
    before = model.read_bytes()
    survives(tmp, ["verify", model], [])
    assert model.read_bytes() == before


@check
def an_undo_that_is_killed_leaves_whole_files(tmp):
    kept = shared("kept.pt2", VIT, "--keep-original")
    survives(tmp, ["undo", kept, "-o", "u.pt2"], ["u.pt2"])


@check
def an_extract_that_is_killed_leaves_whole_files(tmp):
    survives(tmp, ["extract", VIT, "--module", "model.vit.layers.0", "--io", VIT_IO, "-o", "part.pt2"], ["part.pt2"])


@check
def an_emit_that_is_killed_leaves_whole_folders(tmp):
    survives(tmp, ["emit", VIT, "-o", "program", "--overwrite", "--io", VIT_IO], ["program"])
