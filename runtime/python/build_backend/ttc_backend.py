"""meson-python, and the extra `ttnn`: `pip install .[ttnn]` also installs runtime/python/top_level, a module `ttnn` of its
own. Static metadata can't name a folder beside itself; a wheel that is built here can. One that is taken elsewhere has the
extra's folder no more, and pip says so where somebody asks for it."""

import base64
import hashlib
import pathlib
import zipfile

import mesonpy
from mesonpy import (  # noqa: F401
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

EXTRA = "ttnn"
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "top_level"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory)
    add_extra(pathlib.Path(wheel_directory) / name)
    return name


def add_extra(wheel):
    """Writes the extra into the wheel's metadata, and its hash into the record."""
    made = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as after:
        metadata = next(one for one in before.namelist() if one.endswith(".dist-info/METADATA"))
        text = with_extra(before.read(metadata).decode()).encode()
        for info in before.infolist():
            data = before.read(info)
            if info.filename == metadata:
                data = text
            elif info.filename == metadata.replace("/METADATA", "/RECORD"):
                data = recorded(data.decode(), metadata, text).encode()
            after.writestr(info, data, zipfile.ZIP_DEFLATED)
    made.replace(wheel)


def with_extra(metadata):
    head, blank, body = metadata.partition("\n\n")
    lines = [f"Provides-Extra: {EXTRA}", f'Requires-Dist: ttc-ttnn @ {FOLDER.as_uri()} ; extra == "{EXTRA}"']
    return "\n".join([head, *lines]) + blank + body


def recorded(record, name, data):
    """The record with this file's new hash and size."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    lines = [f"{name},sha256={digest},{len(data)}" if line.startswith(name + ",") else line for line in record.splitlines()]
    return "\n".join(lines) + "\n"
