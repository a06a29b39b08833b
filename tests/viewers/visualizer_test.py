"""ttnn-visualizer opens the report of a run and of a profile: its server's HTTP API gives the operations, tensors, addresses
and buffers that the report has; its pages in a headless Chromium show them. `visualizer_test.py TTC [--pictures FOLDER]`."""

import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "browser"))
import chromium
from viewers import MODELS, program, ttc

SERVER = program("ttnn-visualizer", "tools/setup.sh --viewers")


class Server:
    """The viewer's own server, with its data in a folder that goes."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        settings = dict(os.environ, HOME=str(folder), APP_DATA_DIRECTORY=str(folder), REPORT_DATA_DIRECTORY=str(folder),
                        LAUNCH_BROWSER_ON_START="false", USAGE_RECORDING_DISABLED="true")
        self.log = open(folder / "server.log", "w+")
        self.process = subprocess.Popen([SERVER, "--host", "127.0.0.1", "--port", str(self.port)], cwd=folder, env=settings,
                                        stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        until = time.time() + 90
        while True:
            try:
                urllib.request.urlopen(self.base + "/api/up", timeout=5).read()
                return
            except (urllib.error.URLError, OSError):
                self.log.seek(0)
                assert self.process.poll() is None and time.time() < until, self.log.read()[-2000:]
                time.sleep(0.5)

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)  # its workers too
        self.process.wait(20)

    def open(self, report):
        ask = urllib.request.Request(self.base + "/api/instance/local-paths", json.dumps({"profiler_path": str(report)}).encode(),
                                     {"Content-Type": "application/json"})
        self.instance = json.load(urllib.request.urlopen(ask, timeout=30))["instance_id"]

    def get(self, what):
        mark = "&" if "?" in what else "?"
        return json.load(urllib.request.urlopen(f"{self.base}/api/{what}{mark}instanceId={self.instance}", timeout=60))


def check_api(server, report, cores):
    server.open(report)
    with sqlite3.connect(report / "db.sqlite") as database:
        names = [name for (name,) in database.execute("select name from operations order by operation_id")]
        held = dict(database.execute("select operation_id, count(*) from buffers group by operation_id"))
    operations = server.get("operations")
    assert [one["name"] for one in operations] == names and len(names) > 20, names
    linear = next(one for one in operations if one["name"] == "ttnn.linear")
    assert linear["duration"] > 0 and "line" in linear["stack_trace"], linear["stack_trace"]
    detail = server.get(f"operations/{linear['id']}")
    arguments = {one["name"]: one["value"] for one in detail["arguments"]}
    assert arguments["fidelity"] and "in0_block_w" in arguments["ttc.program"] and arguments["ttc.module"], arguments
    assert len(detail["inputs"]) >= 2 and len(detail["outputs"]) == 1, detail["inputs"]
    made = detail["outputs"][0]
    assert made["producers"] == [linear["id"]] and min(made["consumers"]) > linear["id"], made
    assert made["dtype"] == "DataType.BFLOAT16" and made["layout"] == "Layout.TILE" and made["address"] > 0, made
    # What it reads and makes is among what the memory holds, at the same addresses.
    addresses = {one["address"] for one in detail["buffers"]}
    assert {one["address"] for one in detail["inputs"] + detail["outputs"]} <= addresses and len(detail["buffers"]) == held[linear["id"]]
    kinds = [node["node_type"] for node in detail["device_operations"]]
    assert kinds[0] == "capture_start" and "circular_buffer_allocate" in kinds and "buffer_allocate" in kinds, kinds
    assert server.get("devices")[0]["num_compute_cores"] == cores
    # Pages go round the banks; no page of one live buffer is in another's.
    chunks = [one for one in server.get(f"buffer-pages?operation_id={linear['id']}")]
    assert len({one["bank_id"] for one in chunks}) > 1, chunks
    for operation in server.get("operation-buffers"):
        spans = sorted((b["address"], b["address"] + b["size"]) for b in operation["buffers"])
        assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:])), (operation["id"], spans)
    tensors = server.get("tensors")
    assert all(one["lifetime"] for one in tensors if one["producers"]), tensors[0]
    assert server.get("errors") == [] and server.get("config")["report_name"]


PAGES = {"operations": ("/operations", "ttnn.linear"), "operation": ("/operations/15", "ttnn."), "buffers": ("/buffer-summary", "ttnn.linear"),
         "graph": ("/graphtree", "ttnn."), "tensors": ("/tensors", "[200, 64] bf16")}


def check_pages(server, pictures):
    if chromium.find() is None:
        print("SKIP: the pages were not looked at: no chromium on PATH (apt-get install chromium)")
        return 0
    with chromium.Chromium() as browser:
        browser.size(1400, 900)
        for name, (path, text) in PAGES.items():
            browser.events = []
            browser.call("Page.navigate", url=f"{server.base}{path}?instanceId={server.instance}")
            browser.wait_for("Page.loadEventFired")
            until = time.time() + 30
            while text not in (browser.run("document.body.innerText") or ""):
                assert time.time() < until, f"{name}: no {text!r} in {browser.run('document.body.innerText')[:400]!r}"
                time.sleep(0.3)
            if pictures:
                time.sleep(3)
                browser.screenshot(pictures / f"{name}.png")
    return 1


def main():
    pictures = pathlib.Path(sys.argv[sys.argv.index("--pictures") + 1]) if "--pictures" in sys.argv else None
    passed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = pathlib.Path(place)
        bert = MODELS / "bert_small.pt2"
        ttc("compile", bert, "-o", folder / "bert.pt2", "-q")
        ttc("run", folder / "bert.pt2", "--ttnn-report", folder / "ran", "-q")
        ttc("profile", bert, "--arch", "p150", "--ttnn-report", folder / "profiled", "-q")
        server = Server(folder)
        try:
            for report, cores in (("ran", 64), ("profiled", 130)):
                check_api(server, folder / report, cores)
                passed += 1
            passed += check_pages(server, pictures)
        finally:
            server.close()
    print(f"{passed} passed, 0 failed")


main()
