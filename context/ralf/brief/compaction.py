"""What an agent is handed over beside its client's own summary of the window."""

from __future__ import annotations

from dataclasses import replace

from ralf.brief import order, wording
from ralf.brief.record import compose
from ralf.brief.views import view_of
from ralf.model import Carried, RouteContext
from ralf.model.entries import Entry, Step

_BEGINNING = 60  # characters of a message, a command, a decision by which a summary is seen to have it


def after_compaction(context: RouteContext, summary: str, max_tokens: int) -> str:
    """A fresh hand-over, the state, the last message and where it stands, pins; and of messages, failed commands and
    decisions those whose first 60 characters the summary lacks, letters and digits compared. At most that many tokens;
    "" where the route has no record.
    """
    if not context.sessions:
        return ""
    said = _compared(summary)
    lacking = [one for one in context.decisions if one.pinned or one.kind == "rule" or not _has(said, one.decision)]
    handover = context.handover if wording.new_handover(context) is not None else Carried()
    view = view_of(replace(context, decisions=tuple(lacking), handover=handover))
    for turn in view.talk.turns:
        if turn is not view.talk.last:
            if turn.message is not None and _has(said, turn.message.text):
                turn.message = None
            turn.entries = [entry for entry in turn.entries if not _is_told(said, entry)]
    return compose(view, max_tokens, ordered=order.after_compaction)


def _is_told(said: str, entry: Entry) -> bool:
    """Whether the summary has it that a command failed."""
    if not isinstance(entry, Step) or entry.kind != "command":
        return False
    return entry.has_failed and _has(said, entry.object)


def _has(said: str, text: str) -> bool:
    return _compared(text[:_BEGINNING]) in said


def _compared(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
