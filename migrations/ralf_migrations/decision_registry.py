"""Reads decision registries: a project's, extracted from many DECISIONS.md, and those of single runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from ralf import yamltext
from ralf.runs import registry
from ralf.runs.decisionsmd import decisions_in
from ralf.runs.registry import Registry
from ralf.runs.written import WrittenDecision, decision_tree, plain
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note, session_of
from ralf_migrations import routes
from ralf_migrations.places import Kind
from ralf_migrations.reading import Part, Reading, Source, Unreadable, accounted, beginning, notes
from ralf_migrations.report import Field

_LOOKS = re.compile(r"^decisions:", re.MULTILINE)
_NUMBERED = re.compile(r"Decision\s+\S+?\s*[:—\u2013-]\s*(?P<title>.+)$", re.IGNORECASE)
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
    "source_run": ("carried", "the route; evidence"),
    "source_file": ("evidence", "the entry's words; followed for the decision's text"),
}


def _looks(path: Path) -> bool:
    return bool(_LOOKS.search(beginning(path, 65_536)))


KIND = Kind(("decision_registry.yaml", "decision_registry.yml", "*decision_registry*.yaml"), ".yaml", _looks)


def read(source: Source) -> Reading:
    """What a registry comes to: one transcript for each route that its decisions are of."""
    try:
        found = registry.read(source.text)
    except yamltext.BadYaml as error:
        if error.what == registry.NO_LIST:
            return Reading("left", "unknown", why="no list of decisions in it")
        raise Unreadable(f"line {error.line}: no YAML that is taken: {error.what}") from None
    of_project = any("source_file" in one.fields or "source_run" in one.fields for one in found.decisions)
    shape = "project registry" if of_project else "run registry"
    if not found.decisions:
        fields = (*_header(found), Field("decisions", "carried", "none: nothing was decided"), *_examples(source))
        return Reading("nothing", shape, fields=fields, why="no decisions in it")
    by_route: dict[str, list[Event]] = {}
    rules = set()
    for one in found.decisions:
        route, rule = _route(source, found, one) if of_project else _route_of_run(source, found)
        rules.add(rule)
        whole = _with_text(source, one) if of_project else one
        by_route.setdefault(route, []).append(_note(source, one, whole, of_project=of_project))
    parts = [
        Part(route, notes(source, [_head(source, found, events), *events], what="decision-registry"))
        for route, events in sorted(by_route.items())
    ]
    return Reading(
        "imported",
        shape,
        tuple(parts),
        ", ".join(sorted(rules)),
        (*_header(found), *_entries(source, found), *_examples(source)),
        decisions=len(found.decisions),
        notes=len(found.decisions) + len(parts),
    )


def _note(source: Source, one: WrittenDecision, whole: WrittenDecision, *, of_project: bool) -> Event:
    """An entry in its own words, and as a decision."""
    in_its_run = not of_project and source.path.name.startswith("decision_registry.")
    session = session_of(source.path.parent, source.project.root) if in_its_run else source.session()
    tree = decision_tree(whole, session)
    return note(
        _words_of(one) if of_project else source.excerpt(one.first_line, one.last_line),
        path=source.name,
        line=one.first_line,
        timestamp=tree.get("timestamp", ""),
        decision=tree,
        file_sha256=source.sha256,
        aside=True,
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
    header = ", ".join(f"{key} {value}" for key, value in found.header.items() if isinstance(value, (str, int)))
    text = f"{len(events):,} decisions of {source.name}{f' ({header})' if header else ''}."
    return note(text, path=source.name, line=1, title=f"Decisions of {source.path.name}")


# ---- the text of a project's entry ----


def _with_text(source: Source, one: WrittenDecision) -> WrittenDecision:
    """An entry with the choice that its DECISIONS.md tells, and the whole of a reason that was cut; the entry itself
    where that file is gone, or does not tell it.
    """
    path = _followed(source.path, str(one.fields.get("source_file", "")))
    told = _told(path) if path is not None else {}
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
    for base in registry_path.absolute().parents:
        for start in range(len(parts) - 1):
            path = base.joinpath(*parts[start:])
            if path.is_file():
                return path
    return None


@cache
def _told(path: Path) -> Mapping[str, WrittenDecision]:
    """The decisions of a document by their titles."""
    from ralf.files.opening import content_of

    try:
        text = content_of(path, most=1 << 20).decode("utf-8", "replace")
    except OSError:
        return {}
    return {_key(one.title): one for one in reversed(decisions_in(text)) if one.title}


def _key(title: str) -> str:
    found = _NUMBERED.match(plain(title))
    return " ".join((found["title"] if found else plain(title)).casefold().split())


# ---- routes ----


def _route(source: Source, found: Registry, one: WrittenDecision) -> tuple[str, str]:
    """The route of a project's entry: by the run that it is of."""
    named = str(one.fields.get("source_file", "") or one.fields.get("source_run", ""))
    path = _followed(source.path, named)
    return routes.of_run(path.parent if path is not None else Path("/") / str(one.fields.get("source_run", "")))


def _route_of_run(source: Source, found: Registry) -> tuple[str, str]:
    if found.task:
        return routes.of_task(found.task)
    head = "\n".join(line for line in source.lines[:5] if line.startswith("#"))
    if task := routes.task_in(head):
        return routes.of_task(task)
    return routes.of_run(source.path.parent)


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


def _entries(source: Source, found: Registry) -> Iterator[Field]:
    tree = yamltext.load(source.text)
    entries = {"decisions": [entry for entry in tree.get("decisions", ()) if isinstance(entry, Mapping)]}
    fates = {f"decisions[].{key}": fate for key, fate in _OF_AN_ENTRY.items()}
    yield from accounted(entries, fates, ("evidence", "the entry's words"))
    if found.strange:
        yield Field("decisions[]", "left", "says nothing: neither a title nor a choice", len(found.strange))


def _examples(source: Source) -> Iterator[Field]:
    count = sum(line.lstrip().startswith("#") for line in source.lines)
    if count:
        yield Field("# lines of comments", "left", "remarks and examples of the template", count)
