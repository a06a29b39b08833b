"""Damaged model files: refused or read, but nothing worse.

usage: fuzz_models.py TTC MODELS [COUNT [SEED]]

COUNT files of each kind (.pt2, TorchScript, IR text, and .safetensors as inputs) are made from those in MODELS by cutting
them, flipping bits, moving and repeating bytes, and by editing one record of the archive, which is packed again with a
right checksum: JSON loses members, gets numbers that are huge, negative or no numbers, other types and deep nesting;
pickles and code lose, gain or change bytes; records expand without measure or are named twice. `ttc check --all` reads all
of them, each in a process of its own; one in TENTH goes through inspect, check, compile and run as well, and .safetensors
through run. No command may end by a signal or as a bug (exit code 70), take longer than 10 s or more than 2 GB, or leave a
file that is not its output. What fails is kept in the current folder as fuzz-*.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile

warnings.filterwarnings("ignore", message="Duplicate name")

SECONDS, BYTES, BATCH, TENTH = 10, 2 << 30, 50, 10
SOURCES = {".pt2": ["tiny.pt2", "hop_cond.pt2", "input_mut.pt2", "dtypes.pt2", "hop_map.pt2"],
           ".pt": ["vision_small.pt", "vit_small.pt", "bert_small.pt"]}
NUMBERS = [0, -1, 1, 2**31, 2**63 - 1, -2**63, 2**64, 1e308, float("nan"), 10**6, 4096]
WORDS = ["", "x", "torch.ops.aten.add.Tensor", "as_none", "../../x", "\\u0000", "s0", "9" * 400, "NaN"]


def nested(depth, opening, closing):
    return (opening * depth + closing * depth).encode()


def edited_json(text, rng):
    """One value of a document exchanged, removed, doubled or buried."""
    if rng.random() < 0.05:
        return nested(rng.choice([100, 1000, 100000]), *rng.choice([("[", "]"), ('{"a":', "}")]))
    document = json.loads(text)
    places = []

    def visit(node, path):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            places.append((node, key))
            if isinstance(value, (dict, list)):
                visit(value, path)

    if not isinstance(document, (dict, list)):
        return b"[]"
    visit(document, ())
    for _ in range(rng.choice([1, 1, 2, 5])):
        if not places:
            break
        node, key = rng.choice(places)
        kind = rng.randrange(6)
        if isinstance(node, dict) and key not in node or isinstance(node, list) and key >= len(node):
            continue
        if kind == 0:
            del node[key]
        elif kind == 1:
            node[key] = rng.choice(NUMBERS)
        elif kind == 2:
            node[key] = rng.choice(WORDS)
        elif kind == 3:
            node[key] = rng.choice([None, [], {}, True, [[]], {"as_int": 3}, [0] * 1000])
        elif kind == 4:
            other, from_key = rng.choice(places)
            if (from_key in other) if isinstance(other, dict) else (from_key < len(other)):
                node[key] = json.loads(json.dumps(other[from_key]))
        elif isinstance(node, list):
            node.insert(key, json.loads(json.dumps(node[key])))
        else:
            node[key] = [[[[node[key]]]]]
    return json.dumps(document).encode()


def edited_bytes(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 10])):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 255, 40, 41, 46, 82, 128, 127])
        elif kind == 2:
            del data[at:at + rng.choice([1, 4, 40])]
        elif kind == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 4])))
        elif kind == 4:
            data[at:at + 8] = rng.choice([2**63 - 1, 2**32, 0, 2**64 - 1, 7]).to_bytes(8, "little")
        else:
            size = rng.choice([4, 40, 400])
            data[at:at] = data[at:at + size]
    return bytes(data)


def edited_text(data, rng):
    if rng.random() < 0.05:
        depth = rng.choice([100, 1000, 100000])
        at = rng.randrange(len(data) + 1)
        return data[:at] + nested(depth, *rng.choice([("(", ")"), ("[", "]"), ("-", "")])) + data[at:]
    words = data.split(b" ")
    for _ in range(rng.choice([1, 2, 5])):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        kind = rng.randrange(4)
        if kind == 0:
            words[at] = words[other]
        elif kind == 1:
            words[at] = str(rng.choice(NUMBERS)).encode()
        elif kind == 2:
            words[at] = b""
        else:
            words[at], words[other] = words[other], words[at]
    return b" ".join(words)


def edited_archive(data, rng, path):
    """One record changed, the archive packed again."""
    source = zipfile.ZipFile(path)
    names = source.namelist()
    text = [name for name in names if name.endswith((".json", ".py", ".pkl", ".debug_pkl"))]
    chosen = rng.choice(text if text and rng.random() < 0.9 else names)
    with tempfile.TemporaryFile() as made:
        with zipfile.ZipFile(made, "w") as out:
            for name in names:
                content = source.read(name)
                compression = zipfile.ZIP_STORED
                if name == chosen:
                    kind = rng.random()
                    if kind < 0.03:
                        content, compression = bytes(rng.choice([10**6, 5 * 10**8])), zipfile.ZIP_DEFLATED
                    elif kind < 0.06:
                        continue
                    elif name.endswith(".json"):
                        content = edited_json(content, rng)
                    elif name.endswith(".py"):
                        content = edited_text(content, rng)
                    else:
                        content = edited_bytes(content, rng)
                    if rng.random() < 0.02:
                        out.writestr(zipfile.ZipInfo(name), content)
                out.writestr(zipfile.ZipInfo(name), content, compression)
        made.seek(0)
        return made.read()


def damaged(path, rng):
    data = path.read_bytes()
    kind = rng.random()
    if path.suffix in (".pt2", ".pt") and kind < 0.6:
        return edited_archive(data, rng, path)
    if path.suffix == ".ir" and kind < 0.8:
        return edited_text(data, rng)
    if path.suffix == ".safetensors" and kind < 0.6:
        size = int.from_bytes(data[:8], "little")
        header = edited_json(data[8:8 + size], rng)
        return len(header).to_bytes(8, "little") + header + data[8 + size:]
    if kind < 0.75:
        return data[:rng.randrange(len(data))]
    return edited_bytes(data, rng)


def run(command, log):
    """Exit code, seconds of computing, and the largest number of bytes a process of it had. None: it does not end."""
    start = time.monotonic()
    usage_file = pathlib.Path(f"{log}.usage")  # written where a server runs the command (tests/served)
    with open(log, "wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 env=os.environ | {"OMP_NUM_THREADS": "1", "TTC_USAGE": str(usage_file)})
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            if usage_file.exists():
                seconds, size = usage_file.read_text().split()
                usage_file.unlink()
                return child.returncode, float(seconds), int(size)
            return child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        if time.monotonic() - start > 600:
            child.kill()
            os.wait4(child.pid, 0)
            child.returncode = -9
            return None
        time.sleep(0.005)


def problem(command, folder, keep):
    """What is wrong with how a command ends; "" where nothing is."""
    log = folder / "log"
    ended = run(command, log)
    text = " ".join(log.read_bytes().decode(errors="replace").strip().splitlines()[-2:])
    log.unlink()
    if ended is None:
        return "does not end"
    code, seconds, size = ended
    if code not in (0, 1, 2, 3, 4):
        return f"exit code {code}: {text[:300]}"
    if seconds > SECONDS:
        return f"{seconds:.1f} s"
    if size > BYTES:
        return f"{size >> 20} MiB"
    left = sorted(entry.name for entry in folder.iterdir() if entry not in keep)
    return f"left {', '.join(left)}" if left else ""


def try_commands(ttc, source, file):
    """What is wrong with the commands on one file."""
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        made = folder / ("made.pt" if source.suffix == ".pt" else "made.pt2")
        commands = [["inspect", file], ["check", file], ["compile", file, "-o", made], ["run", file]]
        if source.suffix == ".safetensors":
            model = source.with_name(source.name.removesuffix(".io.safetensors") + ".pt2")
            commands = [["run", model, "--io", file]]
        for command in commands:
            if wrong := problem([ttc, *map(str, command)], folder, {made}):
                return f"ttc {' '.join(map(str, command))}: {wrong}"
    return ""


def try_batch(ttc, files, first, count, seed):
    """A message for each file that does worse than being refused."""
    failures = []
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        (folder / "in").mkdir()
        batch = {}
        for number in range(first, first + count):
            source = files[number % len(files)]
            name = f"{seed}-{number}-{source.name}"  # formats are told by content, folders searched for .pt2 and .pt
            file = folder / "in" / (name + ".pt2" if source.suffix == ".ir" else name)
            file.write_bytes(damaged(source, random.Random(f"{seed} {source.name} {number}")))
            batch[file] = source
        suspects = {file: "" for i, file in enumerate(batch) if i % TENTH == 0}
        if files[0].suffix == ".safetensors":
            suspects = {file: "" for file in batch}
        else:
            ended = run([ttc, "check", "--all", str(folder / "in"), "--time-limit", "120", "--json", "-q"], folder / "out")
            text = (folder / "out").read_text(errors="replace")
            if ended is None or "{" not in text or ended[0] not in (0, 1, 4):
                return [f"check --all of {count} {files[0].suffix} from {first}: {ended}: {text[:300]}"]
            for row in json.JSONDecoder().raw_decode(text[text.index("{"):])[0]["models"]:
                if re.search(r"ended by signal|exit code|time limit|bug of ttc|bad_alloc", row.get("detail") or ""):
                    suspects[folder / "in" / row["model"]] = row["detail"]
            if ended[2] > BYTES:
                suspects = {file: suspects.get(file, "") for file in batch}
        for file, detail in suspects.items():
            if wrong := try_commands(ttc, batch[file], file) or detail:
                shutil.copy(file, f"fuzz-{file.name}")
                failures.append(f"fuzz-{file.name}: {wrong}")
    return failures


def sources(models):
    for suffix, names in SOURCES.items():
        yield suffix, [models / name for name in names]
    yield ".ir", sorted((models.parent / "tests/passes").glob("*.ir"))
    yield ".safetensors", [models / "dtypes.io.safetensors", models / "hop_map.io.safetensors"]


def main():
    ttc, models = sys.argv[1], pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    seed = sys.argv[4] if len(sys.argv) > 4 else "1"
    failures, done = [], collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = {}
        for suffix, files in sources(models):
            for first in range(0, count, BATCH):
                size = min(BATCH, count - first)
                jobs[pool.submit(try_batch, ttc, files, first, size, seed)] = suffix, size
        for job in concurrent.futures.as_completed(jobs):
            suffix, size = jobs[job]
            done[suffix] += size
            failures += job.result()
            for failure in job.result():
                print(failure, flush=True)
    print(f"{sum(done.values())} damaged files ({', '.join(f'{n} {suffix}' for suffix, n in sorted(done.items()))}), {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
