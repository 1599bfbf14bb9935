"""Says by the record where the answer to the person's last message stands."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.brief.lines import call, indented, outcome
from ralf.model.entries import Entry, Mark, Said, Step
from ralf.talk.cutting import cut
from ralf.talk.turns import Turn, course, refused_last
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import dataclass

_ASKED, _ADDED, _OUTPUT, _ERROR = 600, 420, 300, 240  # characters


@dataclass(frozen=True, slots=True)
class Status:
    """Where the answer stands.

    word    not_begun, in_progress, waiting, interrupted, stopped or answered
    text    it in words
    wrote   the added lines of the last edit, or the head of the last result; "" for none
    seen    that result, as far as it is kept
    """

    word: str
    text: str
    wrote: str = ""
    seen: str = ""


def status(turn: Turn) -> Status:
    """Where the answer to the message of a turn stands; the first rule that applies."""
    entries = course(turn)
    steps = [step for step in turn.steps if not step.agent]
    lists = [entry for entry in turn.entries if isinstance(entry, Mark) and entry.kind == "todos"]
    count = _calls(len(steps) + len(lists))
    newest = entries[-1] if entries else None
    if turn.unread:
        return Status("not_begun", "Not begun: it was still waiting in the client's queue.")
    if isinstance(newest, Mark) and newest.kind == "stopped":
        done = f"{count} had been made for it" if steps else "nothing was done for it before"
        return Status("stopped", f"Stopped by the service: {trimmed(one_line(newest.value), _ERROR)}; {done}.")
    if not turn.texts and not turn.steps and not turn.has("interrupted"):
        return Status("not_begun", "Not begun: after it nothing was said or done.")
    if isinstance(newest, Mark) and newest.kind == "interrupted":
        why = f" ({trimmed(one_line(newest.value), 60)})" if newest.value not in ("", newest.kind) else ""
        step = refused_last(turn)
        last_one = f"; the last one was refused: {call(step)}" if step is not None else ""
        return Status("interrupted", f"Interrupted by the person after {count}{why}{last_one}.")
    last = next((step for step in reversed(turn.steps) if not step.agent), None)
    if last is not None and not last.outcome and last.kind in ("question", "plan"):
        return Status("waiting", f"It waits for the person: {indented(cut(last.object, _ASKED))}")
    if last is not None and not last.outcome:
        return Status("in_progress", f"Being worked on: {count}; the last one has no result yet: {call(last)}")
    if isinstance(newest, Mark) and newest.kind == "ended":
        if isinstance(_before_end(entries), Said):
            return Status("answered", "Answered: the agent's turn is ended; its words are below.")
        return Status("answered", f"The agent's turn is ended after {count}, without closing words.")
    if isinstance(newest, Said) and lists and lists[-1].line > newest.line:
        return Status(
            "in_progress", f"Being worked on: {count} so far, no closing words yet. Last call: the to-do list."
        )
    if isinstance(newest, Said):
        after = f", after {count}" if steps or lists else ""
        words = f"The agent spoke last (below){after}; the record has no mark that its turn had ended."
        return Status("answered", words)
    if last is None:
        return Status("in_progress", f"Being worked on: {_calls(len(turn.steps))} so far, no closing words yet.")
    refused = "refused by the person, nothing said or done since: " if last.outcome == "refused" else ""
    words = f"Being worked on: {count} so far, no closing words yet. Last call: {refused}{call(last)}"
    seen = "" if last.added or last.checks else _result(last.output)
    return Status("in_progress", words + ("" if refused else f" ({outcome(last)})"), _wrote(last), seen)


def _before_end(entries: Sequence[Entry]) -> Entry | None:
    return next((entry for entry in reversed(entries) if not isinstance(entry, Mark)), None)


def _calls(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def _wrote(step: Step) -> str:
    """What the last call wrote, or the head of what it printed; of a check its result, if the state has not that."""
    if step.added:
        return f"added: {indented(trimmed(step.added, _ADDED), '    ')}"
    if step.checks:
        return "" if step.outcome in ("failed", "failed by output") else _result("\n".join(step.lines))
    return _result(trimmed(step.output, _OUTPUT))


def _result(text: str) -> str:
    return f"result: {indented(text, '    ')}" if text else ""
