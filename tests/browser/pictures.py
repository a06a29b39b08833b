"""The pictures of MiniLM in src/report/README.md, made anew: pictures.py TTC FOLDER_WITH_MINILM

The folder is what tools/export_minilm.py or tools/demo.sh filled. Look at what it made before it is committed.
"""

import pathlib
import subprocess
import sys
import tempfile

from chromium import Chromium

README = pathlib.Path(__file__).resolve().parents[2] / "src" / "report"


def main(ttc, models):
    model, io = models / "minilm.pt2", models / "minilm.io.safetensors"
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        page = pathlib.Path(folder) / "minilm.html"
        subprocess.run([ttc, "report", model, "-o", page, "--io", io, "--what-if"], check=True)
        browser.open(page)
        browser.run("select(items.find((one) => one.path === 'bert.encoder.layer.0.attention'))")
        browser.settle()
        browser.screenshot(README / "page_graph.png")
        for section in ("time", "memory"):
            browser.run(f"scrollTo(0, byId('{section}').offsetTop - document.querySelector('header').offsetHeight - 12)")
            browser.settle()
            browser.screenshot(README / f"page_{section}.png")
        browser.screenshot(README / "page_what_if.png", "#what-if")


main(sys.argv[1], pathlib.Path(sys.argv[2]))
