"""Dispatch in the product: dispatchers, modes, rules, a reload between two runs, and `ttc explain`.

usage: test_dispatch.py TTC MODEL
"""

import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time


def run(tool, *args, code=0, env=None):
    done = subprocess.run([tool, *map(str, args)], capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != code:
        sys.exit(f"ttc {' '.join(map(str, args))}: exit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}")
    return done


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def kernels(out):
    return {op["kernel"] for op in out["ops"] if op["kernel"]}


def run_json(tool, model, io, *args, **more):
    done = run(tool, "run", model, "--io", io, "--profile", "--json", *args, **more)
    out = json.loads(done.stdout)
    check(all(c["pass"] for c in out["checks"]), f"outputs with {args}")
    return out, done.stderr


def modes(tool, model, io, work):
    out, _ = run_json(tool, model, io)
    check(any(k in ("tt.linear.1d", "tt.linear.2d") for k in kernels(out)) and "tt.attention.fused" in kernels(out), f"default kernels: {kernels(out)}")
    check(not any(k.endswith(".host") for k in kernels(out)), "nothing on the host by default")
    for mode in ("dynamic", "auto"):
        other, _ = run_json(tool, model, io, "--dispatch-mode", mode)
        check(kernels(other) == kernels(out), f"{mode} chooses the same kernels")
    out, _ = run_json(tool, model, io, "--dispatcher", "cpu")
    check(all(k.endswith(".host") for k in kernels(out)), "cpu dispatcher")
    out, _ = run_json(tool, model, io, env={"TT_SYMBIOTE_DISPATCHER": "CPU"})
    check(all(k.endswith(".host") for k in kernels(out)), "the environment wins")
    out, _ = run_json(tool, model, io, "--dispatcher", "tensor_ops")
    check("tt.attention.host" in kernels(out) and "tt.linear.host" in kernels(out), "tensor_ops dispatcher")
    done = run(tool, "run", model, "--io", io, "--dispatcher", "optimised", code=2)
    check("Unknown dispatcher 'optimised'" in done.stderr and "did you mean 'optimized'" in done.stderr, "unknown dispatcher")
    _, log = run_json(tool, model, io, "--dispatcher", "debug")
    check("tt.linear.dram_sharded: refused" in log and "debug: " in log and "served by" in log, "debug log")
    served(tool, model, io, work)


def served(tool, model, io, work):
    """A static map, and the telemetry that says what served each node."""
    telemetry = work / "telemetry.json"
    out, _ = run_json(tool, model, io, "--static-kernel", "tt.layer_norm=tt.layer_norm.host", "--telemetry", telemetry)
    check("tt.layer_norm.host" in kernels(out) and "tt.layer_norm.device" not in kernels(out), f"static map: {kernels(out)}")
    told = json.loads(telemetry.read_text())
    check(told == out["dispatch"], "the file holds what --json shows")
    check(told["mode"] == "STATIC" and told["kernels"]["tt.layer_norm.host"] > 0, f"telemetry: {told['kernels']}")
    check({n["kernel"]: n["on_device"] for n in told["nodes"]}["tt.layer_norm.host"] is False, "nodes say where they ran")
    check(sum(n["calls"] for n in told["nodes"]) == sum(told["kernels"].values()), "calls by node add up to calls by kernel")
    for flag, message in (
        ("tt.layer_norm=tt.softmax.device", "kernel 'tt.softmax.device' serves tt.softmax, not 'tt.layer_norm'"),
        ("tt.layer_norm=tt.layer_norm.hist", "did you mean 'tt.layer_norm.host'"),
        ("tt.layer_norm", "--static-kernel takes OP=KERNEL"),
    ):
        done = run(tool, "run", model, "--io", io, "--static-kernel", flag, code=2)
        check(message in done.stderr, f"{message} in {done.stderr}")


def rules(tool, model, io, work):
    config = work / "rules.yaml"
    config.write_text(
        'version: "1.0"\n'
        "dispatch_rules:\n"
        "  - operation: tt.attention\n"
        "    kernel: tt.attention.unfused\n"
        "    conditions: {num_heads_gte: 1, dtype: bfloat16}\n"
        '  - {operation: "tt.lin*", kernel: tt.linear.1d, conditions: {m_gt: 0}}\n'
        "kernel_locks: {tt.layer_norm: tt.layer_norm.host}\n")
    out, _ = run_json(tool, model, io, "--dispatch-config", config)  # implies the mode
    check(out["dispatch"]["mode"] == "CONFIG", "a configuration implies the mode")
    check({"tt.attention.unfused", "tt.linear.1d", "tt.layer_norm.host"} <= kernels(out), f"rules choose: {kernels(out)}")
    check(not {"tt.attention.fused", "tt.linear.2d", "tt.layer_norm.device"} & kernels(out), "and nothing else")
    check(out["dispatch"]["kernels"]["tt.attention.unfused"] > 0, "telemetry")
    # A kernel out of place serves where a rule asks for it.
    config.write_text('version: "1.0"\ndispatch_rules: [{operation: tt.linear, kernel: tt.linear.2d}]\n')
    out, _ = run_json(tool, model, io, "--dispatch-config", config)
    check("tt.linear.2d" in kernels(out) and "tt.linear.1d" not in kernels(out), f"2d by a rule: {kernels(out)}")
    check(out["nodes"]["fallback_failures"] == 0, "and it takes every call")
    # A kernel that cannot serve the call is said and replaced.
    config.write_text('version: "1.0"\ndispatch_rules: [{operation: tt.linear, kernel: tt.linear.dram_sharded}]\n')
    out, _ = run_json(tool, model, io, "--dispatch-mode", "config", "--dispatch-config", config)
    check("tt.linear.dram_sharded" not in kernels(out) and out["nodes"]["fallback_failures"] > 0, "a kernel that cannot serve")
    for text, message in (
        ("version: [\n", "malformed YAML"),
        ('version: "1.0"\ndispatch_rules:\n  - {operation: tt.linear, kernel: tt.linear.3d}\n', "line 3: dispatch_rules[0].kernel: no kernel is called 'tt.linear.3d'; did you mean 'tt.linear."),
        ('version: "1.0"\ndispatch_rules: 3\n', "line 2: dispatch_rules: must be a list (got: 3)"),
        ('version: "1.0"\ndispatch_rules:\n  - {operation: tt.add, kernel: tt.softmax.device}\n', "line 3: dispatch_rules[0].kernel: kernel 'tt.softmax.device' serves tt.softmax, not 'tt.add'"),
        ('version: "1.0"\nkernel_denies: [3]\n', "line 2: kernel_denies[0]: must be a string"),
    ):
        config.write_text(text)
        done = run(tool, "run", model, "--io", io, "--dispatch-mode", "config", "--dispatch-config", config, code=4)
        check(message in done.stderr and str(config) in done.stderr, f"{message} in {done.stderr}")
    done = run(tool, "run", model, "--io", io, "--dispatch-mode", "config", "--dispatch-config", work / "none.yaml", code=4)
    check("no such file" in done.stderr, "missing file")
    run(tool, "run", model, "--io", io, "--dispatch-mode", "config", code=2)


def hot_reload(tool, model, io, work):
    config = work / "hot.yaml"
    config.write_text("kernels: {tt.attention: {kernel: tt.attention.fused}}\n")
    # Some seconds of runs; each change waits for the word that the one before was seen.
    bench = subprocess.Popen([tool, "bench", model, "--io", io, "--loops", "20000", "--warmup", "1", "--threads", "1", "--json", "--dispatch-mode", "hot_reload", "--dispatch-config", str(config),
                              "--dispatch-setting", "watch_interval_seconds=0.05"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = queue.Queue()

    def listen():
        for line in bench.stderr:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    seen = []

    def wait_for(text):
        while not seen or text not in seen[-1]:
            line = lines.get(timeout=120)
            check(line is not None, f"'{text}' before the end of bench: {seen}")
            seen.append(line)

    def replace(text):
        fresh = work / "fresh.tmp"
        fresh.write_text(text)
        os.replace(fresh, config)

    wait_for("compiled in memory")
    time.sleep(0.3)
    replace("kernels: [\n")
    wait_for("malformed YAML")
    check(str(config) in seen[-1] and "stays active" in seen[-1], f"the broken file is reported: {seen}")
    replace('version: "1.0"\ndispatch_rules: [{operation: "tt.att*", kernel: tt.attention.unfused}]\n')
    wait_for("is active")
    stdout = bench.stdout.read()
    check(bench.wait(timeout=300) == 0, f"bench: {seen}")
    out = json.loads(stdout)
    hot = out["dispatch"]["orchestrator"]["dispatchers"]["HOT_RELOAD"]["hot_reload"]
    served = out["dispatch"]["kernels"]
    check(hot["failed_reloads"] == 1 and hot["total_reloads"] == 1, f"reloads: {hot}")
    check(served.get("tt.attention.fused", 0) > 0 and served.get("tt.attention.unfused", 0) > 0, f"kernels changed between runs: {served}")


def explain(tool, work):
    config = work / "explain.yaml"
    config.write_text('version: "1.0"\ndispatch_rules:\n  - {operation: tt.matmul, kernel: tt.matmul.1d, conditions: {m_gte: 4096}}\n  - {operation: "tt.mat*", kernel: tt.matmul.host}\n')
    out = json.loads(run(tool, "explain", "tt.matmul", "--dtype", "bfloat16", "--shape", "512x512,512x512", "--json").stdout)
    check(out["chosen"]["kernel"] == "tt.matmul.2d" and out["table"]["kernel"] == "tt.matmul.2d", "2d by default")
    check(out["table"]["step"] != "missing" and "tt" in out["table"]["key"], "table slot")
    check(any(c["kernel"] == "tt.matmul.dram_sharded" and c["reasons"] for c in out["dispatcher"]["selection"]["candidates"]), "reasons")
    check(out["torch"]["keys"], "LibTorch's keys")
    out = json.loads(run(tool, "explain", "matmul", "--shape", "32x512,512x4096", "--json").stdout)
    check(out["chosen"]["kernel"] == "tt.matmul.1d", "1d for a narrow product")
    check(any(c["result"] == "out of place" for c in out["dispatcher"]["selection"]["candidates"]), "2d could, and is out of place")
    out = json.loads(run(tool, "explain", "matmul", "--shape", "32x512,512x4096", "--static-kernel", "tt.matmul=tt.matmul.2d", "--json").stdout)
    check(out["chosen"]["kernel"] == "tt.matmul.2d", "which a static map overrules")
    out = json.loads(run(tool, "explain", "matmul", "--shape", "32x512,512x4096", "--static-kernel", "tt.matmul=tt.matmul.host", "--json").stdout)
    check(out["chosen"] == {"kernel": "tt.matmul.host", "by": "static", "why": "the static map"}, f"static map: {out['chosen']}")
    out = json.loads(run(tool, "explain", "aten::linear", "--shape", "1x4096,4096x4096", "--weight-dtype", "bfloat8_b", "--dispatcher", "optimized", "--json").stdout)
    check(out["chosen"]["kernel"] == "tt.linear.dram_sharded", f"optimized takes the sharded weight: {out['chosen']}")
    out = json.loads(run(tool, "explain", "aten::linear", "--shape", "8x384x1024,1024x1024", "--dispatcher", "optimized", "--json").stdout)
    check(out["chosen"]["kernel"] == "tt.linear.folded", f"optimized folds a batch: {out['chosen']}")
    out = json.loads(run(tool, "explain", "tt.matmul", "--shape", "512x512,512x512", "--config", config, "--json").stdout)
    check(out["chosen"] == {"kernel": "tt.matmul.host", "by": "config", "why": "dispatch_rule"}, f"config: {out['chosen']}")
    check(out["dispatcher"]["config"]["selection_path"][0]["failed_conditions"][0]["actual"] == 512, "failed condition")
    text = run(tool, "explain", "tt.attention", "--shape", "1x8x128x64,1x8x128x64,1x8x128x64", "--numerics", "exact").stdout
    check("tt.attention.unfused" in text and "Untested" in text and "kernel: tt.attention.fused" in text, text)
    done = run(tool, "explain", "tt.matmull", "--shape", "1x1", code=2)
    check("did you mean 'tt.matmul'" in done.stderr, "suggestion")
    run(tool, "explain", "tt.matmul", "--shape", "4x5,6x7", code=2)
    run(tool, "explain", "tt.matmul", "--shape", "4xx5", code=2)


def main():
    tool, model = sys.argv[1], pathlib.Path(sys.argv[2])
    io = model.with_suffix(".io.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        explain(tool, work)
        modes(tool, model, io, work)
        rules(tool, model, io, work)
        hot_reload(tool, model, io, work)
    print("ok")


if __name__ == "__main__":
    main()
