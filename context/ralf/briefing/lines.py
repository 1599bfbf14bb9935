"""One item of what a route keeps as the text of a piece: a line, or several that belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ralf.text import clean, one_line, prose
from ralf.trim import trimmed

if TYPE_CHECKING:
    from ralf.model import CommandFact, Decision, ErrorFact, RequestFact

_LINE_BREAK = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


_OWN = frozenset(("", "user", "agent", "human-edit"))


def tag(origin: str) -> str:
    """What is said of an item, on its own line, that neither this user nor their agent has said; "" for theirs."""
    return "" if origin in _OWN else f" ({name(one_line(origin))})"


def tagged(text: str, origin: str) -> str:
    """A text of one or more lines, the first of which says where it came from, unless it is this user's."""
    if origin in _OWN:
        return text
    first, _, rest = text.partition("\n")
    return f"{first}{tag(origin)}\n{rest}"


def decision(item: Decision) -> str:
    """A decision with its reasons."""
    by = f" by {item.superseded_by}" if item.superseded_by else ""
    label = name(item.id if item.status == "active" else f"{item.id} [{item.status}{by}]") + tag(item.origin)
    parts = [f"{label}: {prose(item.decision)}"]
    parts += [f"Because: {prose(item.rationale)}"] if item.rationale else []
    parts += [f"Rejected: {_listed(item.alternatives)}"] if item.alternatives else []
    ended = [part if part.endswith((".", "!", "?", "…", ":")) else f"{part}." for part in parts[:-1]]
    return f"- {' '.join([*ended, parts[-1]])}\n"


def _listed(options: Sequence[str]) -> str:
    """Options one behind the other, numbered where one of them is a list itself."""
    told = [one_line(option) for option in options]
    if len(told) > 1 and any(";" in option for option in told):
        told = [f"({number}) {option}" for number, option in enumerate(told, start=1)]
    return "; ".join(told)


def statement(item: Decision, most: int) -> str:
    """A decision without its reasons, its words in at most `most` characters."""
    return f"- {trimmed(f'{name(item.id)}{tag(item.origin)}: {prose(item.decision)}', most)}\n"


def error(fact: ErrorFact) -> str:
    """An error, and the command that ended with it."""
    command = f" (from: {one_line(fact.command)})" if fact.command else ""
    return f"- error: {one_line(fact.error)}{command}{_of(fact)}\n"


def command(fact: CommandFact) -> str:
    """A command, and how it ended."""
    status = name(fact.status if fact.exit in (None, 0) else f"{fact.status}, exit {fact.exit}")
    times = f", {fact.failures} of {fact.runs} times" if fact.failures and fact.runs > 1 else ""
    return f"- {one_line(fact.command)} ({status}{times}){_of(fact)}\n"


def request(fact: RequestFact) -> str:
    """What was asked for, as a quotation."""
    return tagged(quoted(fact.request), fact.origin)


def _of(fact: CommandFact | ErrorFact) -> str:
    return tag(str(fact.extra.get("origin", "")))


def quoted(text: str) -> str:
    """A text of several lines as a quotation."""
    return "".join(f"> {line}\n" for line in clean(text).strip().split("\n"))


def blocks(text: str) -> Iterator[str]:
    """A section's lines, each a block with the lines that continue it; blank lines do not count."""
    block = ""
    for line in clean(text).split("\n"):
        if line.startswith((" ", "\t")) and block:
            block += f"{line}\n"
        elif line.strip():
            if block:
                yield block
            block = f"{line if not line.startswith(('/', ' ', chr(9))) else '- ' + line.lstrip()}\n"
    if block:
        yield block


def name(text: str) -> str:
    """A path or label as it is, but for a line break, which would begin a line of its own."""
    return _LINE_BREAK.sub(r"\\n", text)
