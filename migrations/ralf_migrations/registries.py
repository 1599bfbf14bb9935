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
from ralf.storage.files import content_of
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import session_of
from ralf_integrations.blackbox5.runs import registry
from ralf_integrations.blackbox5.runs.decisions import WrittenDecision, decisions_in
from ralf_integrations.blackbox5.runs.folder import task_id, time_of
from ralf_integrations.blackbox5.runs.markdown import plain
from ralf_integrations.blackbox5.runs.registry import Registry
from ralf_migrations.reading import (
    Kind,
    Part,
    Reading,
    Source,
    Unreadable,
    agent_of_run,
    route_of,
    task_of_run,
)

_DECISIONS_KEY = regex(r"^decisions:", re.MULTILINE)
_NUMBERED = regex(r"Decision\s+\S+?\s*[:—\u2013-]\s*(?P<title>.+)$", re.IGNORECASE)
_DEEPEST = 40  # folders of a path


def read(source: Source) -> Reading:
    """What a registry comes to: one transcript for each route that its decisions are of."""
    try:
        found = registry.read(source.text)
    except guarded_yaml.BadYaml as error:
        if error.what == registry.NO_LIST:
            return Reading("left", why="no list of decisions in it")
        raise Unreadable(f"line {error.line}: no YAML that is taken: {error.what}") from None
    trouble = "; ".join(f"line {first}: no YAML that is taken: {what}" for first, _, what in found.broken[:3])
    if not (found.decisions or found.undecided):
        return Reading("unreadable" if trouble else "nothing", why=trouble or "no decisions in it")
    by_route = _by_route(source, found)
    parts = [
        Part(route, source.notes([_head(source, found, events), *events], "decision-registry"))
        for route, events in sorted(by_route.items())
    ]
    return Reading("unreadable", parts, f"{trouble}; the rest was taken") if trouble else Reading("imported", parts)


def _head(source: Source, found: Registry, events: Sequence[Event]) -> Event:
    """What the section says: how many decisions there are, and of which file."""
    count = sum("decision" in event.input for event in events)
    header = ", ".join(f"{key} {value}" for key, value in found.header.items() if isinstance(value, (str, int)))
    text = f"{count:,} decision{'s' * (count != 1)} of {source.name}{f' ({header})' if header else ''}."
    return source.note(text, title=f"Decisions of {source.path.name}")


def _by_route(source: Source, found: Registry) -> dict[str, list[Event]]:
    """By route, each entry as a decision, or in its words alone where another one tells the same."""
    path_of, told_in = cache(partial(_followed, source.path)), cache(_by_title)
    route_in = cache(lambda folder: route_of(task_of_run(folder), agent_of_run(folder)))
    is_project = any({"source_file", "source_run"} & one.fields.keys() for one in found.decisions)
    task = task_id(found.task)
    own = cache(lambda: route_of(task) if task else route_in(source.path.parent))
    of_run = not is_project and source.path.name.startswith("decision_registry.")
    session = session_of(source.path.parent, source.project.root) if of_run else source.session()
    again = _told_again(found.decisions) if is_project else {}
    made: dict[str, list[Event]] = defaultdict(list)
    for number, (one, words) in enumerate(zip(found.decisions, found.words, strict=True)):
        if not is_project:
            made[own()].append(source.decision(one, session, text=words, aside=True))
            continue
        file, run = (str(one.fields.get(key, "") or "") for key in ("source_file", "source_run"))
        path = path_of(file or run)
        gone = Path("/", *(part for part in Path(run or Path(file).parent).parts if part not in ("/", "..")))
        route, words = route_in(path.parent if path is not None else gone), _words_of(one)
        if number in again:
            stamp = time_of(one.timestamp)
            made[route].append(
                source.note(words, one.first_line, timestamp=stamp, file_sha256=source.sha256, aside=True)
            )
            continue
        others = [found.decisions[other] for other, first in again.items() if first == number]
        match = told_in(file_path).get(_key(one.title)) if (file_path := path_of(file)) is not None else None
        labels = [f"{session}#{other.label}: {plain(other.title)}" for other in others]
        further = {"further_labels": labels} if labels else {}
        made[route].append(source.decision(_joined(one, others, match), session, text=words, more=further, aside=True))
    unread = [(first, last, source.excerpt(first, last)) for first, last, _ in found.broken]
    for first, _, words in (*found.undecided, *unread):
        made[own()].append(source.note(words, first, aside=True))
    return made


def _joined(one: WrittenDecision, others: Sequence[WrittenDecision], match: WrittenDecision | None) -> WrittenDecision:
    """An entry with what others say of the same decision, and with its text in the file that it is of."""
    for other in others:
        reason = max(one.rationale, other.rationale, key=len)
        one = replace(one, rationale=reason, alternatives=one.alternatives or other.alternatives)
    if match is None:
        return one
    is_cut = match.rationale.startswith(one.rationale.rstrip())
    return replace(
        one,
        text=match.text,
        rationale=match.rationale if is_cut else one.rationale,
        alternatives=match.alternatives or one.alternatives,
        fields={**match.fields, **one.fields},
    )


def _words_of(one: WrittenDecision) -> str:
    """What an entry says, without the names of its keys: they are the same in all, and would be found themselves."""
    rest = [item for value in one.fields.values() for item in (value if isinstance(value, list) else [value])]
    last = ", ".join(str(item) for item in (one.status, one.timestamp, *rest) if item not in (None, "", {}))
    told = (f"## {one.label}: {one.title}", one.rationale, "\n".join(f"- {text}" for text in one.alternatives), last)
    return "\n\n".join(text for text in told if text)


def _told_again(decisions: Sequence[WrittenDecision]) -> dict[int, int]:
    """The entries that tell what an earlier one of the same file tells, each with that one: one is called `Decision 3:
    Title`, the other `Title`, and one's reason is the beginning of the other's.
    """
    first: dict[tuple[str, str, str], int] = {}
    made = {}
    for number, one in enumerate(decisions):
        file = str(one.fields.get("source_file", "") or one.fields.get("source_run", ""))
        earlier = first.setdefault((file, _key(one.title), one.status), number)
        both = (one, decisions[earlier])
        is_numbered, other_is = (_NUMBERED.match(plain(each.title)) is not None for each in both)
        shorter, longer = sorted((" ".join(each.rationale.split()) for each in both), key=len)
        if is_numbered != other_is and longer.startswith(shorter):
            made[number] = earlier
    return made


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


KIND = Kind(
    ("decision_registry.yaml", "decision_registry.yml", "*decision_registry*.yaml"),
    lambda text: bool(_DECISIONS_KEY.search(text)),
    read,
)
