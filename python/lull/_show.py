"""Frames for people: what print() and a notebook show of them."""
from __future__ import annotations

import shutil
import textwrap
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._report import Frame

# What print() shows of a frame: rows, and characters of a text.
_SHOWN_ROWS = 20
_SHOWN_TEXT = 40


def _cell(value: Any) -> str:
    """A value as people read it: numbers with commas, long texts cut in the middle."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT - 14]}…{text[-13:]}"


def as_text(frame: Frame) -> str:
    """The first rows in columns, as wide as the terminal. What does not fit is named below."""
    width = shutil.get_terminal_size().columns
    values = frame._first(_SHOWN_ROWS)
    rows = [[_cell(value) for value in row] for row in values]
    columns = list(zip(frame.columns, *rows))
    is_text = [any(isinstance(row[i], str) for row in values) for i in range(len(columns))]
    widths = [max(map(len, column)) for column in columns]
    shown, used = [], 0
    # Texts say what a row is about: they come before numbers that do not fit.
    for i in sorted(range(len(columns)), key=lambda i: not is_text[i]):
        if not shown or used + widths[i] + 2 <= width:
            shown.append(i)
            used += widths[i] + 2
    shown.sort()
    lines = ["  ".join(columns[i][at].ljust(widths[i]) if is_text[i] else columns[i][at].rjust(widths[i])
                       for i in shown).rstrip() for at in range(len(rows) + 1)]
    if len(frame) > len(rows):
        lines.append(f"... {len(frame) - len(rows):,} more rows")
    left_out = [name for i, name in enumerate(frame.columns) if i not in shown]
    if left_out:
        lines.append(textwrap.fill(f"not shown: {', '.join(left_out)}", width))
    return "\n".join(lines)


def as_html(frame: Frame) -> str:
    """The first rows as a table of HTML."""
    rows = frame._first(_SHOWN_ROWS)
    head = "".join(f"<th>{escape(name)}</th>" for name in frame.columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows)
    more = f"<p>... {len(frame) - len(rows):,} more rows</p>" if len(frame) > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def text_as_html(text: str) -> str:
    """Sentences, with the lines that they have."""
    return f'<pre style="white-space: pre-wrap">{escape(text)}</pre>'
