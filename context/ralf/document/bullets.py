"""A decision as a bullet of a document, `- DEC-001: text. Because: reason. Rejected: options`, and read back."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.model import Decision
from ralf.text.cleaning import one_line, prose
from ralf.text.patterns import regex

_BECAUSE, _REJECTED = regex(r" (?:Because|Came of it): "), regex(r" (?:Rejected|Not): ")

_LINE_BREAK = regex(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_TAGS = {"": "", "human-edit": "by hand"}

_OWN = frozenset(("user", "agent", "human-edit"))


def name(text: str) -> str:
    """A path or label as it is, but for a line break, which would begin a line of its own."""
    return text if text.isprintable() else _LINE_BREAK.sub(r"\\n", text)


def tag(origin: str) -> str:
    """The origin of an item as its own line says it: `(user)`, `(agent)`, `(by hand)` for an edit of the file, the name
    of a model; "" where no record says it.
    """
    said = _TAGS.get(origin, name(one_line(origin)))
    return f" ({said})" if said else ""


def bullet_of(item: Decision, *, in_file: bool = False) -> str:
    """A decision with its reasons, on a line.

    in_file  of a document, whose front matter says what is this user's and what their agent's: the bullet does not
    """
    by = f" by {item.superseded_by}" if item.superseded_by else ""
    label = name(item.id if item.status == "active" else f"{item.id} [{item.status}{by}]")
    label += f" ({name(str(item.extra.get('by', '')))}, another clone)" if item.origin == "clone" else ""
    if item.origin != "clone" and not (in_file and item.origin in _OWN):
        label += tag(item.origin)
    parts = [f"{label}: {prose(item.decision)}"]
    why = "Came of it" if item.status == "done" else "Because"
    parts += [f"{why}: {prose(item.rationale)}"] if item.rationale else []
    parts += [f"Rejected: {'; '.join(map(one_line, item.alternatives))}"] if item.alternatives else []
    return f"- {sentences(parts)}"


def sentences(parts: Sequence[str]) -> str:
    """Parts on a line, a full stop behind each but the last that has none."""
    ended = [part if part.endswith((".", "!", "?", "…", ":")) else f"{part}." for part in parts[:-1]]
    return " ".join([*ended, *parts[-1:]])


def parts_of(bullet: str) -> tuple[str, str, tuple[str, ...]]:
    """The words of a bullet, the reason behind "Because:", and the options behind "Rejected:" or "Not:"."""
    text, rejected = (*_REJECTED.split(bullet, maxsplit=1), "")[:2]
    text, reason = (*_BECAUSE.split(text, maxsplit=1), "")[:2]
    text = text.strip().removesuffix(".") if reason or rejected else text.strip()
    reason = reason.strip().removesuffix(".") if rejected else reason.strip()
    return text, reason, tuple(filter(None, map(str.strip, rejected.split("; "))))
