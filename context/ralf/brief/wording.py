"""What a context holds, and what changed in it, said in lines for a reader."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ralf.format import merge
from ralf.format.codec import Tree, shared, to_tree
from ralf.format.merge import find
from ralf.model import BODY, FEW_ENTRIES, ActiveWork, Body, Checkpoint, Decision, Facts, RouteContext
from ralf.text.cleaning import clean, one_line, prose, trimmed
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.model import CommandFact, ErrorFact, RequestFact


# ---- single items ----

_LINE_BREAK = regex(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

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


# ---- content that came with a repository ----

LABEL = "Came with the repository; not written by your ralf"

ORIGIN = "import"

MOST_LINES, _LONGEST = 300, 600

_RULE = "rule"

_WHERE_IT_STANDS = (
    "current_task", "current_phase", "work_status", "plan_step", "total_steps", "completed_steps", "open_files"
)  # fmt: skip
"""The fields of work that are no instruction."""

_SAYS_WHOSE = regex(r"\((user|agent|human-edit)\)", re.I)

SECTIONS = {
    "goal": ("goal",),
    "work": ("task", "next step", "to-do", "blocked", "done", "found", "said", "seen", "asked", "run", "open file"),
    "decisions": ("decision", _RULE, "failed approach"),
    "facts": ("file", "name", "command", "error", "commit", "test"),
    "history": ("history", "text"),
}
"""Of each section of a context's text, what the lines are called that belong to it."""


def told(context: RouteContext) -> tuple[str, ...]:
    """All that a context holds, a line each, what would matter most first; at most `MOST_LINES`, and then how many
    more there are.
    """
    return bounded(_lines(context))


def bounded(found: Iterable[str]) -> tuple[str, ...]:
    """Lines, each once, cut where they are long, and no more of them than anybody reads.

    What they say of whose words they are stands in other brackets: it is no origin such as ralf writes.
    """
    made = list(dict.fromkeys(trimmed(_SAYS_WHOSE.sub(r"[\1]", one_line(clean(line))), _LONGEST) for line in found))
    more = len(made) - MOST_LINES
    return (*made[:MOST_LINES], f"text: {more:,} more lines") if more > 0 else tuple(made)


def apart(context: RouteContext) -> RouteContext:
    """A context of which nothing is this user's, as it may be served: see `RouteContext.wholly_foreign`."""
    decisions, work = context.decisions, context.active_work
    moved = RouteContext(
        goal=context.goal,
        active_work=replace(work, **{name: getattr(ActiveWork(), name) for name in _WHERE_IT_STANDS}),
        decisions=tuple(item for item in decisions if _is_rule(item)),
        facts=replace(RouteContext().facts, requests=context.facts.requests),
        body=replace(context.body, sections=()),
    )
    return replace(
        context,
        goal="",
        goal_origin="",
        active_work=ActiveWork(**{name: getattr(work, name) for name in _WHERE_IT_STANDS}, origin=ORIGIN),
        decisions=tuple(
            replace(item, kind="decision", pinned=False, origin=ORIGIN) for item in decisions if not _is_rule(item)
        ),
        facts=replace(context.facts, requests=()),
        unresolved=(),
        body=Body(sections=context.body.sections),
        extra={},
        foreign=True,
        foreign_notes=told(moved),
        wholly_foreign=True,
    )


def _is_rule(item: Decision) -> bool:
    return item.kind == _RULE or item.pinned


def _lines(context: RouteContext) -> Iterator[str]:
    if context.goal:
        yield f"goal: {context.goal}"
    yield from _work(context.active_work)
    for item in reversed(context.decisions):
        kind = _RULE if _is_rule(item) else item.kind.replace("-", " ")
        kind = kind if kind in SECTIONS["decisions"] else "decision"
        yield f"{kind} {decision(replace(item, origin='')).removeprefix('- ')}"
    for fact in reversed(context.facts.requests):
        yield f"asked: {fact.request}"
    yield from _history(context.body)
    yield from _facts(context)


def _work(work: ActiveWork) -> Iterator[str]:
    words = [work.current_task, work.task_title, work.current_phase, work.work_status, work.outcome]
    words += [f"step {work.plan_step}"] if work.plan_step is not None else []
    if any(words):
        yield f"task: {', '.join(filter(None, words))}"
    yield from (f"next step: {step}" for step in work.next_steps)
    yield from (f"to-do: [{todo.status}] {todo.content}" for todo in work.todos)
    yield from (f"blocked: {text}" for text in work.blockers)
    yield from (f"found: {text}" for text in work.findings)
    yield from (f"asked: {text}" for text in filter(None, [work.last_request]))
    yield from (f"said: {text}" for text in filter(None, [work.last_statement]))
    yield from (f"seen: {text}" for text in filter(None, [work.last_output]))
    yield from (f"done: {step.description}: {step.result}" for step in work.completed_steps)
    yield from (f"run: {run.run} {run.outcome} {run.said}" for run in work.last_runs)
    yield from (f"open file: {file.path}" for file in work.open_files)


def _history(body: Body) -> Iterator[str]:
    for section in body.sections:
        number = f"checkpoint {section.number}: " if section.number is not None else ""
        yield f"history: {number}{section.title}"
        yield from (f"history: {line}" for line in section.text.split("\n") if line.strip())
    for text in (body.before, body.preface, body.after, body.below):
        yield from (f"text: {line}" for line in text.split("\n") if line.strip())
    yield from (f"text: {comment.text}" for comment in body.comments)


def _facts(context: RouteContext) -> Iterator[str]:
    facts = context.facts
    yield from (f"file: {', '.join(fact.did)}: {fact.path}" for fact in reversed(facts.paths))
    yield from (f"command: {command(fact).removeprefix('- ')}" for fact in reversed(facts.commands))
    yield from (f"error: {error(fact).removeprefix('- error: ')}" for fact in reversed(facts.errors))
    yield from (f"commit: {fact.commit} {fact.message}" for fact in reversed(facts.commits))
    yield from (f"test: {fact.result} (from: {fact.command})" for fact in reversed(facts.tests))
    yield from (f"name: {name}" for name in reversed(facts.names))


# ---- changes between two contexts ----

SUBJECTS = ("goal", "decisions", "work", "checkpoints", "facts", "notes", "unresolved", "other")
"""What is told of, in this order."""

_LONGEST_VALUE = 300  # characters of one value that are told; the changes as data have it whole

_SHORT = 120  # of one of two values between which a field changed

_MOST = 1_500  # of a text

_DIGITS = 10  # of a checkpoint's number

_NAMED = 6  # facts of a kind that are named, the others are counted

_LINKS = ("status", "supersedes", "superseded_by", "source", "further_sources", "timestamp")

_PLACES = {
    "before": "text above the history",
    "preface": "text below the heading of the history",
    "after": "text below the history",
    "below": "text below the footer",
    "crlf": "line ends",
    "bom": "byte order mark",
    "comments": "comments of the front matter",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that changed.

    subject  one of `SUBJECTS`
    what     added, changed, gone; of decisions also superseded, reversed, dropped, active again
    id       DEC-003, cp-002, the name of a field, a kind of facts
    text     in words, on one line
    """

    subject: str
    what: str
    id: str
    text: str


def in_words(before: RouteContext, after: RouteContext) -> tuple[Told, ...]:
    """What changed, subject by subject; what the cap has moved out of the file has not changed."""
    parts: Iterable[Iterator[Told]] = (
        _goal(before, after),
        _decisions(before.decisions, after.decisions),
        _changes_of_work(before.active_work, after.active_work),
        _checkpoints(before, after),
        _changes_of_facts(before, after),
        _notes(before, after),
        _unresolved(before, after),
        _other(before, after),
    )
    return tuple(
        replace(told, id=value(told.id), text=trimmed(one_line(told.text), _MOST)) for part in parts for told in part
    )


def place(at: Sequence[str]) -> str:
    """The place of a change in words: `DEC-003 rationale`, `checkpoint 2`, `next steps`."""
    first, *rest = at or ("",)
    if first == "decisions" and rest:
        return " ".join([rest[0], *map(_plain, rest[1:])])
    if first == BODY and len(rest) > 1 and rest[0] == "sections":
        name = rest[1]
        section = f"section {name.removeprefix('### ')}" if name.startswith("#") else f"checkpoint {name}"
        return " ".join([section, *map(_plain, rest[2:])])
    if first == BODY:
        return _PLACES.get(rest[0], rest[0]) if rest else "the text"
    if first in ("active_work", "facts", "checkpoint_history") and rest:
        return " ".join([_plain(rest[0]), *rest[1:]])
    return " ".join([_plain(first), *rest])


def value(found: Any, most: int = _LONGEST_VALUE) -> str:
    """A value of a tree on one line, long ones cut."""
    if found is None or found == [] or found == "":
        return "nothing"
    if isinstance(found, list) and not any(isinstance(item, (dict, list)) for item in found):
        found = "; ".join(map(str, found))
    return trimmed(one_line(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)), most)


# ---- subjects ----


def _goal(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    if before.goal != after.goal:
        yield Told("goal", _kind(before.goal, after.goal), "goal", _from_to(before.goal, after.goal))


def _decisions(before: Sequence[Decision], after: Sequence[Decision]) -> Iterator[Told]:
    was, now = _numbered(before), _numbered(after)
    for key, item in now.items():
        if key not in was:
            yield Told("decisions", "added" if item.status == "active" else item.status, item.id, _claim(item))
        elif item != was[key]:
            yield from _decision(was[key], item)
    for key, item in was.items():
        if key not in now:
            yield Told("decisions", "gone", item.id, value(item.decision))


def _numbered(decisions: Sequence[Decision]) -> dict[tuple[str, int], Decision]:
    """Decisions by their id, and which of those that have it: whoever edits the file may copy one."""
    counts: Counter[str] = Counter()
    found = {}
    for item in decisions:
        found[item.id, counts[item.id]] = item
        counts[item.id] += 1
    return found


def _decision(before: Decision, after: Decision) -> Iterator[Told]:
    if before.status != after.status:
        by = f" by {value(after.superseded_by)}" if after.superseded_by else ""
        what = "active again" if after.status == "active" else after.status
        yield Told("decisions", what, after.id, f"{value(after.decision)}{by and f' ({value(after.status)}{by})'}")
    elif before.superseded_by != after.superseded_by:
        yield Told("decisions", "changed", after.id, f"superseded by {value(after.superseded_by)}")
    one, other = to_tree(before), to_tree(after)
    for key in sorted(one.keys() | other.keys(), key=[*other, *one].index):
        if key not in _LINKS and one.get(key) != other.get(key):
            yield Told("decisions", "changed", after.id, f"{_plain(key)}: {_from_to(one.get(key), other.get(key))}")


def _claim(item: Decision) -> str:
    rejected = f"Rejected: {value(list(item.alternatives))}" if item.alternatives else ""
    reason = f"Because: {value(item.rationale)}" if item.rationale else ""
    instead = f"Replaces {value(item.supersedes)}" if item.supersedes else ""
    parts = filter(None, [value(item.decision), reason, rejected, instead])
    return " ".join(part if part.endswith((".", "!", "?", "…")) else f"{part}." for part in parts)


def _changes_of_work(before: ActiveWork, after: ActiveWork) -> Iterator[Told]:
    one, other = to_tree(before), to_tree(after)
    keys = [field.name for field in fields(ActiveWork) if field.name != "extra"]
    for key in [*keys, *sorted((one.keys() | other.keys()) - set(keys))]:
        was, now = one.get(key), other.get(key)
        if was == now:
            continue
        if isinstance(was or [], list) and isinstance(now or [], list):
            listed_before, listed = _listed_values(was or []), _listed_values(now or [])
            news = [text for text in listed if text not in listed_before]
            gone = [text for text in listed_before if text not in listed]
            yield from (Told("work", "added", key, f"{_plain(key)}: {text}") for text in news)
            yield from (Told("work", "gone", key, f"{_plain(key)}: {text}") for text in gone)
            if not news and not gone:
                yield Told("work", "changed", key, f"{_plain(key)}: in another order")
        else:
            yield Told("work", _kind(was, now), key, f"{_plain(key)}: {_from_to(was, now)}")


def _listed_values(items: list[Any]) -> list[str]:
    """To-dos, steps and files as a person reads them."""
    said = []
    for item in items:
        if isinstance(item, dict):
            status = f" [{item['status']}]" if "status" in item else ""
            what = item.get("content") or item.get("description") or item.get("path") or value(item)
            result = f" → {item['result']}" if item.get("result") else ""
            item = f"{what}{status}{result}"
        said.append(value(item))
    return said


def _checkpoints(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was = {entry.checkpoint_id: entry for entry in before.checkpoint_history}
    now = {entry.checkpoint_id: entry for entry in after.checkpoint_history}
    for name, entry in now.items():
        if name not in was and not _older(name, was):
            yield Told("checkpoints", "added", name, _title(entry))
        elif name in was and was[name].summarizer != entry.summarizer:
            yield Told("checkpoints", "changed", name, f"improved by {value(entry.summarizer)}: {_title(entry)}")
    for name, entry in was.items():
        if name not in now and not _older(name, now):
            yield Told("checkpoints", "gone", name, _title(entry))
    texts = [{_section_id(s.number, s.title): s for s in context.body.sections} for context in (before, after)]
    for name in texts[0].keys() & texts[1].keys():
        if texts[0][name] != texts[1][name] and was.get(name) == now.get(name):
            yield Told("checkpoints", "changed", name, f"section: {value(texts[1][name].title)}")
    for what, here, there in (("added", texts[1], texts[0]), ("gone", texts[0], texts[1])):
        for name, section in here.items():
            if name.startswith("#") and name not in there:
                yield Told("checkpoints", what, name, value(section.text))


def _older(name: str, others: Collection[str]) -> bool:
    """Whether a checkpoint is older than all others: then the cap has moved it out of the file, no more."""
    return len(others) >= FEW_ENTRIES and all(checkpoint_number(name) < checkpoint_number(other) for other in others)


def checkpoint_number(name: str) -> int:
    """The number in a checkpoint's name, `cp-012`; 0 for another name."""
    digits = name.removeprefix("cp-")
    return int(digits) if digits.isdecimal() and len(digits) < _DIGITS else 0


def _section_id(number: int | None, title: str) -> str:
    return f"cp-{number:03d}" if number is not None else f"### {title}"


def _title(entry: Checkpoint) -> str:
    return value(entry.summary_ref.partition(": ")[2] or entry.summary_ref.lstrip("# "))


def _changes_of_facts(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    for field in fields(Facts):
        if field.name == "extra":
            continue
        was = _known(getattr(before.facts, field.name))
        now = _known(getattr(after.facts, field.name))
        news = [name for name in now if name not in was]
        gone = [name for name in was if name not in now]
        other = [name for name in now if name in was and now[name] != was[name]]
        for what, names in (("added", news), ("changed", other), ("gone", gone)):
            if what == "gone" and after.folded.fact_count > before.folded.fact_count:
                continue
            if names:
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                shown = ", ".join(trimmed(one_line(name), 80) for name in names[-_NAMED:])
                noun = field.name if len(names) > 1 else field.name[:-1]
                yield Told("facts", what, field.name, f"{len(names)} {noun}: {shown}{more}")


def _known(facts: Sequence[Any]) -> dict[str, str]:
    """The facts of a kind by what they are of, with what is said of them."""
    found = {}
    for fact in facts:
        tree = {"name": fact} if isinstance(fact, str) else to_tree(replace(fact, last=""))
        name = str(next(iter(tree.values()), ""))
        said = {key: inner for key, inner in tree.items() if key not in ("runs", "failures")}
        found[name] = json.dumps(said, sort_keys=True)
    return found


def _notes(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    for key, name in _PLACES.items():
        was, now = getattr(before.body, key, None), getattr(after.body, key, None)
        if was != now:
            text = f"{name}: {value(now)}" if isinstance(now, str) else name
            yield Told("notes", _kind(was, now), name, text)


def _unresolved(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    was, now = before.unresolved, after.unresolved
    for what, here, there in (("added", now, was), ("gone", was, now)):
        yield from (
            Told("unresolved", what, place(e.at), f"also: {value(list(e.also))}") for e in here if e not in there
        )


def _other(before: RouteContext, after: RouteContext) -> Iterator[Told]:
    for key in dict.fromkeys([*before.extra, *after.extra]):
        was, now = before.extra.get(key), after.extra.get(key)
        if was != now or (key in before.extra) != (key in after.extra):
            yield Told("other", _kind(was, now), key, f"{key}: {_from_to(was, now)}")


def _kind(was: Any, now: Any) -> str:
    return "added" if not was else "gone" if not now else "changed"


def _from_to(was: Any, now: Any) -> str:
    return f"{value(was, _SHORT)} → {value(now, _SHORT)}" if was else value(now)


def _plain(key: str) -> str:
    return key.replace("_", " ")


# ---- unresolved edits: the person's value stands, the other is kept beside it ----

KEY = "unresolved"

_NOBODY_S = frozenset({"context_checkpoint", "facts", "checkpoint_history", "folded", "dropped", "forgotten", KEY})
"""What is counted and extracted, not said: there the person's value stands, and that is all."""

_CLAIM = ("decision", "rationale", "alternatives", "status")

_DEEPEST = 3  # levels of a value that fit into the front matter below its entry; a deeper one stands as JSON


def of_edit(base: Tree, newest: Tree, changes: Sequence[merge.Change]) -> list[merge.Change]:
    """The entries that an edit adds: for each field that `newest` has changed, too, since `base`."""
    known = [(tuple(entry.get("at", ())), entry.get("also", [])) for entry in newest.get(KEY, ())]

    def before(at: tuple[str, ...]) -> list[Any]:
        return [one for place, also in known if place[: len(at)] == at for one in also]

    return [
        {"at": [KEY, "/".join(at)], "value": {"at": list(at), "also": [*before(at), _flat(other)]}}
        for at, other in merge.conflicts(base, newest, changes)
        if at[0] not in _NOBODY_S and not _only_said_again(base, newest, at)
    ]


def settled(before: RouteContext, after: RouteContext) -> RouteContext:
    """`after`, the route one record later, without the entries whose field has got another value by it."""
    if not before.unresolved:
        return after
    was, now = shared(before), shared(after)
    left = tuple(
        entry
        for entry in after.unresolved
        if entry not in before.unresolved or find(was, entry.at) == find(now, entry.at)
    )
    return replace(after, unresolved=left)


def told_unresolved(context: RouteContext) -> Iterator[str]:
    """Each entry on one line: the place, what stands there, and what was said, too."""
    tree = to_tree(context) if context.unresolved else {}
    for entry in context.unresolved:
        yield f"{place(entry.at)}: {value(find(tree, entry.at))}; also said: {said(entry.also)}"


def said(values: Sequence[Any]) -> str:
    """The values that do not stand, on one line."""
    return "; or: ".join(map(value, values))


def places(changes: Sequence[merge.Change]) -> list[str]:
    """The fields for which the changes of an edit add an entry, in words."""
    return [
        place(change["value"]["at"])
        for change in changes
        if len(change["at"]) > 1 and change["at"][0] == KEY and isinstance(change.get("value"), dict)
    ]


def _flat(other: Any) -> Any:
    """A value as the front matter can hold it."""
    return other if _depth(other) <= _DEEPEST else json.dumps(other, ensure_ascii=False)


def _only_said_again(base: Tree, newest: Tree, at: Sequence[str]) -> bool:
    """Whether a decision says what it said: only where it was found has become more."""
    if at[0] != "decisions":
        return False
    was, now = find(base, at[:2]), find(newest, at[:2])
    if not isinstance(was, dict) or not isinstance(now, dict):  # gone, or the list as a whole
        return False
    return all(was.get(key) == now.get(key) for key in _CLAIM)


def _depth(found: Any) -> int:
    if isinstance(found, dict):
        found = list(found.values())
    return 1 + max(map(_depth, found), default=0) if isinstance(found, list) else 0
