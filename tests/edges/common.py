"""What the checks of the command line's edges share: starting ttc, what it is to say, and the list of checks."""

import json
import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TTC = str(pathlib.Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else str(ROOT / "build" / "ttc")
TINY, BERT, VIT = (str(ROOT / "models" / name) for name in ("tiny.pt2", "bert_small_dyn.pt2", "vit_small.pt2"))
IO = str(ROOT / "models" / "bert_small.io.safetensors")
CHECKS = []
FOLDER = []  # of files that checks share


class Ran:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)


def ttc(*args, **options):
    done = subprocess.run([TTC, *map(str, args)], capture_output=True, timeout=120, cwd=ROOT, **options)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())  # both streams are UTF-8


def want(ran, code, *texts):
    """The exit code, and on standard error (or in JSON) each text."""
    assert ran.code == code, f"exit code {ran.code}, not {code}: {ran.err.strip()[:300]}"
    for text in texts:
        assert text in ran.err, f"no {text!r} in {ran.err.strip()[:400]!r}"
    return ran


def check(function):
    CHECKS.append(function)
    return function


def shared(name, *args):
    """A file that is compiled once."""
    path = FOLDER[0] / name
    want(ttc("compile", *args, "-o", path, "-q"), 0)
    return str(path)


def safetensors(path, **tensors):
    """A file of name=(sizes, numbers): F32, and I64 of whole numbers."""
    header, data = {}, b""
    for name, (sizes, numbers) in tensors.items():
        whole = all(isinstance(n, int) for n in numbers)
        begin, data = len(data), data + struct.pack(f"<{len(numbers)}{'q' if whole else 'f'}", *numbers)
        header[name] = {"dtype": "I64" if whole else "F32", "shape": sizes, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return str(path)
