"""ttnn.tracer, as far as programs import it: graphs of calls are not traced here."""

from __future__ import annotations

from typing import Any, Callable


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"ttnn.tracer.{name} is not emulated")

    function.__name__ = name
    return function
