"""Compiles and runs MiniLM in several weight formats with ttc and prints one table. Called by demo.sh."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

FORMATS = ["bfloat16", "bfloat8_b", "bfloat4_b"]


def ttc(tool, *args):
    started = time.monotonic()
    done = subprocess.run([tool, *map(str, args), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: a threshold was missed, which the table shows
        sys.exit(f"{' '.join([tool, *map(str, args)])}\n{done.stderr}")
    return json.loads(done.stdout), time.monotonic() - started


def ranking(embeddings):
    """For each sentence all others by falling cosine similarity: the order a search would give."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    similarity = unit @ unit.T
    return [list(np.argsort(-row, kind="stable")[1:]) for row in similarity], similarity


def main(tool, folder):
    io = folder / "minilm.io.safetensors"
    sentences = (folder / "sentences.txt").read_text().splitlines()
    reference, similarity = ranking(load_file(io)["out0"])
    rows = []
    for source in ["minilm.pt2", "minilm_dyn.pt2", "minilm.pt"]:
        for weights in FORMATS:
            out = folder / f"{source.replace('.', '_')}.{weights}.pt2"
            shapes = ["--shape", "in0=8x128", "--shape", "in1=8x128"] if source.endswith(".pt") else []
            compiled, compile_s = ttc(tool, "compile", folder / source, "-o", out, "--weight-dtype", f"*={weights}", *shapes)
            saved = folder / "outputs.safetensors"
            ran, _ = ttc(tool, "run", out, "--io", io, "--pcc", "0.9", "--save-outputs", saved)
            order, _ = ranking(load_file(saved)["out0"].astype(np.float32))
            check, nodes = ran["checks"][0], compiled["nodes"]
            same = sum(a == b for a, b in zip(order, reference))
            rows.append([source, weights, f"{nodes['device']}/{nodes['total']}",
                         f"{100 * compiled['flops']['device'] / compiled['flops']['total']:.2f} %",
                         f"{check['pcc']:.5f}", f"{check['max_abs']:.4f}", "unchanged" if same == len(order) else f"{len(order) - same} of {len(order)} differ",
                         f"{os.path.getsize(out) / 2**20:.1f} MiB", f"{compile_s:.2f} s", f"{ran['load_ms']:.0f} ms",
                         f"{ran['wall_ms']:.0f} ms"])
    head = ["model", "weights", "on device", "FLOPs", "PCC", "max error", "ranking", "file", "compile", "load", "first run"]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print("\nMiniLM (all-MiniLM-L6-v2), 8 sentences of up to 128 tokens, against LibTorch float32\n")
    for row in [head, ["-" * w for w in widths], *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print("\nNearest sentence by cosine similarity (LibTorch float32):")
    for i, order in enumerate(reference):
        print(f"  {similarity[i][order[0]]:.3f}  {sentences[i][:60]!r} -> {sentences[order[0]][:60]!r}")
    print(f"\nKept in {folder}: minilm.pt2, minilm_dyn.pt2, minilm.pt, minilm.io.safetensors and the compiled files.")
    print(f"Next: {tool} check {folder}/minilm.pt2   (what stays on the CPU, and why)")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
