#!/usr/bin/env python3
"""Makes the model files of models/: small models with seeded random weights, exported in each form ttc reads.

usage: make_models.py OUT_DIR [NAME...]        (needs torch 2.13 and transformers 5)

For each base model NAME it writes
  NAME.pt2            torch.export with static shapes
  NAME_dyn.pt2        the same with free batch (and sequence) dims
  NAME_dyn_core.pt2   _dyn after run_decompositions(): core ATen
  NAME.pt             traced TorchScript
  NAME.io.safetensors inputs in0.. and outputs out0.. of the eager model; alt.* a second shape; step<i>.* calls in order
and, for the transformers, all of that again as NAME_eager: attention written out as matmul, softmax, matmul.
owlvit_small and speecht5_tts come as NAME.pt2 alone.
The small format tests (tiny, dtypes, hop_cond, hop_map, vmap, input_mut, quantized, prims, custom_op) come as NAME.pt2 and NAME_core.pt2.
"""

import logging
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.export import Dim
from write_models import (
    make_decode,
    make_format_test,
    make_kv,
    make_static,
    make_transformer,
    seeded,
)

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


# --- transformers -----------------------------------------------------------------------------------------------------

class Bert(nn.Module):
    """An encoder of two layers with absolute positions; the mask hides the padding of each sentence."""

    def __init__(self, attention):
        super().__init__()
        from transformers import BertConfig, BertModel
        self.model = BertModel(BertConfig(vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                          max_position_embeddings=64, attn_implementation=attention))

    def forward(self, input_ids, attention_mask, token_type_ids):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return out.last_hidden_state, out.pooler_output

    @staticmethod
    def inputs(batch, sequence):
        ids = torch.randint(0, 200, (batch, sequence))
        mask = torch.ones(batch, sequence, dtype=torch.int64)
        mask[0, sequence - 3:] = 0
        return ids, mask, torch.zeros_like(ids)

    shapes = ((2, 10), (3, 17))

    @staticmethod
    def dynamic():
        batch, sequence = Dim("batch"), Dim("sequence", max=64)
        return {name: {0: batch, 1: sequence} for name in ("input_ids", "attention_mask", "token_type_ids")}


class Causal(nn.Module):
    """A decoder that returns logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits

    @classmethod
    def inputs(cls, batch, sequence):
        return torch.randint(0, cls.vocabulary, (batch, sequence)), torch.ones(batch, sequence, dtype=torch.int64)

    shapes = ((2, 9), (3, 13))

    @staticmethod
    def dynamic():
        batch, sequence = Dim("batch"), Dim("sequence", max=64)
        return {name: {0: batch, 1: sequence} for name in ("input_ids", "attention_mask")}


class Gpt2(Causal):
    vocabulary = 200
    has_core = False  # run_decompositions() of torch 2.13 fails on its views

    def __init__(self, attention):
        from transformers import GPT2Config, GPT2LMHeadModel
        super().__init__(GPT2LMHeadModel(GPT2Config(vocab_size=200, n_embd=64, n_layer=2, n_head=4, n_positions=64, attn_implementation=attention)))


def llama(attention="sdpa"):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2,
                                        intermediate_size=160, max_position_embeddings=64, attn_implementation=attention))


class Llama(Causal):
    vocabulary = 256

    def __init__(self, attention):
        super().__init__(llama(attention))


class Vit(nn.Module):
    """An image classifier: 32x32 images, 8x8 patches."""

    def __init__(self, attention):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification
        self.model = ViTForImageClassification(ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=32,
                                                         patch_size=8, num_labels=10, attn_implementation=attention))

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits

    @staticmethod
    def inputs(batch):
        return (torch.randn(batch, 3, 32, 32),)

    shapes = ((2,), (5,))

    @staticmethod
    def dynamic():
        return {"pixel_values": {0: Dim("batch")}}


class Vision(nn.Module):
    """Convolutions of every kind with the norms, activations, pools and resamplings that usually stand around them."""

    attentions = ("sdpa",)   # it has none

    def __init__(self, _):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2, padding=1, padding_mode="reflect", bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1, ceil_mode=True))
        self.depthwise = nn.Sequential(nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32), nn.Hardswish(),
                                       nn.Conv2d(32, 32, 5, padding=2, groups=32, bias=False), nn.BatchNorm2d(32), nn.ReLU6(), nn.Conv2d(32, 16, 1), nn.PReLU(16))
        self.same = nn.Conv2d(16, 16, (4, 2), padding="same", groups=4)
        self.norm = nn.GroupNorm(4, 16)
        self.up = nn.ConvTranspose2d(16, 24, 3, stride=2, padding=1, output_padding=1)
        self.instance = nn.InstanceNorm2d(24, affine=True)
        self.post = nn.BatchNorm2d(24)
        self.ring = torch.nn.utils.parametrizations.weight_norm(nn.Conv2d(24, 20, 3, dilation=2, padding=2, padding_mode="circular"))
        self.line = nn.Sequential(nn.Conv1d(20, 12, 10, stride=5), nn.GELU(), nn.AvgPool1d(3, 2, 1), nn.ConvTranspose1d(12, 6, 4, stride=4))
        self.head = nn.Linear(20 * 9, 10)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias)

    def forward(self, image):
        x = self.stem(image)
        x = x + self.depthwise(x)
        x = nn.functional.silu(self.norm(self.same(x)))
        x = self.post(nn.functional.relu(self.instance(self.up(x))))
        x = nn.functional.interpolate(self.ring(x), scale_factor=1.5, mode="bilinear")
        pooled = nn.functional.adaptive_avg_pool2d(x, (3, 3)) + nn.functional.adaptive_max_pool2d(x, 3)
        x = nn.functional.interpolate(x, scale_factor=2)
        return self.head(pooled.flatten(1)), self.line(x.flatten(2))

    @staticmethod
    def inputs(batch):
        return (torch.randn(batch, 3, 32, 40),)

    shapes = ((2,), (3,))

    @staticmethod
    def dynamic():
        return {"image": {0: Dim("batch")}}


class Owlvit(nn.Module):
    """Open-vocabulary detection: two texts of eight tokens looked for in a 64x64 image of 16x16 patches."""

    def __init__(self):
        super().__init__()
        from transformers import OwlViTConfig, OwlViTForObjectDetection
        layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        text = {**layers, "vocab_size": 200, "max_position_embeddings": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 199}
        vision = {**layers, "image_size": 64, "patch_size": 16}
        self.model = OwlViTForObjectDetection(OwlViTConfig(text_config=text, vision_config=vision, projection_dim=32))

    def forward(self, input_ids, pixel_values, attention_mask):
        out = self.model(input_ids=input_ids, pixel_values=pixel_values, attention_mask=attention_mask)
        return out.logits, out.pred_boxes, out.class_embeds

    @staticmethod
    def inputs():
        ids = torch.randint(2, 199, (2, 8))
        ids[:, -1] = 199
        return ids, torch.randn(1, 3, 64, 64), torch.ones_like(ids)


class SpeechT5Tts(nn.Module):
    """Text to a spectrogram: the encoder over the text, one pass of the decoder over eight frames, the post-net."""

    def __init__(self):
        super().__init__()
        from transformers import SpeechT5Config, SpeechT5ForTextToSpeech
        config = SpeechT5Config(vocab_size=50, hidden_size=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64, decoder_layers=2, decoder_attention_heads=4,
                                decoder_ffn_dim=64, speech_decoder_prenet_units=32, speech_decoder_prenet_dropout=0.0, speech_decoder_postnet_units=32, speaker_embedding_dim=16)
        self.model = SpeechT5ForTextToSpeech(config)

    def forward(self, input_ids, attention_mask, decoder_input_values, speaker_embeddings):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, decoder_input_values=decoder_input_values, speaker_embeddings=speaker_embeddings, use_cache=False).spectrogram

    @staticmethod
    def inputs():
        ids = torch.randint(4, 50, (1, 10))
        return ids, torch.ones_like(ids), torch.randn(1, 8, 80), torch.randn(1, 16)


class LlamaDecode(nn.Module):
    """One token a call; keys and values of the tokens before live in buffers."""

    length = 32

    def __init__(self):
        super().__init__()
        from transformers import StaticCache
        self.model = llama()
        config = self.model.config
        self.cache = StaticCache(config=config, max_cache_len=self.length)
        head = config.hidden_size // config.num_attention_heads
        self.cache.early_initialization(1, config.num_key_value_heads, head, torch.float32, torch.device("cpu"))
        for i, layer in enumerate(self.cache.layers):
            self.register_buffer(f"k_{i}", layer.keys, persistent=False)
            self.register_buffer(f"v_{i}", layer.values, persistent=False)
            self.register_buffer(f"len_{i}", layer.cumulative_length, persistent=False)

    def forward(self, input_ids, position_ids):
        # The cache object is no module: what it holds must be this module's buffers while the exporter looks.
        for i, layer in enumerate(self.cache.layers):
            layer.keys, layer.values, layer.cumulative_length = self.get_buffer(f"k_{i}"), self.get_buffer(f"v_{i}"), self.get_buffer(f"len_{i}")
            layer.cumulative_length.copy_(position_ids[0, 0])
        return self.model(input_ids=input_ids, position_ids=position_ids, past_key_values=self.cache, use_cache=True).logits


class LlamaKv(nn.Module):
    """One token a call; keys and values of the tokens before are inputs, and with the new one's outputs."""

    def __init__(self):
        super().__init__()
        self.model = llama()

    def forward(self, input_ids, position_ids, *kv):
        from transformers import DynamicCache
        cache = DynamicCache()
        for i in range(0, len(kv), 2):
            cache.update(kv[i], kv[i + 1], i // 2)
        logits = self.model(input_ids=input_ids, position_ids=position_ids, past_key_values=cache, use_cache=True).logits
        return logits, *(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))


# --- format tests -----------------------------------------------------------------------------------------------------

class Tiny(nn.Module):
    """Tied weights, a strided weight, shared storage, a half buffer that is not saved, constants, dict and tuple outputs."""

    def __init__(self):
        super().__init__()
        self.w_t = nn.Parameter(torch.randn(8, 4).t())
        self.emb = nn.Embedding(10, 8)
        self.head = nn.Linear(8, 10, bias=False)
        self.head.weight = self.emb.weight
        self.lin = nn.Linear(8, 8)
        both = torch.randn(4, 8)
        self.register_buffer("b1", both[:2])
        self.register_buffer("b2", both[2:])
        self.register_buffer("np", torch.randn(8).half(), persistent=False)
        self.register_buffer("cnt", torch.zeros(1))
        self.c = torch.tensor([0, 2, 4, 6])

    def forward(self, x, y, *, scale=2, flag=True):
        self.cnt.add_(1)
        h = self.lin(self.emb(x)) + y + self.np
        h = h + self.b1.sum(0) + self.b2.sum(0) + (h @ self.w_t.t()).sum(-1, keepdim=True)
        h = torch.cond(h.sum() > 0, lambda t: t * 2, lambda t: t - 1, (h,))
        parts = h.split([3, 5], -1)
        top = h.topk(2)
        if flag:
            h = h.relu()
        out = {"logits": self.head(h) * scale, "aux": (h[..., self.c].to(torch.float32).reshape(-1, 4), scale)}
        return out, (torch.cat([parts[1], parts[0]], -1)[..., :2], top.indices)


class Dtypes(nn.Module):
    """A buffer of every dtype; infinities; an empty and a zero-dimensional tensor; channels-last strides."""

    names = {"f16": torch.float16, "bf": torch.bfloat16, "f64": torch.float64, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32,
             "b": torch.bool, "f8": torch.float8_e4m3fn, "f8b": torch.float8_e5m2, "u16": torch.uint16, "u32": torch.uint32, "c64": torch.complex64}

    def __init__(self):
        super().__init__()
        for name, dtype in self.names.items():
            self.register_buffer("b_" + name, torch.arange(6.0).reshape(2, 3).to(dtype))
        self.register_buffer("empty", torch.empty(0, 3))
        self.register_buffer("scal", torch.tensor(3.5))
        self.register_buffer("cl", torch.randn(1, 4, 3, 3).to(memory_format=torch.channels_last))

    def forward(self, x):
        y = x + self.b_f16.to(torch.float32) + self.b_bf + self.b_i8 + self.b_u8 + self.b_b + self.b_i32 + self.b_i16 + self.b_f8.to(torch.float32)
        y = y + self.b_f8b.to(torch.float32) + self.scal + self.b_u16.to(torch.int32)
        huge = (y * float("inf")).isinf()
        return y, huge, torch.full((2,), float("-inf")), self.b_f64 + 1, y.clamp(max=float("inf")), self.cl * 2, torch.cat([self.empty, y])


class HopCond(nn.Module):
    """Two branches with weights of their own."""

    def __init__(self):
        super().__init__()
        self.l, self.r = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, p):
        return torch.cond(p, lambda t: (self.l(t), t.sum()), lambda t: (self.r(t), t.mean()), (x,))


class HopMap(nn.Module):
    """The same computation for every row of a tensor."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, rows, y):
        from torch._higher_order_ops.map import map as hop_map
        return hop_map(lambda row, other: torch.tanh(self.l(row)) + other, rows, y)


class Vmap(nn.Module):
    """torch.vmap over rows, over columns, and within itself; exported before decomposition it is in the graph."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 5)

    def forward(self, x, y):
        rows = torch.vmap(lambda row: torch.tanh(self.l(row)).sum() * row)(x)
        columns = torch.vmap(lambda column: column - column.mean(), in_dims=1)(rows)
        return columns, torch.vmap(lambda a: torch.vmap(lambda b: torch.dot(a, b))(y))(x)


class InputMut(nn.Module):
    """Writes into its inputs."""

    def forward(self, x, y):
        x.add_(y)
        x[:, 0] = 7.0
        return x.sum(), y.view(-1).mul_(2)


class Quantized(nn.Module):
    """Every operator of PT2E-quantised models: int8 weights with a scale for each channel or group, activations
    quantised by fixed scales, by those of the call, and by token."""

    def __init__(self):
        super().__init__()
        conv, linear, grouped = torch.randn(8, 3, 3, 3) / 4, torch.randn(32, 8) / 3, torch.randn(16, 32) / 6
        for name, weight in (("conv", conv), ("linear", linear)):
            scale = weight.abs().flatten(1).amax(1) / 127
            self.register_buffer(name + "_scale", scale)
            self.register_buffer(name + "_zero", torch.zeros(len(scale), dtype=torch.int64))
            shape = [-1] + [1] * (weight.dim() - 1)
            self.register_buffer(name + "_weight", (weight / scale.view(shape)).round().clamp(-127, 127).to(torch.int8))
        scale = grouped.view(16, 4, 8).abs().amax(-1) / 7
        self.register_buffer("group_scale", scale)
        self.register_buffer("group_zero", torch.randint(-1, 2, (16, 4)))
        self.register_buffer("group_weight", (grouped.view(16, 4, 8) / scale[..., None]).round().clamp(-8, 7).to(torch.int8).view(16, 32))
        self.register_buffer("step", torch.tensor([0.02], dtype=torch.float64))
        self.register_buffer("origin", torch.tensor([-3]))

    def forward(self, image):
        q, i8 = torch.ops.quantized_decomposed, torch.int8
        x = q.dequantize_per_tensor(q.quantize_per_tensor(image, 0.03, 5, -128, 127, i8), 0.03, 5, -128, 127, i8)
        weight = q.dequantize_per_channel(self.conv_weight, self.conv_scale, self.conv_zero, 0, -127, 127, i8)
        x = torch.relu(nn.functional.conv2d(x, weight)).flatten(2).transpose(1, 2)
        scale, zero = q.choose_qparams.tensor(x, -128, 127, 1.1920928955078125e-07, i8)
        x = q.dequantize_per_tensor.tensor(q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, i8), scale, zero, -128, 127, i8)
        weight = q.dequantize_per_channel(self.linear_weight, self.linear_scale, None, 0, -127, 127, i8)
        x = torch.tanh(nn.functional.linear(x, weight))
        scale, zero = q.choose_qparams_symmetric.tensor(x, 0, 255, 1e-5, torch.uint8)
        x = x + q.dequantize_per_tensor.tensor(q.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8), scale, zero, 0, 255, torch.uint8)
        weight = q.dequantize_per_channel_group(self.group_weight, self.group_scale, self.group_zero, -8, 7, i8, 8, torch.float32)
        x = nn.functional.linear(x, weight)
        scale, zero = q.choose_qparams_per_token_asymmetric(x, i8)
        x = x + q.dequantize_per_token(q.quantize_per_token(x, scale, zero, -128, 127, i8), scale, zero, -128, 127, i8, torch.float32)
        scale, zero = q.choose_qparams_per_token(x, i8)
        x = x + q.dequantize_per_token(q.quantize_per_token(x, scale, zero, -128, 127, i8), scale, zero, -128, 127, i8, torch.float32)
        fixed = q.quantize_per_tensor.tensor2(x, self.step, self.origin, torch.tensor(-128), torch.tensor(127), i8)
        x = x + q.dequantize_per_tensor.tensor2(fixed, self.step, self.origin, torch.tensor(-128), torch.tensor(127), i8)
        channels = x[0].abs().amax(0) / 127
        zeros = torch.zeros_like(channels, dtype=torch.int32)
        lowered = q.quantize_per_channel(x, channels, zeros, 2, -128, 127, i8)
        return x, q.dequantize_per_channel(lowered, channels, zeros, 2, -128, 127, i8, out_dtype=torch.float32)


class Prims(nn.Module):
    """PyTorch's primitive operators, as torch._refs and some decompositions leave them in a graph."""

    def forward(self, x, y):
        p = torch.ops.prims
        rows, columns = x.shape
        wide = p.broadcast_in_dim(y, [rows, columns], [1])
        z = p.add(p.mul(p.sin(x), wide), p.convert_element_type(p.iota(columns, start=1, step=2, dtype=torch.int64, device=x.device, requires_grad=False), torch.float32).expand(rows, columns))
        z = p.where(p.gt(z, wide), p.div(z, p.full([rows, columns], 3.0, dtype=torch.float32, device=x.device, requires_grad=False)), p.rev(z, [0]))
        z = p.cat([z, p.transpose(p.transpose(p.erf(x), [1, 0]), [1, 0])], 1)
        total, most, spread = p.sum(z, [1]), p.amax(z, [0, 1]), p.var(z, [1], 1)
        halves = p.split_dim(z, 1, 2)
        merged = p.collapse(halves, 1, 2)
        integers = p.div(p.convert_element_type(p.mul(x, p.full_like(x, 100.0, dtype=torch.float32, device=x.device, requires_grad=False)), torch.int64), p.fill(p.convert_element_type(x, torch.int64), 7))
        return merged, total, most, spread, integers, p.squeeze(p.reshape(total, [rows, 1]), [1]), p.prod(p.tanh(z), [1]), p.fma(x, wide, x)


class CustomOp(nn.Module):
    """Calls an operator that only its author's library registers."""

    def forward(self, x, y):
        return torch.ops.ttx.addmul(x, y, 2.0, mode="b", dtype=torch.float32)


def register_custom_op():
    library = torch.library.Library("ttx", "DEF")
    library.define("addmul(Tensor x, Tensor y, float s=1.0, *, str mode='a', ScalarType? dtype=None) -> Tensor")

    def addmul(x, y, s=1.0, *, mode="a", dtype=None):
        return (x + y * s).to(dtype or x.dtype) if mode == "a" else ((x + y) * s).to(dtype or x.dtype)

    library.impl("addmul", addmul, "CompositeExplicitAutograd")
    return library


# --- writing ----------------------------------------------------------------------------------------------------------

def make_tiny(folder):
    torch.manual_seed(0)
    batch, sequence = Dim("batch", max=64), Dim("sequence")
    make_format_test(Tiny(), (torch.randint(0, 10, (3, 5)), torch.randn(3, 5, 8)), "tiny", folder, {"scale": 3, "flag": False},
                     {"x": {0: batch, 1: sequence}, "y": {0: batch, 1: sequence}, "scale": None, "flag": None})


def make_quantized(folder):
    import torch.ao.quantization.fx._decomposed  # registers the operators

    make_format_test(seeded(Quantized), (torch.randn(2, 3, 6, 6),), "quantized", folder)


MAKERS = {
    "bert_small": lambda folder: make_transformer(Bert, "bert_small", folder),
    "gpt2_small": lambda folder: make_transformer(Gpt2, "gpt2_small", folder),
    "llama_small": lambda folder: make_transformer(Llama, "llama_small", folder),
    "vit_small": lambda folder: make_transformer(Vit, "vit_small", folder),
    "vision_small": lambda folder: make_transformer(Vision, "vision_small", folder),
    "llama_small_decode": lambda folder: make_decode(LlamaDecode, "llama_small_decode", folder),
    "llama_small_kv": lambda folder: make_kv(LlamaKv, "llama_small_kv", folder),
    "owlvit_small": lambda folder: make_static(Owlvit, "owlvit_small", folder),
    "speecht5_tts": lambda folder: make_static(SpeechT5Tts, "speecht5_tts", folder),
    "tiny": make_tiny,
    "dtypes": lambda folder: make_format_test(seeded(Dtypes), (torch.randn(2, 3),), "dtypes", folder),
    "hop_cond": lambda folder: make_format_test(seeded(HopCond), (torch.randn(3, 4), torch.tensor(True)), "hop_cond", folder),
    "hop_map": lambda folder: make_format_test(seeded(HopMap), (torch.randn(5, 4), torch.randn(4)), "hop_map", folder),
    "vmap": lambda folder: make_format_test(seeded(Vmap), (torch.randn(6, 4), torch.randn(3, 4)), "vmap", folder),
    "input_mut": lambda folder: make_format_test(seeded(InputMut), (torch.randn(3, 4), torch.randn(3, 4)), "input_mut", folder),
    "quantized": make_quantized,
    "prims": lambda folder: make_format_test(seeded(Prims), (torch.randn(6, 8), torch.randn(8)), "prims", folder),
    "custom_op": lambda folder: make_format_test(seeded(CustomOp), (torch.randn(3, 4), torch.randn(3, 4)), "custom_op", folder),
}


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(MAKERS)
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        raise SystemExit(f"unknown model {unknown[0]}; known: {', '.join(MAKERS)}")
    folder.mkdir(parents=True, exist_ok=True)
    library = register_custom_op()
    for name in names:
        torch.manual_seed(3)
        MAKERS[name](folder)
    del library


if __name__ == "__main__":
    main()
