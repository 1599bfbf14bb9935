"""Reads a timeline-memory.md of family B: state in Markdown, and one `yaml` fence below `## Current Assignment`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralf import names, yamltext
from ralf.model import Attempt
from ralf.runs import handwritten, markdown
from ralf.runs.markdown import Fence, Line, Section
from ralf.runs.outcomes import outcome_of
from ralf.runs.written import plain
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note
from ralf_migrations.reading import Part, Reading, Source, accounted, in_words, notes, text_of
from ralf_migrations.report import Field
from ralf_migrations.timeline_around import FIELD, agent_of, aside, header_of, summary_of

_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+]|\d{1,3}[.)])\s+(?:\[(?P<done>[ xX~>/])\]\s+)?(?P<text>\S.*)$")
_TASK = re.compile(r"\b[A-Z][A-Z0-9]+(?:-[A-Za-z0-9_]+)*-\d\w*(?:-[\w-]+)?")
_ENDED = re.compile(r"\bEXIT\b|\bcomplete", re.IGNORECASE)
_STATE = ("Work History", "Work Queue", "Current Assignment")
_LONGEST_TASK = 400  # characters of the line that names the task
_LONGEST_NAME = 200  # characters of a heading that are looked at for what is known
_AROUND = re.compile(r"^[\W\d_]+|\s*\(.*$|\W+$")
_LOOKS = re.compile(rf"^ {{0,3}}#{{1,6}}[ \t]+({'|'.join(_STATE)})\b", re.MULTILINE | re.IGNORECASE)
_NO_VALUE = ("", "none", "null", "n/a", "-", "~")


def looks(text: str) -> bool:
    """Whether a text is such a memory."""
    return len(set(_LOOKS.findall(text))) > 1 or ("Timeline Memory" in text[:200] and _LOOKS.search(text) is not None)


def read(source: Source, lines: Sequence[Line], fences: Sequence[Fence]) -> Reading:
    """What such a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    header = header_of(lines)
    agent = names.slug("-".join(header.get("Agent", "").lower().split()) or agent_of(source, lines))
    task = found[0] if (found := _TASK.search(header.get("Task", "")[:_LONGEST_TASK])) else ""
    route = names.slug(task or agent)
    sections = [section for section in markdown.sections_of(lines) if section.level > 1]
    by_name = {name: one for one in reversed(sections) if (name := _state_in(one.heading)) and not _is_state(one, ())}
    assignment, trouble = _assignment(fences, by_name.get("Current Assignment"))
    queue = list(_queue(by_name.get("Work Queue"), sections))
    runs = [section for section in sections if section.under and _state_in(section.under[-1]) == "Work History"]
    when = header.get("Created", "")
    kept = f"memory_of_{agent}"
    memory = {
        "source": {"path": source.name, "sha256": source.sha256},
        "header": {key.lower(): value for key, value in header.items()},
        **({"current_assignment": assignment} if assignment is not None else {}),
        **({"work_queue": [item for _, item in queue]} if queue else {}),
        "work_history": [_bullets(section) | {"run": section.heading} for section in runs],
    }
    work = {**_work(header, task, assignment or {}, [item for _, item in queue]), kept: memory}
    state = _state_note(source, by_name, title=f"Memory of {agent}", when=when, work=work)
    summary = summary_of(source, agent, when=when, runs=len(runs), queue=work.get("todos", ()))
    prose = [
        aside(source, section, text)
        for section in sections
        if not _is_state(section) and (text := text_of(section.own))
    ]
    parts = [_run(source, agent, route, section) for section in runs]
    parts.append(Part(route, notes(source, [state, summary, *(event for event, _ in prose)], what="timeline-memory")))
    return Reading(
        "imported",
        "family B",
        tuple(parts),
        "the task" if task else "the agent's name",
        (
            *(Field(f"**{name}:**", "carried", f"active_work.{kept}.header") for name in header),
            *_fields_of(assignment, trouble, kept, by_name),
            *(
                [Field("Work Queue[]", "carried", f"active_work.todos, active_work.{kept}", len(queue))]
                if queue
                else []
            ),
            *(Field(f"Work History: {section.heading}", "carried", "a checkpoint of its own") for section in runs),
            *_empty_history(by_name, runs),
            *(field for _, field in prose),
            *_examples(fences),
        ),
        notes=2 + len(prose) + len(runs),
    )


def _state_in(heading: str) -> str:
    """The part of the state that stands below a heading, case and remarks aside; "" for none."""
    bare = _AROUND.sub("", plain(heading)[:_LONGEST_NAME]).casefold()
    return next((name for name in _STATE if name.casefold() == bare), "")


def _is_state(section: Section, own: Sequence[str] = _STATE) -> bool:
    """Whether a section is part of the state, or `own` part of it, or stands below such a part."""
    return _state_in(section.heading) in own or any(map(_state_in, section.under))


def _assignment(fences: Sequence[Fence], section: Section | None) -> tuple[dict[str, Any] | None, str]:
    """What the fence below `## Current Assignment` holds, or the fields in bold there; None, and why, where that is no
    YAML, or nothing.
    """
    fence = next((one for one in fences if "Current Assignment" in map(_state_in, one.under)), None)
    if fence is None:
        told = {name.replace(" ", "_"): value for name, value in _bullets(section).items()} if section else {}
        return {name: None if value.lower() in _NO_VALUE else value for name, value in told.items()} or None, ""
    try:
        return handwritten.load(fence.text), ""
    except yamltext.BadYaml as error:
        return None, f"line {fence.first + max(error.line, 1) - 1}: no YAML: {error.what}"


def _queue(top: Section | None, sections: Sequence[Section]) -> Iterator[tuple[Line, dict[str, Any]]]:
    """The items of the queue: what they say, whether they are done, below which heading, and inside which item."""
    if top is None:
        return
    below = [section for section in sections if top.heading in section.under and top.first < section.first <= top.last]
    for group in (top, *below):
        above: list[tuple[int, str]] = []
        for line in group.own:
            found = None if line.fenced else _ITEM.match(line.text)
            if found is None:
                continue
            depth, text = len(found["indent"]), found["text"].strip()
            while above and above[-1][0] >= depth:
                above.pop()
            mark = found["done"] or " "
            item: dict[str, Any] = {"item": text, "done": mark in "xX"}
            if mark in "~>/":
                item["begun"] = True
            if group is not top:
                item["under"] = group.heading
            if above:
                item["part_of"] = above[-1][1]
            above.append((depth, text))
            yield line, item


def _work(
    header: Mapping[str, str], task: str, assignment: Mapping[str, Any], queue: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    doing, blocked = assignment.get("in_progress") or assignment.get("monitoring"), assignment.get("blocked_by")
    following = assignment.get("next_item")
    work: dict[str, Any] = {"current_phase": header.get("Phase", "")}
    if task:
        work |= (
            {"current_task": task, "task_title": header["Task"]} if header["Task"] != task else {"current_task": task}
        )
    if queue:
        work["todos"] = [_todo(item, doing) for item in queue]
    if following:
        work["next_steps"] = [in_words(following)]
    work["blockers"] = [in_words(item) for item in (blocked if isinstance(blocked, list) else [blocked]) if item]
    work["work_status"] = _status(doing, blocked, following, queue)
    return {key: value for key, value in work.items() if value or key == "blockers"}


def _todo(item: Mapping[str, Any], doing: object) -> dict[str, str]:
    text = item["item"] if "part_of" not in item else f"{str(item['part_of']).rstrip(':')}: {item['item']}"
    begun = "begun" in item or (doing and in_words(doing) in item["item"])
    status = "completed" if item["done"] else "in_progress" if begun else "pending"
    return {"content": plain(text), "status": status}


def _status(doing: object, blocked: object, following: object, queue: Sequence[Mapping[str, Any]]) -> str:
    if doing:
        return "in_progress"
    if blocked:
        return "blocked"
    if queue and all(item["done"] for item in queue):
        return "completed"
    return "completed" if following and _ENDED.search(in_words(following)) else "pending" if queue else ""


def _state_note(
    source: Source, by_name: Mapping[str, Section], *, title: str, when: str, work: dict[str, Any]
) -> Event:
    """The header and the sections that hold state, in their words."""
    first = next(
        (section.first for section in sorted(by_name.values(), key=lambda one: one.first)), len(source.lines) + 1
    )
    head = source.excerpt(1, first - 1).strip().rstrip("-").rstrip()
    parts = [f"## {name}\n\n{text_of(by_name[name].lines)}" for name in _STATE if name in by_name]
    return note(
        "\n\n".join((head, *parts)), path=source.name, line=1, timestamp=when, title=title, work=work, aside=True
    )


def _bullets(section: Section) -> dict[str, str]:
    return {found["name"].lower(): found["value"].strip() for line in section.own if (found := FIELD.match(line.text))}


def _run(source: Source, agent: str, route: str, section: Section) -> Part:
    """A run of the history as a checkpoint of its own."""
    told = _bullets(section)
    findings = plain(told.get("findings", ""))
    work: dict[str, Any] = {"findings": [findings]} if findings else {}
    when = told.get("completed") or told.get("started") or ""
    text = f"### {section.heading}\n\n{text_of(section.own)}"
    title = f"{agent}: {section.heading}"
    event = note(
        text, path=source.name, line=section.first, timestamp=when, title=title, **({"work": work} if work else {})
    )
    run = Attempt(source.session(section.heading), None, outcome_of(told.get("status", "")), when, findings)
    return Part(route, notes(source, [event], part=section.heading, what="timeline-memory", attempt=run))


def _fields_of(
    assignment: Mapping[str, Any] | None, trouble: str, kept: str, by_name: Mapping[str, Section]
) -> list[Field]:
    if assignment is None:
        if "Current Assignment" not in by_name:
            return []
        return [Field("Current Assignment", "evidence", trouble or "no fence below it")]
    where = f"active_work.{kept}.current_assignment"
    fates = {
        "next_item": ("carried", f"active_work.next_steps, {where}"),
        "blocked_by": ("carried", f"active_work.blockers, {where}"),
        "in_progress": ("carried", f"active_work.work_status, {where}"),
    }
    return [
        Field(f"Current Assignment: {one.name}", one.fate, one.where, one.count)
        for one in accounted(assignment, fates, ("carried", where))
    ]


def _empty_history(by_name: Mapping[str, Section], runs: Sequence[Section]) -> Iterator[Field]:
    history = by_name.get("Work History")
    if history is not None and not runs:
        yield Field("Work History", "carried", f"no runs: {plain(text_of(history.own)) or 'empty'}")


def _examples(fences: Sequence[Fence]) -> Iterator[Field]:
    for fence in fences:
        if "Current Assignment" in map(_state_in, fence.under):
            continue
        why = "a template or an example: no state"
        if fence.info in ("yaml", "yml"):
            try:
                yamltext.load(fence.text)
            except yamltext.BadYaml as error:
                why += f"; no YAML: {error.what}"
        under = f" below {fence.under[-1]}" if fence.under else ""
        yield Field(f"fence at line {fence.first}{under}", "evidence", why)
