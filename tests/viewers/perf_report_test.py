"""tt-perf-report reads the CSV of device ops and prints the table that ttc prints: device time, cores, FLOPs %, DRAM % and
bound of each op. `perf_report_test.py TTC`."""

import csv
import math
import pathlib
import subprocess
import tempfile

from viewers import MODELS, program, ttc

REPORT = program("tt-perf-report", "tools/setup.sh")
# Its own constants, by arch: GB/s of the DRAM, TFLOPS of a core. Those of n150 are of the published 74, 148 and 262 TFLOPS
# of 72 cores, ours of 4096 FLOPs a cycle.
PEAKS = {"n150": (288, {"HiFi4": 74 / 72, "HiFi3": 74 / 72 * 4 / 3, "HiFi2": 148 / 72, "LoFi": 262 / 72}),
         "p150": (512, {"HiFi4": 1.3824, "HiFi3": 1.8432, "HiFi2": 2.7648, "LoFi": 5.5296})}
BYTES = {"BFLOAT16": 2, "BFLOAT8_B": 1, "FLOAT32": 4}  # of an element, as it counts: exponents of blocks left out


def close(a, b, relative=1e-3):
    return math.isclose(a, b, rel_tol=relative, abs_tol=1e-9)


def size(row, tensor):
    """Padded elements, and bytes as tt-perf-report counts them."""
    dims = [int(row[f"{tensor}_{d}_PAD[LOGICAL]"].split("[")[0]) for d in "WZYX"]
    return dims, math.prod(dims) * BYTES[row[f"{tensor}_DATATYPE"]]


def padding(row):
    """Padded over logical FLOPs: it counts whole tiles as useful."""
    ratio = 1
    for cell in ("INPUT_0_Y", "INPUT_0_X", "INPUT_1_X"):
        padded, logical = row[cell + "_PAD[LOGICAL]"].rstrip("]").split("[")
        ratio *= int(padded) / int(logical)
    return ratio


def expected_product(written, ours, arch):
    """FLOPs %, DRAM %, bound of a matrix product, from the figures of ttc."""
    gb_s, tflops = PEAKS[arch]
    us = ours["device_us"]
    flops = 100 * padding(written) * ours["flops"] / ours["calls"] / us * 1e-6 / (tflops[written["MATH FIDELITY"]] * ours["cores"])
    moved = sum(size(written, t)[1] for t in ("INPUT_0", "INPUT_1", "OUTPUT_0"))
    dram = 100 * moved / us * 1e-3 / gb_s
    bound = "BOTH" if min(flops, dram) >= 65 else "DRAM" if dram >= 65 else "FLOP" if flops >= 65 else "SLOW"
    return flops, dram, bound


def check(folder, model, arch, formats, inputs):
    name = f"{model} {arch} {formats}"
    compiled, table, read = (folder / n for n in ("m.pt2", "ops.csv", "read.csv"))
    ttc("compile", MODELS / model, "-o", compiled, "--arch", arch, "--weight-dtype", f"*={formats}", "--force", "-q")
    ran = ttc("run", compiled, "--csv", table, "--profile", "--json", "-q", *inputs)
    done = subprocess.run([REPORT, table, "--no-color", "--no-advice", "--no-summary", "--csv", read], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Unclassified" not in done.stdout, done.stdout  # ops have the names that the library gives them
    theirs = list(csv.DictReader(read.open()))
    written = list(csv.DictReader(table.open()))
    ours = [op for op in ran["ops"] if op["place"] == "device"]
    assert len(theirs) == len(written) == len(ours) > 20, (name, len(theirs), len(written), len(ours))
    products = 0
    for row, line, op in zip(theirs, written, ours):
        where = (name, op["node"], row)
        assert op["node"] in line["ATTRIBUTES"], where
        assert abs(float(row["Device Time"]) - op["device_us"]) <= 0.001, where  # whole nanoseconds
        assert int(row["Cores"]) == op["cores"] and int(row["Available Cores"]) == (64 if arch == "n150" else 130), where
        if not row["OP Code"].startswith("Matmul"):
            continue
        products += 1
        flops, dram, bound = expected_product(line, op, arch)
        assert close(float(row["FLOPs %"]), flops), (where, flops)
        assert close(float(row["DRAM %"]), dram), (where, dram)
        assert row["Bound"] == bound, (where, bound)
        # And what ttc itself says: its peak is 4096 FLOPs a cycle, its bytes have the bias and the exponents too.
        assert close(100 * padding(line) * op["peak_flops_share"], float(row["FLOPs %"]), 0.005 if line["MATH FIDELITY"] != "LoFi" else 0.15), where
        assert 0.99 * dram <= 100 * op["peak_dram_share"] <= 1.3 * dram + 1, (where, dram)
        assert int(row["Inner Dim Block Size"]) >= 1, where
    assert products >= 9, name
    total = sum(float(row["Device Time"]) for row in theirs)
    assert close(total, sum(op["device_us"] for op in ours)), (name, total)
    print(f"ok {name}: {len(ours)} ops, {products} products, {total:.1f} us")


def main():
    with tempfile.TemporaryDirectory() as folder:
        inputs = ("--input", "a_0=zeros", "--input", "a_1=ones", "--shape", "a_0=2x64", "--shape", "a_1=2x64")
        check(pathlib.Path(folder), "bert_small_dyn.pt2", "n150", "bfloat16", inputs)
        check(pathlib.Path(folder), "bert_small_dyn.pt2", "p150", "bfloat8_b", inputs)
    print("2 passed, 0 failed")


main()
