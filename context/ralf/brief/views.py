"""A context as text for agents and people: the brief of its route by the record, or a part of it, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ralf.brief import wording
from ralf.brief.filling import Piece
from ralf.brief.handover_bullets import handed_in_brief, handed_over
from ralf.brief.pieces import View
from ralf.brief.record import WORKED, Pieces, composed, part
from ralf.brief.recorded import (
    Recorded,
    decided,
    facts,
    foreign,
    goal,
    history,
    recorded,
    work,
)
from ralf.document.bullets import tag
from ralf.errors import UsageError
from ralf.facts.state import State
from ralf.model import Carried, RouteContext
from ralf.talk.turns import joined
from ralf.text import cleaning
from ralf.text.cleaning import FENCE_TOKENS, SHORT_FENCE_TOKENS, fence_characters, one_line, shown
from ralf.text.matcher import likeness, words
from ralf.text.tokens import CHARACTERS_PER_TOKEN

RESUMED = "resume"
"""The section that hooks hand over, unasked: nothing foreign is ever in it."""

_BRIEFS = (None, "brief", RESUMED)


SECTIONS: dict[str, Callable[[Recorded, RouteContext], None]] = {
    "goal": goal,
    "work": work,
    "decisions": decided,
    "facts": facts,
    "history": history,
}
"""The parts of a context's text, and what makes the pieces of what is on record of each."""


def render(
    context: RouteContext,
    max_tokens: int | None = None,
    *,
    query: str | None = None,
    section: str | None = None,
    fenced: bool = True,
) -> str:
    """Return the context as Markdown for an agent or a person, what matters most first.

    max_tokens  hard limit: at most that many o200k_base tokens, and at most four times as many characters; None: the
                context's own default, else all. A larger budget never shows less. The text ends by saying what was left
                out and how to get it.
    query       what touches it comes right behind the state; None: the context's own default
    section     only this part: brief or resume (the same without what is foreign, for a session that goes on with the
                work), goal, work, decisions, facts or history; UsageError for any other
    fenced      between two lines that say that this is data, not instructions, and that no content can forge
                (`ralf.text.cleaning`); they count within `max_tokens`, and a budget too small for them gives ""
    """
    if section not in _BRIEFS and section not in SECTIONS:
        known = ", ".join(["brief", RESUMED, *SECTIONS])
        raise UsageError(str(section), f"no such section; known: {known}", 'render(section="brief")')
    room = context.budget if max_tokens is None else max_tokens
    short = room is not None and room // 3 < FENCE_TOKENS
    if room is not None and fenced:
        fence = -(-fence_characters(short=short) // CHARACTERS_PER_TOKEN)
        room -= max(SHORT_FENCE_TOKENS if short else FENCE_TOKENS, fence)
    text = shown_of(context, room, section, query)[0] if room is None or room > 0 else ""
    text = f"{text}\n" if text else ""
    return cleaning.fenced(text, short=short) if fenced and (text or max_tokens is None) else text


def shown_of(
    context: RouteContext, most: int | None, section: str | None = None, query: str | None = None
) -> tuple[str, Pieces]:
    """The text of a context or of a section, without a fence and a last line end, and its pieces; see `render`."""
    view = view_of(context, section, query or context.query)
    if section in SECTIONS:
        return part(view, most, WORKED if section == "work" else ())
    if context.sessions and not context.wholly_foreign:
        return composed(view, most)
    return part(view, most, source=_source(context))


def view_of(context: RouteContext, section: str | None = None, query: str | None = None) -> View:
    """What the text of a context, or of a part of it, is made of."""
    talk = joined(() if context.wholly_foreign else context.sessions)
    talk.title = shown(talk.title)
    aim = f"{context.goal}{tag(context.goal_origin)}" if context.goal else ""
    made = Recorded()
    if not context.wholly_foreign:
        if section in SECTIONS:
            SECTIONS[section](made, context)
        else:
            made = recorded(context)
            if not context.sessions:
                facts(made, context)
    if context.foreign and section != RESUMED:
        foreign(made, context, section)
    return View(
        talk,
        State.of(talk.entries),
        title="" if context.wholly_foreign else shown(context.active_work.task_title or aim),
        route=shown(one_line(context.route)),
        sessions=len(context.sessions),
        warnings=[*map(shown, context.warnings)],
        recorded=made,
        handed=Carried() if context.wholly_foreign else _handed(context, section),
        command=context.command,
        git=context.now,
        asked=_asked(context, query),
    )


def _handed(context: RouteContext, section: str | None) -> Carried:
    """What a text shows of what was handed over; beside the person's decisions: without them."""
    if section in _BRIEFS:
        return handed_in_brief(context)
    return handed_over(context) if section == "work" else Carried()


def _asked(context: RouteContext, query: str | None) -> Callable[[Piece], float] | None:
    """How much a piece has of the words of a query."""
    if not query:
        return None
    terms = tuple((word, word.weight) for word in words(query))
    return lambda piece: likeness(terms, piece.levels[-1])


def _source(context: RouteContext) -> str:
    """Where a context comes from that no session of this user's is known of."""
    header = context.context_checkpoint
    count = f"{header.checkpoint_count} checkpoint{'s' * (header.checkpoint_count != 1)}"
    last = f", the last one up to {shown(one_line(header.last_checkpoint))}" if header.last_checkpoint else ""
    return "" if context.wholly_foreign else f"Revision {context.revision}, {count}{last}."


# ---- beside the client's own summary of the window ----

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
        if turn is not view.talk.last:  # what the agent said and did for the others the summary has as far as it wants
            if turn.message is not None and _has(said, turn.message.text):
                turn.message = None
            failed = (step for step in turn.steps if step.kind == "command" and step.has_failed)
            turn.entries = [step for step in failed if not _has(said, step.object)]
    return composed(view, max_tokens)[0]


def _has(said: str, text: str) -> bool:
    return _compared(text[:_BEGINNING]) in said


def _compared(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
