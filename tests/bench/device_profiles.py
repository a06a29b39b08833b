"""Device time of models on several boards by the time model, and beside what their vendor publishes.

    python tests/bench/device_profiles.py build/ttc MODEL...          # each on e150, n150 and p150
    python tests/bench/device_profiles.py build/ttc --published       # BERT-large, ViT, ResNet-50, LLaMA of 8 G

The second needs torch and transformers; it exports the models with random weights, of the LLaMA the structure alone.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import growth_graphs

# Device samples/s that the vendor's CI expects (models' perf tests, 2026-04), and tokens/s a user of its LLM table.
PUBLISHED = [
    ("BERT-large, batch 8, 384 tokens", "bert", 8, "n150", 371),
    ("ViT-base, batch 8", "vit", 8, "n150", 1560),
    ("ViT-base, batch 10", "vit", 10, "p150", 4500),
    ("ResNet-50, batch 16", "resnet", 16, "n150", 6140),
    ("ResNet-50, batch 16", "resnet", 16, "p150", 10610),
    ("ResNet-50, batch 32", "resnet", 32, "p150", 12960),
    ("LLaMA 8 G, a step of 32 users", "llama", 32, "n150", 26.0),
    ("LLaMA 8 G, a step of 32 users", "llama", 32, "p150", 33.1),
]
# As the vendor's LLaMA has its weights.
LLAMA_FORMATS = ["*=bfloat8_b", "*.mlp.gate=bfloat4_b", "*.mlp.up=bfloat4_b"]


def profile(ttc, model, arch, formats=(), dispatcher="default"):
    flags = [flag for one in formats for flag in ("--weight-dtype", one)] + ["--dispatcher", dispatcher]
    ran = subprocess.run([ttc, "profile", str(model), "--arch", arch, *flags, "--json", "-q"], capture_output=True, check=True)
    return json.loads(ran.stdout)


def export(kind, batch, path):
    import torch
    import transformers as t

    class First(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x)[0]

    torch.manual_seed(0)
    image = torch.randn(batch, 3, 224, 224).bfloat16()
    if kind == "bert":
        config = t.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
        model, args = t.BertForQuestionAnswering(config), (torch.randint(0, 1000, (batch, 384)),)
    elif kind == "vit":
        model, args = t.ViTForImageClassification(t.ViTConfig(num_labels=1000)), (image,)
    else:
        model, args = t.ResNetForImageClassification(t.ResNetConfig(num_labels=1000)), (image,)
    with torch.no_grad():
        torch.export.save(torch.export.export(First(model.bfloat16().eval()), args, strict=False), path)


def published(ttc):
    print("| model | board | published a second | ours | ratio | `--dispatcher optimized` | ratio | mostly bound by |\n"
          "|---|---|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, kind, batch, board, theirs in PUBLISHED:
            path = pathlib.Path(folder) / (f"{kind}{batch}.ir" if kind == "llama" else f"{kind}{batch}.pt2")
            if not path.exists():
                if kind == "llama":
                    path.write_text(growth_graphs.llama(32, sequence=batch))
                else:
                    export(kind, batch, path)
            def rate(dispatcher):
                total = profile(ttc, path, board, LLAMA_FORMATS if kind == "llama" else ["*=bfloat8_b"], dispatcher)["total"]
                return (1 if kind == "llama" else batch) / total["device_us"] * 1e6, total

            ours, _ = rate("default")
            best, total = rate("optimized")
            bounds = sorted(total["us_by_bound"].items(), key=lambda one: -one[1])[:2]
            told = ", ".join(f"{bound} {100 * us / total['us']:.0f} %" for bound, us in bounds)
            print(f"| {name} | {board} | {theirs:,g} | {ours:,.4g} | {ours / theirs:.2f} | {best:,.4g} | {best / theirs:.2f} | {told} |")


def boards(ttc, models):
    print("| model | board | ms a call | samples/s | tokens/s | mostly bound by | DRAM at most |\n|---|---|--:|--:|--:|---|--:|")
    for model in models:
        for arch in ("e150", "n150", "p150"):
            made = profile(ttc, model, arch)
            total = made["total"]
            bounds = sorted(total["us_by_bound"].items(), key=lambda one: -one[1])[:3]
            told = ", ".join(f"{bound} {100 * us / total['us']:.0f} %" for bound, us in bounds)
            tokens = f"{total['tokens_per_s']:,.0f}" if "tokens_per_s" in total else ""
            print(f"| {pathlib.Path(model).stem} | {arch} | {total['us'] / 1000:.2f} | {total['samples_per_s']:,.1f} | {tokens} | "
                  f"{told} | {made['memory']['dram']['peak'] / 2**30:.2f} GiB |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ttc")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--published", action="store_true", help="the table beside the vendor's figures")
    given = parser.parse_args()
    if given.models:
        boards(given.ttc, given.models)
    if given.published:
        published(given.ttc)


if __name__ == "__main__":
    main()
