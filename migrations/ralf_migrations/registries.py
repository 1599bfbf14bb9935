"""Reads decision registries: a project's, whose entries name the run and the file with the text, and a single run's."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from ralf.document import guarded_yaml
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import session_of
from ralf_integrations.blackbox5.runs import registry
from ralf_integrations.blackbox5.runs.decisions import WrittenDecision, decisions_in
from ralf_integrations.blackbox5.runs.folder import task_id, time_of
from ralf_integrations.blackbox5.runs.markdown import plain
from ralf_integrations.blackbox5.runs.registry import Registry
from ralf_migrations.reading import Reading, Source, Unreadable, agent_of_run, opened, route_of, task_of_run

_NUMBERED = regex(r"Decision\s+\S+?\s*[:—\u2013-]\s*(?P<title>.+)$", re.IGNORECASE)
_DEEPEST = 40  # folders of a path


def read(project: Project, path: Path) -> Reading:
    """What a registry comes to: one transcript for each route that its decisions are of."""
    source = opened(project, path)
    try:
        found = registry.read(source.text)
    except guarded_yaml.BadYaml as error:
        if error.what == registry.NO_LIST:
            return Reading("left", why="no list of decisions in it")
        raise Unreadable(f"line {error.line}: no YAML that is taken: {error.what}") from None
    trouble = "; ".join(f"line {first}: no YAML that is taken: {what}" for first, _, what in found.broken[:3])
    if not (found.decisions or found.undecided):
        return Reading("unreadable" if trouble else "nothing", why=trouble or "no decisions in it")
    is_project = any({"source_file", "source_run"} & one.fields.keys() for one in found.decisions)
    by_route = _of_project(source, found) if is_project else defaultdict(list)
    task, folder = task_id(found.task), path.parent
    own = by_route[route_of(task or task_of_run(folder), "" if task else agent_of_run(folder))]
    if not is_project:
        of_run = path.name.startswith("decision_registry.")
        session = session_of(folder, project.root) if of_run else source.session()
        told = zip(found.decisions, found.words, strict=True)
        own += [source.decision(one, session, text=words, aside=True) for one, words in told]
    unread = [(first, last, source.excerpt(first, last)) for first, last, _ in found.broken]
    own += [source.note(words, first, aside=True) for first, _, words in (*found.undecided, *unread)]
    parts = [
        (route, source.notes([_head(source, found, events), *events], "decision-registry"))
        for route, events in sorted(by_route.items())
        if events
    ]
    return Reading("unreadable", parts, f"{trouble}; the rest was taken") if trouble else Reading("imported", parts)


def _head(source: Source, found: Registry, events: Sequence[Event]) -> Event:
    """What the section says: how many decisions there are, and of which file."""
    count = sum("decision" in event.input for event in events)
    header = ", ".join(f"{key} {value}" for key, value in found.header.items() if isinstance(value, (str, int)))
    text = f"{count:,} decision{'s' * (count != 1)} of {source.name}{f' ({header})' if header else ''}."
    return source.note(text, title=f"Decisions of {source.path.name}")


def _of_project(source: Source, found: Registry) -> dict[str, list[Event]]:
    """By the route of its run, each entry as a decision; or in its words alone, where an earlier one has it."""
    path_of, told_in = cache(partial(_followed, source.path)), cache(_by_title)
    route_in = cache(lambda folder: route_of(task_of_run(folder), agent_of_run(folder)))
    made: dict[str, list[Event]] = defaultdict(list)
    again: dict[int, list[WrittenDecision]] = defaultdict(list)
    first: dict[tuple[str, str, str], int] = {}
    for number, one in enumerate(found.decisions):
        earlier = first.setdefault((_file_of(one), _key(one.title), one.status), number)
        if _tells_again(one, found.decisions[earlier]):
            again[earlier].append(one)
    told = {id(one) for those in again.values() for one in those}
    for number, one in enumerate(found.decisions):
        path, run = path_of(_file_of(one)), str(one.fields.get("source_run", "") or "")
        gone = Path(run or Path(_file_of(one)).parent).parts
        route = route_in(path.parent if path else Path("/", *(part for part in gone if part not in ("/", ".."))))
        if id(one) in told:
            fields = {"timestamp": time_of(one.timestamp), "file_sha256": source.sha256, "aside": True}
            made[route].append(source.note(_words_of(one), one.first_line, **fields))
            continue
        labels = [f"{source.session()}#{other.label}: {plain(other.title)}" for other in again[number]]
        match = told_in(path).get(_key(one.title)) if path else None
        whole = _joined(one, again[number], match)
        more = {"further_labels": labels} if labels else {}
        made[route].append(source.decision(whole, source.session(), text=_words_of(one), more=more, aside=True))
    return made


def _file_of(one: WrittenDecision) -> str:
    return str(one.fields.get("source_file", "") or one.fields.get("source_run", "") or "")


def _tells_again(one: WrittenDecision, earlier: WrittenDecision) -> bool:
    """Whether an entry tells what another one of its title tells: one is called `Decision 3: Title`, the other `Title`,
    and one's reason is the beginning of the other's.
    """
    is_numbered, other_is = (_NUMBERED.match(plain(each.title)) is not None for each in (one, earlier))
    shorter, longer = sorted((" ".join(each.rationale.split()) for each in (one, earlier)), key=len)
    return is_numbered != other_is and longer.startswith(shorter)


def _joined(one: WrittenDecision, others: Sequence[WrittenDecision], match: WrittenDecision | None) -> WrittenDecision:
    """An entry with what others say of the same decision, and with its text in the file that it is of."""
    rationale = max((one.rationale, *(other.rationale for other in others)), key=len)
    alternatives = next((each.alternatives for each in (one, *others) if each.alternatives), ())
    if match is None:
        return replace(one, rationale=rationale, alternatives=alternatives)
    return replace(
        one,
        text=match.text,
        rationale=match.rationale if match.rationale.startswith(rationale.rstrip()) else rationale,
        alternatives=match.alternatives or alternatives,
        fields={**match.fields, **one.fields},
    )


def _words_of(one: WrittenDecision) -> str:
    """What an entry says, without the names of its keys: they are the same in all, and would be found themselves."""
    rest = [item for value in one.fields.values() for item in (value if isinstance(value, list) else [value])]
    last = ", ".join(str(item) for item in (one.status, one.timestamp, *rest) if item not in (None, "", {}))
    told = (f"## {one.label}: {one.title}", one.rationale, "\n".join(f"- {text}" for text in one.alternatives), last)
    return "\n\n".join(text for text in told if text)


def _followed(registry_path: Path, named: str) -> Path | None:
    """The file that an entry is of: its name begins at a folder somewhere above the registry."""
    parts = Path(named).parts
    if not named or named.startswith("/") or ".." in parts or len(parts) > _DEEPEST:
        return None
    bases = registry_path.absolute().parents
    places = (base.joinpath(*parts[start:]) for base in bases for start in range(len(parts) - 1))
    return next((path for path in places if os.path.isfile(path)), None)  # noqa: PTH113  # False for impossible names


def _by_title(path: Path) -> dict[str, WrittenDecision]:
    """The decisions of a document by their titles."""
    try:
        text = content_of(path, most=1 << 20).decode("utf-8", "replace")
    except OSError:
        return {}
    return {_key(one.title): one for one in reversed(decisions_in(text)) if one.title}


def _key(title: str) -> str:
    found = _NUMBERED.match(plain(title))
    return " ".join((found["title"] if found else plain(title)).casefold().split())
