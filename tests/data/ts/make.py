"""Makes the TorchScript files of tests/unit/ts_read_test.cpp: python3 make.py (torch 2.13). Their weights are small integers."""

import enum
import pathlib
from typing import Dict, List, Optional, Tuple

import torch

here = pathlib.Path(__file__).parent


class Shapes(torch.nn.Module):
    """Traced shape arithmetic: halves the last dim, flattens the first two."""

    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        with torch.no_grad():
            self.proj[0].weight.copy_(torch.eye(4))
            self.proj[0].bias.copy_(torch.arange(4.0))

    def forward(self, x):
        y = self.proj(x)
        y = y.view(x.shape[0] * x.shape[1], -1)
        return y[:, : x.shape[-1] // 2] / x.shape[1]


class Control(torch.nn.Module):
    """Branches on data, a loop with a growing list, a check that raises, recursion through functions."""

    def forward(self, x, n: int):
        if n < 0:
            raise ValueError("n must not be negative")
        parts: List[torch.Tensor] = []
        total = torch.zeros([2])
        i = 0
        while i < n:
            total = total + x
            if bool(total.sum() > 6.0):
                parts.append(total * 10)
            else:
                parts.append(total)
            i += 1
        if len(parts) == 0:
            return x
        return torch.stack(parts)


class State(torch.nn.Module):
    """A tensor and a number that forward() keeps, and a method that resets them in one branch."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(2))
        self.steps = 0

    def reset(self):
        self.sum = torch.zeros(2)
        self.steps = 0

    def forward(self, x):
        if self.steps >= 2:
            self.reset()
        self.sum = self.sum + x
        self.steps += 1
        return self.sum, self.steps


class Cell(torch.nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = torch.nn.Parameter(torch.full([2], scale))

    def forward(self, x, bias: Optional[torch.Tensor]):
        y = x * self.weight
        if bias is not None:
            y = y + bias
        return y


class Containers(torch.nn.Module):
    """Modules in a list, optional arguments, tuples in and dicts out: all of it gone after reading."""

    def __init__(self):
        super().__init__()
        self.cells = torch.nn.ModuleList([Cell(2.0), Cell(3.0)])

    def forward(self, pair: Tuple[torch.Tensor, torch.Tensor], extra: Optional[torch.Tensor] = None) -> Dict[str, torch.Tensor]:
        x, bias = pair
        collected: Dict[str, torch.Tensor] = {}
        items: List[torch.Tensor] = []
        for i, cell in enumerate(self.cells):
            x = cell(x, bias if i == 0 else None)
            items.append(x)
        collected["last"] = items[-1]
        collected["sum"] = items[0] + items[1]
        return collected


class Windows(torch.nn.Module):
    """Strided windows and a resampling, whose sizes follow those of the image in steps."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, stride=2)
        with torch.no_grad():
            self.conv.weight.fill_(1)
            self.conv.bias.zero_()

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(self.conv(x), 3, 2, 1, ceil_mode=True)
        x = torch.nn.functional.interpolate(x, scale_factor=2.0)
        return x, torch.nn.functional.max_pool1d(x.flatten(2), 5)


class Padded(torch.nn.Module):
    """Pads the last dim to a multiple of four, and so that windows of three, two apart, reach its end."""

    def forward(self, x):
        size = x.shape[1]  # a tensor while it is traced
        same = torch.clamp(((size / 2).ceil() - 1) * 2 + 3 - size, min=0) if isinstance(size, torch.Tensor) else 2
        windows = torch.nn.functional.pad(x, (0, same))
        return torch.nn.functional.pad(x, (0, (4 - x.shape[1] % 4) % 4)) * 2, windows * 2


class Items(torch.nn.Module):
    """Items of a list that an operator gives, a shape as an argument, whether two inputs are one tensor, classes."""

    def forward(self, x, y, i):
        parts = x.chunk(3, -1)
        z = (parts[0] * parts[-1]).view(y.shape)
        if x is y:
            z = z + 1000
        return z + y, torch.nn.functional.one_hot(i, 4)


class Sizes(torch.nn.Module):
    """Parts of shapes, a list from behind, and a scale that F.interpolate makes a list of, one for each dim."""

    def forward(self, x):
        b, c = x.shape[:2]
        h, w = x.shape[-2:]
        parts = [x.view(b, c, h * w).sum(2), x.new_zeros([b, 1]), x.mean([2, 3])][::-1]
        y = torch.nn.functional.interpolate(x, scale_factor=2.0)
        return y, torch.cat([parts[0], parts[2]], 1)


class Early(torch.nn.Module):
    """An early return that depends on data, with a result that may be None beside one that may not."""

    def pick(self, x) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        if bool(x.sum() < 0):
            y = x.abs()
            if bool(y.max() > 8):
                return y, None
            return y + 1, None
        return x, x

    def forward(self, x):
        y, _ = self.pick(x)
        return torch.relu(y - 1)


class Lists(torch.nn.Module):
    """Lists of a length that only the caller knows."""

    def forward(self, scale: torch.Tensor, items: List[torch.Tensor]) -> List[torch.Tensor]:
        return [item * scale for item in items]


class Scaled(torch.nn.Module):
    def forward(self, more: Dict[str, torch.Tensor]):
        return more["x"] * more["scale"]


class Dicts(torch.nn.Module):
    """Dicts of the caller's, one of them in a tuple and one that another module reads; a key that may be absent."""

    def __init__(self):
        super().__init__()
        self.scaled = Scaled()

    def forward(self, pair: Tuple[torch.Tensor, Dict[str, torch.Tensor]], more: Dict[str, torch.Tensor]):
        x, rest = pair
        y = self.scaled(more) + x - rest["shift"]
        if "nothing" in more:
            y = y * 100
        return {"y": y, "x": more["x"]}


class Tuples(torch.nn.Module):
    """A list of tuples of a length that only the caller knows, in and out; dicts in a dict, by numbers, and written to."""

    def forward(
        self, pairs: List[Tuple[torch.Tensor, torch.Tensor]], x: torch.Tensor, nested: Dict[str, Dict[int, torch.Tensor]]
    ) -> Tuple[torch.Tensor, List[Tuple[torch.Tensor, torch.Tensor]]]:
        more: List[Tuple[torch.Tensor, torch.Tensor]] = []
        for a, b in pairs:
            x = x + a * b
            more.append((a + 1, b))
        inner = nested["in"]
        inner[7] = inner[3] * 10
        return x + inner[7] + pairs[-1][0], more


class Iterated(torch.nn.Module):
    """A dict whose keys only the caller knows, in and out, and whether it has one; another by keys that are numbers."""

    def forward(self, given: Dict[str, torch.Tensor], by_number: Dict[int, torch.Tensor]) -> Tuple[Dict[str, torch.Tensor], torch.Tensor]:
        out: Dict[str, torch.Tensor] = {"first": by_number[7]}
        total = torch.zeros([2])
        for key, value in given.items():
            out[key + "!"] = value * 10
            total = total + value
        for value in by_number.values():
            total = total * value
        if "x" in given:
            total = total + 100 * len(given)
        missing = given.get("nothing")
        if missing is not None:
            total = missing
        return out, total


class Pages(torch.nn.Module):
    """A list of dicts in, one dict an item out; lists and tuples in dicts."""

    def forward(self, pages: List[Dict[str, torch.Tensor]]) -> Tuple[List[Dict[str, torch.Tensor]], Dict[str, List[torch.Tensor]], Dict[int, Tuple[torch.Tensor, torch.Tensor]]]:
        out: List[Dict[str, torch.Tensor]] = []
        for page in pages:
            out.append({"sum": page["a"] + page["b"], "a": page["a"]})
        lists: Dict[str, List[torch.Tensor]] = {"x": [], "y": []}
        for i in range(2):
            lists["x"].append(pages[0]["a"] * i)
        lists["y"].append(pages[-1]["b"])
        return out, lists, {3: (pages[0]["a"], pages[0]["b"])}


class Kept(torch.nn.Module):
    """A dict that a loop changes, one that only one branch adds to, and everything that writes to a dict."""

    def forward(self, x: torch.Tensor, n: int) -> Tuple[torch.Tensor, torch.Tensor, Dict[str, torch.Tensor]]:
        state: Dict[str, torch.Tensor] = {"h": x, "c": x * 0}
        for i in range(n):
            state["c"] = state["c"] + state["h"]
            state["h"] = state["c"] * 2
        other: Dict[str, torch.Tensor] = {"x": x, "z": x + 3, "w": x}
        other.update({"x": x * 2, "v": x * 3})
        popped = other.pop("z")
        del other["w"]
        copy = other.copy()
        copy["x"] = copy.setdefault("x", x) + copy.setdefault("u", x) + popped
        if bool(x.sum() > 0):
            other["added"] = x
        keys = ""
        for key in sorted(copy.keys()):
            keys = keys + key
        return state["h"], copy["x"] * len(keys), other


class Perhaps(torch.nn.Module):
    """Dicts in a dict whose tensors may be None: the caller's, and one that a loop fills."""

    def forward(self, x: torch.Tensor, given: Dict[str, Dict[str, Optional[torch.Tensor]]], n: int) -> Tuple[torch.Tensor, Dict[str, Dict[str, Optional[torch.Tensor]]]]:
        kept: Dict[str, Dict[str, Optional[torch.Tensor]]] = {}
        for i in range(n):
            kept[str(i)] = {"x": x if i > 0 else None, "y": x * 2}
            x = x + 1
        for name, items in given.items():
            for key, item in items.items():
                if item is not None:
                    x = x + item
        for name, items in kept.items():
            item = items["x"]
            if item is not None:
                x = x + item * 10
            pair: List[Tuple[str, Optional[torch.Tensor]]] = [(name, item)]
            last = pair[-1][1]
            if last is None:
                x = x * 3
        return x, kept


class Absent(torch.nn.Module):
    """Values that are None until a branch or a loop has made them, and an output that may stay None."""

    def forward(self, x: torch.Tensor, n: int) -> Tuple[torch.Tensor, torch.Tensor, Optional[torch.Tensor]]:
        doubled: Optional[torch.Tensor] = None
        if bool(x.sum() > 0):
            doubled = x * 2
        y = x
        if doubled is not None:
            y = doubled + 1
        last: Optional[torch.Tensor] = None
        for i in range(n):
            if last is None:
                last = x
            else:
                last = last * 2 + x
        if last is None:
            last = x - 100
        return y, last, doubled


class Numbers(torch.nn.Module):
    """Integers meet numbers of the source, which give float32; traces keep the numbers as float64 tensors."""

    def forward(self, x):
        return x * torch.exp(torch.arange(3) * 0.0 / 2.0) + torch.cat([torch.arange(3) * 0.5])


class Order(enum.Enum):
    FIRST = "first"
    LAST = "last"


class Members(torch.nn.Module):
    """Members of an enumeration as attributes and arguments; a tensor that is written out in the code."""

    def __init__(self):
        super().__init__()
        self.order = Order.LAST
        self.other: Optional[Order] = Order.FIRST

    def move(self, x, order: Order):
        return x.transpose(0, 1) if order == Order.LAST else x * 100

    def forward(self, x):
        if self.other is not None and self.other != self.order:
            x = x + torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
        if self.order.value == "last" and self.order.name == "LAST":
            x = x + 10
        return self.move(x, self.order)


class Bounds(torch.nn.Module):
    """Integers clamped by a tensor that tracing takes for a number of any kind."""

    def forward(self, x):
        return torch.clamp(x, 0, torch.tensor(x.shape[0]) * 2 - 1)


class Default(torch.nn.Module):
    """An argument that has a default, for which the file is lowered."""

    def forward(self, x, scale: Optional[torch.Tensor] = None):
        return x + 1 if scale is None else x * scale


torch.jit.save(torch.jit.script(Default()), here / "default.pt")
torch.jit.save(torch.jit.trace(Bounds().eval(), torch.arange(3)), here / "bounds.pt")
torch.jit.save(torch.jit.script(Members()), here / "members.pt")
torch.jit.save(torch.jit.script(Early()), here / "early.pt")
torch.jit.save(torch.jit.script(Sizes()), here / "sizes.pt")
torch.jit.save(torch.jit.script(Items()), here / "items.pt")
torch.jit.save(torch.jit.trace(Numbers().eval(), torch.ones(2, 3)), here / "numbers.pt")
torch.jit.save(torch.jit.trace(Padded().eval(), torch.ones(2, 5)), here / "padded.pt")
torch.jit.save(torch.jit.script(Lists()), here / "lists.pt")
torch.jit.save(torch.jit.script(Dicts()), here / "dicts.pt")
torch.jit.save(torch.jit.script(Tuples()), here / "tuples.pt")
torch.jit.save(torch.jit.script(Iterated()), here / "iterated.pt")
torch.jit.save(torch.jit.script(Absent()), here / "absent.pt")
torch.jit.save(torch.jit.script(Perhaps()), here / "perhaps.pt")
torch.jit.save(torch.jit.script(Pages()), here / "pages.pt")
torch.jit.save(torch.jit.script(Kept()), here / "kept.pt")
torch.jit.save(torch.jit.trace(Windows().eval(), torch.ones(2, 1, 32, 40)), here / "windows.pt")
torch.jit.save(torch.jit.trace(Shapes().eval(), torch.ones(2, 3, 4)), here / "shapes.pt")
torch.jit.save(torch.jit.script(Control()), here / "control.pt")
torch.jit.save(torch.jit.script(State()), here / "state.pt")
torch.jit.save(torch.jit.script(Containers()), here / "containers.pt")
