"""Errors, one class for each kind, with the exit code that the command line ends with."""

from __future__ import annotations

__all__ = ["Error", "Failed", "UsageError", "Unsupported", "BadFile", "Cancelled", "Bug"]


class Error(RuntimeError):
    """What went wrong; ``hint`` says what to do about it, ``file`` which file it is about. Both may be empty."""

    kind: str = "failed"
    exit_code: int = 1

    def __init__(self, what: str, hint: str = "", file: str = "") -> None:
        super().__init__(what)
        self.hint = hint
        self.file = file

    def __str__(self) -> str:
        what = super().__str__()
        return f"{what}\nhint: {self.hint}" if self.hint else what

    def __reduce__(self) -> tuple:
        return type(self), (self.args[0], self.hint, self.file)


class Failed(Error):
    """A check failed, or the model, a kernel or LibTorch failed while it ran."""


class UsageError(Error, ValueError):
    """A wrong input, name, shape, dtype, option, or order of calls."""

    kind, exit_code = "usage", 2


class Unsupported(Error, NotImplementedError):
    """Something this build, device or format can't do; the device's memory is full."""

    kind, exit_code = "unsupported", 3


class BadFile(Error):
    """A file that is no well-formed model or configuration, or that can't be read or written."""

    kind, exit_code = "bad_file", 4


class Cancelled(Error):
    """``Model.cancel()`` ended the run."""

    kind, exit_code = "cancelled", 1


class Bug(Error):
    """An error of the library's own."""

    kind, exit_code = "bug", 70


_kinds = {one.kind: one for one in (Failed, UsageError, Unsupported, BadFile, Cancelled, Bug)}


def made(kind: str, what: str, hint: str, file: str) -> Error:
    """The exception for an error of the library."""
    return _kinds.get(kind, Error)(what, hint, file)
