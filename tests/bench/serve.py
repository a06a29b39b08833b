"""A server's use of one model: a decoder whose sequences have caches of their own lengths, at batch 1 to 16, and sessions side by side.

    python tests/bench/serve.py build/ttc [--size 1b|small] [--weights bfloat8_b] [--cache 256] [--folder F]

Exports a Llama decoder (random weights) of one token a step whose caches are inputs that it writes in place, [batch, heads, cache, head_dim], padded to
the cache's size; a position for each sequence says how much of its cache counts. The batch is a free dim, so one file serves every size. Prints tokens a
second at each batch, checks the first step of each sequence against the same sequence alone, and measures what another session of the same model costs
in memory. Needs torch.
"""

import argparse
import ctypes
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional

SIZES = {
    "1b": {"layers": 22, "width": 2048, "hidden": 5632, "heads": 32, "kv_heads": 4, "words": 32000},
    "small": {"layers": 2, "width": 128, "hidden": 256, "heads": 4, "kv_heads": 2, "words": 256},
}


class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.heads, self.kv_heads, self.dim = size["heads"], size["kv_heads"], size["width"] // size["heads"]
        width, hidden = size["width"], size["hidden"]
        self.before, self.after = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, self.kv_heads * self.dim, bias=False) for _ in range(2))
        self.gate, self.up, self.down = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x, at, mask, cos, sin, keys, values):
        def split(y, heads):
            return y.view(y.shape[0], 1, heads, self.dim).transpose(1, 2)

        def turn(y):
            first, second = y.chunk(2, -1)
            return y * cos + torch.cat((-second, first), -1) * sin

        n = self.before(x)
        q, k, v = turn(split(self.q(n), self.heads)), turn(split(self.k(n), self.kv_heads)), split(self.v(n), self.kv_heads)
        place = (torch.arange(x.shape[0])[:, None], torch.arange(self.kv_heads)[None], at[:, None])
        keys.index_put_(place, k[:, :, 0])
        values.index_put_(place, v[:, :, 0])
        y = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        n = self.after(x)
        return x + self.down(functional.silu(self.gate(n)) * self.up(n))


class Decoder(nn.Module):
    def __init__(self, size, cache):
        super().__init__()
        self.words = nn.Embedding(size["words"], size["width"])
        self.layers = nn.ModuleList(Layer(size) for _ in range(size["layers"]))
        self.norm, self.head = nn.RMSNorm(size["width"]), nn.Linear(size["width"], size["words"], bias=False)
        self.cache, self.dim = cache, size["width"] // size["heads"]

    def forward(self, tokens, at, caches):
        """tokens, at: [batch, 1] and [batch]; caches: keys and values of each layer in turn."""
        x = self.words(tokens)
        angle = at[:, None].float() / 10000 ** (torch.arange(0, self.dim, 2).float() / self.dim)
        angle = torch.cat((angle, angle), -1)[:, None, None]
        mask = (torch.arange(self.cache)[None] <= at[:, None])[:, None, None]
        for i, layer in enumerate(self.layers):
            x = layer(x, at, mask, angle.cos().to(x.dtype), angle.sin().to(x.dtype), caches[2 * i], caches[2 * i + 1])
        return self.head(self.norm(x))


def export(size, cache, path):
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = Decoder(size, cache)
    model = model.to_empty(device="cpu").eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        parameter.fill_(1) if parameter.dim() == 1 else parameter.uniform_(-0.03, 0.03)
    torch.set_default_dtype(torch.float32)
    shape = (3, size["kv_heads"], cache, size["width"] // size["heads"])
    caches = [torch.zeros(shape, dtype=torch.bfloat16) for _ in range(2 * size["layers"])]
    batch = {0: torch.export.Dim("batch", min=1, max=16)}
    program = torch.export.export(model, (torch.zeros(3, 1, dtype=torch.long), torch.arange(3), caches), dynamic_shapes=(batch, batch, [batch] * len(caches)))
    torch.export.save(program, path)


class Library:
    """The calls of ttrt_c.h that a server makes."""

    def __init__(self, ttc):
        self.lib = ctypes.CDLL(pathlib.Path(ttc).resolve().parent / "libttrt.so")
        self.lib.ttrt_last_error.restype = ctypes.c_char_p
        names = ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool", "bfloat16")
        self.types = {getattr(torch, name): i for i, name in enumerate(names)}

    def __call__(self, name, *arguments):
        if getattr(self.lib, name)(*arguments) != 0:
            sys.exit(f"{name}: {self.lib.ttrt_last_error().decode()}")

    def tensor(self, value):
        """The tensor's own memory."""
        out, shape = ctypes.c_void_p(), (ctypes.c_int64 * value.dim())(*value.shape)
        self("ttrt_tensor_view", self.types[value.dtype], shape, ctypes.c_size_t(value.dim()), ctypes.c_void_p(value.data_ptr()), ctypes.c_size_t(value.nbytes),
             ctypes.byref(out))
        return out

    def model(self, path):
        out = ctypes.c_void_p()
        self("ttrt_model_load", str(path).encode(), ctypes.byref(out))
        return out


class Sequences:
    """A session that holds the caches of `batch` sequences on the device; each step appends a token to each."""

    def __init__(self, library, model, size, cache, lengths):
        self.library, self.words, self.session = library, size["words"], ctypes.c_void_p()
        library("ttrt_session_create", model, None, ctypes.byref(self.session))
        self.tokens, self.at = torch.zeros(len(lengths), 1, dtype=torch.long), torch.tensor(lengths)
        shape = (len(lengths), size["kv_heads"], cache, size["width"] // size["heads"])
        self.inputs = [library.tensor(self.tokens), library.tensor(self.at)]
        for i in range(2 * size["layers"]):
            values = torch.stack([torch.randn(shape[1:], generator=torch.Generator().manual_seed(1000 * length + i)) for length in lengths]).bfloat16()
            host, placed = library.tensor(values), ctypes.c_void_p()
            library("ttrt_session_place", self.session, ctypes.c_size_t(2 + i), host, ctypes.byref(placed))
            library.lib.ttrt_tensor_free(host)
            self.inputs.append(placed)

    def step(self):
        """The sequences' next words, [batch, words]."""
        inputs, out = (ctypes.c_void_p * len(self.inputs))(*self.inputs), ctypes.c_void_p()
        self.library("ttrt_session_run", self.session, inputs, ctypes.c_size_t(len(self.inputs)), None, ctypes.byref(out), ctypes.c_size_t(1))
        data, count = ctypes.c_void_p(), ctypes.c_size_t()
        self.library("ttrt_tensor_data", out, ctypes.byref(data), ctypes.byref(count))
        logits = torch.frombuffer((ctypes.c_char * count.value).from_address(data.value), dtype=torch.bfloat16).view(-1, self.words).clone()
        self.library.lib.ttrt_tensor_free(out)
        self.tokens.copy_(logits.argmax(-1, keepdim=True))
        self.at += 1
        return logits

    def close(self):
        for tensor in self.inputs:
            self.library.lib.ttrt_tensor_free(tensor)
        self.library.lib.ttrt_session_free(self.session)


def own_mib():
    """Memory of this process that is not a mapped file's."""
    fields = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1024


def lengths_of(batch, cache, steps):
    return [(7 + 37 * i) % (cache - steps) for i in range(batch)]


def serve(library, model, size, cache, steps):
    first, alone = {}, None
    print("| batch | ms a step | tokens a second | as many times as alone |\n|--:|--:|--:|--:|")
    for batch in (1, 2, 4, 8, 16):
        lengths = lengths_of(batch, cache, steps + 2)
        sequences = Sequences(library, model, size, cache, lengths)
        for length, logits in zip(lengths, sequences.step()):
            if not torch.equal(first.setdefault(length, logits), logits):
                sys.exit(f"the sequence of length {length} changes with those beside it at batch {batch}")
        sequences.step()
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            sequences.step()
            times.append(time.perf_counter() - start)
        sequences.close()
        rate = batch / min(times)
        alone = alone or rate
        print(f"| {batch} | {min(times) * 1e3:.1f} | {rate:.1f} | {rate / alone:.2f} |", flush=True)


def sessions(library, model, size, cache):
    held, before = [], own_mib()
    for _ in range(4):
        held.append(Sequences(library, model, size, cache, [5]))
        held[-1].step()
        print(f"session {len(held)}: {own_mib() - before:.0f} MiB of its own")
        before = own_mib()
    for sequences in held:
        sequences.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ttc")
    parser.add_argument("--size", choices=SIZES, default="1b")
    parser.add_argument("--weights", default="bfloat8_b", choices=("bfloat16", "bfloat8_b", "bfloat4_b"))
    parser.add_argument("--cache", type=int, default=256)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--folder", help="keeps the model here, and takes it from here the next time")
    options = parser.parse_args()
    size = SIZES[options.size]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.folder or scratch)
        compiled = folder / f"serve_{options.size}_{options.cache}_{options.weights}.pt2"
        if not compiled.exists():
            source = pathlib.Path(scratch) / "source.pt2"
            export(size, options.cache, source)
            command = [options.ttc, "compile", source, "-o", compiled, "-q", "--require-full", "--weight-dtype", f"*={options.weights}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            source.unlink()
        library = Library(options.ttc)
        model = library.model(compiled)
        serve(library, model, size, options.cache, options.steps)
        sessions(library, model, size, options.cache)
        library.lib.ttrt_model_free(model)


if __name__ == "__main__":
    main()
