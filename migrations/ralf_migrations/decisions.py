"""Reads DECISIONS.md of runs that are over, and decision registries: a project's, and those of single runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from ralf.document import guarded_yaml
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note, session_of
from ralf_integrations.blackbox5.runs import markdown, registry
from ralf_integrations.blackbox5.runs.decisionsmd import decisions_in
from ralf_integrations.blackbox5.runs.folder import task_id, time_of
from ralf_integrations.blackbox5.runs.markdown import plain
from ralf_integrations.blackbox5.runs.registry import Registry
from ralf_integrations.blackbox5.runs.written import WrittenDecision, decision_tree, lines_within
from ralf_migrations import reading
from ralf_migrations.reading import Kind, Part, Reading, Source, Unreadable, accounted, beginning, decision_note, notes
from ralf_migrations.report import Fate, Field

# ---- DECISIONS.md ----


_DECISION_HEADING = regex(r"^#+ .*\bdecisions?\b", re.IGNORECASE | re.MULTILINE)


MARKDOWN = Kind(
    ("decisions.md", "*decisions.md", "decisions-*.md"),
    ".md",
    lambda path: bool(_DECISION_HEADING.search(beginning(path))),
)


def read_markdown(source: Source) -> Reading:
    """What a document of decisions comes to."""
    found = decisions_in(source.text)
    if not found:
        sections = markdown.sections_of(markdown.lines_of(source.text))
        fields = tuple(
            Field(f"{'#' * one.level} {one.heading}", "left", "a skeleton: nothing was decided") for one in sections
        )
        return Reading("nothing", "DECISIONS.md", fields=fields, why="no decisions in it")
    route, rule = _route_of_document(source)
    in_its_run = source.path.name.upper() == "DECISIONS.MD"
    session = session_of(source.path.parent, source.project.root) if in_its_run else source.session()
    when = time_of("\n".join(source.lines[: found[0].first_line]))
    title = f"Decisions of {source.path.parent.name}"
    events = [decision_note(source, one, session, when, title=title) for one in found]
    rest = list(_between(source, found))
    events += [event for event, _ in rest]
    return Reading(
        "imported",
        "DECISIONS.md",
        (Part(route, notes(source, events, what="decisions-md")),),
        rule,
        (*_fields_of_document(found), *(field for _, field in rest)),
        decisions=len(found),
        notes=len(events),
    )


def _route_of_document(source: Source) -> tuple[str, str]:
    route, rule = reading.route_of_run(source.path.parent)
    if rule != reading.BY_TASK:
        head = "\n".join(source.lines[:12])
        if task := reading.task_in(head):
            return reading.route_of_task(task)
    return route, rule


def _fields_of_document(found: Sequence[WrittenDecision]) -> Iterator[Field]:
    told = {
        "title or choice": ("decision.decision", len(found)),
        "label": ("decision.label", sum(bool(one.label) for one in found)),
        "rationale": ("decision.rationale", sum(bool(one.rationale) for one in found)),
        "alternatives": ("decision.alternatives", sum(len(one.alternatives) for one in found)),
        "status": ("decision.status", sum(bool(one.status) for one in found)),
        "timestamp": ("decision.timestamp", sum(bool(one.timestamp) for one in found)),
    }
    for name, (where, count) in told.items():
        if count:
            yield Field(name, "carried", where, count)
    for name, count in Counter(name for one in found for name in one.fields).items():
        carried = name in ("context", "reversibility", "consequences")
        yield Field(name, "carried" if carried else "evidence", f"decision.{name}" if carried else "its words", count)


def _between(source: Source, found: Sequence[WrittenDecision]) -> Iterator[tuple[Event, Field]]:
    """What stands between the decisions, in its words, by the heading above it."""
    within = lines_within(found)
    lines = markdown.lines_of(source.text)
    heading, first, kept = "above the first heading", 1, list[str]()
    for line in [*lines, markdown.Line(len(lines) + 1, "", level=1, heading="")]:
        inside = line.number in within
        if line.level or inside:
            if text := "\n".join(kept).strip("\n -"):
                event = note(f"{heading}\n\n{text}", path=source.name, line=first, aside=True)
                yield event, Field(heading, "evidence", "its words")
            kept = []
        if line.level and not inside:
            heading, first = f"{'#' * line.level} {line.heading}", line.number
        elif not inside and not line.rule:
            kept.append(line.text)


# ---- decision registries ----


_DECISIONS_KEY = regex(r"^decisions:", re.MULTILINE)

_NUMBERED = regex(r"Decision\s+\S+?\s*[:—\u2013-]\s*(?P<title>.+)$", re.IGNORECASE)

_DEEPEST = 40  # folders of a path

_CUT = 297  # characters from which a project's registry has cut a reason

_OF_AN_ENTRY = {
    "id": ("carried", "decision.label"),
    "timestamp": ("carried", "decision.timestamp"),
    "title": ("carried", "decision.decision"),
    "decision": ("carried", "decision.decision"),
    "status": ("carried", "decision.status"),
    "rationale": ("carried", "decision.rationale"),
    "alternatives": ("carried", "decision.alternatives"),
    "selected_option": ("carried", "decision.decision: the option's description"),
    "options_considered": ("carried", "decision.decision, decision.alternatives; pros: evidence"),
    "context": ("carried", "decision.context"),
    "reversibility": ("carried", "decision.reversibility"),
    "consequences": ("carried", "decision.consequences"),
}

_OF_ITS_PLACE = {
    "source_run": ("carried", "the route; evidence"),
    "source_file": ("evidence", "the entry's words; followed for the decision's text"),
}


REGISTRY = Kind(
    ("decision_registry.yaml", "decision_registry.yml", "*decision_registry*.yaml"),
    ".yaml",
    lambda path: bool(_DECISIONS_KEY.search(beginning(path, 65_536))),
)


def read_registry(source: Source) -> Reading:
    """What a registry comes to: one transcript for each route that its decisions are of."""
    try:
        found = registry.read(source.text)
    except guarded_yaml.BadYaml as error:
        if error.what == registry.NO_LIST:
            return Reading("left", "unknown", why="no list of decisions in it")
        raise Unreadable(f"line {error.line}: no YAML that is taken: {error.what}") from None
    of_project = any("source_file" in one.fields or "source_run" in one.fields for one in found.decisions)
    shape = "project registry" if of_project else "run registry"
    trouble = "; ".join(f"line {first}: no YAML that is taken: {what}" for first, _, what in found.broken[:3])
    if not (found.decisions or found.undecided):
        fields = (*_header(found), Field("decisions", "carried", "none: nothing was decided"), *_rest(source, found))
        why = trouble or "no decisions in it"
        return Reading("unreadable" if trouble else "nothing", shape, fields=fields, why=why)
    by_route: dict[str, list[Event]] = {}
    rules = set()
    told_again = _told_again(found) if of_project else {}
    again_of: dict[int, list[int]] = {}
    for other, number in told_again.items():
        again_of.setdefault(number, []).append(other)
    named = _Named(source)
    of_run = cache(lambda: _route_of_run(source, found))  # reads its folder
    for number, one in enumerate(found.decisions):
        route, rule = _route_of_entry(named, one) if of_project else of_run()
        rules.add(rule)
        further = [found.decisions[other] for other in again_of.get(number, [])]
        whole = _with_text(named, _with_others(one, further)) if of_project else one
        is_told = number not in told_again
        by_route.setdefault(route, []).append(
            _note(source, one, found.words[number], whole if is_told else None, further)
        )
    unread = [(first, last, source.excerpt(first, last)) for first, last, _ in found.broken]
    for first, _, words in (*found.undecided, *unread):
        route, rule = of_run()
        rules.add(rule)
        by_route.setdefault(route, []).append(note(words, path=source.name, line=first, aside=True))
    parts = [
        Part(route, notes(source, [_head(source, found, events), *events], what="decision-registry"))
        for route, events in sorted(by_route.items())
    ]
    return Reading(
        "unreadable" if trouble else "imported",
        shape,
        tuple(parts),
        ", ".join(sorted(rules)),
        (*_header(found), *_entries(found, len(told_again)), *_rest(source, found)),
        decisions=len(found.decisions),
        notes=sum(map(len, by_route.values())) + len(parts),
        why=f"{trouble}; the rest was taken" if trouble else "",
    )


def _note(
    source: Source, one: WrittenDecision, words: str, whole: WrittenDecision | None, further: Sequence[WrittenDecision]
) -> Event:
    """An entry in its own words, and as a decision; None for one that another entry tells.

    further  the entries that tell it again: they are named
    """
    of_project = "source_file" in one.fields or "source_run" in one.fields
    in_its_run = not of_project and source.path.name.startswith("decision_registry.")
    session = session_of(source.path.parent, source.project.root) if in_its_run else source.session()
    tree = decision_tree(whole or one, session)
    if further:
        tree["further_labels"] = [f"{session}#{other.label}: {plain(other.title)}" for other in further]
    return note(
        _words_of(one) if of_project else words,
        path=source.name,
        line=one.first_line,
        timestamp=tree.get("timestamp", ""),
        file_sha256=source.sha256,
        aside=True,
        **({"decision": tree} if whole is not None else {}),
    )


def _words_of(one: WrittenDecision) -> str:
    """What a project's entry says, without the names of its keys: they are the same in all, and would be found for
    themselves.
    """
    rest = [item for value in one.fields.values() for item in (value if isinstance(value, list) else [value])]
    last = ", ".join(str(item) for item in (one.status, one.timestamp, *rest) if item not in (None, "", {}))
    told = (f"## {one.label}: {one.title}", one.rationale, "\n".join(f"- {text}" for text in one.alternatives), last)
    return "\n\n".join(text for text in told if text)


def _head(source: Source, found: Registry, events: Sequence[Event]) -> Event:
    """What the section says: how many decisions there are, and of which file."""
    count = sum("decision" in event.input for event in events)
    header = ", ".join(f"{key} {value}" for key, value in found.header.items() if isinstance(value, (str, int)))
    text = f"{count:,} decision{'s' * (count != 1)} of {source.name}{f' ({header})' if header else ''}."
    return note(text, path=source.name, line=1, title=f"Decisions of {source.path.name}")


# ---- entries that tell one decision ----


def _told_again(found: Registry) -> dict[int, int]:
    """The entries that tell what another one tells, each with that one: of the same document, one called `Decision 3:
    Title`, the other `Title`, and nothing else of them differs but what one of them does not say.
    """
    by_title: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(found.decisions):
        key = str(one.fields.get("source_file", "") or one.fields.get("source_run", "")), _key(one.title)
        by_title.setdefault(key, []).append(number)
    made = {}
    for numbers in by_title.values():
        bare = [number for number in numbers if not _NUMBERED.match(plain(found.decisions[number].title))]
        numbered = [number for number in numbers if number not in bare]
        if len(bare) == len(numbered) == 1 and _agree(found.decisions[bare[0]], found.decisions[numbered[0]]):
            made[numbered[0]] = bare[0]
    return made


def _agree(one: WrittenDecision, other: WrittenDecision) -> bool:
    """Whether nothing that two entries say is against the other; when they were extracted, on one day, is nothing."""
    return (
        one.text == other.text
        and _is_part(one.rationale, other.rationale)
        and (not one.alternatives or not other.alternatives or one.alternatives == other.alternatives)
        and one.status == other.status
        and one.timestamp[:10] == other.timestamp[:10]
        and all(one.fields.get(name) == other.fields.get(name) for name in ("context", "reversibility", "consequences"))
    )


def _is_part(one: str, other: str) -> bool:
    """Whether two reasons are one, but for what one of them was cut by."""
    shorter, longer = sorted((" ".join(one.split()), " ".join(other.split())), key=len)
    return shorter == longer or not shorter or (len(shorter) >= _CUT // 2 and longer.startswith(shorter))


def _with_others(one: WrittenDecision, others: Sequence[WrittenDecision]) -> WrittenDecision:
    """An entry with what those that tell it again say more."""
    for other in others:
        longer = max(one.rationale, other.rationale, key=len)
        one = replace(one, rationale=longer, alternatives=one.alternatives or other.alternatives)
    return one


# ---- the text of a project's entry ----


class _Named:
    """What the entries of a registry name, looked up once each while that is read.

    path   the file, None where it is gone
    told   the decisions of a document by their titles
    route  the route of a run's folder, and the rule
    """

    def __init__(self, source: Source) -> None:
        self.path = cache(partial(_followed, source.path))
        self.told = cache(_by_title)
        self.route = cache(reading.route_of_run)


def _with_text(named: _Named, one: WrittenDecision) -> WrittenDecision:
    """An entry with the choice that its DECISIONS.md tells, and the whole of a reason that was cut; the entry itself
    where that file is gone, or does not tell it.
    """
    path = named.path(str(one.fields.get("source_file", "")))
    told = named.told(path) if path is not None else {}
    match = told.get(_key(one.title))
    if match is None:
        return one
    cut = len(one.rationale) >= _CUT and match.rationale.startswith(one.rationale.rstrip())
    return replace(
        one,
        text=match.text,
        rationale=match.rationale if cut or not one.rationale else one.rationale,
        alternatives=match.alternatives or one.alternatives,
        fields={**match.fields, **one.fields},
    )


def _followed(registry_path: Path, named: str) -> Path | None:
    """The file that an entry is of: its name begins at a folder somewhere above the registry."""
    if not named or named.startswith("/") or ".." in Path(named).parts:
        return None
    parts = Path(named).parts
    if len(parts) > _DEEPEST:
        return None
    for base in registry_path.absolute().parents:
        for start in range(len(parts) - 1):
            path = base.joinpath(*parts[start:])
            if os.path.isfile(path):  # noqa: PTH113  # False also for a name that no file can have
                return path
    return None


def _by_title(path: Path) -> Mapping[str, WrittenDecision]:
    """The decisions of a document by their titles."""
    from ralf.storage.files import content_of

    try:
        text = content_of(path, most=1 << 20).decode("utf-8", "replace")
    except OSError:
        return {}
    return {_key(one.title): one for one in reversed(decisions_in(text)) if one.title}


def _key(title: str) -> str:
    found = _NUMBERED.match(plain(title))
    return " ".join((found["title"] if found else plain(title)).casefold().split())


# ---- routes ----


def _route_of_entry(named: _Named, one: WrittenDecision) -> tuple[str, str]:
    """The route of a project's entry: by the run that it is of."""
    file, run = (str(one.fields.get(key, "") or "") for key in ("source_file", "source_run"))
    path = named.path(file or run)
    gone = Path("/", *(part for part in Path(run or Path(file).parent).parts if part not in ("/", "..")))
    return named.route(path.parent if path is not None else gone)


def _route_of_run(source: Source, found: Registry) -> tuple[str, str]:
    if task := task_id(found.task):
        return reading.route_of_task(task)
    return reading.route_of_run(source.path.parent)


# ---- the account ----


def _header(found: Registry) -> Iterator[Field]:
    kept = (
        ("evidence", "the line that sums up")
        if found.decisions
        else ("left", "counts of nothing, or a template's marks")
    )
    for field in accounted(found.header, {}, kept):
        if field.name.startswith(("registry.", "metadata.")):
            yield replace(field, fate="left", where="counts: the list itself is counted")
        elif field.name in ("run_id", "task_id") and found.decisions:
            yield replace(field, fate="carried", where="the route, or the session's name")
        else:
            yield field


def _entries(found: Registry, told_again: int) -> Iterator[Field]:
    names = found.names
    fates = {f"decisions[].{key}": _OF_AN_ENTRY[name] for key, name in names.items() if name in _OF_AN_ENTRY}
    fates |= {f"decisions[].{key}": fate for key, fate in _OF_ITS_PLACE.items()}
    yield from accounted({"decisions": list(found.entries)}, fates, ("evidence", "the entry's words"))
    if told_again:
        yield Field("decisions[] that tell another one again", "carried", "that one, with both labels", told_again)


def _rest(source: Source, found: Registry) -> Iterator[Field]:
    """Entries that are no decision, lines that are no YAML, and comments."""
    if found.undecided:
        yield Field("decisions[] of which nothing was chosen", "evidence", "the entry's words", len(found.undecided))
    if empty := len(found.strange) - len(found.undecided):
        yield Field("decisions[]", "left", "says nothing: neither a title nor a choice", empty)
    for first, last, what in found.broken:
        fate: Fate = "evidence" if found.decisions or found.undecided else "left"
        yield Field(f"lines {first} to {last}", fate, f"no YAML that is taken: {what}")
    if count := sum(line.lstrip().startswith("#") for line in source.lines):
        yield Field("# lines of comments", "left", "remarks and examples of the template", count)
