#!/usr/bin/env python3
"""Exports full-size models with random weights: the four TT-Symbiote tests, and what tests/bench/compare.py times.

usage: export_full.py OUT_DIR [NAME...] [--bfloat16]        (needs torch 2.13 and transformers 5)

  vit_base    ViT-base, 16 x 16 patches of a 224 x 224 image, 86 M parameters
  llama_1b    a LLaMA of 22 layers and 1.1 G parameters, 128 tokens
  llama_1b_decode  one token at position 128 of the same, with caches of 256 positions as buffers
  minilm      MiniLM-L6 with the mean over the tokens, 8 texts of 128 tokens, 23 M parameters
  vit_base_b8 vit_base with 8 images
  owlvit_base OWL-ViT-base, 32 x 32 patches of a 768 x 768 image and two texts, 153 M parameters
  speecht5    SpeechT5 from text to a spectrogram, 144 M parameters: encoder, and the decoder over 64 frames

Each becomes NAME.pt2 and NAME.io.safetensors, in0.. and the out0.. of the eager model. The sizes are those of the
published configurations, which the package transformers holds; nothing is downloaded. llama_1b takes about 10 GiB of
memory to export, half of it with --bfloat16. A file that is already there is left alone.
"""

import argparse
import logging
import pathlib
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


class VitBase(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification
        self.model = ViTForImageClassification(ViTConfig(num_labels=1000))

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits

    @staticmethod
    def inputs():
        return (torch.randn(1, 3, 224, 224),)


class VitBase8(VitBase):
    @staticmethod
    def inputs():
        return (torch.randn(8, 3, 224, 224),)


class Minilm(nn.Module):
    def __init__(self):
        super().__init__()
        from export_minilm import SentenceEmbedding
        from transformers import BertConfig, BertModel
        config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        self.model = SentenceEmbedding(BertModel(config))

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids, attention_mask)

    @staticmethod
    def inputs():
        return torch.randint(0, 30522, (8, 128)), torch.ones(8, 128, dtype=torch.int64)


def llama_config():
    from transformers import LlamaConfig
    return LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=2048)


class Llama1b(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import LlamaForCausalLM
        self.model = LlamaForCausalLM(llama_config())

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits

    @staticmethod
    def inputs():
        return (torch.randint(0, 32000, (1, 128)),)


class Llama1bDecode(Llama1b):
    LENGTH, POSITION = 256, 128

    def __init__(self):
        super().__init__()
        from transformers import StaticCache
        config, dtype = self.model.config, torch.get_default_dtype()
        width = config.hidden_size // config.num_attention_heads
        self.cache = StaticCache(config=config, max_cache_len=self.LENGTH)
        self.cache.early_initialization(1, config.num_key_value_heads, width, dtype, torch.device("cpu"))
        for i, layer in enumerate(self.cache.layers):
            for part in (layer.keys, layer.values):
                part[:, :, :self.POSITION].normal_()
            self.register_buffer(f"k_{i}", layer.keys, persistent=False)
            self.register_buffer(f"v_{i}", layer.values, persistent=False)
            self.register_buffer(f"len_{i}", layer.cumulative_length, persistent=False)

    def forward(self, input_ids, position_ids):
        for i, layer in enumerate(self.cache.layers):  # exported, the buffers are what is written
            layer.keys, layer.values, layer.cumulative_length = (self.get_buffer(f"{part}_{i}") for part in ("k", "v", "len"))
            layer.cumulative_length.copy_(position_ids[0, 0])
        return self.model(input_ids=input_ids, position_ids=position_ids, past_key_values=self.cache, use_cache=True).logits

    @classmethod
    def inputs(cls):
        return torch.randint(0, 32000, (1, 1)), torch.tensor([[cls.POSITION]])


class OwlvitBase(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import OwlViTConfig, OwlViTForObjectDetection
        self.model = OwlViTForObjectDetection(OwlViTConfig())

    def forward(self, input_ids, attention_mask, pixel_values):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, pixel_values=pixel_values)
        return out.logits, out.pred_boxes

    @staticmethod
    def inputs():
        ids = torch.randint(1, 49000, (2, 16))
        ids[:, 0], ids[:, -1] = 49406, 49407
        return ids, torch.ones_like(ids), torch.randn(1, 3, 768, 768)


class SpeechT5(nn.Module):
    """One pass of the encoder and of the decoder with its pre-net; generation would repeat the second."""

    def __init__(self):
        super().__init__()
        from transformers import SpeechT5Config, SpeechT5ForTextToSpeech
        self.model = SpeechT5ForTextToSpeech(SpeechT5Config())

    def forward(self, input_ids, decoder_input_values, speaker_embeddings):
        out = self.model(input_ids=input_ids, decoder_input_values=decoder_input_values, speaker_embeddings=speaker_embeddings, use_cache=False)
        return out.spectrogram

    @staticmethod
    def inputs():
        return torch.randint(4, 80, (1, 48)), torch.randn(1, 64, 80), torch.randn(1, 512)


TESTS = {"vit_base": VitBase, "llama_1b": Llama1b, "owlvit_base": OwlvitBase, "speecht5": SpeechT5}
MODELS = TESTS | {"llama_1b_decode": Llama1bDecode, "minilm": Minilm, "vit_base_b8": VitBase8}


def make(name, dtype):
    """A model and its inputs."""
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    model = MODELS[name]().eval().requires_grad_(False)
    torch.set_default_dtype(torch.float32)
    return model, tuple(x.to(dtype) if x.is_floating_point() else x for x in MODELS[name].inputs())


def export(name, folder, dtype):
    from safetensors.torch import save_file
    path = folder / f"{name}.pt2"
    if path.exists() and (folder / f"{name}.io.safetensors").exists():
        print(f"{path} is there")
        return
    model, inputs = make(name, dtype)
    with torch.no_grad():
        outputs = model(*inputs)
        torch.export.save(torch.export.export(model, inputs), path)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    recorded = {f"in{i}": x.contiguous() for i, x in enumerate(inputs)} | {f"out{i}": x.contiguous() for i, x in enumerate(outputs)}
    save_file(recorded, folder / f"{name}.io.safetensors")
    print(f"{path}: {sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(MODELS)}; without any the first {len(TESTS)}")
    parser.add_argument("--bfloat16", action="store_true", help="parameters and activations in bfloat16")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in MODELS]:
        parser.error(f"there is no model {unknown[0]}; there are {', '.join(MODELS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or TESTS:
        export(name, args.folder, torch.bfloat16 if args.bfloat16 else torch.float32)


if __name__ == "__main__":
    main()
