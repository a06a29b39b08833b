"""What a compile, a check and a comparison found: attributes for programs, text for terminals, tables for notebooks."""

from __future__ import annotations

import html
import json
from typing import Any, Iterable, Mapping, Optional, Sequence


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], bad: Optional[str] = None) -> str:
    """An HTML table; rows whose member `bad` is false are marked."""

    def cell(value: Any) -> str:
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        side = "right" if isinstance(value, (int, float)) and not isinstance(value, bool) else "left"
        return f'<td style="text-align:{side}">{html.escape(text)}</td>'

    head = "".join(f'<th style="text-align:left">{html.escape(name)}</th>' for name in columns)
    body = ""
    for row in rows:
        mark = ' style="background:#fdd;color:#000"' if bad is not None and not row[bad] else ""
        body += f"<tr{mark}>" + "".join(cell(row[name]) for name in columns) + "</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    def text(value: Any) -> str:
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    lines = [list(columns)] + [[text(row[name]) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join("  ".join(part.ljust(width) for part, width in zip(line, widths)).rstrip() for line in lines)


class CompileReport:
    """What a compile did: ``nodes``, ``device_nodes``, ``cpu_nodes``, ``fallbacks`` with reasons, ``modules``, byte
    counts, ``fits``. ``to_dict()`` has all that ``ttc compile --json`` prints."""

    arch: str
    summary: str
    nodes: int
    device_nodes: int
    cpu_nodes: int
    flops: float
    device_flops: float
    weight_bytes_in: int
    weight_bytes_out: int
    transfers: int
    transfer_bytes: int
    dram_peak_bytes: int
    l1_peak_bytes: int
    fits: bool
    streamed: bool
    notes: list
    fallbacks: list
    near_misses: list
    modules: list

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.__dict__.update(found)
        self._json = self.__dict__.pop("json")

    @property
    def device_fraction(self) -> float:
        """The share of compute nodes on the device."""
        return self.device_nodes / self.nodes if self.nodes else 1.0

    def to_dict(self) -> dict:
        return json.loads(self._json)

    def to_json(self) -> str:
        return self._json

    def __str__(self) -> str:
        out = self.summary
        if self.fallbacks:
            out += "\n" + _text_table(self.fallbacks, ("node", "op", "reason", "detail", "source"))
        return out

    def __repr__(self) -> str:
        return f"<ttc report: {self.summary}>"

    def _repr_html_(self) -> str:
        out = f"<p><b>ttc</b> {html.escape(self.summary)}</p>"
        for note in self.notes:
            out += f"<p>{html.escape(note)}</p>"
        if self.fallbacks:
            out += "<p>On the CPU:</p>" + _table(self.fallbacks, ("node", "op", "module", "reason", "detail", "source"))
        if self.modules:
            out += "<details><summary>Modules on the device</summary>"
            out += _table(self.modules, ("path", "class", "op", "weight_format", "fidelity")) + "</details>"
        return out


class Comparison:
    """Each node of two runs: ``rows`` with PCC, errors and thresholds, ``passed``, ``worst`` and ``first_failure``
    (numbers of rows). True where everything passed."""

    rows: list
    passed: bool
    worst: Optional[int]
    first_failure: Optional[int]
    notes: list
    _columns = ("node", "op", "module", "pcc", "max_abs", "max_rel", "snr_db", "threshold", "pass")

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.__dict__.update(found)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return _text_table(self.rows, self._columns)

    def __repr__(self) -> str:
        failed = sum(not row["pass"] for row in self.rows)
        return f"<ttc comparison: {len(self.rows)} rows, {failed} below their thresholds>"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return notes + _table(self.rows, self._columns, bad="pass")


class RunReport:
    """What served the last run of a model: ``device_nodes``, ``cpu_nodes``, ``fallbacks``, transfers, the device's
    time by its model."""

    runs: int
    device_nodes: int
    cpu_nodes: int
    device_cycles: float
    device_us: float
    to_device: int
    to_device_bytes: int
    to_host: int
    to_host_bytes: int
    transfer_us: float
    weights: int
    streamed_weights: int
    streamed_bytes: int
    fallbacks: list

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.__dict__.update(found)

    def __str__(self) -> str:
        out = f"{self.device_nodes} nodes on the device, {self.cpu_nodes} on the CPU, {self.device_us:.1f} us"
        return out + ("\n" + _text_table(self.fallbacks, ("node", "op", "reason", "count")) if self.fallbacks else "")

    def __repr__(self) -> str:
        return f"<ttc run: {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        out = f"<p><b>ttc</b> {html.escape(str(self).splitlines()[0])}</p>"
        return out + (_table(self.fallbacks, ("node", "op", "reason", "count")) if self.fallbacks else "")


class Profile(list):
    """What each op cost, a dict a row."""

    _columns = ("node", "op", "module", "place", "kernel", "calls", "wall_us", "cycles", "bound", "bytes")

    def __str__(self) -> str:
        return _text_table(self, self._columns)

    def _repr_html_(self) -> str:
        return _table(self, self._columns)
