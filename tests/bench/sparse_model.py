"""A LLaMA whose weights are holes of its file: as large as one likes, made in seconds, next to nothing on disk.

    python tests/bench/sparse_model.py build/ttc out.pt2 [LAYERS]     # 32 layers are 8 G parameters, 16 GB of bfloat16
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

import growth_graphs

ALIGNMENT = 64
MOST_IN_32 = 0xFFFFFFFF


def crc_of_zeros(size):
    block, crc = bytes(1 << 24), 0
    for at in range(0, size, len(block)):
        crc = zlib.crc32(block[:min(len(block), size - at)], crc)
    return crc


def write_zip(path, entries):
    """Stored entries (name, bytes or a number of zero bytes) in the 64-bit form; zeros are skipped over."""
    directory, sums = b"", {}
    with open(path, "wb") as file:
        for name, content in entries:
            name, hole = name.encode(), isinstance(content, int)
            size = content if hole else len(content)
            crc = sums.setdefault(size, crc_of_zeros(size)) if hole else zlib.crc32(content)
            start = file.tell()
            filler = -(start + 30 + len(name) + 20 + 4) % ALIGNMENT
            common = struct.pack("<HHHHHIIIH", 45, 0x800, 0, 0, 33, crc, MOST_IN_32, MOST_IN_32, len(name))
            extra = struct.pack("<HHQQ", 1, 16, size, size) + struct.pack("<HH", 0x4246, filler) + b"Z" * filler
            file.write(struct.pack("<I", 0x04034B50) + common + struct.pack("<H", len(extra)) + name + extra)
            if hole:
                file.truncate(file.tell() + size)
                file.seek(size, 1)
            else:
                file.write(content)
            extra = struct.pack("<HHQQQ", 1, 24, size, size, start)
            directory += struct.pack("<IH", 0x02014B50, 45) + common
            directory += struct.pack("<HHHHII", len(extra), 0, 0, 0, 0, MOST_IN_32) + name + extra
        start, count = file.tell(), len(entries)
        file.write(directory)
        end = file.tell()
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, len(directory), start))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, end, 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, MOST_IN_32, MOST_IN_32, 0))


def write(ttc, path, layers=32):
    """Returns how many parameters the model has. ttc writes the graph without bytes of weights; these come as holes."""
    with tempfile.TemporaryDirectory() as folder:
        source, graph = pathlib.Path(folder) / "llama.ir", pathlib.Path(folder) / "llama.pt2"
        source.write_text(growth_graphs.llama(layers))
        subprocess.run([ttc, "compile", source, "-o", graph, "-q", "--passes", "number-nodes"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with zipfile.ZipFile(graph) as archive:
            content = {name: archive.read(name) for name in archive.namelist()}
    sizes, parameters = {}, 0
    for name in content:
        if name.endswith("model_weights_config.json"):
            for one in json.loads(content[name])["config"].values():
                count = 1
                for size in one["tensor_meta"]["sizes"]:
                    count *= size["as_int"]
                parameters += count
                sizes[f"{name.rpartition('/')[0]}/{one['path_name']}"] = 2 * count
    model = next(name for name in content if name.endswith("models/model.json"))
    program = json.loads(content[model])
    program["graph_module"]["metadata"].pop("custom", None)  # that ttc has seen it
    content[model] = json.dumps(program).encode()
    write_zip(path, [(name, sizes.get(name, text)) for name, text in content.items()])
    return parameters


if __name__ == "__main__":
    print(f"{write(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])) / 1e9:.2f} G parameters")
