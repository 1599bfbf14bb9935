"""How times and texts stand in a brief and in a route file: quoted, indented, below each other."""

from __future__ import annotations

from ralf.text.cleaning import one_line, trimmed


def clock(at: str, day: str = "") -> str:
    """A time for readers: `2026-03-09 08:45`, without the day where it is that one; some logs have no times."""
    date, time = at[:10], at[11:16]
    if not date:
        return "time unknown"
    if not time:
        return date
    return time if date == day else f"{date} {time}"


def quoted(text: str, most: int) -> str:
    """Words in quotes, on one line."""
    return f'"{trimmed(one_line(text), most)}"'


def indented(text: str, by: str = "  ") -> str:
    """A text of several lines, all but the first behind some space."""
    return text.replace("\n", f"\n{by}")


def quotation(text: str) -> str:
    """A text as a Markdown quotation: none of its lines can be a heading."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
