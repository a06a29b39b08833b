"""Times ttc beside llama.cpp, OpenVINO and LibTorch on the same models, in turn, and prints a table.

    python tests/bench/compare.py --ttc build/ttc --folder /tmp/compare [--only decode,minilm] [--json]

Needs torch and transformers, which make the models; of llama-cpp-python (and gguf), openvino and torch.compile it takes
what there is, and says what it left out. Weights are random, as no time depends on them: the models of
tools/export_full.py in PyTorch's format, which ttc compiles, OpenVINO converts and LibTorch runs as modules; for
llama.cpp the same sizes as GGUF, quantised by itself. All that is made stays in the folder for the next time.

Each row is one run: every program does --loops steps, then the next one, --rounds times around, and the least time
counts. LibTorch, OpenVINO and llama.cpp each run in a process of their own that stays; ttc is started each round and
warms up before it counts. All are given the same number of threads; times mean something only on cores that nobody
else uses. llama-cpp-python is best built for the processor (`pip install --no-binary llama-cpp-python llama-cpp-python`).
"""

import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

LLAMA = dict(vocab=32000, width=2048, inner=5632, layers=22, heads=32, kv_heads=4, context=256)
POSITION = PROMPT = 128

# By --only: the rows of one run, and for each program its model (of llama.cpp: what it does) and its weights' format.
# OpenVINO's decode keeps its caches as they were: they are constants to its converter.
ROWS = {
    "decode": {
        "LLaMA-1.1B decode at position 128, bfloat16": [
            ("ttc", "llama_1b_decode", "bfloat16"), ("llama.cpp", "decode", "BF16"), ("OpenVINO", "llama_1b_decode", "bfloat16"),
            ("LibTorch", "llama_1b_decode", "bfloat16")],
        "... bfloat8_b, Q8_0": [("ttc", "llama_1b_decode", "bfloat8_b"), ("llama.cpp", "decode", "Q8_0")],
        "... bfloat4_b, Q4_0": [("ttc", "llama_1b_decode", "bfloat4_b"), ("llama.cpp", "decode", "Q4_0")],
    },
    "prefill": {
        "prefill 128, bfloat16": [
            ("ttc", "llama_1b", "bfloat16"), ("llama.cpp", "prefill", "BF16"), ("OpenVINO", "llama_1b", "bfloat16"),
            ("LibTorch", "llama_1b", "bfloat16")],
        "... bfloat8_b, Q8_0": [("ttc", "llama_1b", "bfloat8_b"), ("llama.cpp", "prefill", "Q8_0")],
    },
    "minilm": {"MiniLM 8x128": [(program, "minilm", "bfloat16") for program in ("ttc", "OpenVINO", "LibTorch", "torch.compile")]},
    "vit": {"ViT-base, 1 image": [(program, "vit_base", "bfloat16") for program in ("ttc", "OpenVINO", "LibTorch", "torch.compile")]},
    "vit8": {"ViT-base, 8 images": [(program, "vit_base_b8", "bfloat16") for program in ("ttc", "OpenVINO", "LibTorch", "torch.compile")]},
}
NEEDS = {"llama.cpp": ["llama_cpp", "gguf"], "OpenVINO": ["openvino", "torch"], "LibTorch": ["torch", "transformers"],
         "torch.compile": ["torch", "transformers"], "ttc": []}
PROGRAMS = ["ttc", "llama.cpp", "OpenVINO", "LibTorch", "torch.compile"]


def say(*text):
    print(*text, file=sys.stderr, flush=True)


class Skip(Exception):
    pass


# ---- what is made once ----------------------------------------------------------------------------------------------


def made(path, make):
    """The path, which `make` wrote under another name first if it was not there."""
    if not path.exists():
        part = path.with_name("part_" + path.name)
        say(f"making {path}")
        make(part)
        part.rename(path)
    return path


def exported(folder, name):
    """The model as PyTorch exports it; language models are published in bfloat16."""
    path = folder / f"{name}.pt2"
    if not (path.exists() and path.with_suffix(".io.safetensors").exists()):
        command = [sys.executable, ROOT / "tools/export_full.py", folder, name]
        subprocess.run(command + (["--bfloat16"] if name.startswith("llama") else []), check=True, stdout=sys.stderr)
    return path


def compiled(args, name, weights):
    def make(path):
        flags = [] if weights == "bfloat16" else ["--weight-dtype", f"*={weights}"]
        subprocess.run([args.ttc, "compile", exported(args.folder, name), "-o", path, "-q", *flags], check=True, stdout=sys.stderr)
    return made(args.folder / f"{name}.{weights}.pt2", make)


def gguf_file(folder, weights):
    """The LLaMA with random weights for llama.cpp: written in BF16, other formats made from that by llama.cpp."""
    if weights == "BF16":
        return made(folder / "llama_1b.BF16.gguf", write_gguf)
    import llama_cpp
    source = gguf_file(folder, "BF16")

    def make(path):
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{weights}")
        params.pure = True  # the output matrix and the embeddings too, as in ttc
        if llama_cpp.llama_model_quantize(str(source).encode(), str(path).encode(), ctypes.byref(params)) != 0:
            raise Skip(f"llama.cpp does not quantise to {weights}")
    return made(folder / f"llama_1b.{weights}.gguf", make)


def write_gguf(path):
    import gguf
    import numpy as np
    s = LLAMA
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_context_length(2048)
    out.add_embedding_length(s["width"])
    out.add_block_count(s["layers"])
    out.add_feed_forward_length(s["inner"])
    out.add_head_count(s["heads"])
    out.add_head_count_kv(s["kv_heads"])
    out.add_layer_norm_rms_eps(1e-6)
    out.add_rope_dimension_count(s["width"] // s["heads"])
    out.add_vocab_size(s["vocab"])
    out.add_tokenizer_model("no_vocab")
    out.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    rng = np.random.default_rng(0)

    def matrix(name, rows, cols):
        values = rng.standard_normal((rows, cols), dtype=np.float32) * 0.02
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        out.add_tensor(name, bits.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)

    def norm(name):
        out.add_tensor(name, np.ones(s["width"], dtype=np.float32))

    kv = s["width"] * s["kv_heads"] // s["heads"]
    matrix("token_embd.weight", s["vocab"], s["width"])
    for i in range(s["layers"]):
        norm(f"blk.{i}.attn_norm.weight")
        norm(f"blk.{i}.ffn_norm.weight")
        for part, rows, cols in (("attn_q", s["width"], s["width"]), ("attn_k", kv, s["width"]), ("attn_v", kv, s["width"]),
                                 ("attn_output", s["width"], s["width"]), ("ffn_gate", s["inner"], s["width"]),
                                 ("ffn_up", s["inner"], s["width"]), ("ffn_down", s["width"], s["inner"])):
            matrix(f"blk.{i}.{part}.weight", rows, cols)
    norm("output_norm.weight")
    matrix("output.weight", s["vocab"], s["width"])
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


# ---- programs that stay: each gives a function that does one step ---------------------------------------------------


def llama_cpp_step(args, what, weights):
    import llama_cpp as lib
    path = gguf_file(args.folder, weights)
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
    params = lib.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = LLAMA["context"], LLAMA["context"], LLAMA["context"]
    params.n_threads = params.n_threads_batch = args.threads
    context = lib.llama_init_from_model(model, params)
    if not model or not context:
        raise Skip(f"llama.cpp does not load {path}")
    memory = lib.llama_get_memory(context)

    def batch_of(first, count):
        batch = lib.llama_batch_init(count, 0, 1)
        batch.n_tokens = count
        for i in range(count):  # logits of every position, as the other programs give them
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = i + 1, first + i, 1, 1
            batch.seq_id[i][0] = 0
        return batch

    def decode(batch):
        if lib.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        lib.llama_synchronize(context)

    prompt, token = batch_of(0, PROMPT), batch_of(POSITION, 1)
    if what == "prefill":
        return lambda: (lib.llama_memory_clear(memory, True), decode(prompt))
    decode(prompt)
    return lambda: (lib.llama_memory_seq_rm(memory, 0, POSITION, -1), decode(token))


def openvino_step(args, name, _):
    import openvino as ov
    import torch
    import export_full
    inputs = export_full.MODELS[name].inputs()

    def convert(path):
        model = ov.convert_model(torch.export.load(exported(args.folder, name)))
        model.reshape({port: list(x.shape) for port, x in zip(model.inputs, inputs)})
        ov.save_model(model, path, compress_to_fp16=False)
        path.with_suffix(".bin").rename(args.folder / f"{name}.openvino.bin")  # where OpenVINO looks for it
    path = made(args.folder / f"{name}.openvino.xml", convert)
    settings = {"INFERENCE_PRECISION_HINT": "bf16", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": args.threads}
    model = ov.Core().compile_model(str(path), "CPU", settings)
    request = model.create_infer_request()
    for port, value in zip(model.inputs, inputs):
        request.set_tensor(port, ov.Tensor(value.numpy()))
    return request.infer


def libtorch_step(args, name, _):
    import torch
    import export_full
    torch.set_num_threads(args.threads)
    model, inputs = export_full.make(name, torch.bfloat16)

    def step():
        with torch.inference_mode():
            model(*inputs)
    return step


def torch_compile_step(args, name, _):
    import torch
    import export_full
    torch.set_num_threads(args.threads)
    model, inputs = export_full.make(name, torch.bfloat16)
    model = torch.compile(model)

    def step():
        with torch.no_grad():
            model(*inputs)
    return step


STEPS = {"llama.cpp": llama_cpp_step, "OpenVINO": openvino_step, "LibTorch": libtorch_step, "torch.compile": torch_compile_step}


def serve(args):
    """A program that stays: answers each line, a number of steps, with their times in ms."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries print
    program, model, weights = args.serve
    try:
        step = STEPS[program](args, model, weights)
        for _ in range(3):
            step()
    except Exception as e:
        answers.write(json.dumps({"skip": f"{type(e).__name__}: {e}".splitlines()[0]}) + "\n")
        return
    answers.write(json.dumps({"ready": True}) + "\n")
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
        answers.write(json.dumps(times) + "\n")


# ---- programs as the rounds see them --------------------------------------------------------------------------------


class Stays:
    def __init__(self, args, program, model, weights):
        for module in NEEDS[program]:
            if importlib.util.find_spec(module) is None:
                raise Skip(f"the Python package {module} is not installed")
        command = [sys.executable, __file__, "--folder", args.folder, "--threads", str(args.threads), "--serve", program, model, weights]
        log = args.folder / f"{program}.{model}.{weights}.log"
        env = {name: value for name, value in os.environ.items() if name != "CXX" or " " not in value}  # torch.compile takes one word
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(log, "w"), text=True, env=env)
        answer = self.process.stdout.readline()
        if not answer:
            raise Skip(f"it ended with {self.process.wait()} ({log})")
        if "skip" in json.loads(answer):
            raise Skip(f"{json.loads(answer)['skip']} ({log})")

    def times(self, loops):
        self.process.stdin.write(f"{loops}\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        return min(found), statistics.median(found)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ttc:
    def __init__(self, args, _, model, weights):
        file = compiled(args, model, weights)
        io = exported(args.folder, model).with_suffix(".io.safetensors")
        self.command = [args.ttc, "bench", file, "--io", io, "--warmup", "3", "--threads", str(args.threads), "--json", "-q"]

    def times(self, loops):
        out = subprocess.run([*self.command, "--loops", str(loops)], check=True, capture_output=True, text=True).stdout
        found = json.loads(out)["wall_ms"]
        return found["min"], found["p50"]

    def close(self):
        pass


def time_group(args, rows):
    """One run: every program of every row in turn, as rows share machine, time and neighbours."""
    running = {}
    for row, entries in rows.items():
        for program, model, weights in entries:
            try:
                running[row, program] = (Ttc if program == "ttc" else Stays)(args, program, model, weights)
            except Skip as e:
                say(f"skipped: {program}, {row}: {e}")
    found = {key: [] for key in running}
    for _ in range(args.rounds):
        for key, one in running.items():
            found[key].append(one.times(args.loops))
    for one in running.values():
        one.close()
    out = []
    for row in rows:
        times = {program: {"min": min(t for t, _ in found[row, program]), "p50": statistics.median(t for _, t in found[row, program])}
                 for program in PROGRAMS if (row, program) in found}
        peers = {program: t["min"] for program, t in times.items() if program != "ttc"}
        best = min(peers, key=peers.get, default=None)
        out.append({"row": row, "ms": times, "best_peer": best, "ratio": times["ttc"]["min"] / peers[best] if best else None})
    return out


def print_table(rows):
    print("| min ms | " + " | ".join(PROGRAMS) + " | ttc / best of the others |\n|---|" + "--:|" * (len(PROGRAMS) + 1))
    for row in rows:
        cells = [f"{row['ms'][program]['min']:.1f}" if program in row["ms"] else "" for program in PROGRAMS]
        print(f"| {row['row']} | {' | '.join(cells)} | {row['ratio']:.2f} |" if row["ratio"] else f"| {row['row']} | {' | '.join(cells)} | |")


def processor():
    try:
        return next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown processor"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ttc", type=pathlib.Path, default=ROOT / "build/ttc")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="where models are made and kept, about 20 GB for all")
    parser.add_argument("--only", default=",".join(ROWS), help="of " + ", ".join(ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loops", type=int, default=10, help="steps of each program a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args)
    groups = args.only.split(",")
    if unknown := [name for name in groups if name not in ROWS]:
        parser.error(f"there is no row {unknown[0]}; there are {', '.join(ROWS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    rows = [row for name in groups for row in time_group(args, ROWS[name])]
    if args.json:
        print(json.dumps({"processor": processor(), "threads": args.threads, "rounds": args.rounds, "loops": args.loops, "rows": rows}, indent=1))
    else:
        print_table(rows)
        print(f"\n{processor()}, {args.threads} threads; the least of {args.rounds} x {args.loops}")


if __name__ == "__main__":
    main()
