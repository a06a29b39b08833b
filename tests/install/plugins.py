"""The examples of runtime/api/README.md, exactly as printed: taken from its text, compiled with the command it prints
against installed headers, and run.

  plugins.py MESON BUILD_DIR SOURCE_DIR
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MODEL = """graph main(%x: f32[4, 64] user) {
  %n: f32[4, 64] = aten.neg.default(%x)
  %j: f32[4, 64] = aten.special_bessel_j0.default(%n)
  %p: f32[4, 64] = aten.mul.Scalar(%j, 1.702)  @act : QuickGELU
  %s: f32[4, 64] = aten.sigmoid.default(%p)  @act : QuickGELU
  %g: f32[4, 64] = aten.mul.Tensor(%j, %s)  @act : QuickGELU
  return %g
}
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, what, *shown):
    if not condition:
        sys.exit("\n".join([f"failed: {what}", *map(str, shown)]))


def install(meson, build, root):
    run(meson, "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "runtime,devel", "--destdir", root)
    pc = next(root.rglob("ttrt.pc")).parent
    os.environ["PKG_CONFIG_LIBDIR"], os.environ["PKG_CONFIG_SYSROOT_DIR"] = str(pc), str(root)
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([str(pc.parent), os.environ.get("LD_LIBRARY_PATH", "")])
    return next(p for p in root.rglob("bin/ttc") if p.is_file())


def compile_examples(readme, folder):
    """Writes the code blocks that name a file, and builds each with the README's own command line."""
    text = readme.read_text()
    files = dict(re.findall(r"^```cpp (\S+)\n(.*?)^```$", text, re.M | re.S))
    command = re.search(r"^    (g\+\+ .*) (\S+)\.cpp (.*)$", text, re.M)
    expect(command and len(files) == 7, "seven examples and the command that builds one", sorted(files))
    for name, code in files.items():
        expect(len(code.splitlines()) <= 45, f"{name} is about 40 lines", len(code.splitlines()))
        (folder / name).write_text(code)
        line = f"{command[1]} {command[2]}.cpp {command[3]}".replace(command[2], name.removesuffix(".cpp"))
        run("sh", "-ec", line + " -Wall -Werror", cwd=folder)
    return sorted(files)


MODULE_USER = r"""
#include <ttrt/dispatch.h>
#include <ttrt/module.h>
#include <cmath>
#include <cstdio>
int main() {
  ttrt::load_plugin("./libquick_gelu_module.so");
  const auto device = tt_lib::device::CreateDevice("n150");
  tt_lib::device::InitializeDevice(device);
  const auto source = ttrt::TorchModule::of(ttrt::Model::load("model.ir"), "act");
  const auto module = ttrt::from_torch(source);
  module->to_device(device);
  std::vector<float> values(256);
  for (int i = 0; i < 256; ++i) values[i] = (i - 128) / 32.F;
  const auto x = ttrt::Tensor::from(values, {4, 64});
  double worst = 0;
  for (int call = 0; call < 2; ++call) {
    const auto y = (*module)({x})[0].to(tt_lib::device::GetHost()), e = source.forward({x})[0];
    for (int i = 0; i < 256; ++i) worst = std::fmax(worst, std::abs(y.values<float>()[i] - e.values<float>()[i]));
    call == 0 ? module->deallocate_weights() : module->move_weights_to_host();
  }
  std::printf("%d %d %s\n", static_cast<int>(module->report().on_device), worst < 0.05, source.class_name().c_str());
}
"""


def the_module_runs(folder):
    (folder / "module_user.cpp").write_text(MODULE_USER)
    run("sh", "-ec", "g++ -std=c++20 module_user.cpp -o module_user $(pkg-config --cflags --libs ttrt)", cwd=folder)
    said = run("./module_user", cwd=folder)
    expect(said.split() == ["2", "1", "QuickGELU"], "the module serves two calls as the CPU would", said)


def headers_stand_alone(root, folder):
    """Each installed header compiles by itself."""
    flags = run("pkg-config", "--cflags", "ttrt").split()
    headers = sorted(root.rglob("*.h"))
    expect(len(headers) > 25, "the headers are installed", headers)
    source = folder / "all.cpp"
    source.write_text("".join(f'#include "{header}"\n' for header in headers))
    run("g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", *flags, source)


def examples_run(ttc, folder):
    model = folder / "model.ir"
    model.write_text(MODEL)
    plugin = lambda name: ["--plugin", f"./lib{name}.so"]

    def compiled(*plugins):
        return json.loads(run(ttc, "compile", "model.ir", "-o", "out.pt2", "--json", *plugins, cwd=folder))

    plain, with_op = compiled(), compiled(*plugin("bessel"))
    expect(plain["nodes"]["cpu"] == 0, "without it another device operator serves", plain)
    expect(with_op["nodes"]["cpu"] == 0 and with_op["nodes"]["total"] == plain["nodes"]["total"], "the op", with_op)
    rows = json.loads(run(ttc, "compare", "model.ir", "--json", *plugin("bessel"), cwd=folder))["rows"]
    mine = [row for row in rows if row["op"] == "tt.special_j0"]
    expect(len(mine) == 1 and mine[0]["pcc"] > 0.999, "its kernel equals its reference", rows)

    with_pass = compiled(*plugin("bessel"), *plugin("even"))
    expect(with_pass["nodes"]["total"] == with_op["nodes"]["total"] - 1, "the pass drops the sign", with_pass)
    ran = [one for one in with_pass["passes"] if one["name"] == "drop-signs"]
    expect(len(ran) == 1 and ran[0]["changed"] and ran[0]["matched"] == 1, "its report", with_pass["passes"])

    replaced = compiled(*plugin("bessel"), *plugin("even"), *plugin("quick_gelu"))
    expect(replaced["nodes"]["total"] == 2, "the module is one operator", replaced)
    run(ttc, "compare", "out.pt2", *plugin("bessel"), cwd=folder)

    named = compiled(*plugin("quick_gelu_record"), "--replace", "QuickGELU=TTNNQuickGELU")
    expect([m["path"] for m in named["swapped"]] == ["act"] and named["nodes"]["device"] == 3, "its modules alone", named)
    modules = json.loads(run(ttc, "modules", "--json", *plugin("quick_gelu_record"), cwd=folder))["modules"]
    expect("TTNNQuickGELU" in [m["name"] for m in modules], "the TT module is listed", modules)

    listed = json.loads(run(ttc, "dispatchers", "--json", *plugin("negligible"), cwd=folder))
    expect("negligible" in json.dumps(listed), "the dispatcher is listed", listed)
    options = ["--json", *plugin("bessel"), *plugin("negligible"), "--dispatcher"]
    left = json.loads(run(ttc, "run", "out.pt2", *options, "negligible", cwd=folder))
    usual = json.loads(run(ttc, "run", "out.pt2", *options, "default", cwd=folder))
    expect(usual["nodes"]["device"] == named["nodes"]["device"] and left["nodes"]["device"] == 0, "small operators stay", usual, left)

    counts = run(ttc, "ops-used", "model.ir", *plugin("ops_used"), cwd=folder).splitlines()
    expect("1 aten.special_bessel_j0.default" in counts and len(counts) == 5, "the command", counts)


def main():
    meson, build, source = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as scratch:
        root, folder = pathlib.Path(scratch) / "root", pathlib.Path(scratch) / "plugins"
        folder.mkdir()
        ttc = install(meson, build, root)
        names = compile_examples(pathlib.Path(source) / "runtime/api/README.md", folder)
        headers_stand_alone(root, folder)
        examples_run(ttc, folder)
        the_module_runs(folder)
    print("ok:", ", ".join(names))


main()
