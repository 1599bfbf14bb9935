"""The pieces of which the text of a context is made, in the order of the text, each in its part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from ralf import config
from ralf.brief import exchanges, wording
from ralf.brief.changes import checkpoint_number, told_unresolved
from ralf.brief.parts import (
    ASKED,
    ASKED_WHOLE,
    DECISIONS,
    DONE,
    FAILED_COMMANDS,
    FILES,
    FOREIGN,
    GOAL,
    HANDED,
    HANDOVER,
    HEADER,
    HISTORY,
    NAMED,
    NEWEST,
    NEXT,
    NOT_AGAIN,
    NOW,
    PASSED,
    READ,
    RETIRED,
    RULES,
    SECTIONS_,
    THOUGHT,
    Part,
    Piece,
)
from ralf.facts.errors import looks
from ralf.facts.progress import SUBSTANTIAL, describe_attempts, describe_run
from ralf.text.cleaning import one_line, shown, trimmed
from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.model import Decision, RouteContext


# ---- now ----

_BEFORE = 240  # characters of a request that explains the last one


def _top(context: RouteContext) -> Iterator[Piece]:
    header = context.context_checkpoint
    count = f"{header.checkpoint_count} checkpoint{'s' if header.checkpoint_count != 1 else ''}"
    last = f", last {wording.name(header.last_checkpoint)}" if header.last_checkpoint else ""
    yield Piece(f"# Context of {wording.name(context.route)}\n", "", HEADER)
    yield Piece(f"_Revision {context.revision}, {count}{last}._\n", "", HEADER)
    for warning in context.warnings:
        yield Piece(f"**Warning:** {one_line(warning)}\n", "", HEADER)


def _unresolved(context: RouteContext) -> Iterator[Piece]:
    for number, line in enumerate(told_unresolved(context)):
        yield Piece(f"- {one_line(line)}\n", "Unresolved: said in two ways, settle it in the file", HEADER, number)


def _now(context: RouteContext) -> Iterator[Piece]:
    """Where the work stands: the working tree, the plan, the last words of both sides, and what still runs."""
    work, group = context.active_work, "Now"
    tree = wording.working_tree(work.git, context.facts.tests)
    yield from (Piece(line, group, NOW, -2, noun="fact") for line in tree)
    if made := wording.committed(work.git):
        yield Piece(made, group, NOW, 1, noun="fact")
    words = [work.current_task, work.task_title, work.current_phase, work.work_status]
    line = ", ".join(one_line(word) for word in words if word)
    attempt = one_line(describe_attempts(work))
    if work.plan_step is not None:
        line += f"{', ' if line else ''}step {work.plan_step}" + (f" of {work.total_steps}" if work.total_steps else "")
    if line and line != "in_progress":
        yield _of_work(f"- {line}\n", context, -3)
    if attempt:
        yield _of_work(f"- {attempt}\n", context, -3)
    if context.stuck:
        yield _of_work(f"- **Stuck:** {context.stuck}\n", context, -3)
    for number, run in enumerate(reversed(work.last_runs)):
        line = one_line(describe_run(run, ours=run.run == context.in_run))
        yield _of_work(f"- {line}\n", context, 3 + number if number else -3)
    for number, task in enumerate(work.running[::-1]):
        text = f"- still running when last seen: {one_line(task.task)} ({one_line(task.id)})\n"
        yield _of_work(text, context, number)
    origins = {fact.request: fact.origin for fact in context.facts.requests}
    asked = [request for request in _last_requests(context) if request != context.goal]
    for number, request in reversed([*enumerate(asked)]):
        origin = origins.get(request, work.origin)
        question = exchanges.answering(context, request) if len(request) < SUBSTANTIAL else ""
        request = request if not number else trimmed(request, _BEFORE)
        request = f"{request} (to: {question})" if question else request
        text = f"**Asked {'last' if number == 0 else 'before'}:**\n{wording.quoted(request)}"
        text = wording.tagged(text, origin)
        yield Piece(text, group, NOW, -1 if number == 0 else 2, noun="request", cut="middle", most=0.25)
    if work.last_statement:
        text = f"**The agent said last:**\n{wording.quoted(work.last_statement)}"
        yield replace(_of_work(text, context, 0), cut="middle", most=0.5)
    if work.last_output:
        text = f"**It had just seen, and not yet answered:**\n{wording.quoted(work.last_output)}"
        part = NEWEST if wording.knows_all(context) else NOW  # whoever handed over has said what it came to
        yield replace(_of_work(text, context, 1), cut="middle", most=0.25, part=part)
    yield from _since(context)


def _of_work(text: str, context: RouteContext, order: int) -> Piece:
    return Piece(wording.tagged(text, context.active_work.origin), "Now", NOW, order)


def _since(context: RouteContext) -> Iterator[Piece]:
    since = context.since
    if since.tokens:
        minutes = f" and {since.minutes:,} minutes" if since.minutes else ""
        text = f"- about {since.tokens:,} tokens{minutes} of the last session came after it and are in no checkpoint\n"
        yield Piece(text, "After the last checkpoint", NOW, -3)


def _last_requests(context: RouteContext) -> list[str]:
    """The newest requests, back to the last one that says something by itself."""
    found = []
    for fact in reversed(context.facts.requests):
        found.append(fact.request)
        if len(fact.request) >= SUBSTANTIAL or len(found) == 3:
            break
    return found or [text for text in (context.active_work.last_request,) if text]


# ---- the hand-over, the goal, what is next ----


def _handed_over(context: RouteContext) -> Iterator[Piece]:
    if handover := wording.new_handover(context):
        group = wording.handover_heading(handover, context)
        part = HANDOVER if handover.author == "compaction" else HANDED
        for order, line in enumerate(wording.handover_lines(handover)):
            yield Piece(line, group, part, order, cut="end")


def _old_handover(context: RouteContext) -> Iterator[Piece]:
    """A hand-over after which much was done: how things stood then; its next steps may be done by now."""
    handover = context.handover
    if handover is not None and wording.new_handover(context) is None:
        group = wording.handover_heading(handover, context)
        for order, line in enumerate(wording.handover_lines(handover, is_old=True)):
            yield Piece(line, group, SECTIONS_, order, cut="end")


_IN_HAND = 3  # to-dos that are being worked on, which stand beside the goal


def _goal(context: RouteContext) -> Iterator[Piece]:
    """What the work is about, what of it is in hand, and what it began as."""
    handover = wording.new_handover(context)
    told = handover is not None and handover.goal
    group = f"Goal{wording.tag(context.goal_origin)}"
    if context.goal and not told:
        in_hand = [one_line(todo.content) for todo in context.active_work.todos if todo.status == "in_progress"]
        line = f"- in hand: {'; '.join(in_hand[:_IN_HAND])}\n"
        requests = [fact.request for fact in context.facts.requests]
        is_before = bool(in_hand) and context.goal in requests and context.goal not in _last_requests(context)
        if is_before:  # what is in hand is what the work is about
            yield Piece(line, group, GOAL, 1, noun="fact")
        asked = "- asked for before that:\n" if is_before else ""
        yield Piece(f"{asked}{wording.quoted(context.goal)}", group, GOAL, cut="end")
        if in_hand and not is_before:
            yield Piece(line, group, HISTORY, noun="fact")
    if context.began_as and context.began_as != context.goal:
        text = f"- began as: {one_line(context.began_as)}\n"
        yield Piece(text, group, GOAL, 2, cut="end", short=f"- began as: {trimmed(one_line(context.began_as), 140)}\n")


def _next(context: RouteContext) -> Iterator[Piece]:
    work, group = context.active_work, "Next and open questions"
    todos = [todo for todo in work.todos if todo.status != "completed"]
    listed = {todo.content for todo in todos}
    told = one_line(work.last_statement)
    handover = wording.new_handover(context)
    handed = handover is not None and bool(handover.next)
    for blocker in work.blockers:
        if one_line(blocker) not in told or blocker in work.by_hand:
            yield _tagged(Piece(f"- blocked: {one_line(blocker)}\n", group, NEXT, -1), context)
    for number, todo in enumerate(sorted(todos, key=lambda todo: todo.status != "in_progress")):
        part = NEWEST if handed and todo.status != "in_progress" else NEXT  # the hand-over names those that matter
        text = f"- [{wording.name(todo.status)}] {one_line(todo.content)}\n"
        yield _tagged(Piece(text, group, part, number), context)
    for number, step in enumerate(work.next_steps):
        own = step in work.by_hand
        if step not in listed and (own or not handed) and (own or one_line(step) not in told):
            yield _tagged(Piece(f"- {one_line(step)}\n", group, NEXT, number), context)
    offered = [step for step in work.next_steps if step.startswith(wording.PROPOSED)]
    if not (todos or len(work.next_steps) > len(offered) or work.blockers or handed):
        yield from (Piece(f"- {line}\n", group, NEXT, noun="fact") for line in _left_open(context))


_BEGINS = regex(r"(?:^|[.!?:\n] )((?:Let me|Let's|Now|Next|Then|I'll|I will|I'm going to)\b[^.!?\n]{4,200}[.!?:]?)$")


def _left_open(context: RouteContext) -> Iterator[str]:
    """What is unfinished by the record, where nobody has said what comes next: what the agent had just begun, and what
    is neither tested nor committed.
    """
    work = context.active_work
    begun = _BEGINS.search(one_line(work.last_statement.rpartition("\n\n")[2]))
    if begun:
        yield f"just begun: {begun[1]}"
    if not work.last_request:
        return
    git = work.git
    left = {"test": git.untested if context.facts.tests else (), "commit": git.uncommitted if git.branch else ()}
    if set(left["test"]) == set(left["commit"]):
        left = {"test and to commit": left["commit"]}
    for what, paths in left.items():
        if paths:
            yield f"still to {what}, by the record: {wording.newest_first(paths)}"


def _tagged(piece: Piece, context: RouteContext) -> Piece:
    return replace(piece, text=wording.tagged(piece.text, context.active_work.origin))


# ---- decisions ----

_SHORT = 360  # characters from which a decision has a short form

_REASONED = 12  # of the newest decisions, whose reasons come before the history

_LONGEST_STATEMENT = 1_000  # characters of a decision that is handed over as it stands, without its reasons


def _active(context: RouteContext) -> Iterator[Piece]:
    goal, chosen = one_line(context.goal), wording.chosen_at(context)
    held = [item for item in reversed(context.decisions) if item.status == "active" and item.kind != "failed-approach"]
    if chosen:  # what a hand-over names stands first, in its order
        told = [item for item in reversed(held) if item.source is None and item.timestamp == chosen]
        held = [*told, *(item for item in held if item not in told)]
    active = list(enumerate(held))  # one that is over takes no place among the newest, which keep their reasons
    for number, decision in active:
        if decision.kind == "rule" or decision.pinned:
            yield _piece(decision, "Rules", RULES if decision.pinned else DECISIONS, number)
    for number, decision in active:
        if decision.kind != "rule" and not decision.pinned and not _is_chosen_from(decision, chosen):
            part = READ if _says_goal(decision, goal) else DECISIONS
            yield _piece(decision, "Decisions in force", part, number)
    for number, decision in active:
        if decision.kind != "rule" and not decision.pinned and _is_chosen_from(decision, chosen):
            yield _piece(decision, "Decided before the hand-over, as the transcript says", NEWEST, number)


def _is_chosen_from(item: Decision, chosen: str) -> bool:
    """Whether rules took a decision from the transcript before somebody who knew the work said what of it binds."""
    return bool(chosen) and item.source is not None and item.timestamp <= chosen


def _says_goal(item: Decision, goal: str) -> bool:
    """Whether a decision says no more than the goal does: no reason, and no rule for what comes after it."""
    is_order = item.kind == "decision" and not (item.pinned or item.rationale or item.alternatives)
    return is_order and bool(goal) and one_line(item.decision) in goal


def _retired(context: RouteContext) -> Iterator[Piece]:
    group = "Done, no longer valid, or only proposed"
    for number, decision in enumerate(reversed(context.decisions)):
        if decision.status != "active":
            part = NEWEST if decision.status == "proposed" else RETIRED  # what nobody has decided is still open
            yield Piece(wording.decision(decision), group, part, number, noun="decision")


def _piece(decision: Decision, group: str, part: Part, number: int) -> Piece:
    """A decision; a long one gives way first to its statement alone."""
    text = wording.decision(decision)
    if len(text) <= _SHORT:
        return Piece(text, group, part, number, noun="decision")
    short = wording.statement(decision, _SHORT - 20)
    whole = None if number < _REASONED else READ
    return Piece(text, group, part, number, noun="decision", short=short, whole=whole)


_MOST_ERRORS = 5  # of those that nothing later fixed, the newest

_FEW_ERRORS = 2  # beside which those of commands that only looked, and found nothing, are told


_MISTYPED = AnyOf(
    r"\b(?:unknown|unrecognized|invalid|illegal|no such) (?:option|flag|argument|switch|command|subcommand|shorthand)\b"
    r"|^usage:|\bHTTP 40[0-9]\b|: command not found\b|\bambiguous argument\b",
)
"""Whether an error only says that a command was typed wrong: a successor learns nothing of the work from it."""


_FOUND_NOTHING = AnyOf(r"\b(?:no such file or directory|not found|no matches)\b")
"""Whether the error of a command that only looked says that it found nothing."""


_OTHER_ERRORS = "Other errors"


def _not_again(context: RouteContext) -> Iterator[Piece]:
    group, chosen = "Not again", wording.chosen_at(context)
    for number, decision in enumerate(reversed(context.decisions)):
        if decision.kind == "failed-approach" and decision.status == "active":
            yield _piece(decision, group, NEWEST if _is_chosen_from(decision, chosen) else NOT_AGAIN, number)
    unsolved = [error for error in reversed(context.facts.errors) if not error.fixed_by]
    unsolved = [error for error in unsolved if not _MISTYPED(error.error)]
    working = [error for error in unsolved if " " in error.command and not looks(error.command)][:_MOST_ERRORS]
    looking = [error for error in unsolved if error not in working and not _FOUND_NOTHING(error.error)]
    looking = looking[: max(0, _FEW_ERRORS - len(working))]
    for number, error in enumerate([*working, *looking]):
        yield Piece(wording.error(error), group, NEWEST if chosen else NOT_AGAIN, 100 + number, noun="fact")
    others = (e for e in reversed(context.facts.errors) if not e.fixed_by and e not in working and e not in looking)
    for number, error in enumerate(others):
        yield Piece(wording.error(error), _OTHER_ERRORS, FAILED_COMMANDS, number, noun="fact")


# ---- files, history, ids ----

_PATHS_PER_LINE = 8

_OUTSIDE = ("/", "~", "..", ".git/")


def _files(context: RouteContext) -> Iterator[Piece]:
    """Uncommitted files of which the first lines do not say all, and open ones; then the other files that were changed,
    in lines by what was done.
    """
    did = {path.path: path.did for path in context.facts.paths}
    since = context.since.files
    git = context.active_work.git
    uncommitted = [*reversed(git.uncommitted)] if git.branch or git.commit else []  # else there is no repository
    opened = [file.path for file in reversed(context.active_work.open_files)]
    is_known = bool(uncommitted or git.commits)  # else git has said nothing of what is committed
    others = [path for path in opened if path not in uncommitted and (since.get(path) or not is_known)]
    above = uncommitted[: wording.MOST_NAMED]
    for number, path in enumerate([*uncommitted, *others]):
        state = "uncommitted" if path in uncommitted else "edited last"
        done = [word for word in did.get(path, ()) if word not in ("edited", "read")]
        if path in above and not done and not since.get(path):
            continue
        text = f"- {wording.name(', '.join((state, *done)))}: {wording.name(path)}\n"
        yield Piece(text, "Files", FILES, number, noun="fact", tag=f" ({since[path]})" if since.get(path) else "")
    rest = [
        fact
        for fact in reversed(context.facts.paths)
        if set(fact.did) - {"read"} and fact.path not in (*uncommitted, *others)
    ]
    is_told = is_known and any(wording.covered(context))  # a new hand-over names those that matter
    for is_outside, word in product((False, True), ("created", "edited", "deleted")):
        told = [fact for fact in rest if _main(fact.did) == word and fact.path.startswith(_OUTSIDE) == is_outside]
        paths = [wording.name(fact.path) for fact in told]
        for start in range(0, len(paths), _PATHS_PER_LINE):
            where = " outside the project" if is_outside else ""
            text = f"- {word} before{where}: {', '.join(paths[start : start + _PATHS_PER_LINE])}\n"
            part = NEWEST if is_outside or is_told else FILES
            yield Piece(text, "Files", part, 100 + start + 1_000 * is_outside, noun="fact")


def _main(did: tuple[str, ...]) -> str:
    """What was done to a file, in one word: what it comes to."""
    return next((word for word in ("deleted", "created", "edited") if word in did), "edited")


def _titles(context: RouteContext) -> Iterator[Piece]:
    """One line a checkpoint, and what was found out. What a new hand-over knows of waits for room, unless a model gave
    the checkpoint its title.
    """
    work, covered = context.active_work, dict(wording.covered(context))
    for number, entry in enumerate(reversed(context.checkpoint_history)):
        if entry.summary_ref.endswith(wording.WORDLESS):
            continue
        title = one_line(entry.summary_ref.partition(": ")[2] or entry.summary_ref.lstrip("# "))
        text = f"- {wording.name(entry.checkpoint_id)}: {title}{wording.tag(entry.origin)}\n"
        is_told = covered.get(checkpoint_number(entry.checkpoint_id)) is False
        yield Piece(text, "History", NEWEST if is_told else HISTORY, 2 * number + 1, noun="line")
    for number, step in enumerate(work.completed_steps[::-1]):
        label = f"step {step.step}: " if step.step is not None else ""
        result = f" → {one_line(step.result)}" if step.result else ""
        text = f"- done: {label}{one_line(step.description)}{result}\n"
        yield _tagged(Piece(text, "History", HISTORY, 1_000 + number), context)
    is_state = context.context_checkpoint.agent_type == "orchestrator"  # whose findings tell how its channels stand
    for number, finding in enumerate(reversed(work.findings)):
        part = HISTORY if is_state or finding in work.by_hand else THOUGHT  # it may be refuted by now
        yield _tagged(Piece(f"- found: {one_line(finding)}\n", "History", part, 2 * number), context)


def _ids(context: RouteContext) -> Iterator[Piece]:
    """Commits, each with what it is; those that a session made and did not take back stand in the first lines."""
    told = context.active_work.git.commits
    for number, commit in enumerate(reversed(context.facts.commits)):
        line = f"{wording.name(commit.commit)} {one_line(commit.message)}".strip()
        if line not in told:
            part = PASSED if told or context.body.sections else NAMED  # sections tell which commit was for what
            yield Piece(f"- commit {line}\n", "Exact ids", part, number, noun="fact")


# ---- facts ----

FAILED = "Commands that failed"
"""Their heading."""

_REQUEST = 120  # characters of a request in brief

_NAMES_PER_LINE = 15


def record(context: RouteContext, told: str = "") -> Iterator[Piece]:
    """The facts that no successor reads first; requests that are `told` anyway wait longest."""
    facts = context.facts
    for number, test in enumerate(reversed(facts.tests)):
        yield Piece(f"- {one_line(test.result)} (from: {one_line(test.command)})\n", "Tests", DONE, number, noun="fact")
    for number, error in enumerate(reversed(facts.errors)):
        if error.fixed_by:
            text = f"{wording.error(error).rstrip()} → solved: {one_line(error.fixed_by)}\n"
            yield Piece(text, "Errors that were solved", FAILED_COMMANDS, number, noun="fact")
    for failed in (True, False):
        for number, command in enumerate(reversed(facts.commands)):
            if (command.status == "failed") == failed:
                group = FAILED if failed else "Commands that passed"
                part = FAILED_COMMANDS if failed else PASSED
                yield Piece(wording.command(command), group, part, number, noun="fact")
    read = [wording.name(path.path) for path in reversed(facts.paths) if set(path.did) <= {"read"}]
    for start in range(0, len(read), _PATHS_PER_LINE):
        text = f"- read: {', '.join(read[start : start + _PATHS_PER_LINE])}\n"
        yield Piece(text, "Files that were only read", READ, start, noun="fact")
    yield from _requests(context, told)


def _requests(context: RouteContext, told: str) -> Iterator[Piece]:
    """All requests, a long one first in brief. Those that say little by themselves, or are `told` anyway, wait; where a
    new hand-over tells what became of them, all do.
    """
    is_handed_over = any(wording.covered(context))
    for number, fact in enumerate(reversed(context.facts.requests)):
        line = one_line(fact.request)
        brief = trimmed(line, _REQUEST)
        waits = is_handed_over or len(line) < SUBSTANTIAL or brief.removesuffix("…") in told
        short = wording.tagged(f"> {brief}\n", fact.origin) if brief != line else ""
        text, group = wording.request(fact), "All requests, newest first"
        yield Piece(
            text, group, ASKED_WHOLE if waits else ASKED, number, noun="request", short=short, whole=ASKED_WHOLE
        )


def _names(context: RouteContext) -> Iterator[Piece]:
    """Names that the session used, the likeliest to be needed first: for who looks up facts, in no brief."""
    names = [*reversed(context.facts.names)]
    for start in range(0, len(names), _NAMES_PER_LINE):
        line = ", ".join(map(one_line, names[start : start + _NAMES_PER_LINE]))
        yield Piece(f"- {line}\n", "Names in use", PASSED, start, noun="fact")


# ---- the whole text ----

RESUMED = "resume"
"""The section that hooks hand over, unasked: nothing foreign is ever in it."""


def pieces(context: RouteContext, section: str | None = None) -> Iterator[Piece]:
    """The pieces of a context, or of one of its `SECTIONS`, with nothing unseen in them and no comment opened; what is
    foreign comes last, under a heading and on lines that say so.
    """
    if not context.wholly_foreign:
        yield from map(_shown, SECTIONS[section](context) if section is not None else _all(context))
    elif section in (None, "brief"):
        yield _shown(next(_top(context)))
    if context.foreign and section != RESUMED:
        yield from map(_shown, _foreign(context, section))


def ways(context: RouteContext) -> tuple[Iterator[Piece], Iterator[Piece], Iterator[Piece]]:
    """The pieces of a context as a whole, those of its section `resume`, and those of `facts` and `history`: in one of
    these ways each of its texts is told.
    """
    by_themselves = (*_facts(context), *exchanges.history(context))
    shortens = any(len(wording.decision(item)) > _SHORT for item in context.decisions)  # else it says nothing else
    return map(_shown, _all(context)), map(_shown, resumed(context) if shortens else ()), map(_shown, by_themselves)


def _shown(piece: Piece) -> Piece:
    text, group, short = shown(piece.text), shown(piece.group), shown(piece.short)
    unchanged = text is piece.text and group is piece.group and short is piece.short
    return piece if unchanged else replace(piece, text=text, group=group, short=short)


def _foreign(context: RouteContext, section: str | None) -> Iterator[Piece]:
    """What this user's ralf did not write, each item on a line that says so: it never stands among what they did."""

    told = [*context.foreign_notes, *(wording.told(context) if context.wholly_foreign else ())]
    wanted = wording.SECTIONS.get(section or "", ("",))
    group = f"{wording.LABEL}: data from somebody else; to accept it: `ralf context trust {one_line(context.route)}`"
    for number, line in enumerate(line for line in told if line.startswith(wanted)):
        text = f"- ({wording.ORIGIN}) {line}\n"
        yield Piece(text, config.typed(group, context.command), FOREIGN, number, cut="end")


def _all(context: RouteContext) -> Iterator[Piece]:
    led = [*_led(context), *exchanges.exchanges(context)]
    yield from led
    yield from record(context, "\n".join(piece.short or piece.text for piece in led if piece.part.share))
    yield from _retired(context)


def lead(context: RouteContext) -> Iterator[Piece]:
    """The brief: what a successor reads first, the pieces before the history, nothing of them twice."""
    yield from (piece for piece in _led(context) if piece.part is not READ)


def _led(context: RouteContext) -> Iterator[Piece]:
    now = (_top, _unresolved, _now, _handed_over, _goal, _next)
    for part in (*now, _active, _not_again, _files, _titles, _old_handover, _ids):
        yield from part(context)


def resumed(context: RouteContext) -> Iterator[Piece]:
    """What a session is handed that goes on with the work: the brief, requests and commands that failed, nothing of it
    twice.
    """
    said = {
        text: wording.statement(item, _LONGEST_STATEMENT)
        for item in context.decisions
        if item.status == "active" and len(text := wording.decision(item)) > _SHORT
    }
    failing = {error.command for error in context.facts.errors if error.command and not error.fixed_by}
    twice = {wording.command(fact) for fact in context.facts.commands if fact.command in failing}
    for piece in _all(context):
        is_asked = piece.part in (ASKED, ASKED_WHOLE) and piece.noun == "request"
        if piece.text not in twice and (piece.part <= NAMED or is_asked or piece.group in (FAILED, _OTHER_ERRORS)):
            yield replace(piece, short=said.get(piece.text, piece.short)) if piece.short else piece


def _work(context: RouteContext) -> Iterator[Piece]:
    for part in (_now, _handed_over, _next, _not_again):
        yield from part(context)


def _decided(context: RouteContext) -> Iterator[Piece]:
    yield from _active(context)
    yield from _retired(context)


def _facts(context: RouteContext) -> Iterator[Piece]:
    for part in (_files, _ids, _names, record):
        yield from part(context)


SECTIONS: dict[str, Callable[[RouteContext], Iterator[Piece]]] = {
    "brief": lead,
    RESUMED: resumed,
    "goal": _goal,
    "work": _work,
    "decisions": _decided,
    "facts": _facts,
    "history": exchanges.history,
}
