"""Runs several test scripts that need PyTorch, each in a child of one process that has imported it.

usage: stock_pytorch.py SCRIPT [ARGUMENT]... [-- SCRIPT [ARGUMENT]...]...

Importing torch, and what exporting, decomposing and compiling import at first use, takes five seconds of processor time.
As many scripts run at a time as there are cores; what each printed is printed when it ends. Fails if one fails.
"""

import gc
import itertools
import os
import pathlib
import runpy
import sys
import tempfile
import warnings

import torch

warnings.filterwarnings("ignore")


class Relu(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def warm_up():
    """Everything the scripts use, once, on one thread: threads do not survive a fork."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        saved = pathlib.Path(folder) / "relu.pt2"
        torch.export.save(torch.export.export(Relu(), (torch.ones(2),)), saved)
        program = torch.export.load(saved)
    program.run_decompositions()
    torch.export.unflatten(program)
    torch.compile(program.module(), backend="aot_eager")(torch.ones(2))
    torch._dynamo.reset()
    gc.freeze()  # what is there is not looked at, and so not copied, in each child


def start(command, output):
    """The child's process number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        sys.argv = command
        sys.path.insert(0, str(pathlib.Path(command[0]).parent))
        runpy.run_path(command[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1 if end.code else 0
        if isinstance(end.code, str):
            print(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(arguments):
    commands = [list(group) for dashes, group in itertools.groupby(arguments, lambda word: word == "--") if not dashes]
    warm_up()
    running, failed, count = {}, [], len(commands)
    while commands or running:
        while commands and len(running) < len(os.sched_getaffinity(0)):
            command, output = commands.pop(0), tempfile.TemporaryFile()
            running[start(command, output)] = command, output
        child, status, used = os.wait4(-1, 0)
        command, output = running.pop(child)
        name, code = pathlib.Path(command[0]).name, os.waitstatus_to_exitcode(status)
        failed += [name] if code else []
        output.seek(0)
        print(f"==== {name}: {'exit code ' + str(code) if code else 'ok'}, {used.ru_utime + used.ru_stime:.1f} s of processor time")
        print(output.read().decode(errors="replace"), end="", flush=True)
    print(f"{count - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
