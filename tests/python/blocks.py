"""The recorded blocks as torch modules: what a user has before anything is exported. Weights are the recorded ones."""

import torch
from torch import nn
from torch.nn import functional as F


def _linear(weight: torch.Tensor, bias=None) -> nn.Linear:
    made = nn.Linear(weight.shape[0], weight.shape[1], bias=bias is not None)
    made.weight = nn.Parameter(weight.T.contiguous())
    if bias is not None:
        made.bias = nn.Parameter(bias.flatten().clone())
    return made


def _layer_norm(weight: torch.Tensor, bias: torch.Tensor, eps: float) -> nn.LayerNorm:
    made = nn.LayerNorm(weight.numel(), eps=eps)
    made.weight, made.bias = nn.Parameter(weight.flatten().clone()), nn.Parameter(bias.flatten().clone())
    return made


def _rms_norm(weight: torch.Tensor, eps: float) -> nn.RMSNorm:
    made = nn.RMSNorm(weight.numel(), eps=eps)
    made.weight = nn.Parameter(weight.flatten().clone())
    return made


def _embedding(table: torch.Tensor) -> nn.Embedding:
    made = nn.Embedding(*table.shape)
    made.weight = nn.Parameter(table.clone())
    return made


def _rotated(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], dim=-1)


class Attention(nn.Module):
    """One product for queries, keys and values; groups of heads may share keys; angles where they turn."""

    def __init__(self, t: dict, heads: int, kv_heads: int, causal: bool, prefix: str = "") -> None:
        super().__init__()
        self.qkv = _linear(t[prefix + "wqkv"], t.get(prefix + "bqkv"))
        self.out = _linear(t[prefix + "wo"], t.get(prefix + "bo"))
        self.width = t[prefix + "wqkv"].shape[1] // (heads + 2 * kv_heads)
        self.heads, self.kv_heads, self.causal = heads, kv_heads, causal
        self.turned = "cos" in t
        if self.turned:
            self.register_buffer("cos", t["cos"])
            self.register_buffer("sin", t["sin"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows = x.shape[0], x.shape[1]
        sizes = [self.heads * self.width, self.kv_heads * self.width, self.kv_heads * self.width]
        q, k, v = (
            part.view(batch, rows, -1, self.width).transpose(1, 2) for part in torch.split(self.qkv(x), sizes, dim=-1)
        )
        if self.turned:
            q, k = (one * self.cos + _rotated(one) * self.sin for one in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=self.heads != self.kv_heads)
        return self.out(y.transpose(1, 2).reshape(batch, rows, -1))


class Gelu(nn.Module):
    def __init__(self, t: dict, prefix: str = "") -> None:
        super().__init__()
        self.up, self.down = _linear(t[prefix + "w1"], t[prefix + "b1"]), _linear(t[prefix + "w2"], t[prefix + "b2"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


class SwiGlu(nn.Module):
    def __init__(self, t: dict) -> None:
        super().__init__()
        self.gate, self.up, self.down = _linear(t["wg"]), _linear(t["wu"]), _linear(t["wd"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    """Norm, attention, sum; norm, feed-forward, sum."""

    def __init__(self, norms: tuple, attention: nn.Module, feed_forward: nn.Module) -> None:
        super().__init__()
        self.before, self.after = norms
        self.attention, self.feed_forward = attention, feed_forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x))
        return x + self.feed_forward(self.after(x))


class Gpt(nn.Module):
    def __init__(self, t: dict, heads: int) -> None:
        super().__init__()
        self.tokens = _embedding(t["wte"])
        self.positions = nn.Parameter(t["wpe"].squeeze(0))
        norms = (_layer_norm(t["ln1_g"], t["ln1_b"], 1e-5), _layer_norm(t["ln2_g"], t["ln2_b"], 1e-5))
        self.layer = Layer(norms, Attention(t, heads, heads, True), Gelu(t))
        self.norm, self.head = _layer_norm(t["lnf_g"], t["lnf_b"], 1e-5), _linear(t["wlm"])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.head(self.norm(self.layer(self.tokens(ids) + self.positions))), dim=-1)


class Llama(nn.Module):
    def __init__(self, t: dict, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.tokens = _embedding(t["embed"])
        norms = (_rms_norm(t["n1"], 1e-5), _rms_norm(t["n2"], 1e-5))
        self.layer = Layer(norms, Attention(t, heads, kv_heads, True), SwiGlu(t))
        self.norm, self.head = _rms_norm(t["nf"], 1e-5), _linear(t["wlm"])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layer(self.tokens(ids))))


class Vit(nn.Module):
    """Over patches that are cut already; the class token's row is classified."""

    def __init__(self, t: dict, heads: int) -> None:
        super().__init__()
        self.patches = _linear(t["wp"], t["bp"])
        self.cls, self.positions = nn.Parameter(t["cls"]), nn.Parameter(t["pos"])
        layers = []
        for n in range(2):
            p = f"l{n}_"
            norms = (_layer_norm(t[p + "ln1_g"], t[p + "ln1_b"], 1e-6), _layer_norm(t[p + "ln2_g"], t[p + "ln2_b"], 1e-6))
            layers.append(Layer(norms, Attention(t, heads, heads, False, p), Gelu(t, p)))
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = _layer_norm(t["lnf_g"], t["lnf_b"], 1e-6), _linear(t["whead"], t["bhead"])

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.cls, self.patches(patches)], dim=1) + self.positions
        return self.head(self.norm(self.layers(x))[:, 0:1])


class SpelledAttention(Attention):
    """Its products and the softmax one by one, under an additive mask."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.view(*x.shape[:2], -1, self.width).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        scores = (q @ k.transpose(-1, -2)) * self.width**-0.5 + mask
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Bert(nn.Module):
    """Embeddings and a layer whose norms stand behind the sums."""

    def __init__(self, t: dict, heads: int) -> None:
        super().__init__()
        self.words, self.types = _embedding(t["word_emb"]), _embedding(t["type_emb"])
        self.positions = nn.Parameter(t["pos_emb"])
        self.norms = nn.ModuleList(_layer_norm(t[f"ln{n}_g"], t[f"ln{n}_b"], 1e-12) for n in range(3))
        self.attention, self.feed_forward = SpelledAttention(t, heads, heads, False), Gelu(t)

    def forward(self, ids: torch.Tensor, types: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.norms[0](self.words(ids) + self.types(types) + self.positions)
        x = self.norms[1](x + self.attention(x, mask))
        return self.norms[2](x + self.feed_forward(x))


def block(name: str, tensors: dict) -> tuple:
    """The module of a recorded block, and its inputs."""
    if name.startswith("A_bert"):
        return Bert(tensors, 4).eval(), (tensors["ids"].long(), tensors["token_type_ids"].long(), tensors["mask"])
    if name.startswith("A_gpt"):
        return Gpt(tensors, 4 if "h128" in name else 2).eval(), (tensors["ids"].long(),)
    if name.startswith("A_llama"):
        return Llama(tensors, 4, 2).eval(), (tensors["ids"].long(),)
    return Vit(tensors, 4).eval(), (tensors["patches"],)
