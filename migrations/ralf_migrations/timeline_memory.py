"""Reads timeline-memory.md, an agent's long-term memory, in both shapes.

Family A has its state in one fence of YAML that begins with `timeline_memory:`; its history is null until a run is
added. Family B has it in Markdown, and one fence of YAML below `## Current Assignment`. What other fences hold are
templates and examples, and so is what stands in comments: neither is state, however it looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralf.document import guarded_yaml
from ralf.model import Attempt
from ralf.text import cleaning
from ralf.text.cleaning import OWN_OUTPUT
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note
from ralf_integrations.blackbox5.runs import handwritten, markdown
from ralf_integrations.blackbox5.runs.folder import outcome_of
from ralf_integrations.blackbox5.runs.markdown import ITEM, Fence, Line, Section, plain
from ralf_migrations.reading import (
    FIELD,
    Kind,
    Part,
    Reading,
    Source,
    Unreadable,
    accounted,
    beginning,
    in_words,
    notes,
    opened,
    text_of,
)
from ralf_migrations.report import Field

_TOP = "timeline_memory"
"""The key with which the state begins."""

_BEGINS = regex(rf"^{_TOP}:", re.MULTILINE)
_HISTORY = regex(r"(?:\w+_)?history$")
_WAITING = ("priority_sources", "priority_patterns", "priority_recommendations", "priority_items", "backlog")
_ID = ("pattern_id", "task_id", "source", "worker_run_id", "run_id")
_TASK = regex(r"\b[A-Z][A-Z0-9]+(?:-[A-Za-z0-9_]+)*-\d\w*(?:-[\w-]+)?")
_ENDED = regex(r"\bEXIT\b|\bcomplete", re.IGNORECASE)
_STATE = ("Work History", "Work Queue", "Current Assignment")
_LONGEST_TASK = 400  # characters of the line that names the task
_LONGEST_NAME = 200  # characters of a heading that are looked at for what is known
_AROUND = regex(r"^[\W\d_]+|\s*\(.*$|\W+$")
_LOOKS = regex(rf"^ {{0,3}}#{{1,6}}[ \t]+({'|'.join(_STATE)})\b", re.MULTILINE | re.IGNORECASE)
_NO_VALUE = ("", "none", "null", "n/a", "-", "~")


def _looks(path: Path) -> bool:
    text = beginning(path)
    return _TOP in text or _looks_plain(text)


KIND = Kind(("timeline-memory.md", "*timeline-memory.md", "timeline-memory-*.md"), ".md", _looks)


def read(source: Source) -> Reading:
    """What a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    if source.text.startswith(OWN_OUTPUT):
        kept = source.path.with_name(f"{source.path.stem}.backup{source.path.suffix}")
        if not kept.is_file():
            return Reading("left", "view", why="a view of what ralf keeps: nothing that is not known")
        source = replace(opened(source.project, kept), path=source.path, name=source.name)  # what had stood there
    lines = markdown.titled(markdown.lines_of(source.text))
    fences = markdown.fences_of(lines)
    state = _state_in_fence(lines, fences)
    if state is not None:
        return _read_fenced(source, lines, fences, state)
    if _looks_plain(source.text):
        return _read_plain(source, lines, fences)
    return Reading("left", "unknown", why="neither a fence with `timeline_memory` nor `## Current Assignment`")


# ---- family A: a fence of YAML ----


def _state_in_fence(lines: Sequence[Line], fences: Sequence[Fence]) -> Fence | None:
    """The fence that holds the state: it stands above all sections; in one, it shows how such a memory looks. Front
    matter is such a fence.
    """
    ends = [line.number for line in lines if line.text.rstrip() == "---"]
    if ends[:1] == [1] and len(ends) > 1:
        text = "\n".join(line.text for line in lines[1 : ends[1] - 1])
        if _BEGINS.search(text):
            return Fence("yaml", text, 2, ends[1] - 1, ())
    found = (fence for fence in fences if _BEGINS.search(fence.text) and len(fence.under) < 2)
    return next(found, None)


def _read_fenced(source: Source, lines: Sequence[Line], fences: Sequence[Fence], state: Fence) -> Reading:
    """What such a memory comes to, whose state stands in this fence. Unreadable where that is no YAML."""
    try:
        record = handwritten.salvage(state.text)
    except guarded_yaml.BadYaml as error:
        line = state.first + max(error.line, 1) - 1
        raise Unreadable(f"line {line}: the fence with its state is no YAML: {error.what}") from None
    tree = record.tree
    trouble = [(state.first + first - 1, state.first + last - 1, what) for first, last, what in record.broken]
    about = tree.get(_TOP)
    about = about if isinstance(about, Mapping) else {}
    agent = str(about.get("agent") or _agent_of(source, lines))
    route = cleaning.slug(agent)
    tree = {**{key: value for key, value in about.items() if _is_state_key(key)}, **tree}
    histories = {key: _rows(rows) for key, rows in tree.items() if _HISTORY.match(key)}
    header = {name.lower(): value for name, value in _header_of(lines).items()}
    memory = {
        "source": {"path": source.name, "sha256": source.sha256},
        **({"header": header} if header else {}),
        **{key: value for key, value in tree.items() if not histories.get(key)},
    }
    runs = [(key, number, row) for key, rows in histories.items() for number, row in enumerate(rows, start=1)]
    when = str(about.get("last_updated") or "")
    work = {**_fenced_work(tree), f"memory_of_{agent}": memory}
    said = note(
        _uncommented(state),
        path=source.name,
        line=state.first,
        timestamp=when,
        title=f"Memory of {agent}",
        work=work,
        aside=True,
    )
    summary = _summary_of(source, agent, when=when, runs=len(runs), queue=work.get("todos", ()))
    prose = list(_prose(source, lines, state))
    fields = (
        *_fenced_fields(tree, agent, histories),
        *(Field(f"**{name}:**", "carried", f"active_work.memory_of_{agent}.header") for name in header),
        *(Field(f"lines {first} to {last}", "evidence", f"no YAML: {what}") for first, last, what in trouble),
        *_templates(state),
        *(field for _, field in prose),
        *(_example(fence) for fence in fences if fence is not state),
    )
    parts = [_fenced_run(source, state, agent, route, key, number, row) for key, number, row in runs]
    events = [said, summary, *(event for event, _ in prose)]
    made = _reading(source, "family A", route, "the agent's name", parts, events, fields)
    made = replace(made, decisions=sum(_decision(row) is not None for _, _, row in runs))
    if not trouble:
        return made
    why = "; ".join(f"line {first}: the fence with its state is no YAML: {what}" for first, _, what in trouble)
    return replace(made, outcome="unreadable", why=f"{why}; the rest was taken")


def _is_state_key(key: str) -> bool:
    """Whether a key is one of the state's own, which may stand a level deeper."""
    return key in ("work_queue", "current_context") or _HISTORY.match(key) is not None


def _rows(history: object) -> list[Any]:
    """The runs of a history: a list of them, or a mapping of their ids to them."""
    if isinstance(history, Mapping) and history and all(isinstance(row, Mapping) for row in history.values()):
        return [{"run_id": run, **row} for run, row in history.items()]
    return history if isinstance(history, list) else []


def _fenced_work(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the active work that a memory fills; what is null or empty there is not known."""
    queue, current = (
        value if isinstance(value, Mapping) else {} for value in (tree.get("work_queue"), tree.get("current_context"))
    )
    todos = [{"content": in_words(item), "status": "pending"} for key in _WAITING for item in _items(queue.get(key))]
    doing = queue.get("in_progress") or current.get("monitoring_worker_run")
    if doing:
        todos = [todo for todo in todos if todo["content"] != in_words(doing)]
        todos.insert(0, {"content": in_words(doing), "status": "in_progress"})
    following = current.get("next_in_queue")
    return {
        **({"todos": todos} if todos else {}),
        **({"current_task": in_words(doing), "work_status": "in_progress"} if doing else {}),
        **({"next_steps": [in_words(following)]} if following else {}),
    }


def _fenced_run(source: Source, state: Fence, agent: str, route: str, key: str, number: int, row: object) -> Part:
    """A run of the history as a checkpoint of its own."""
    tree = row if isinstance(row, Mapping) else {"run": row}
    run = in_words(tree.get("run_id") or number)
    text = "\n".join(f"- {name}: {in_words(value)}" for name, value in tree.items())
    fields: dict[str, Any] = {"title": f"{agent}: {run}"}
    if decision := _decision(tree):
        fields["decision"] = {**decision, "label": f"{source.session()}#{run}"}
    when = str(tree.get("timestamp") or "")
    event = note(f"## {key}: {run}\n\n{text}", path=source.name, line=_line_of(state, run), timestamp=when, **fields)
    status = next((in_words(value) for name, value in tree.items() if value and name.endswith("status")), "")
    return _run_part(source, route, run, event, status, in_words(tree.get("notes")))


def _decision(row: object) -> dict[str, Any] | None:
    """What an analyst's row decides: recommend, defer or reject, and of what."""
    if not isinstance(row, Mapping) or not row.get("decision"):
        return None
    about = next((in_words(row[key]) for key in _ID if row.get(key)), "")
    rest = {
        key: value for key, value in row.items() if key not in ("decision", "timestamp") and value not in (None, [], {})
    }
    return {
        "decision": f"{in_words(row['decision'])} {about}".strip(),
        "rationale": ", ".join(f"{key} {in_words(value)}" for key, value in rest.items()),
        "timestamp": str(row.get("timestamp") or ""),
    }


def _fenced_fields(tree: Mapping[str, Any], agent: str, histories: Mapping[str, Sequence[Any]]) -> list[Field]:
    kept = f"active_work.memory_of_{agent}"
    fates = {
        key: ("carried", "a checkpoint for each run") if rows else ("carried", f"{kept}: no runs")
        for key, rows in histories.items()
    }
    fates |= {f"work_queue.{key}": ("carried", f"active_work.todos, {kept}") for key in (*_WAITING, "in_progress")}
    fates["current_context.next_in_queue"] = ("carried", f"active_work.next_steps, {kept}")
    return accounted(tree, fates, ("carried", kept))


def _templates(state: Fence) -> Iterator[Field]:
    """The example rows and remarks that stand in comments."""
    count = sum(line.lstrip().startswith("#") for line in state.text.split("\n"))
    if count:
        yield Field("# lines of comments in the fence", "left", "examples and remarks of the template: no state", count)


def _uncommented(state: Fence) -> str:
    """The fence without its comments: an example row is no history, and is not to be found as one."""
    kept = [line for line in state.text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return "\n".join(kept)


def _prose(source: Source, lines: Sequence[Line], state: Fence) -> Iterator[tuple[Event, Field]]:
    """What stands around the state: kept in its words, and told nowhere."""
    for section in markdown.sections_of(lines):
        own = [line for line in section.own if not state.first - 1 <= line.number <= state.last + 1]
        text = text_of(own if section.level > 1 else [line for line in own if not FIELD.match(line.text)])
        if text:
            yield _aside(source, section, text)


def _items(value: object) -> list[Any]:
    return [item for item in value if item] if isinstance(value, list) else [value] if value else []


def _line_of(state: Fence, run: str) -> int:
    lines = state.text.split("\n")
    here = (number for number, line in enumerate(lines) if run in line and not line.lstrip().startswith("#"))
    return state.first + next(here, 0)


# ---- family B: Markdown ----


def _looks_plain(text: str) -> bool:
    """Whether a text is such a memory."""
    return len(set(_LOOKS.findall(text))) > 1 or ("Timeline Memory" in text[:200] and _LOOKS.search(text) is not None)


def _read_plain(source: Source, lines: Sequence[Line], fences: Sequence[Fence]) -> Reading:
    """What such a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    header = _header_of(lines)
    agent = cleaning.slug("-".join(header.get("Agent", "").lower().split()) or _agent_of(source, lines))
    task = found[0] if (found := _TASK.search(header.get("Task", "")[:_LONGEST_TASK])) else ""
    route = cleaning.slug(task or agent)
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
    work = {**_plain_work(header, task, assignment or {}, [item for _, item in queue]), kept: memory}
    state = _state_note(source, by_name, title=f"Memory of {agent}", when=when, work=work)
    summary = _summary_of(source, agent, when=when, runs=len(runs), queue=work.get("todos", ()))
    prose = [
        _aside(source, section, text)
        for section in sections
        if not _is_state(section) and (text := text_of(section.own))
    ]
    history = by_name.get("Work History")
    fields = [Field(f"**{name}:**", "carried", f"active_work.{kept}.header") for name in header]
    fields += _plain_fields(assignment, trouble, kept, by_name)
    if queue:
        fields.append(Field("Work Queue[]", "carried", f"active_work.todos, active_work.{kept}", len(queue)))
    fields += [Field(f"Work History: {section.heading}", "carried", "a checkpoint of its own") for section in runs]
    if history is not None and not runs:
        fields.append(Field("Work History", "carried", f"no runs: {plain(text_of(history.own)) or 'empty'}"))
    fields += [*(field for _, field in prose), *_examples(fences)]
    parts = [_plain_run(source, agent, route, section) for section in runs]
    events = [state, summary, *(event for event, _ in prose)]
    return _reading(source, "family B", route, "the task" if task else "the agent's name", parts, events, fields)


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
    except guarded_yaml.BadYaml as error:
        return None, f"line {fence.first + max(error.line, 1) - 1}: no YAML: {error.what}"


def _queue(top: Section | None, sections: Sequence[Section]) -> Iterator[tuple[Line, dict[str, Any]]]:
    """The items of the queue: what they say, whether they are done, below which heading, and inside which item."""
    if top is None:
        return
    below = [section for section in sections if top.heading in section.under and top.first < section.first <= top.last]
    for group in (top, *below):
        above: list[tuple[int, str]] = []
        for line in group.own:
            found = None if line.fenced else ITEM.match(line.text)
            if found is None:
                continue
            depth, text = line.indent, found["text"].strip()
            while above and above[-1][0] >= depth:
                above.pop()
            mark = found["box"] or " "
            item: dict[str, Any] = {"item": text, "done": mark in "xX"}
            if mark in "~>/":
                item["begun"] = True
            if group is not top:
                item["under"] = group.heading
            if above:
                item["part_of"] = above[-1][1]
            above.append((depth, text))
            yield line, item


def _plain_work(
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


def _plain_run(source: Source, agent: str, route: str, section: Section) -> Part:
    """A run of the history as a checkpoint of its own."""
    told = _bullets(section)
    findings = plain(told.get("findings", ""))
    fields: dict[str, Any] = {"work": {"findings": [findings]}} if findings else {}
    when = told.get("completed") or told.get("started") or ""
    text = f"### {section.heading}\n\n{text_of(section.own)}"
    title = f"{agent}: {section.heading}"
    event = note(text, path=source.name, line=section.first, timestamp=when, title=title, **fields)
    return _run_part(source, route, section.heading, event, told.get("status", ""), findings)


def _plain_fields(
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


def _examples(fences: Sequence[Fence]) -> Iterator[Field]:
    for fence in fences:
        if "Current Assignment" in map(_state_in, fence.under):
            continue
        trouble = ""
        if fence.info in ("yaml", "yml"):
            try:
                guarded_yaml.load(fence.text)
            except guarded_yaml.BadYaml as error:
                trouble = f"; no YAML: {error.what}"
        yield _example(fence, trouble)


# ---- both ----


def _reading(
    source: Source,
    shape: str,
    route: str,
    rule: str,
    runs: Sequence[Part],
    told: Sequence[Event],
    fields: Sequence[Field],
) -> Reading:
    """What a memory comes to: its runs, then what it says of itself."""
    parts = (*runs, Part(route, notes(source, told, what="timeline-memory")))
    return Reading("imported", shape, parts, rule, tuple(fields), notes=len(told) + len(runs))


def _run_part(source: Source, route: str, run: str, event: Event, status: str, said: str) -> Part:
    """A run of the history as a checkpoint of its own."""
    attempt = Attempt(source.session(run), None, outcome_of(status), event.timestamp, said)
    return Part(route, notes(source, [event], part=run, what="timeline-memory", attempt=attempt))


def _example(fence: Fence, trouble: str = "") -> Field:
    """A fence that shows something, and its account."""
    under = f" below {fence.under[-1]}" if fence.under else ""
    return Field(f"fence at line {fence.first}{under}", "evidence", f"a template or an example: no state{trouble}")


def _header_of(lines: Sequence[Line]) -> dict[str, str]:
    """The fields in bold below the title, down to the first rule, fence or heading."""
    made: dict[str, str] = {}
    for line in lines:
        if line.rule or line.fenced or line.level > 1:
            break
        if (found := FIELD.match(line.text)) and found["value"].strip():
            made[found["name"]] = found["value"].strip()
    return made


def _agent_of(source: Source, lines: Sequence[Line]) -> str:
    """The agent of a memory that does not name it in its state: by its heading, else by the folder in which it lies."""
    heading = next((line.heading for line in lines if line.level == 1), "")
    words = re.sub(r"\btimeline memory\b", "", plain(heading), flags=re.IGNORECASE).split()
    if words:
        return "-".join(words).lower()
    folder = source.path.absolute().parent
    return folder.parent.name if folder.name == "memory" else folder.name


def _summary_of(source: Source, agent: str, *, when: str, runs: int, queue: Sequence[Mapping[str, Any]]) -> Event:
    """What the section says of a memory: its state stands in the active work, and is not told again."""
    done = sum(item.get("status") == "completed" for item in queue)
    of_queue = f"{done} of {len(queue)} items of its queue done" if queue else "an empty queue"
    count = f"{runs} run{'s' * (runs != 1)}" if runs else "no runs"
    text = f"Memory of {agent}{f', last updated {when}' if when else ''}: {count}, {of_queue}."
    return note(text, path=source.name, line=1, timestamp=when)


def _aside(source: Source, section: Section, text: str) -> tuple[Event, Field]:
    """A section that is kept as evidence alone, and its account."""
    heading = f"{'#' * section.level} {section.heading}"
    event = note(f"{heading}\n\n{text}", path=source.name, line=section.first, aside=True)
    return event, Field(heading, "evidence", "kept in its words")
