"""The page of ttc report without a browser: one file, well-formed, that loads nothing, whose data are what the other
commands print.

    page_test.py TTC MODELS
"""

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile

VOID = {"meta", "input", "link", "br", "hr", "img"}


class Page(html.parser.HTMLParser):
    """Checks that elements nest; keeps ids, what is referred to, and the data."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.references, self.loads, self.data = [], [], [], [], None
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        for name in ("aria-labelledby", "for"):
            if name in attributes:
                self.references.append(attributes[name])
        if attributes.get("href", "").startswith("#"):
            self.references.append(attributes["href"][1:])
        self.loads += [attributes[name] for name in ("src", "href") if name in attributes and not attributes[name].startswith("#")]

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, text):
        if self.open and self.open[-1][1].get("id") == "data":
            self.data = (self.data or "") + text


def read(path):
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids)), "an id is there twice"
    assert set(page.references) <= set(page.ids), set(page.references) - set(page.ids)
    assert not page.loads, f"loads {page.loads}"
    assert not re.search(r"@import|url\(\s*[^d#)]", text[:text.index("</style>")]), "the style loads something"
    script = text[text.rindex("<script>"):]
    assert not re.search(r"\bfetch\(|XMLHttpRequest|import\(|WebSocket", script), "the script loads something"
    return text, json.loads(page.data)


def main():
    ttc, models = sys.argv[1], pathlib.Path(sys.argv[2])
    folder = tempfile.TemporaryDirectory(prefix="ttc-page-")
    out = pathlib.Path(folder.name)

    def run(*arguments):
        done = subprocess.run([ttc, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    # What the page says is what each command says.
    model, io = models / "bert_small_dyn.pt2", models / "bert_small.io.safetensors"
    run("report", model, "-o", out / "bert.html", "--io", io, "--dump-after", "change", "--dump-dir", out / "dumps", "--what-if")
    _, data = read(out / "bert.html")
    compiled = json.loads(run("compile", model, "-o", out / "bert.pt2", "--io", io, "--json"))
    for name in ("nodes", "flops", "modules", "fallbacks", "transfers", "weights", "memory"):
        assert data["compile"][name] == compiled[name], name
    assert data["compare"]["rows"] and data["search"] is None
    profiled = json.loads(run("profile", model, "--io", io, "--what-if", "--json"))
    profiled.pop("model")
    assert data["what_if"] == profiled.pop("what_if")
    assert data["profile"] == profiled and profiled["total"]["us"] > 0
    archs = {arch["name"]: arch for arch in json.loads(run("archs", "--json"))["archs"]}
    assert {name: data["arch"][name] for name in archs["n150"]} == archs["n150"]

    # Nodes read values that are there, modules have parents before them, and every compared node is in the graph.
    graph = data["graph"]
    values = len(graph["inputs"]) + len(graph["nodes"])
    assert all(0 <= value < values for node in graph["nodes"] for value in node["from"])
    assert all(module["parent"] < i for i, module in enumerate(graph["modules"]))
    names = {node["name"] for node in graph["nodes"]}
    assert {row["node"] for row in data["compare"]["rows"] if row["op"] != "output"} <= names

    # Dumps come back line by line.
    for dump in data["dumps"]["dumps"]:
        file = out / "dumps" / f"{dump['index']:02}-{dump['pass']}.{dump['when']}.ir"
        assert [data["dumps"]["lines"][line] for line in dump["lines"]] == file.read_text().splitlines(), file
    assert len(data["dumps"]["dumps"]) == len(list((out / "dumps").iterdir()))

    # A rewritten file takes sizes for its free dims as the model does.
    free = ["--shape", "a_0=4x64", "--shape", "a_1=4x64", "--shape", "a_2=4x64"]
    run("report", out / "bert.pt2", "-o", out / "sized.html", *free)
    profiled = json.loads(run("profile", out / "bert.pt2", *free, "--json"))
    profiled.pop("model")
    assert read(out / "sized.html")[1]["profile"] == profiled
    assert profiled["total"]["tokens_per_s"] > 1.5 * data["profile"]["total"]["tokens_per_s"]

    # A rewritten file has what its manifest says, and a name may hold what ends a script.
    hostile = out / "a<" / "script><b>\u2028&.pt2"  # ".../a</script>..."
    hostile.parent.mkdir()
    hostile.write_bytes((out / "bert.pt2").read_bytes())
    compared = run("compare", hostile, "--io", io, "--json")
    (out / "compare.json").write_text(compared)
    run("report", hostile, "-o", out / "hostile.html", "--compare", out / "compare.json")
    text, data = read(out / "hostile.html")
    assert data["model"]["file"] == str(hostile)
    assert text.count("</script>") == 2 and "\u2028" not in text[text.index('id="data"'):]
    assert data["compile"]["nodes"] == compiled["nodes"] and data["compare"] == json.loads(compared)
    run("report", hostile, "-o", out / "again.html", "--io", io)
    assert read(out / "again.html")[1]["compare"] == json.loads(compared)
    print("the pages hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
