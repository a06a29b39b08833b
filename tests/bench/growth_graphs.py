"""Graphs of any number of nodes, as text: what growth.py lets ttc compile and run."""


class Graph:
    """Lines of a graph of the text form, and the names in it."""

    def __init__(self, free=None):
        self.free, self.inputs, self.lines = free, [], []

    def input(self, name, kind, what="user"):
        self.inputs.append(f"%{name}: {kind} {what}")
        return f"%{name}"

    def weight(self, name, sizes, value):
        """A weight that every element has the same value of: text stays small."""
        self.inputs.append(f'${name}: f32[{", ".join(map(str, sizes))}] parameter "{name}" = splat({value})')
        return f"${name}"

    def add(self, kind, op, args, module="", keys=""):
        at = f"    @{module}" if module else ""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name}: {kind} = {op}({', '.join(map(str, args))}{keys}){at}")
        return name

    def text(self, *results):
        head = f"model {{range {self.free} in [1, 65536]}}\n" if self.free else ""
        return "\n".join([f"{head}graph main({', '.join(self.inputs)}) {{", *self.lines, f"  return {', '.join(results)}", "}", ""])


def sums(nodes):
    """A chain of small sums: deep, and one value that every node reads."""
    g = Graph()
    kind = "f32[8, 8]"
    x, y = g.input("x", kind), g.input("y", kind)
    for _ in range(nodes):
        x = g.add(kind, "aten.add.Tensor", [x, y])
    return g.text(x)


def fan(nodes):
    """One value that every node reads; all they make goes into one node."""
    g = Graph()
    x = g.input("x", "f32[1, 8]")
    parts = [g.add("f32[1, 8]", "aten.mul.Tensor", [x, 1 + i / nodes]) for i in range(nodes - 1)]
    return g.text(g.add(f"f32[{len(parts)}, 8]", "aten.cat.default", [f"[{', '.join(parts)}]", 0]))


def tree(nodes):
    """A sum of many activations, in pairs: wide."""
    g = Graph()
    kind = "f32[8, 8]"
    x = g.input("x", kind)
    level = [g.add(kind, "aten.relu.default", [g.add(kind, "aten.mul.Tensor", [x, 1 + i / nodes])]) for i in range(nodes // 3)]
    while len(level) > 1:
        pairs = [g.add(kind, "aten.add.Tensor", [a, b]) for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2:]
    return g.text(level[0])


def sorts(nodes):
    """Products and sorts in turn."""
    g = Graph()
    kind = "f32[8, 32]"
    x, w = g.input("x", kind), g.weight("w", [32, 32], 0.01)
    for i in range(nodes // 4):
        y = g.add(kind, "aten.linear.default", [x, w], f"blocks.{i}.fc")
        x = f"%s{i}"
        g.lines.append(f"  {x}: {kind}, %i{i}: i64[8, 32] = aten.sort.default({y}, -1, false)    @blocks.{i}")
        x = g.add(kind, "aten.add.Tensor", [x, y], f"blocks.{i}")
        x = g.add(kind, "aten.relu.default", [x], f"blocks.{i}")
    return g.text(x)


def layers(nodes):
    """Encoder layers as exports spell them, with norms and attention in their parts and a free dim."""
    return encoder(nodes=nodes, width=32, heads=2, sequence=8, batch="s0", free="s0")


def encoder(width, heads, sequence, batch=1, free=None, count=None, nodes=None):
    """`count` layers, or as many as have `nodes`."""
    g = Graph(free)
    wanted, hidden, size = count, 2 * width, width // heads
    kind = f"f32[{batch}, {sequence}, {width}]"
    split, scores = f"f32[{batch}, {heads}, {sequence}, {size}]", f"f32[{batch}, {heads}, {sequence}, {sequence}]"
    x = g.input("x", kind)
    b = g.add(f"int({batch})", "aten.sym_size.int", [x, 0]) if free else batch
    count = 0
    while count < wanted if wanted else len(g.lines) < nodes:
        module, name = f"layer.{count}", f"l{count}"
        count += 1

        def linear(x, of, to, what):
            w, bias = g.weight(f"{name}.{what}.weight", [to, of], 0.01), g.weight(f"{name}.{what}.bias", [to], 0.5)
            return g.add(f"f32[{batch}, {sequence}, {to}]", "aten.linear.default", [x, w, bias], f"{module}.{what} : Linear")

        def norm(x, what):
            w, bias = g.weight(f"{name}.{what}.weight", [width], 1), g.weight(f"{name}.{what}.bias", [width], 0)
            at, row = f"{module}.{what} : LayerNorm", f"f32[{batch}, {sequence}, 1]"
            mean = g.add(row, "aten.mean.dim", [x, "[-1]", "true"], at)
            centred = g.add(kind, "aten.sub.Tensor", [x, mean], at)
            square = g.add(kind, "aten.pow.Tensor_Scalar", [centred, 2], at)
            variance = g.add(row, "aten.mean.dim", [square, "[-1]", "true"], at)
            root = g.add(row, "aten.rsqrt.default", [g.add(row, "aten.add.Tensor", [variance, 1e-5], at)], at)
            scaled = g.add(kind, "aten.mul.Tensor", [g.add(kind, "aten.mul.Tensor", [centred, root], at), w], at)
            return g.add(kind, "aten.add.Tensor", [scaled, bias], at)

        def head(x, what):
            at = f"{module}.attention : Attention"
            apart = g.add(f"f32[{batch}, {sequence}, {heads}, {size}]", "aten.view.default",
                          [linear(x, width, width, what), f"[{b}, {sequence}, {heads}, {size}]"], at)
            return g.add(split, "aten.transpose.int", [apart, 1, 2], at)

        at = f"{module}.attention : Attention"
        normed = norm(x, "first")
        q, k, v = (head(normed, what) for what in ("q", "k", "v"))
        kt = g.add(f"f32[{batch}, {heads}, {size}, {sequence}]", "aten.transpose.int", [k, 2, 3], at)
        score = g.add(scores, "aten.div.Tensor", [g.add(scores, "aten.matmul.default", [q, kt], at), size ** 0.5], at)
        mixed = g.add(split, "aten.matmul.default", [g.add(scores, "aten.softmax.int", [score, -1], at), v], at)
        back = g.add(f"f32[{batch}, {sequence}, {heads}, {size}]", "aten.transpose.int", [mixed, 1, 2], at)
        joined = g.add(kind, "aten.reshape.default", [back, f"[{b}, {sequence}, {width}]"], at)
        x = g.add(kind, "aten.add.Tensor", [linear(joined, width, width, "out"), x], module)
        inner = linear(norm(x, "second"), width, hidden, "up")
        active = g.add(f"f32[{batch}, {sequence}, {hidden}]", "aten.gelu.default", [inner], f"{module}.act : GELU")
        x = g.add(kind, "aten.add.Tensor", [linear(active, hidden, width, "down"), x], module)
    return g.text(x)


def llama(count, width=4096, hidden=14336, vocabulary=128256, heads=32, groups=8, sequence=32):
    """`count` layers of the dims of a LLaMA of 8 G parameters, its weights in bfloat16 and without bytes."""
    g = Graph()
    size = width // heads
    kind = f"bf16[1, {sequence}, {width}]"

    def weight(name, *sizes):
        g.inputs.append(f'${name}: bf16[{", ".join(map(str, sizes))}] parameter "{name}"')
        return f"${name}"

    def linear(x, name, of, to):
        return g.add(f"bf16[1, {sequence}, {to}]", "aten.linear.default", [x, weight(f"{name}.weight", to, of)], f"{name} : Linear")

    def norm(x, name):
        keys = f"[{width}], {weight(f'{name}.weight', width)}, 1e-05"
        return g.add(kind, "aten.rms_norm.default", [x, keys], f"{name} : LlamaRMSNorm")

    tokens = g.input("tokens", f"i64[1, {sequence}]")
    x = g.add(kind, "aten.embedding.default", [weight("embed.weight", vocabulary, width), tokens], "embed : Embedding")
    for i in range(count):
        name = f"layers.{i}"
        normed = norm(x, f"{name}.input_norm")

        def head(what, of):
            at = f"{name}.attention : LlamaAttention"
            flat = linear(normed, f"{name}.attention.{what}", width, of * size)
            apart = g.add(f"bf16[1, {sequence}, {of}, {size}]", "aten.view.default", [flat, f"[1, {sequence}, {of}, {size}]"], at)
            return g.add(f"bf16[1, {of}, {sequence}, {size}]", "aten.transpose.int", [apart, 1, 2], at)

        at = f"{name}.attention : LlamaAttention"
        q, k, v = head("q", heads), head("k", groups), head("v", groups)
        mixed = g.add(f"bf16[1, {heads}, {sequence}, {size}]", "aten.scaled_dot_product_attention.default",
                      [q, k, v, "none, 0.0, true"], at, ", enable_gqa=true")
        back = g.add(f"bf16[1, {sequence}, {heads}, {size}]", "aten.transpose.int", [mixed, 1, 2], at)
        joined = g.add(kind, "aten.reshape.default", [back, f"[1, {sequence}, {width}]"], at)
        x = g.add(kind, "aten.add.Tensor", [x, linear(joined, f"{name}.attention.o", width, width)], name)
        normed = norm(x, f"{name}.post_norm")
        inner = f"bf16[1, {sequence}, {hidden}]"
        gate = g.add(inner, "aten.silu.default", [linear(normed, f"{name}.mlp.gate", width, hidden)], f"{name}.mlp : LlamaMLP")
        product = g.add(inner, "aten.mul.Tensor", [gate, linear(normed, f"{name}.mlp.up", width, hidden)], f"{name}.mlp : LlamaMLP")
        x = g.add(kind, "aten.add.Tensor", [x, linear(product, f"{name}.mlp.down", hidden, width)], name)
    return g.text(linear(norm(x, "norm"), "head", width, vocabulary))


COMPILED = {"sums": sums, "fan": fan, "tree": tree, "sorts": sorts, "layers": layers}
