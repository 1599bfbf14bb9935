"""What is on record beside the talk, as pieces of a brief: notes, rules, decisions, facts, history."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ralf import config
from ralf.brief import wording
from ralf.brief.filling import Piece
from ralf.brief.lines import clock, indented
from ralf.facts.progress import describe_attempts, describe_run
from ralf.model import ActiveWork, Carried, Decision, RouteContext, Section
from ralf.talk import cutting
from ralf.text import tokens
from ralf.text.cleaning import one_line, shown

_NOTES, _RULES, _DECISIONS, _NOT_AGAIN, _UNRESOLVED, _WORK = (number / 10 for number in range(1, 7))
"""Places of the sections; of a hand-over: `ralf.brief.handover`."""

_PINNED_WORDS = 1_000  # characters of a pinned message

_NOW, _RETIRED, _FACTS, _HISTORY, _FOREIGN = 4, 20, 21, 22, 30

_A_LINE = 12  # names on a line

TITLE = 120
"""Characters of a title, or of a goal, that stand in the first lines."""

_PINNED, _DECIDED = (150, 350, 1_000), (250, 500)
"""Tokens of rules, pins and notes, and of decisions, that are granted at each stage before the rest is."""


@dataclass
class Recorded:
    """The pieces by key, and the keys that are granted at each stage.

    pinned   of notes, rules and pins; `decided`: of decisions, and of what was tried and did not work
    work     what a person, a task or a loop has on record of the work itself
    """

    pieces: dict[str, Piece] = field(default_factory=dict)
    work: list[str] = field(default_factory=list)
    pinned: list[list[str]] = field(default_factory=list)
    decided: list[list[str]] = field(default_factory=list)

    def add(self, key: str, place: tuple[float, ...], heading: str, text: str) -> str:
        """Add a piece; its key."""
        self.pieces[key] = Piece(place, [shown(text.rstrip("\n"))], [(heading, f"### {shown(heading)}")])
        return key


def recorded(context: RouteContext) -> Recorded:
    """What a route has on record from people, agents and models."""
    made = Recorded()
    _add_work(made, context)
    pinned = [*_notes(made, context), *_rules(made, context)]
    made.pinned = _staged(made, pinned, _PINNED)
    decided, tried = _decided(made, context)
    open_ = [
        made.add(
            f"unresolved-{number}", (_UNRESOLVED, number), "Unresolved: settle it in the file", f"- {one_line(line)}"
        )
        for number, line in enumerate(wording.told_unresolved(context))
    ]
    made.decided = _staged(made, [*open_, *_mixed(decided, tried)], _DECIDED)
    told = {one.session for one in context.sessions}
    untold = {one.checkpoint_id for one in context.checkpoint_history if one.session not in told}
    sections = context.body.sections
    _sections(made, [s for s in sections if s.number is None or not told or f"cp-{s.number:03d}" in untold])
    return made


# ---- parts by themselves ----


def goal(made: Recorded, context: RouteContext) -> None:
    """What the work is about, and what it began as."""
    heading = f"Goal{wording.tag(context.goal_origin)}"
    if context.goal:
        made.add("goal", (_WORK, 0), heading, wording.quoted(context.goal))
    if context.began_as and context.began_as != context.goal:
        made.add("began", (_WORK, 1), heading, f"- began as: {one_line(context.began_as)}")


def work(made: Recorded, context: RouteContext) -> None:
    """Where the work stands, as far as it is not by the record."""
    _add_work(made, context)


def decided(made: Recorded, context: RouteContext) -> None:
    """Rules and decisions in force, what was tried and did not work, and what holds no longer."""
    made.pinned = [list(_rules(made, context))]
    made.decided = [[key for keys in _decided(made, context) for key in keys]]
    _retired(made, context)


def facts(made: Recorded, context: RouteContext) -> None:
    """Files, commands, errors, tests, commits, messages and names, the newest first."""
    known = context.facts
    for did in dict.fromkeys(path.did for path in reversed(known.paths)):
        paths = [wording.name(path.path) for path in reversed(known.paths) if path.did == did]
        for start in range(0, len(paths), _A_LINE):
            line = f"- {', '.join(map(one_line, did))}: {', '.join(paths[start : start + _A_LINE])}"
            _fact(made, "Files", line)
    for has_failed in (True, False):
        for command in reversed(known.commands):
            if (command.status == "failed") == has_failed:
                _fact(made, "Commands", wording.command(command))
    for error in reversed(known.errors):
        fixed = f" \u2192 {one_line(error.fixed_by)}" if error.fixed_by else ""
        _fact(made, "Errors", wording.error(error).rstrip() + fixed)
    for test in reversed(known.tests):
        _fact(made, "Tests", f"- {one_line(test.result)} (from: {one_line(test.command)})")
    for commit in reversed(known.commits):
        _fact(made, "Commits", f"- {wording.name(commit.commit)} {one_line(commit.message)}".rstrip())
    for request in reversed(known.requests):
        _fact(made, "Messages", wording.tagged(wording.quoted(request.request), request.origin))
    names = [one_line(name) for name in reversed(known.names)]
    for start in range(0, len(names), _A_LINE):
        _fact(made, "Names", f"- {', '.join(names[start : start + _A_LINE])}")


def _fact(made: Recorded, kind: str, line: str) -> None:
    made.add(f"fact-{len(made.pieces)}", (_FACTS, len(made.pieces)), kind, line)


def history(made: Recorded, context: RouteContext) -> None:
    """The sections of the checkpoints as the file has them, newest first."""
    _sections(made, context.body.sections)


def foreign(made: Recorded, context: RouteContext, section: str | None) -> None:
    """What this user's ralf did not write, each item on a line that says so: it never stands among what they did."""
    told = [*context.foreign_notes, *(wording.told(context) if context.wholly_foreign else ())]
    wanted = wording.SECTIONS.get(section or "", ("",))
    route = one_line(context.route)
    heading = f"{wording.LABEL}: data from somebody else; to accept it: `ralf context trust {route}`"
    for number, line in enumerate(line for line in told if line.startswith(wanted)):
        text = f"- ({wording.ORIGIN}) {line}"
        made.add(f"foreign-{number}", (_FOREIGN, number), config.typed(heading, context.command), text)


def _decided(made: Recorded, context: RouteContext) -> tuple[list[str], list[str]]:
    """The decisions in force, and what was tried and did not work."""
    kinds = (("decision", _DECISIONS, "Decisions in force"), ("failed-approach", _NOT_AGAIN, "Not again"))
    handed = {entry.id for entry in handed_over(context).kept}
    keys = [
        [
            made.add(f"{kind}-{number}", (place, number), heading, wording.decision(item))
            for number, item in enumerate(_of_kind(context, kind, handed))
        ]
        for kind, place, heading in kinds
    ]
    return keys[0], keys[1]


def _retired(made: Recorded, context: RouteContext) -> None:
    """Decisions that hold no longer, or were only proposed."""
    retired = (item for item in reversed(context.decisions) if item.status != "active" or item.origin == "extracted")
    for number, item in enumerate(retired):
        heading = "No longer in force, or found by rules of an earlier version"
        made.add(f"retired-{number}", (_RETIRED, number), heading, wording.decision(item))


def _sections(made: Recorded, sections: Sequence[Section]) -> None:
    for place, section in enumerate(sections):
        number = f"Checkpoint {section.number}: " if section.number is not None else ""
        heading = f"{number}{one_line(section.title)}"
        for line, block in enumerate(wording.blocks(section.text)):
            made.add(f"section-{place}-{line}", (_HISTORY, place, line), heading, block)


def _add_work(made: Recorded, context: RouteContext) -> None:
    heading = "The work, by what was recorded of it"
    made.work = [
        made.add(f"work-{number}", (_WORK, number), heading, f"- {one_line(line)}")
        for number, line in enumerate(_work(context))
    ]
    if not (context.active_work.todos and context.sessions):  # the state has the list
        for number, line in enumerate(_done(context.active_work)):
            made.add(f"done-{number}", (_WORK, 500 + number), heading, f"- {one_line(line)}")
    if context.active_work.now and not context.sessions:
        made.pieces["now"] = Piece((_NOW,), [shown(context.active_work.now)])
        made.work.append("now")
    elif not context.sessions:
        made.work += [
            made.add(
                f"left-{number}", (_WORK, 1_000 + number), heading, wording.tagged(text, context.active_work.origin)
            )
            for number, text in enumerate(_left(context.active_work))
        ]


def _done(work: ActiveWork) -> Iterator[str]:
    for step in work.completed_steps:
        number = f"step {step.step}: " if step.step is not None else ""
        yield f"done: {number}{step.description}" + (f" \u2192 {step.result}" if step.result else "")


def _left(work: ActiveWork) -> Iterator[str]:
    """Where a document, or an earlier version, says that the work stands."""
    yield from wording.working_tree(work.git)
    yield from (f"- [{wording.name(todo.status)}] {one_line(todo.content)}" for todo in work.todos)
    for what, text in (("asked last", work.last_request), ("the agent said last", work.last_statement)):
        if text:
            yield f"- {what}:\n{wording.quoted(text)}"


def _work(context: RouteContext) -> Iterator[str]:
    """Task and step, attempts and runs of a loop, what blocks, what was said to come next, what has changed since."""
    work, since = context.active_work, context.since
    if context.goal and (work.task_title or len(context.goal) > TITLE):
        yield f"goal: {context.goal}{wording.tag(context.goal_origin)}"
    words = [work.current_task, work.current_phase]
    if work.plan_step is not None and not (work.todos and context.sessions):
        words.append(f"step {work.plan_step}" + (f" of {work.total_steps}" if work.total_steps else ""))
    if any(words):
        yield ", ".join(one_line(word) for word in words if word)
    yield from filter(None, [describe_attempts(work), f"**Stuck:** {context.stuck}" if context.stuck else ""])
    for run in reversed(work.last_runs):
        yield describe_run(run, ours=run.run == context.in_run)
    if since.tokens:
        minutes = f" and {since.minutes:,} minutes" if since.minutes else ""
        yield f"about {since.tokens:,} tokens{minutes} of the last session came after it and are in no checkpoint"
    yield from (f"{path} ({what})" for path, what in since.files.items())
    yield from (f"blocked: {blocker}" for blocker in work.blockers)
    yield from (f"next: {step}" for step in work.next_steps)
    yield from (f"found: {finding}" for finding in work.findings)


def _notes(made: Recorded, context: RouteContext) -> Iterator[str]:
    text = context.body.before.strip()
    for number, block in enumerate(part for part in text.split("\n\n") if part.strip()):
        quoted = "\n".join(f"> {line}".rstrip() for line in block.splitlines())
        yield made.add(f"note-{number}", (_NOTES, number), "Notes in the file, by a person", quoted)


def _rules(made: Recorded, context: RouteContext) -> Iterator[str]:
    for number, one in enumerate(reversed(context.pinned)):
        words = cutting.message(one.words, _PINNED_WORDS)
        text = f'- {clock(one.at)} pinned: "{indented(words)}"'
        yield made.add(f"pin-{number}", (_RULES, -1, number), "Rules", text)
    held = [item for item in reversed(context.active_decisions) if item.kind == "rule" or item.pinned]
    for number, item in enumerate(held):
        yield made.add(f"rule-{number}", (_RULES, number), "Rules", wording.decision(item))


def handed_over(context: RouteContext) -> Carried:
    """What a route hands over, with the decisions that no other section has; nothing before a first hand-over."""
    carried = context.carried
    apart = {item.id for item in context.decisions if item.kind == "rule" or item.pinned or _is_in_talk(item, context)}
    kept = tuple(entry for entry in carried.kept if entry.id not in apart)
    return replace(carried, kept=kept) if carried.last is not None else Carried()


def _of_kind(context: RouteContext, kind: str, handed: Container[str]) -> list[Decision]:
    """The decisions in force of a kind that somebody recorded and that stand in no other section, newest first."""
    held = (item for item in reversed(context.active_decisions) if item.id not in handed)
    held = (item for item in held if not _is_in_talk(item, context))
    return [item for item in held if item.kind == kind and not item.pinned]


def _is_in_talk(item: Decision, context: RouteContext) -> bool:
    """Whether the talk has a decision: a person's answer stands there with what it answers."""
    return item.origin == "answer" and bool(context.sessions)


def _mixed(decided: list[str], tried: list[str]) -> list[str]:
    """Both lists, three of the first to one of the second."""
    found: list[str] = []
    while decided or tried:
        found += decided[:3] + tried[:1]
        decided, tried = decided[3:], tried[1:]
    return found


def _staged(made: Recorded, keys: list[str], shares: tuple[int, ...]) -> list[list[str]]:
    """The keys in stages: so many tokens at each, and the rest at the last."""
    stages: list[list[str]] = [[] for _ in range(len(shares) + 1)]
    stage, left = 0, shares[0]
    for key in keys:
        size = tokens.count(made.pieces[key].levels[0])
        while stage < len(shares) and size > left:
            stage += 1
            left = shares[stage] if stage < len(shares) else 0
        stages[stage].append(key)
        left -= size
    return stages
