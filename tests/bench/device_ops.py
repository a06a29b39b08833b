"""Device time of single ops other than products, beside times that were published for the same sizes: a Markdown table.

    device_ops.py build/ttc

Published times are of one kernel each, read from the device's own profiler. Sources: reports beside the examples of
the vendor's op library (width_split, distribution_gate, sfpu_tile_scope; 2026-07), times that its CI holds group norms
to, a public tt-perf-report of an encoder of 24 layers with 576 tokens of 1,024 features on an n150, and what pull
requests and issues of the library and its compiler measured: softmax (51145, main; the board is not told, its times
fit 64 cores), rms_norm (compiler, 7717), attention (51911 with the default chunks of 32, 56898 and 17793 with others).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ELEMENTWISE = [(32, 32, 1.82), (32, 256, 1.92), (32, 1024, 2.26), (32, 2048, 2.67), (32, 4096, 4.20), (32, 8192, 7.64),
               (2048, 32, 2.71), (1024, 1024, 22.2), (2048, 2048, 83.7)]
NORM = "%x: bf16[1, {n}, {d}] user, $g: bf16[{d}] parameter \"g\", $b: bf16[{d}] parameter \"b\""
GROUP = "%x: bf16[1, {c}, {h}, {h}] user, $g: bf16[{c}] parameter \"g\", $b: bf16[{c}] parameter \"b\""


def relu(rows, columns):
    return f"%x: bf16[{rows}, {columns}] user", f"bf16[{rows}, {columns}] = aten.relu.default(%x)"


def group_norm(c, h):
    return GROUP.format(c=c, h=h), f"bf16[1, {c}, {h}, {h}] = aten.group_norm.default(%x, 32, $g, $b)"


def softmax(b, rows, columns):
    kind = f"bf16[{b}, {rows}, {columns}]"
    return f"%x: {kind} user", f"{kind} = aten.softmax.int(%x, -1)"


def attention(heads, kv_heads, length, causal=False, depth=128):
    q, kv = (f"bf16[1, {n}, {length}, {depth}]" for n in (heads, kv_heads))
    keys = f", none, 0.0, {str(causal).lower()}, enable_gqa={str(heads != kv_heads).lower()}"
    return f"%q: {q} user, %k: {kv} user, %v: {kv} user", f"{q} = aten.scaled_dot_product_attention.default(%q, %k, %v{keys})"


RMS_NORM = ('%x: bf16[1, 32, 2880] user, $g: bf16[2880] parameter "g"', "bf16[1, 32, 2880] = aten.rms_norm.default(%x, [2880], $g, 1e-05)")
LAYER_NORM = (NORM.format(n=576, d=1024), "bf16[1, 576, 1024] = aten.layer_norm.default(%x, [1024], $g, $b)")
ADD = ("%x: bf16[1, 576, 1024] user, %y: bf16[1, 576, 1024] user", "bf16[1, 576, 1024] = aten.add.Tensor(%x, %y)")
HEADS = "bf16[1, 16, 576, 64]"
ATTENTION = (f"%q: {HEADS} user, %k: {HEADS} user, %v: {HEADS} user",
             f"{HEADS} = aten.scaled_dot_product_attention.default(%q, %k, %v)")

# what, board, (inputs, node), published us, how that one was otherwise
WHOLE = [(f"relu {rows}x{columns}", "n150", relu(rows, columns), us, "") for rows, columns, us in ELEMENTWISE] + [
    ("add 576x1024", "n150", ADD, 12, "one operand bfloat8_b"),
    ("layer_norm 576x1024", "n150", LAYER_NORM, 19.5, "sharded in L1 on 48 cores"),
    ("attention, 16 heads of 576x64", "n150", ATTENTION, 67, "bfloat8_b, larger chunks"),
    ("rms_norm 32x2880", "n150", RMS_NORM, 108, ""),
    ("softmax 32x64", "n150", softmax(1, 32, 64), 5.39, ""),
    ("softmax 16x64x64", "n150", softmax(16, 64, 64), 6.41, ""),
    ("softmax 8x128x1024", "n150", softmax(8, 128, 1024), 58.15, ""),
    ("softmax 16384x256", "n150", softmax(1, 16384, 256), 154.6, ""),
    ("softmax 4096x4096", "n150", softmax(1, 4096, 4096), 820.4, ""),
    ("softmax 2048x32000", "n150", softmax(1, 2048, 32000), 2505, ""),
    ("attention, a head of 2048x128", "p100", attention(1, 1, 2048), 126, ""),
    ("attention, a head of 8192x128", "p100", attention(1, 1, 8192), 1283, ""),
    ("attention, a head of 16384x128", "p100", attention(1, 1, 16384), 4256, ""),
    ("attention, 32 heads of 4096x128, causal", "p100", attention(32, 8, 4096, True), 2271, "larger chunks"),
    ("attention, 48 heads of 4096x64", "n150", attention(48, 48, 4096, depth=64), 12960, "bfloat8_b, larger chunks"),
    ("group_norm 1x320x128x128, 32 groups", "n150", group_norm(320, 128), 484.8, "sharded in L1"),
    ("group_norm 1x512x128x128, 32 groups", "n150", group_norm(512, 128), 223.2, "sharded in L1"),
    ("group_norm 1x256x1024x1024, 32 groups", "n150", group_norm(256, 1024), 19380, "Welford's algorithm"),
]
# The vector unit alone: us a tile.
TILE = [("rsqrt", "p150", 0.748), ("reciprocal", "p150", 0.890)]


def ops(ttc, board, inputs, node, folder):
    model = pathlib.Path(folder) / "op.ir"
    model.write_text(f"graph main({inputs}) {{\n  %1: {node}\n  return %1\n}}\n")
    told = subprocess.run([ttc, "profile", model, "--arch", board, "--json", "-q"], capture_output=True, text=True, check=True)
    return [op for op in json.loads(told.stdout)["ops"] if op["bound"] != "pcie"]


def main(ttc):
    print("| op, bfloat16 | board | published us | ours | ratio | bound | published was |")
    print("|---|---|--:|--:|--:|---|---|")
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for what, board, call, published, otherwise in WHOLE:
            made = ops(ttc, board, *call, folder)
            us = sum(op["us"] for op in made)
            if not otherwise:
                errors.append(abs(us / published - 1))
            bound = max(made, key=lambda op: op["us"])["bound"]
            print(f"| {what} | {board} | {published:,g} | {us:,.4g} | {us / published:.2f} | {bound} | {otherwise} |")
        for name, board, published in TILE:
            tiles = 8  # of each of the cores
            made = ops(ttc, board, f"%x: bf16[{130 * 32}, {tiles * 32}] user",
                       f"bf16[{130 * 32}, {tiles * 32}] = aten.{name}.default(%x)", folder)
            us = made[0]["terms"]["math"] / tiles / 1350
            print(f"| {name}, a tile | {board} | {published:g} | {us:.3g} | {us / published:.2f} | math | one core, in L1 |")
    print(f"\nMean error of the {len(errors)} with the same memory and formats: {100 * sum(errors) / len(errors):.1f} %")


if __name__ == "__main__":
    main(sys.argv[1])
