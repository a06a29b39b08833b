"""How time and memory grow, with the number of nodes that are compiled and with the sizes of a model that runs. Each series is
fitted as time = a * size^b, by least squares over the logarithms; b is the growth: 1 is linear.

    python tests/bench/growth.py build/ttc                           # all but --parts sparse
    python tests/bench/growth.py build/ttc --parts compile --nodes 1000,10000,100000 --plots src
    python tests/bench/growth.py build/ttc --parts run --runs sequence
    python tests/bench/growth.py build/ttc --parts sparse --folder /var/tmp     # a model of 8 G parameters: 10 GB are written
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile
import time

import growth_graphs
import sparse_model

RUNS = {
    "layers": ([1, 2, 4, 8, 16, 32, 64], lambda n: dict(count=n, width=128, heads=4, sequence=64)),
    "width": ([64, 128, 256, 512, 1024], lambda n: dict(count=2, width=n, heads=4, sequence=64)),
    "batch": ([1, 2, 4, 8, 16, 32, 64], lambda n: dict(count=2, width=128, heads=4, sequence=64, batch=n)),
    "sequence": ([512, 1024, 2048, 4096, 8192, 16384, 32768], lambda n: dict(count=1, width=64, heads=1, sequence=n)),
}


def anonymous_bytes(pid):
    """What a process holds now beside the files that it maps."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def ttc_json(command):
    """What the command prints, and the most memory that it took, with and without the files that it maps."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=subprocess.STDOUT)
        anonymous, ended = 0, 0
        while not ended:
            anonymous = max(anonymous, anonymous_bytes(process.pid))
            time.sleep(0.01)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{text}")
    return {**json.loads(text[text.index("{"):text.rindex("}") + 1]), "peak_rss": usage.ru_maxrss * 1024,
            "peak_anonymous": anonymous, "cpu_s": usage.ru_utime + usage.ru_stime}


def exponent(points):
    """b of y = a * x^b; nothing where a series has a single point."""
    logs = [(math.log(x), math.log(max(y, 1e-6))) for x, y in points]
    if len(logs) < 2:
        return math.nan
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def table(head, rows):
    print(f"| {' | '.join(map(str, head))} |\n|---|{'--:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)
    print()


def compile_growth(ttc, folder, sizes, shapes, share):
    """Compiles graphs of each shape, in processor time: other programs and the disk have no part in it. Passes that take
    `share` of the time of the largest have a row of their own, of their share of it."""
    series, rows = {}, []
    for shape in shapes:
        found = []
        for nodes in sizes:
            source = folder / "graph.ir"
            source.write_text(growth_graphs.COMPILED[shape](nodes))
            found.append(ttc_json([ttc, "compile", source, "-o", folder / "graph.pt2", "--json", "--force", "-q"]))
        totals = [(size, one["cpu_s"] * 1e3) for size, one in zip(sizes, found)]
        scales = [one["cpu_s"] * 1e3 / one["wall_ms"] for one in found]
        series[shape] = totals
        rows.append([f"**{shape}**", *(f"{ms / 1e3:.2f} s" for _, ms in totals), f"{exponent(totals):.2f}",
                     f"{found[-1]['peak_rss'] >> 20} MiB"])
        passes = [[one["passes"][i]["ms"] * scale for one, scale in zip(found, scales)] for i in range(len(found[0]["passes"]))]
        passes.append([ms - sum(of_pass) for (_, ms), of_pass in zip(totals, zip(*passes))])
        names = [step["name"] for step in found[0]["passes"]] + ["reading, counting, writing"]
        for name, ms in zip(names, passes):
            if ms[-1] >= share * totals[-1][1]:
                rows.append([name, *(f"{one:.0f} ms" for one in ms), f"{exponent(list(zip(sizes, ms))):.2f}", ""])
    table(["graph, pass", *(f"{n} nodes" for n in sizes), "growth", "peak memory"], rows)
    return series


def run_growth(ttc, folder, which):
    series = {}
    for name in which:
        sizes, arguments = RUNS[name]
        rows, times, peaks = [], [], []
        for size in sizes:
            source, compiled = folder / "model.ir", folder / "model.pt2"
            source.write_text(growth_graphs.encoder(**arguments(size)))
            ttc_json([ttc, "compile", source, "-o", compiled, "--json", "--force", "-q"])
            found = ttc_json([ttc, "bench", compiled, "--loops", "5", "--warmup", "3", "--json"])
            times.append((size, found["wall_ms"]["min"]))
            peaks.append((size, found["peak_rss"]))
            slope = [f"{exponent(points[-2:]):.2f}" if len(points) > 1 else "" for points in (times, peaks)]
            rows.append([size, f"{times[-1][1]:.2f}", slope[0], peaks[-1][1] >> 20, slope[1]])
        table([name, "ms", "growth since the row above", "peak MiB", "growth since the row above"], rows)
        series[name] = times
    return series


def sparse(ttc, folder, layers):
    """Compiles a LLaMA of 8 G parameters whose file has holes for weights."""
    source, compiled = folder / "sparse.pt2", folder / "sparse_bfloat8_b.pt2"
    try:
        parameters = sparse_model.write(ttc, source, layers)
        found = ttc_json([ttc, "compile", source, "-o", compiled, "--weight-dtype", "*=bfloat8_b", "--json", "-q", "--force"])
        table(["parameters", "file", "on disk", "written", "s", "s of processors", "peak memory with the mapped file", "without"],
              [[f"{parameters / 1e9:.2f} G", f"{source.stat().st_size / 1e9:.1f} GB", f"{source.stat().st_blocks * 512 / 1e6:.1f} MB",
                f"{compiled.stat().st_size / 1e9:.1f} GB", f"{found['wall_ms'] / 1e3:.1f}", f"{found['cpu_s']:.1f}",
                f"{found['peak_rss'] / 1e9:.2f} GB", f"{found['peak_anonymous'] / 1e9:.2f} GB"]])
    finally:
        for file in (source, compiled):
            file.unlink(missing_ok=True)


def svg(path, series, unit):
    """Lines over two logarithmic axes, with the dashed line of linear growth."""
    width, height, left, top = 700, 420, 70, 20
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    low_x, high_x = math.log10(min(xs)), math.log10(max(xs))
    low_y, high_y = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))

    def at(x, y):
        return (left + (math.log10(x) - low_x) / ((high_x - low_x) or 1) * (width - left - 210),
                top + (high_y - math.log10(y)) / ((high_y - low_y) or 1) * (height - top - 50))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(low_y, high_y + 1):
        (x0, y), (x1, _) = at(min(xs), 10 ** power), at(max(xs), 10 ** power)
        out.append(f'<path d="M{x0:.0f} {y:.0f}H{x1:.0f}" stroke="#ddd"/><text x="{x0 - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">'
                   f'{f"{10 ** power / 1000:g} s" if power >= 3 else f"{10 ** power:g} ms"}</text>')
    for x in sorted(set(xs)):
        px, py = at(x, 10 ** low_y)
        out.append(f'<text x="{px:.0f}" y="{py + 18:.0f}" text-anchor="middle">{x:g}</text>')
    px, py = at(10 ** ((low_x + high_x) / 2), 10 ** low_y)
    out.append(f'<text x="{px:.0f}" y="{py + 38:.0f}" text-anchor="middle">{unit}</text>')
    label_y, ends = {}, sorted(series, key=lambda name: -series[name][-1][1])
    for name in ends:  # from the top, none over another
        label_y[name] = max(at(*series[name][-1])[1], max(label_y.values(), default=-15) + 15)
    for (name, points), colour in zip(series.items(), ["#1b6", "#26c", "#c33", "#a3a", "#d80", "#088"]):
        path_text = "L".join(f"{px:.1f} {py:.1f}" for px, py in (at(x, y) for x, y in points))
        (x0, y0), (x1, _) = points[0], points[-1]
        if y0 * x1 / x0 <= 10 ** high_y:
            ideal = "L".join(f"{px:.1f} {py:.1f}" for px, py in (at(x0, y0), at(x1, y0 * x1 / x0)))
            out.append(f'<path d="M{ideal}" stroke="{colour}" stroke-dasharray="3 4" fill="none" opacity="0.5"/>')
        px, _ = at(*points[-1])
        out.append(f'<path d="M{path_text}" stroke="{colour}" stroke-width="2" fill="none"/>'
                   f'<text x="{px + 6:.0f}" y="{label_y[name] + 4:.0f}" fill="{colour}">{name} ^{exponent(points):.2f}</text>')
    pathlib.Path(path).write_text("\n".join([*out, "</svg>", ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ttc")
    parser.add_argument("--parts", default="compile,run", help="of compile, run, sparse")
    parser.add_argument("--nodes", default="1000,3000,10000,30000,100000")
    parser.add_argument("--graphs", default=",".join(growth_graphs.COMPILED))
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--share", type=float, default=0.03, help="passes below this share of the time have no row")
    parser.add_argument("--layers", type=int, default=32, help="of the sparse model; 32 are 8 G parameters")
    parser.add_argument("--folder", help="where files go for a while; a temporary folder otherwise")
    parser.add_argument("--plots", type=pathlib.Path, help="a folder for compile.svg and run.svg")
    options = parser.parse_args()
    parts = options.parts.split(",")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        if "compile" in parts:
            sizes = [int(n) for n in options.nodes.split(",")]
            series = compile_growth(options.ttc, folder, sizes, options.graphs.split(","), options.share)
            if options.plots:
                svg(options.plots / "compile.svg", series, "nodes")
        if "run" in parts:
            series = run_growth(options.ttc, folder, options.runs.split(","))
            if options.plots:
                from_one = {f"{name} from {points[0][0]}": [(n / points[0][0], ms) for n, ms in points] for name, points in series.items()}
                svg(options.plots / "run.svg", from_one, "times as many")
        if "sparse" in parts:
            sparse(options.ttc, folder, options.layers)


if __name__ == "__main__":
    main()
