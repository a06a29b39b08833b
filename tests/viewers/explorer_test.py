"""Model Explorer's package takes the graph of `ttc profile --explorer`: its own classes hold every node, its converter takes the
file, and its server hands it out. Run by the Python that has the package: `explorer_test.py TTC`."""

import dataclasses
import json
import os
import pathlib
import sys
import tempfile

from viewers import MODELS, VIEWERS, program, ttc

program("model-explorer", "tools/setup.sh --viewers")
if pathlib.Path(sys.prefix).resolve() != VIEWERS.resolve():
    python = str(VIEWERS / "bin" / "python")
    os.execv(python, [python, *sys.argv])

from model_explorer import graph_builder, utils  # noqa: E402


def typed(kind, value):
    """The package's class of that name; a field that it does not have is an error."""
    parts = {"nodes": graph_builder.GraphNode, "attrs": graph_builder.KeyValue, "incomingEdges": graph_builder.IncomingEdge,
             "outputsMetadata": graph_builder.MetadataItem}
    return kind(**{key: [typed(parts[key], one) for one in item] if key in parts else item for key, item in value.items()})


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.json"
        report = ttc("profile", MODELS / "vit_small.pt2", "--fallback-op", "gelu", "--explorer", path, "--json", "-q")
        text = path.read_text()
    collections = utils.convert_builtin_resp(json.dumps([{"label": c["label"], "subgraphs": c["graphs"]} for c in json.loads(text)]))
    graph = typed(graph_builder.Graph, collections[0].graphs[0])
    nodes = {node.id: node for node in graph.nodes}
    assert len(nodes) == len(graph.nodes) > 60, "names are unique"
    attributes = {name: {one.key: one.value for one in node.attrs} for name, node in nodes.items()}
    edges = 0
    for node in graph.nodes:
        for edge in node.incomingEdges:
            source = nodes[edge.sourceNodeId]
            assert edge.sourceNodeOutputId in {one.id for one in source.outputsMetadata}, (node.id, edge)
            edges += 1
    assert edges > len(graph.nodes) / 2
    spaces = {node.namespace for node in graph.nodes}
    assert "model/vit/layers/0/attention" in {"/".join(space.split("/")[:5]) for space in spaces}, sorted(spaces)[:9]
    for op in report["ops"]:
        assert abs(float(attributes[op["node"]]["us"]) - op["us"]) < 1e-5 and attributes[op["node"]]["bound"] == op["bound"], op
    gelu = [one for name, one in attributes.items() if nodes[name].label == "aten.gelu.default"]
    assert len(gelu) == 2 and all(one["place"] == "cpu" and "UserExcluded" in one["reason"] for one in gelu), gelu
    linear = next(name for name, node in nodes.items() if node.label == "tt.linear")
    assert "bfloat16" in attributes[linear]["formats"] and attributes[linear]["program"] and attributes[linear]["fidelity"]
    shape = {one.key: one.value for one in nodes[linear].outputsMetadata[0].attrs}["tensor_shape"]
    assert shape.startswith("bf16[") or shape.startswith("f32["), shape
    assert dataclasses.asdict(graph)["id"] == report["arch"]
    print("1 passed, 0 failed")


main()
