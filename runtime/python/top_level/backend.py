"""Builds the wheel of one module, in whatever folder pip gives: nothing is fetched, nothing is written beside the sources."""

import base64
import hashlib
import pathlib
import zipfile

here = pathlib.Path(__file__).resolve().parent
metadata = """Metadata-Version: 2.1
Name: ttc-ttnn
Version: 0
Summary: ttnn without a card: the emulated TT-NN of ttc under its name
License: Apache-2.0
Requires-Python: >=3.10
"""
wheel = "Wheel-Version: 1.0\nGenerator: ttc\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, info = "ttc_ttnn-0-py3-none-any.whl", "ttc_ttnn-0.dist-info"
    files = {"ttnn.py": (here / "ttnn.py").read_text(), f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel}
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\n"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as made:
        for path, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            made.writestr(path, text)
    return name
