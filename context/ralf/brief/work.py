"""Where the work of a route stands by the record, as its file says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ralf.brief import lines, quoting
from ralf.brief.pieces import View
from ralf.brief.record import now
from ralf.facts.checks import is_test
from ralf.facts.state import State
from ralf.model import ActiveWork, OpenFile, RunningTask, Step as Done, Todo, WorkingTree
from ralf.model.entries import Mark, Step
from ralf.talk import cutting
from ralf.talk.turns import Talk
from ralf.text.cleaning import one_line, trimmed
from ralf.text.sentences import promised

_STATEMENT, _LINE = 240, 240  # characters

_MOST_TRIED, _MOST_FILES, _MOST_COMMITS = 12, 40, 8

STOPPED = "stopped by the service: "
"""How a blocker begins that the client recorded."""


def work_of(before: ActiveWork, talk: Talk) -> ActiveWork:
    """The active work after a talk: what the record shows; what somebody said of it stays as it was before."""
    state, last = State.of(talk.entries), talk.last
    word = lines.standing(last).word if last is not None else ""
    said = [said.text for turn in talk.turns for said in turn.texts]
    outcome = next((found for text in reversed(said) if (found := promised(text))), "")
    closing = last.closing if last is not None else None
    return replace(
        _planned(before, state),
        work_status=word or before.work_status,
        last_request=_last_request(talk) or before.last_request,
        last_statement=cutting.cut(closing.text, _STATEMENT) if closing is not None else "",
        last_output="",
        blockers=(*(one for one in before.blockers if not one.startswith(STOPPED)), *_blockers(talk, word)),
        outcome=outcome or before.outcome,
        open_files=tuple(_open_files(talk, state)),
        running=tuple(RunningTask(id_, what, at) for id_, (at, what) in state.running.items()),
        git=_tree(state),
        tried=tuple(_tried(talk, state)[-_MOST_TRIED:]),
        now=now(View(talk, state)),
    )


def _planned(before: ActiveWork, state: State) -> ActiveWork:
    """The work with the to-dos of the record, if it has any: the step is the first in progress, else the first open."""
    if not state.items_at and not state.items:
        return before
    states = [item.status for item in state.items]
    step = next((states.index(one) + 1 for one in ("in_progress", "pending") if one in states), None)
    results = {step.description: step.result for step in before.completed_steps}
    return replace(
        before,
        todos=tuple(Todo(item.text, item.status, item.id) for item in state.items),
        plan_step=step,
        total_steps=len(states) or None,
        completed_steps=tuple(
            Done(number, item.text, results.get(item.text, ""))
            for number, item in enumerate(state.items, 1)
            if item.status == "completed"
        ),
    )


def _last_request(talk: Talk) -> str:
    message = talk.last.message if talk.last is not None else None
    return trimmed(one_line(message.text), _LINE) if message is not None else ""


def _blockers(talk: Talk, word: str) -> Iterator[str]:
    """The service's error, if it is what the work stands at."""
    if word == "stopped" and talk.last is not None:
        marks = [one for one in talk.last.entries if isinstance(one, Mark) and one.kind == "stopped"]
        yield from (f"{STOPPED}{trimmed(one_line(mark.value), _LINE)}" for mark in marks[-1:])


def _open_files(talk: Talk, state: State) -> Iterator[OpenFile]:
    """What was edited since the last commit and is still there, the newest last, each with the time of its edit."""
    at: dict[str, str] = {}
    for turn in talk.turns:
        for step in turn.steps:
            for path, _ in step.files:
                at.pop(path, None)
                at[path] = step.at
    edited = [path for path in at if path in state.edited and state.edited[path] != "deleted"]
    yield from (OpenFile(path, at[path]) for path in edited[-_MOST_FILES:])


def _tree(state: State) -> WorkingTree:
    newest = next((run for run in reversed(state.runs.values()) if any(map(is_test, run.step.checks))), None)
    own = [commit for commit in state.commits if commit.is_own]
    return WorkingTree(
        branch=state.branch if not state.is_detached else "",
        commit=_named(state.commits[-1].hash, state.commits[-1].subject) if state.commits else "",
        uncommitted=tuple(dict.fromkeys([*state.listed, *state.edited]))[-_MOST_FILES:],
        commits=tuple(_named(one.hash, one.subject) for one in own[-_MOST_COMMITS:]),
        pushed=state.is_pushed,
        pull_request=state.request,
        untested=tuple(newest.edited)[-_MOST_FILES:] if newest is not None else (),
    )


def _named(digest: str, subject: str) -> str:
    return " ".join(filter(None, (digest, subject)))


def _tried(talk: Talk, state: State) -> list[str]:
    """What failed, was refused, undone or taken back, oldest first; no reason but the person's own words."""
    failed = [*(run.step for run in state.runs.values() if run.has_failed), *_steps(state.failed)]
    words = {turn.message.call: turn.message.text for turn in talk.turns if turn.message is not None}
    undone = (step for turn in talk.turns for step in turn.steps)
    found = [
        *(
            ("failed", one.at, ": ".join([f"{lines.command(one.object)} {lines.outcome(one)}", *one.lines[:1]]))
            for one in failed
        ),
        *(("refused", one.at, _refused(one, words.get(one.id, ""))) for one in _steps(state.refused)),
        *(
            ("undone", one.at, lines.command(one.object))
            for one in undone
            if any(fact.kind in ("undone", "stashed") for fact in one.git)
        ),
        *(("taken back by rewinding", one.at, quoting.quoted(one.text, _LINE)) for one, _ in talk.taken_back),
    ]
    found.sort(key=lambda one: one[1])
    return [f"{what}{f' ({quoting.clock(at)})' if at else ''}: {said}" for what, at, said in found]


def _refused(step: Step, why: str) -> str:
    return lines.call(step) + (f": {quoting.quoted(why, _LINE)}" if why else "")


def _steps(known: Mapping[str, tuple[Step, int]]) -> list[Step]:
    return [step for step, _ in known.values()]
