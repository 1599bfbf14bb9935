"""The brief by the record: composes its pieces, within a budget, into one text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from ralf.brief import lines, order, quoting
from ralf.brief.filling import Budget, Piece, fill, joined, size
from ralf.brief.handover import interleaved, shown, since
from ralf.brief.pieces import LAST, NEXT, SINCE, STATE, TALK, Composer, View
from ralf.talk.cutting import LEFT_OUT
from ralf.text import tokens
from ralf.text.cleaning import one_line, trimmed

_LEAST_WITH_NOW = 200  # tokens of a brief from which on it says what git says

_UNTITLED = "Where this work stands"

_NOT_HERE = "Not here: {what}. `{command} show {route}` has all, `{command} search WORDS` finds it."

Pieces = dict[str, Piece]

_TO_RECORD = "To record: `{command} decide {route} TEXT`, `{command} handover {route}`."


def composed(view: View, max_tokens: int | None = None) -> tuple[str, Pieces]:
    """The brief, of at most that many tokens, by `o200k_base` and at four characters a token, None: all of it; and its
    pieces as far as they are shown.

    What git says now has a place of its own. Of the rest it changes only what the state says of commits and files.
    """
    now = view.git.text if view.git is not None and (max_tokens is None or max_tokens >= _LEAST_WITH_NOW) else ""
    if now and max_tokens is not None:
        count, length = size(now)  # a larger budget sets at most as much more aside as it has more
        max_tokens -= min(lines.NOW_TOKENS, max(count, length // 4 + 1, max_tokens // 8))
    composer = _pieces(view)
    sessions = f"{view.sessions} sessions" if view.sessions > 1 else "one session"
    head = _head(
        view,
        f"By the record of {sessions}{f', up to {quoting.clock(last)} UTC' if (last := view.state.last) else ''}. "
        "A quotation says what was said at its time; a later agreement replaces an earlier one.",
    )
    if (text := _whole(composer, head, max_tokens)) is not None:
        return "\n".join(filter(None, (head, now, text, _foot(view, Missing(), 0)))), composer.pieces
    composer = _pieces(view)
    steps, budget = len(composer.calls), Budget(max_tokens)
    decisions, notes = (9_999 * bool(_hidden(composer.pieces, keys)) for keys in (_DECISIONS, _NOTES))
    decisions = 9_999 if view.handed.kept else decisions
    has_room = budget.take([head, _foot(view, Missing(decisions, notes, 9_999), steps)])
    text, _, missing = _filled(composer, budget) if has_room else ("", False, Missing())
    if not has_room or ("last" in composer.pieces and composer.pieces["last"].level < 0):
        return _least(view, max_tokens or 0), composer.pieces
    return "\n".join(filter(None, (head, now, text, _foot(view, missing, steps)))), composer.pieces


def _whole(composer: Composer, head: str, max_tokens: int | None) -> str | None:
    """All that the pieces come to, where it fits without the words that say what is missing; else None."""
    budget, length = Budget(max_tokens), sum(len(piece.levels[-1]) for piece in composer.pieces.values())
    if max_tokens is not None and length > max_tokens * tokens.CHARACTERS_PER_TOKEN:
        return None
    if not budget.take([head, _foot(composer.view, Missing(), 0)]):
        return None
    text, is_whole, _ = _filled(composer, budget)
    return text if is_whole else None


def _title(view: View) -> str:
    return trimmed(one_line(view.title or view.talk.title or _UNTITLED), 120)


def _head(view: View, source: str) -> str:
    """The first lines: what this is about, warnings, and where it comes from."""
    title, kind = _title(view), "Task" if view.title else "Titled by the client"
    first = [f"# Context of {view.route}", "" if title == _UNTITLED else f"{kind}: {title}"]
    warnings = (f"**Warning:** {one_line(warning)}" for warning in view.warnings)
    return "\n".join(filter(None, (*(first if view.route else [f"# {title}"]), *warnings, source)))


def _pieces(view: View, sections: Collection[int] | None = None) -> Composer:
    """All pieces of the record, or those of some sections, and those that say how much is missing, at their longest."""
    composer = Composer(view)
    composer.compose(talk_too=sections is None)
    if composer.before:
        composer.add("gap-talk", (TALK, 0, 9), _gap(len(composer.before)))
    if sections is not None:
        composer.pieces = {key: piece for key, piece in composer.pieces.items() if piece.place[0] in sections}
    composer.pieces |= {key: replace(piece, level=-1) for key, piece in view.recorded.pieces.items()}
    return composer


class Missing(NamedTuple):
    """How many decisions (rules and what was tried, too), notes and pins, and messages a brief does not show."""

    decisions: int = 0
    notes: int = 0
    messages: int = 0


_DECISIONS = ("rule-", "decision-", "failed-approach-", "hand-decision-", "hand-avoid-")

_NOTES = ("note-", "pin-")


def _hidden(pieces: Pieces, keys: str | tuple[str, ...]) -> list[str]:
    return [key for key, piece in pieces.items() if key.startswith(keys) and piece.level < 0]


def _filled(composer: Composer, budget: Budget) -> tuple[str, bool, Missing]:
    """The text that the pieces come to within a budget, whether that is all, and what is missing."""
    pieces = composer.pieces
    granted = order.grants([*pieces], len(composer.before), composer.log, composer.late, composer.view.recorded)
    if composer.view.asked is not None:
        granted = chain(order.first([*pieces], composer.view.recorded), _asked(composer, composer.view.asked), granted)
    is_whole = fill(budget, pieces, _with_handed(granted, composer, budget.most))
    hidden = _hidden(pieces, "turn-")
    if hidden:
        pieces["gap-talk"].levels, pieces["gap-talk"].place = [_gap(len(hidden))], (TALK, int(hidden[-1][5:]), 9)
    else:
        pieces.pop("gap-talk", None)
    is_whole = is_whole and all(piece.is_whole for piece in pieces.values())
    decisions, notes = (len(_hidden(pieces, keys)) for keys in (_DECISIONS, _NOTES))
    return joined(pieces.values()), is_whole, Missing(decisions, notes, len(hidden))


def _gap(count: int) -> str:
    return f"- ({count} message{'s' * (count > 1)} left out here)"


_MOST_ASKED = 12  # pieces that come first since they touch what is asked for


def _asked(composer: Composer, asked: Callable[[Piece], float]) -> Iterator[order.Grant]:
    """The pieces that touch what is asked for most, each with its message."""
    worth = {name: asked(piece) for name, piece in composer.pieces.items()}
    for name in sorted((name for name in worth if worth[name]), key=lambda name: -worth[name])[:_MOST_ASKED]:
        yield f"turn-{name.split('-')[1]}" if composer.pieces[name].place[0] == TALK else name, 0
        yield name, 1


WORKED = frozenset({NEXT, LAST, STATE, SINCE})
"""Sections that say where the work stands."""


def part(
    view: View, max_tokens: int | None, sections: Collection[int] = (), source: str | None = None
) -> tuple[str, Pieces]:
    """A part of what is known: what is on record, with these sections of the talk, of at most that many tokens; "" for
    nothing; and its pieces. `source`: where it comes from, which the first lines say; None: it has no such lines.
    """
    composer, head = _pieces(view, sections), _head(view, source) if source is not None else ""
    if not (composer.pieces or head or view.handed.last):
        return "", {}
    left_out = f"Not all of it: `{view.command} show {view.route or 'ROUTE'}`, `{view.command} search WORDS`."
    budget = Budget(max_tokens)
    if not budget.take([head, left_out]):
        title = head.partition("\n")[0]
        shorter = (f"{title}\n{left_out}", title, left_out)
        return next((text for text in shorter if Budget(max_tokens).take([text])), ""), composer.pieces
    text, is_whole, _ = _filled(composer, budget)
    return "\n".join(filter(None, (head, text, "" if is_whole else left_out))), composer.pieces


_IN_FILE = 1_500
"""Tokens that the file's part "Now" may take."""


def now(view: View) -> str:
    """The part "Now" of a route file: what comes next by the record, the last message and where its answer stands, the
    state, and what was done since; "" where nothing was recorded.
    """
    text = _filled(_pieces(view, WORKED), Budget(_IN_FILE))[0]
    return text.replace("\n### ", "\n\n### ")  # as people like to see it


_ROOM_FOR_ALL = 4_000
"""Tokens of a brief from which on it has more than a fresh hand-over and what the person said before it."""


def _with_handed(granted: Iterable[order.Grant], composer: Composer, most: int | None) -> Iterable[order.Grant]:
    """The grants with those of what was handed over; messages before a fresh hand-over come last, before an old one
    comes step 1.
    """
    carried = composer.view.handed
    if carried.last is None:
        return granted
    after = since(carried.last, composer.view.talk.entries)
    own = [(key, 0) for stage in composer.view.recorded.own for key in stage]
    handed = shown(carried, after, composer.view.state.items, composer.view.state.last[:10])
    keys = list(composer.pieces)
    composer.pieces |= handed.pieces
    place = next((n for n, (key, _) in enumerate(handed.grants) if key.startswith("hand-decision")), len(handed.grants))
    handed.grants[place:place] = own  # the person's come before the agent's
    if not after.is_fresh:
        first = [key for key, _ in order.first(keys, composer.view.recorded)]
        return interleaved(composer.pieces, granted, handed, first)
    told = {n for n, turn in enumerate(composer.before) if turn.message and turn.message.at <= carried.last.at}
    is_brief = most is not None and most < _ROOM_FOR_ALL
    granted = chain(order.first(keys, composer.view.recorded), [("wrote", 1)], granted)  # it may correct the hand-over
    granted = order.behind(granted, told, is_brief=is_brief)
    return interleaved(composer.pieces, granted, handed)


def _foot(view: View, missing: Missing, steps: int) -> str:
    """What is not here, and how to get it; how to record; `steps`: of which there is more than is shown."""
    decisions, notes, messages = missing
    counts = ((decisions, "decision"), (notes, "note"), (messages, "message"))
    parts = [f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count]
    parts += [f"detail of {steps} call{'s' * (steps > 1)}", f"the text cut at {LEFT_OUT}"] if steps else []
    route = view.route or "ROUTE"
    to_record = _TO_RECORD.format(route=route, command=view.command)
    not_here = _NOT_HERE.format(what=", ".join(parts), route=route, command=view.command)
    return f"{not_here} {to_record}" if parts else to_record


def _least(view: View, most: int) -> str:
    """Something short and true, where there is no room for a brief."""
    show, title = f"`{view.command} show {view.route or 'ROUTE'}`", _title(view)
    texts = [f"# {title}\nNo room for more: {show}", f"No room for a brief: {show}", show, LEFT_OUT, LEFT_OUT[1]]
    if (last := view.talk.last) is not None and last.message is not None:
        words = f"The last message, {quoting.clock(last.message.at)}: {quoting.quoted(last.message.text, 160)}"
        texts.insert(0, f"# {title}\n{words}\nNo room for more: {show}")
    return next((text for text in texts if Budget(most).take([text])), "")
