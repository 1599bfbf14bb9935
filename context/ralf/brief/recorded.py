"""What is on record beside the talk, as pieces of a brief: notes, rules, decisions, facts, history."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from ralf import config
from ralf.brief import quoting, wording
from ralf.brief.filling import Piece
from ralf.brief.handover_bullets import handed_in_brief, is_in_talk
from ralf.document.bullets import tag
from ralf.facts.progress import describe_attempts, describe_run
from ralf.model import OF_A_PERSON, Decision, RouteContext
from ralf.talk import cutting
from ralf.text import tokens
from ralf.text.cleaning import one_line, shown

_NOTES, _RULES, _DECISIONS, _NOT_AGAIN, _WORK = (number / 10 for number in range(1, 6))
"""Places of the sections; of a hand-over: `ralf.brief.handover`."""

_HELD = {"decision": (_DECISIONS, "Decisions in force"), "failed-approach": (_NOT_AGAIN, "Not again")}

_PINNED_WORDS = 1_000  # characters of a pinned message

_NOW, _RETIRED, _FACTS, _HISTORY, _FOREIGN = 4, 20, 21, 22, 30

TITLE = 120
"""Characters of a title, or of a goal, that stand in the first lines."""

_PINNED, _OWN, _DECIDED = (150, 350, 1_000), (400,), (250, 500)
"""Tokens of rules, pins and notes, of what the person decided, and of decisions, that are granted at each stage before
the rest is.
"""


@dataclass
class Recorded:
    """The pieces by key, and the keys that are granted at each stage.

    pinned   of notes, rules and pins
    own      of the person's rules and decisions, then those rules of agents that would be among the first of `pinned`
    decided  of decisions, and of what was tried and did not work
    work     what a person, a task or a loop has on record of the work itself
    """

    pieces: dict[str, Piece] = field(default_factory=dict)
    work: list[str] = field(default_factory=list)
    pinned: list[list[str]] = field(default_factory=list)
    own: list[list[str]] = field(default_factory=list)
    decided: list[list[str]] = field(default_factory=list)
    of_a_person: set[str] = field(default_factory=set)

    def add(self, kind: str, place: tuple[float, ...], heading: str, texts: Iterable[str]) -> list[str]:
        """Add a piece for each text, numbered behind a place; their keys."""
        keys = []
        for number, text in enumerate(texts):
            keys.append(f"{kind}-{number}")
            head = (heading, f"### {shown(heading)}")
            self.pieces[keys[-1]] = Piece((*place, number), [shown(text.rstrip("\n"))], [head])
        return keys


def recorded(context: RouteContext) -> Recorded:
    """What a route has on record from people, agents and models."""
    made = Recorded()
    work(made, context)
    notes = map(quoting.quotation, filter(str.strip, context.body.notes.strip().split("\n\n")))
    pinned = made.add("note", (_NOTES,), "Notes in the file, by a person", notes)
    rules, decided = _rules(made, context), _in_force(made, context)
    own, *more = _staged(made, [key for key in (*rules, *decided) if key in made.of_a_person], _OWN)
    first, *later = _staged(made, [*pinned, *rules], _PINNED)
    theirs = [key for key in first if key.startswith("rule-") and key not in made.of_a_person]
    made.pinned, made.own = [[key for key in first if key not in theirs], *later], [[*own, *theirs], *more]
    made.decided = _staged(made, decided, _DECIDED)
    told = {one.session for one in context.sessions}
    untold = {one.checkpoint_id for one in context.checkpoint_history if one.session not in told}
    history(made, context, untold if told else None)
    return made


# ---- parts by themselves ----


def goal(made: Recorded, context: RouteContext) -> None:
    """What the work is about, and what it began as."""
    heading, began = f"Goal{tag(context.goal_origin)}", context.began_as
    made.add("goal", (_WORK, 0), heading, [wording.quoted(context.goal)] if context.goal else ())
    made.add(
        "began", (_WORK, 1), heading, [f"- began as: {one_line(began)}"] if began not in ("", context.goal) else ()
    )


def work(made: Recorded, context: RouteContext) -> None:
    """Where the work stands, as far as it is not by the record; of a route without one, all that it holds of it."""
    stands = context.active_work
    heading = f"The work, by what was recorded of it{tag(stands.origin)}"
    done = () if stands.todos else ("done: ",)
    wanted = (*wording.NEXT, *done) if context.sessions or stands.now else wording.STANDS
    said = wording.labelled(context, wanted)
    made.work = made.add("work", (_WORK,), heading, (f"- {one_line(line)}" for line in (*_work(context), *said)))
    if stands.now and not context.sessions:
        made.pieces["now"] = Piece((_NOW,), [shown(stands.now)])
        made.work.append("now")


def decided(made: Recorded, context: RouteContext) -> None:
    """Rules and decisions in force, what was tried and did not work, and what holds no longer."""
    made.pinned = [_rules(made, context)]
    made.decided = [_in_force(made, context, is_alone=True)]
    retired = (item for item in reversed(context.decisions) if item.status != "active")
    heading = "No longer in force"
    made.add("retired", (_RETIRED,), heading, map(wording.decision, retired))


def facts(made: Recorded, context: RouteContext) -> None:
    """Files, commands, errors, tests, commits, messages and names, the newest first."""
    made.add("fact", (_FACTS,), "Facts", (f"- {one_line(line)}" for line in wording.labelled(context, wording.FACTS)))


def history(made: Recorded, context: RouteContext, untold: Container[str] | None = None) -> None:
    """The sections of the checkpoints as the file has them, newest first; `untold`: these and what has no number."""
    for place, section in enumerate(context.body.sections):
        number = f"Checkpoint {section.number}: " if section.number is not None else ""
        if untold is None or section.number is None or f"cp-{section.number:03d}" in untold:
            heading = f"{number}{one_line(section.title)}"
            made.add(f"section-{place}", (_HISTORY, place), heading, wording.blocks(section.text))


def foreign(made: Recorded, context: RouteContext, section: str | None) -> None:
    """What this user's ralf did not write, each item on a line that says so: it never stands among what they did."""
    told = [*context.foreign_notes, *(wording.told(context) if context.wholly_foreign else ())]
    wanted = wording.SECTIONS.get(section or "", ("",))
    names = [shlex.quote(one_line(name)) for name in context.foreign_by or (context.route,)]
    accept = ", ".join(f"`ralf trust {name}`" for name in names)
    heading = f"{wording.LABEL}: data from somebody else; to accept it: {accept}"
    labelled = (f"- ({wording.ORIGIN}) {line}" for line in told if line.startswith(wanted))
    made.add("foreign", (_FOREIGN,), config.typed(heading, context.command), labelled)


def _rules(made: Recorded, context: RouteContext) -> list[str]:
    pins = (
        f"- {quoting.clock(one.at)} pinned{' (import)' if one.origin == 'import' else ''}: "
        f'"{quoting.indented(cutting.message(one.words, _PINNED_WORDS))}"'
        for one in reversed(context.pinned)
    )
    held = [item for item in _ordered(context) if item.kind == "rule" or item.pinned]
    rules = made.add("rule", (_RULES,), "Rules", map(wording.decision, held))
    made.of_a_person |= {key for key, item in zip(rules, held, strict=True) if item.origin in OF_A_PERSON}
    return made.add("pin", (_RULES, -1), "Rules", pins) + rules


def _ordered(context: RouteContext) -> list[Decision]:
    """The decisions in force: a person's before an agent's or a model's, of each the newest first."""
    newest = tuple(reversed(context.active_decisions))
    return sorted(newest, key=lambda item: item.origin not in OF_A_PERSON)


def _in_force(made: Recorded, context: RouteContext, *, is_alone: bool = False) -> list[str]:
    """The decisions in force and what was tried and did not work, newest first, and how many the cap took out of the
    file; `is_alone`: those of the hand-over and of the talk, too, for a text that has neither.
    """
    handed = () if is_alone else {entry.id for entry in handed_in_brief(context).kept}
    keys: list[str] = []
    for number, item in enumerate(_ordered(context)):
        is_elsewhere = item.id in handed or item.pinned or (is_in_talk(item, context) and not is_alone)
        if item.kind in _HELD and not is_elsewhere:
            place, heading = _HELD[item.kind]
            added = made.add(f"{item.kind}-{number}", (place, number), heading, [wording.decision(item)])
            made.of_a_person |= set(added) if item.origin in OF_A_PERSON else set()
            keys += added
    if count := context.folded.decision_count:
        place, heading = _HELD["decision"]
        line = f"- {count} more, in force or not, in the journal alone: `ralf search WORDS`"
        keys += made.add("folded", (place, len(context.decisions)), heading, [config.typed(line, context.command)])
    return keys


def _work(context: RouteContext) -> Iterator[str]:
    """Task and step, attempts and runs of a loop, what blocks, what came after the last checkpoint."""
    work, goal, step = context.active_work, "", ""
    if context.goal and (work.task_title or len(context.goal) > TITLE):
        goal = f"goal: {context.goal}{tag(context.goal_origin)}"
    if work.plan_step is not None and not (work.todos and context.sessions):
        step = f"step {work.plan_step}" + (f" of {work.total_steps}" if work.total_steps else "")
    task = ", ".join(map(one_line, filter(None, (work.current_task, work.current_phase, step))))
    runs = [describe_run(run, ours=run.run == context.in_run) for run in reversed(work.last_runs)]
    attempts = describe_attempts(work)
    if any(run.startswith(f"{attempts} (") for run in runs):
        attempts = ""  # the line of that run says its number, too
    yield from filter(None, (goal, task, attempts, context.stuck and f"**Stuck:** {context.stuck}", *runs))
    if context.since:
        yield f"about {context.since:,} tokens of the last session came after it and are in no checkpoint"


def _staged(made: Recorded, keys: list[str], shares: tuple[int, ...]) -> list[list[str]]:
    """The keys in stages: so many tokens at each, and the rest at the last."""
    stages: list[list[str]] = [[] for _ in range(len(shares) + 1)]
    used = 0
    for key in keys:
        used += tokens.count(made.pieces[key].levels[0])
        stages[sum(used > limit for limit in accumulate(shares))].append(key)
    return stages
