"""The route file of a context: our part stands above the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ralf.brief.handover_bullets import HEADING, handed_over, section
from ralf.document.bullets import bullet_of
from ralf.model import Decision, RouteContext
from ralf.route import routefile
from ralf.text import tokens
from ralf.text.cleaning import shown
from ralf.text.frozen import by_identity


def content_of(context: RouteContext) -> bytes:
    """The bytes of a context's route file: always the same for the same context."""
    return routefile.render(context, brief_of(context)).encode()


def brief_of(context: RouteContext) -> str:
    """Our part above the history of a context's file: hand-over, rules, what the record says of now, decisions."""
    text, ids = section(handed_over(context))
    held = [item for item in reversed(context.active_decisions) if item.id not in ids]
    rules = [item for item in held if item.kind == "rule" or item.pinned]
    now = context.active_work.now
    parts: dict[str, Iterable[str]] = {
        HEADING: [shown(text).removeprefix(HEADING)],
        _RULES_HEADING: _listed(rules, _RULES),
        routefile.NOW: [now] if now and tokens.estimate(now) <= _NOW and routefile.can_be_now(now) else [],
        _DECIDED_HEADING: _listed([item for item in held if item not in rules], _DECIDED),
    }
    joined = {heading: "".join(lines).strip("\n") for heading, lines in parts.items()}
    return "\n\n".join(f"{heading}\n\n{text}" for heading, text in joined.items() if text)


_NOW, _RULES, _DECIDED = 1_900, 300, 250  # tokens, by estimate


_RULES_HEADING, _DECIDED_HEADING = "## Rules", "## Decisions"

KINDS = {HEADING: "", _RULES_HEADING: "rule", _DECIDED_HEADING: "decision"}
"""The sections whose bullets may be edited, and the kind of decisions in each, "" for what the bullets say."""

HEADINGS = (*KINDS, routefile.NOW)


def _listed(decisions: Sequence[Decision], most: int) -> Iterator[str]:
    """Decisions, a line each, the newest first, and how many more are in force."""
    size = 0
    for number, item in enumerate(decisions):
        line, taken = _line_of(item)
        size += taken
        if size > most:
            yield f"- and {len(decisions) - number} older: in the front matter\n"
            break
        yield line


@by_identity
def _line_of(item: Decision) -> tuple[str, int]:
    """The line of a decision, and its tokens."""
    line = f"{bullet_of(item, in_file=True)}\n"
    return shown(line), tokens.estimate(line)
