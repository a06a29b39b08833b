"""What a node costs beside its arithmetic: chains of 2,000 tiny sums on one thread, LibTorch's eager operators beside them.

    python tests/bench/tiny_ops.py build/ttc
"""

import json
import pathlib
import subprocess
import sys
import tempfile

NODES = 2000


def chain(shape):
    kind = f"f32[{', '.join(map(str, shape))}]"
    lines = [f"graph main(%x: {kind} user, %y: {kind} user) {{"]
    for i in range(NODES):
        lines.append(f"  %a{i}: {kind} = aten.add.Tensor(%{'x' if i == 0 else f'a{i - 1}'}, %y)")
    return "\n".join([*lines, f"  return %a{NODES - 1}", "}", ""])


def main():
    ttc = sys.argv[1]
    print("| sum of | ttc, us a node | LibTorch, us a node |\n|---|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for shape in ([4], [8, 8], [32, 32]):
            source, compiled = pathlib.Path(folder) / "chain.ir", pathlib.Path(folder) / "chain.pt2"
            source.write_text(chain(shape))
            subprocess.run([ttc, "compile", source, "-o", compiled, "-q", "--force"], check=True, stdout=subprocess.DEVNULL)
            bench = [ttc, "bench", compiled, "--threads", "1", "--loops", "300", "--warmup", "20", "--reference", "--json"]
            found = json.loads(subprocess.run(bench, check=True, capture_output=True, text=True).stdout)
            times = [found[whose]["min"] * 1e3 / NODES for whose in ("wall_ms", "cpu_ms")]
            print(f"| {'x'.join(map(str, shape))} | {times[0]:.3f} | {times[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
