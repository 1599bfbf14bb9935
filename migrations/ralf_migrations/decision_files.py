"""Reads DECISIONS.md of runs that are over, and decision registries: a project's, and those of single runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from ralf.document import guarded_yaml
from ralf.storage.files import content_of
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import session_of
from ralf_integrations.blackbox5.runs import markdown, registry
from ralf_integrations.blackbox5.runs.decisions import WrittenDecision, decisions_in, lines_within
from ralf_integrations.blackbox5.runs.folder import task_id, time_of
from ralf_integrations.blackbox5.runs.markdown import plain
from ralf_integrations.blackbox5.runs.registry import Registry
from ralf_migrations import reading
from ralf_migrations.reading import Kind, Part, Reading, Source, Unreadable

# ---- DECISIONS.md ----

_DECISION_HEADING = regex(r"^#+ .*\bdecisions?\b", re.IGNORECASE | re.MULTILINE)

MARKDOWN = Kind(
    ("decisions.md", "*decisions.md", "decisions-*.md"), lambda text: bool(_DECISION_HEADING.search(text[:4_096]))
)


def read_markdown(source: Source) -> Reading:
    """What a document of decisions comes to."""
    found = decisions_in(source.text)
    if not found:
        return Reading("nothing", "DECISIONS.md", why="no decisions in it")
    route, rule = reading.route_of_run(source.path.parent)
    if rule != reading.BY_TASK and (task := reading.task_in("\n".join(source.lines[:12]))):
        route, rule = reading.route_of_task(task)
    when = time_of("\n".join(source.lines[: found[0].first_line]))
    title = f"Decisions of {source.path.parent.name}"
    session = _session(source, of_a_run=source.path.name.upper() == "DECISIONS.MD")
    events = [source.decision(one, session, when, title=title) for one in found]
    events += _between(source, found)
    parts = (Part(route, source.notes(events, "decisions-md")),)
    return Reading("imported", "DECISIONS.md", parts, rule, len(found), len(events))


def _session(source: Source, *, of_a_run: bool) -> str:
    return session_of(source.path.parent, source.project.root) if of_a_run else source.session()


def _between(source: Source, found: Sequence[WrittenDecision]) -> Iterator[Event]:
    """What stands between the decisions, in its words, by the heading above it."""
    within = lines_within(found)
    lines = markdown.lines_of(source.text)
    heading, first, kept = "above the first heading", 1, list[str]()
    for line in [*lines, markdown.Line(len(lines) + 1, "", level=1)]:
        inside = line.number in within
        if line.level or inside:
            if text := "\n".join(kept).strip("\n -"):
                yield source.note(f"{heading}\n\n{text}", first, aside=True)
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

REGISTRY = Kind(
    ("decision_registry.yaml", "decision_registry.yml", "*decision_registry*.yaml"),
    lambda text: bool(_DECISIONS_KEY.search(text)),
)


def read_registry(source: Source) -> Reading:
    """What a registry comes to: one transcript for each route that its decisions are of."""
    try:
        found = registry.read(source.text)
    except guarded_yaml.BadYaml as error:
        if error.what == registry.NO_LIST:
            return Reading("left", "unknown", why="no list of decisions in it")
        raise Unreadable(f"line {error.line}: no YAML that is taken: {error.what}") from None
    of_project = any({"source_file", "source_run"} & one.fields.keys() for one in found.decisions)
    shape = "project registry" if of_project else "run registry"
    trouble = "; ".join(f"line {first}: no YAML that is taken: {what}" for first, _, what in found.broken[:3])
    if not (found.decisions or found.undecided):
        return Reading("unreadable" if trouble else "nothing", shape, why=trouble or "no decisions in it")
    task = task_id(found.task)
    of_run = cache(lambda: reading.route_of_task(task) if task else reading.route_of_run(source.path.parent))
    by_route: dict[tuple[str, str], list[Event]] = {}
    if of_project:
        for route, event in _of_project(source, found):
            by_route.setdefault(route, []).append(event)
    else:
        session = _session(source, of_a_run=source.path.name.startswith("decision_registry."))
        told = zip(found.decisions, found.words, strict=True)
        by_route[of_run()] = [source.decision(one, session, text=words, aside=True) for one, words in told]
    unread = [(first, last, source.excerpt(first, last)) for first, last, _ in found.broken]
    for first, _, words in (*found.undecided, *unread):
        by_route.setdefault(of_run(), []).append(source.note(words, first, aside=True))
    parts = [
        Part(route, source.notes([_head(source, found, events), *events], "decision-registry"))
        for (route, _), events in sorted(by_route.items())
    ]
    return Reading(
        "unreadable" if trouble else "imported",
        shape,
        tuple(parts),
        ", ".join(sorted({rule for _, rule in by_route})),
        len(found.decisions),
        sum(map(len, by_route.values())) + len(parts),
        f"{trouble}; the rest was taken" if trouble else "",
        reading.comments_left(source.text),
    )


def _head(source: Source, found: Registry, events: Sequence[Event]) -> Event:
    """What the section says: how many decisions there are, and of which file."""
    count = sum("decision" in event.input for event in events)
    header = ", ".join(f"{key} {value}" for key, value in found.header.items() if isinstance(value, (str, int)))
    text = f"{count:,} decision{'s' * (count != 1)} of {source.name}{f' ({header})' if header else ''}."
    return source.note(text, title=f"Decisions of {source.path.name}")


# ---- a project's: its entries name the run, and the file with the text ----


def _of_project(source: Source, found: Registry) -> Iterator[tuple[tuple[str, str], Event]]:
    """Each entry with its route: as a decision, or, where it tells what another one tells, in its words alone."""
    path_of, told_in, route_of = cache(partial(_followed, source.path)), cache(_by_title), cache(reading.route_of_run)
    again = _told_again(found.decisions)
    for number, one in enumerate(found.decisions):
        file, run = (str(one.fields.get(key, "") or "") for key in ("source_file", "source_run"))
        path = path_of(file or run)
        gone = Path("/", *(part for part in Path(run or Path(file).parent).parts if part not in ("/", "..")))
        route = route_of(path.parent if path is not None else gone)
        if number in again:
            stamp = time_of(one.timestamp)
            words = _words_of(one)
            yield route, source.note(words, one.first_line, timestamp=stamp, file_sha256=source.sha256, aside=True)
            continue
        others = [found.decisions[other] for other, first in again.items() if first == number]
        whole = one
        for other in others:
            reason = max(whole.rationale, other.rationale, key=len)
            whole = replace(whole, rationale=reason, alternatives=whole.alternatives or other.alternatives)
        match = told_in(file_path).get(_key(one.title)) if (file_path := path_of(file)) is not None else None
        if match is not None:
            cut = len(whole.rationale) >= _CUT and match.rationale.startswith(whole.rationale.rstrip())
            whole = replace(
                whole,
                text=match.text,
                rationale=match.rationale if cut or not whole.rationale else whole.rationale,
                alternatives=match.alternatives or whole.alternatives,
                fields={**match.fields, **whole.fields},
            )
        event = source.decision(whole, source.session(), text=_words_of(one), aside=True)
        labels = [f"{source.session()}#{other.label}: {plain(other.title)}" for other in others]
        tree = {**event.input["decision"], **({"further_labels": labels} if labels else {})}
        yield route, replace(event, input={**event.input, "decision": tree})


def _words_of(one: WrittenDecision) -> str:
    """What an entry says, without the names of its keys: they are the same in all, and would be found themselves."""
    rest = [item for value in one.fields.values() for item in (value if isinstance(value, list) else [value])]
    last = ", ".join(str(item) for item in (one.status, one.timestamp, *rest) if item not in (None, "", {}))
    told = (f"## {one.label}: {one.title}", one.rationale, "\n".join(f"- {text}" for text in one.alternatives), last)
    return "\n\n".join(text for text in told if text)


def _told_again(decisions: Sequence[WrittenDecision]) -> dict[int, int]:
    """The entries that tell what another one of the same document tells, each with that one: one is called `Decision 3:
    Title`, the other `Title`, and one's reason is the beginning of the other's.
    """
    by_title: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(decisions):
        key = str(one.fields.get("source_file", "") or one.fields.get("source_run", "")), _key(one.title)
        by_title.setdefault(key, []).append(number)
    made = {}
    for numbers in by_title.values():
        bare = [number for number in numbers if not _NUMBERED.match(plain(decisions[number].title))]
        numbered = [number for number in numbers if number not in bare]
        if len(bare) == len(numbered) == 1:
            one, other = decisions[bare[0]], decisions[numbered[0]]
            shorter, longer = sorted((" ".join(each.rationale.split()) for each in (one, other)), key=len)
            is_cut = len(shorter) >= _CUT // 2 and longer.startswith(shorter)
            if one.status == other.status and (is_cut or shorter in ("", longer)):
                made[numbered[0]] = bare[0]
    return made


def _followed(registry_path: Path, named: str) -> Path | None:
    """The file that an entry is of: its name begins at a folder somewhere above the registry."""
    parts = Path(named).parts
    if not named or named.startswith("/") or ".." in parts or len(parts) > _DEEPEST:
        return None
    bases = registry_path.absolute().parents
    places = (base.joinpath(*parts[start:]) for base in bases for start in range(len(parts) - 1))
    return next((path for path in places if os.path.isfile(path)), None)  # noqa: PTH113  # False for impossible names


def _by_title(path: Path) -> Mapping[str, WrittenDecision]:
    """The decisions of a document by their titles."""
    try:
        text = content_of(path, most=1 << 20).decode("utf-8", "replace")
    except OSError:
        return {}
    return {_key(one.title): one for one in reversed(decisions_in(text)) if one.title}


def _key(title: str) -> str:
    found = _NUMBERED.match(plain(title))
    return " ".join((found["title"] if found else plain(title)).casefold().split())
