"""What it takes to add something: the patches of tests/data/patches, against the table of README.md ("Adding to it").

  example_patches.py          every patch applies, and has the new files and lines elsewhere that the table says
  example_patches.py MESON    the same; then each is applied to a copy of the tree, which is built, and what it adds is used
  example_patches.py MESON arch pass    the same, of these two only
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATCHES = ROOT / "tests/data/patches"
ROW = re.compile(r"^\| [^|]+ \| (\d+) \| (\d+) \| \[(\w+)\]\(tests/data/patches/\3\.patch\) \|$", re.M)


def run(*command, cwd=None, check=True):
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def expect(condition, *shown):
    if not condition:
        raise RuntimeError("\n".join(map(str, shown)))


def counts(patch):
    """New files, and lines added or taken away in files that are there."""
    files = lines = 0
    new = False
    for line in patch.read_text().splitlines():
        if line.startswith("--- "):
            new = line == "--- /dev/null"
            files += new
        elif line[:1] in ("+", "-") and not line.startswith("+++ "):
            lines += not new
    return files, lines


def names(text):
    """Those under which something registers itself: operators, modules, passes, commands."""
    found = re.findall(r'\.name = "([^"]+)"|TTC_REGISTER_\w+\(\{"([^"]+)"|"(tt\.\w+)"', text)
    return {name for groups in found for name in groups if name}


def taken_names():
    return {name: source for folder in ("src", "runtime", "passes", "tools")
            for source in (ROOT / folder).rglob("*.cpp") for name in names(source.read_text())}


def new_file(patch):
    """The text of the file that the patch adds."""
    added = patch.read_text().split("--- /dev/null\n", 1)[1].splitlines()
    return "".join(f"{line[1:]}\n" for line in added if line.startswith("+") and not line.startswith("+++ "))


def apply(patch, tree, *options):
    # Outside any repository: git would leave out what is not the repository's. One line of context is enough.
    env = dict(os.environ, GIT_CEILING_DIRECTORIES=str(tree.parent), GIT_DIR="/dev/null")
    done = subprocess.run(["git", "apply", "-C1", *options, str(patch)], cwd=tree, env=env, capture_output=True, text=True)
    expect(done.returncode == 0, f"{patch.name} does not apply", done.stderr)


# ---- what each patch adds is used --------------------------------------------------------------------------------------

SOFTSHRINK = """graph main(%x: f32[4, 64] user) {
  %y: f32[4, 64] = aten.softshrink.default(%x, 0.25)
  return %y
}
"""
ROT90 = """graph main(%x: f32[5, 40, 3] user) {
  %y: f32[3, 40, 5] = aten.rot90.default(%x, -1, [0, 2])
  return %y
}
"""
HARDSWISH = """graph main(%x: f32[4, 64] user) {
  %a: f32[4, 64] = aten.hardswish.default(%x)
  %y: f32[4, 64] = aten.relu.default(%a)
  return %y
}
"""
NEGATIONS = """graph main(%x: f32[4, 64] user) {
  %a: f32[4, 64] = aten.neg.default(%x)
  %b: f32[4, 64] = aten.neg.default(%a)
  %y: f32[4, 64] = aten.exp.default(%b)
  return %y
}
"""


def text_model(folder, text):
    model = folder / "model.ir"
    model.write_text(text)
    return model


def on_device(ttc, folder, op, text, *flags):
    """The device computes it by this operator, and agrees with LibTorch."""
    expect(f"{op} " in run(ttc, "ops"), f"ttc ops lists {op}")
    compared = run(ttc, "compare", text_model(folder, text), "--input", "x=rand:1", "--json", *flags)
    expect(f'"{op}"' in compared, f"{op} computes it", compared)


def use_unary_op(ttc, folder):
    on_device(ttc, folder, "tt.softshrink", SOFTSHRINK)
    on_device(ttc, folder, "tt.softshrink", SOFTSHRINK, "--numerics", "exact")


def use_structural_op(ttc, folder):
    on_device(ttc, folder, "tt.rot90", ROT90)


def use_module(ttc, folder):
    expect("TTNNHardswish " in run(ttc, "modules"), "ttc modules lists it")
    out = folder / "out.pt2"
    report = run(ttc, "compile", text_model(folder, HARDSWISH), "-o", out, "--replace", "torch.nn.Hardswish=TTNNHardswish", "--json")
    swapped = json.loads(report)["swapped"]
    expect([(one["to"], one["op"]) for one in swapped] == [("TTNNHardswish", "tt.hardswish")], "the map swaps it alone", swapped)
    run(ttc, "compare", out, "--input", "x=rand:1", "--strict")


def use_pass(ttc, folder):
    expect("fold-negation " in run(ttc, "passes"), "ttc passes lists it")
    model = text_model(folder, NEGATIONS)
    run(ttc, "compile", model, "-o", folder / "out.pt2", "--dump-after", "fold-negation", "--dump-dir", folder / "dumps")
    dump = next((folder / "dumps").iterdir()).read_text()
    expect("aten.exp" in dump and "aten.neg" not in dump, "both negations are gone", dump)


def use_weight_format(ttc, folder):
    out = folder / "bert.pt2"
    run(ttc, "compile", ROOT / "models/bert_small.pt2", "-o", out, "--weight-dtype", "*=bfloat6_b")
    expect("bfloat6_b" in run(ttc, "inspect", out, "-v"), "inspect shows it")
    run(ttc, "run", out, "--io", ROOT / "models/bert_small.io.safetensors", "--pcc", "0.99")
    run(ttc, "run", out, "--io", ROOT / "models/bert_small.io.safetensors", "--pcc", "0.99", "--numerics", "exact")


def use_arch(ttc, folder):
    expect("p300 " in run(ttc, "archs"), "ttc archs lists it")
    out = folder / "bert.pt2"
    run(ttc, "compile", ROOT / "models/bert_small.pt2", "-o", out, "--arch", "p300")
    ran = run(ttc, "run", out, "--arch", "p300", "--io", ROOT / "models/bert_small.io.safetensors", "--pcc", "0.99", "--json")
    expect('"p300"' in ran, "the run was on it", ran)


def use_file_format(ttc, folder):
    model = folder / "model.irz"
    model.write_bytes(gzip.compress(NEGATIONS.encode()))
    expect("aten.exp" in run(ttc, "inspect", model, "--graph", "text"), "inspect reads it")


def use_command(ttc, folder):
    expect("bfloat8_b " in run(ttc, "formats"), "ttc formats prints its table")


def build_and_use(meson, patches):
    with tempfile.TemporaryDirectory() as temporary:
        tree = pathlib.Path(temporary) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "build*", "__pycache__"))
        if (ROOT / ".venv").exists():
            (tree / ".venv").symlink_to(ROOT / ".venv")
        run(meson, "setup", "build", "-Doptimization=0", "-Ddebug=false", cwd=tree)
        for patch in patches:
            apply(patch, tree)
            run("ninja", "-C", "build", "ttc", cwd=tree)
            with tempfile.TemporaryDirectory() as folder:
                globals()[f"use_{patch.stem}"](tree / "build/ttc", pathlib.Path(folder))
            apply(patch, tree, "--reverse")
            print(f"{patch.stem}: builds and works", flush=True)


def main(arguments):
    table = {name: (int(files), int(lines)) for files, lines, name in ROW.findall((ROOT / "README.md").read_text())}
    patches = sorted(PATCHES.glob("*.patch"))
    taken = taken_names()
    passed = failed = 0
    for patch in patches:
        try:
            apply(patch, ROOT, "--check")
            expect(counts(patch) == table.get(patch.stem), f"{patch.name}: (new files, lines elsewhere) are "
                   f"{counts(patch)}, README.md says {table.get(patch.stem)}")
            for name in sorted(names(patch.read_text()) & set(taken)):
                raise RuntimeError(f"{patch.name}: {taken[name].relative_to(ROOT)} has '{name}' already")
            passed += 1
        except RuntimeError as error:
            failed += 1
            print(error)
    if new_file(PATCHES / "unary_op.patch") not in (ROOT / "runtime/ops/README.md").read_text():
        failed += 1
        print("runtime/ops/README.md shows another file than unary_op.patch adds")
    if set(table) != {patch.stem for patch in patches}:
        failed += 1
        print(f"README.md names {sorted(table)}, there are {[patch.stem for patch in patches]}")
    if arguments and not failed:
        build_and_use(arguments[0], [patch for patch in patches if patch.stem in arguments[1:] or not arguments[1:]])
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
