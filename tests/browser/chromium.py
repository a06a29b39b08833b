"""A headless Chromium that is driven over a pipe, with its DevTools protocol: messages of JSON that end in a zero byte.

    with Chromium() as browser:
        browser.open("/tmp/page.html", width=1280, height=800)
        browser.run("document.title")
        browser.screenshot("/tmp/page.png")
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    for name in (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome", "headless_shell"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


class Chromium:
    def __init__(self, seconds=60):
        self.seconds = seconds
        self.number = 0
        self.events = []
        self.pending = b""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ttc-browser-", ignore_cleanup_errors=True)
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()

        def place():  # the browser reads from descriptor 3 and writes to 4
            high = [os.dup(to_read), os.dup(to_write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()

    def message(self, until):
        while b"\0" not in self.pending:
            if not select.select([self.into], [], [], max(0.0, until - time.time()))[0]:
                raise RuntimeError("the browser said nothing in time")
            part = os.read(self.into, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.pending += part
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        text = json.dumps(request).encode() + b"\0"
        while text:
            text = text[os.write(self.out, text):]
        until = time.time() + self.seconds
        while True:
            message = self.message(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error'].get('message')}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def wait_for(self, method):
        until = time.time() + self.seconds
        while not any(event["method"] == method for event in self.events):
            message = self.message(until)
            if "method" in message:
                self.events.append(message)

    def size(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def dark(self, dark):
        self.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path, width=1280, height=800, dark=False):
        self.size(width, height)
        self.dark(dark)
        self.events = []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait_for("Page.loadEventFired")
        self.settle()

    def settle(self):
        """Until frames were drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))")

    def run(self, expression):
        """What a JavaScript expression gives, promises awaited. An exception in it is an error here."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    def key(self, key, code=0, text=None, shift=False):
        parameters = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def problems(self):
        """Exceptions, errors on the console, and what the page asked the network for."""
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
                found.append("console: " + " ".join(str(one.get("value", one.get("description"))) for one in parameters["args"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append("log: " + parameters["entry"]["text"])
            elif event["method"] == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:", "about:")):
                found.append("asked for " + parameters["request"]["url"])
        return found

    def screenshot(self, path, selector=None, whole=False):
        options = {}
        if selector:
            box = self.run(f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                           "return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height}; })()")
            options = {"clip": {**box, "scale": 1}, "captureBeyondViewport": True}
        elif whole:
            options = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "scale": 1, **self.run(
                "({width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight})")}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", **options)["data"]))

    def pdf(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.printToPDF", printBackground=False, paperWidth=8.27, paperHeight=11.69)["data"]))
