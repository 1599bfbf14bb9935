"""Reads timeline-memory.md, an agent's long-term memory, in both shapes.

Family A has its state in one fence of YAML that begins with `timeline_memory:`; its history is null until a run is
added. Family B has it in Markdown, and one fence of YAML below `## Current Assignment`. What other fences hold are
templates and examples, and so is what stands in comments: neither is state, however it looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralf.document import guarded_yaml
from ralf.model import Attempt
from ralf.text import cleaning
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf_integrations.blackbox5.runs import handwritten, markdown
from ralf_integrations.blackbox5.runs.markdown import ITEM, Fence, Line, Section, plain
from ralf_integrations.blackbox5.runs.records import outcome_of
from ralf_migrations.reading import (
    BY_AGENT,
    BY_TASK,
    FIELD,
    Kind,
    Part,
    Reading,
    Source,
    Unreadable,
    comments_left,
    in_words,
    text_of,
)

WHAT = "timeline-memory"
_TOP = "timeline_memory"  # the key with which the state begins
_BEGINS = regex(rf"^{_TOP}:", re.MULTILINE)
_HISTORY = regex(r"(?:\w+_)?history$")
_WAITING = ("priority_sources", "priority_patterns", "priority_recommendations", "backlog")
_ID = ("pattern_id", "task_id", "source", "worker_run_id", "run_id")
_TASK = regex(r"\b[A-Z][A-Z0-9]+(?:-[A-Za-z0-9_]+)*-\d\w*(?:-[\w-]+)?")
_ENDED = regex(r"\bEXIT\b|\bcomplete", re.IGNORECASE)
_STATE = ("Work History", "Work Queue", "Current Assignment")
_LONGEST_TASK = 400  # characters of the line that names the task
_LOOKS = regex(rf"^ {{0,3}}#{{1,6}}[ \t]+({'|'.join(_STATE)})\b", re.MULTILINE)

KIND = Kind(
    ("timeline-memory.md", "*timeline-memory.md", "timeline-memory-*.md"),
    lambda text: _TOP in text or len(set(_LOOKS.findall(text))) > 1,
)


def read(source: Source) -> Reading:
    """What a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    lines = markdown.lines_of(source.text)
    fences = markdown.fences_of(lines)
    # The state stands above all sections; in one, a fence shows how such a memory looks.
    state = next((fence for fence in fences if _BEGINS.search(fence.text) and len(fence.under) < 2), None)
    if state is not None:
        return _read_fenced(source, lines, state)
    if len(set(_LOOKS.findall(source.text))) > 1:
        return _read_plain(source, lines, fences)
    return Reading("left", "unknown", why="neither a fence with `timeline_memory` nor `## Current Assignment`")


# ---- family A: a fence of YAML ----


def _read_fenced(source: Source, lines: Sequence[Line], state: Fence) -> Reading:
    """What such a memory comes to, whose state stands in this fence. Unreadable where that is no YAML."""
    wrong = "the fence with its state is no YAML"
    try:
        record = handwritten.load(state.text)
    except guarded_yaml.BadYaml as error:
        raise Unreadable(f"line {state.first + max(error.line, 1) - 1}: {wrong}: {error.what}") from None
    tree = record.tree
    about = value if isinstance(value := tree.get(_TOP), Mapping) else {}
    agent = str(about.get("agent") or _agent_of(source, lines))
    histories = {key: rows for key, rows in tree.items() if _HISTORY.match(key) and isinstance(rows, list)}
    header = {name.lower(): value for name, value in _header_of(lines).items()}
    memory = {
        "source": {"path": source.name, "sha256": source.sha256},
        **({"header": header} if header else {}),
        **{key: value for key, value in tree.items() if not histories.get(key)},
    }
    runs = [(key, number, row) for key, rows in histories.items() for number, row in enumerate(rows, start=1)]
    when = str(about.get("last_updated") or "")
    work = {**_fenced_work(tree), f"memory_of_{agent}": memory}
    bare = "\n".join(line for line in state.text.split("\n") if line.strip() and not line.lstrip().startswith("#"))
    told = [
        source.note(bare, state.first, timestamp=when, title=f"Memory of {agent}", work=work, aside=True),
        _summary_of(source, agent, when, len(runs), work.get("todos", ())),
    ]
    for section in markdown.sections_of(lines):  # what stands around the state is kept in its words, and told nowhere
        own = [line for line in section.own if not state.first - 1 <= line.number <= state.last + 1]
        told += _aside(source, section, [one for one in own if section.level > 1 or not FIELD.match(one.text)])
    made = [_fenced_run(source, state, agent, *run) for run in runs]
    places = [f"line {state.first + first - 1}: {wrong}: {what}" for first, _, what in record.broken]
    return Reading(
        "unreadable" if places else "imported",
        "family A",
        _parts(source, agent, cleaning.slug(agent), made, told),
        BY_AGENT,
        sum(isinstance(row, Mapping) and bool(row.get("decision")) for _, _, row in runs),
        len(told) + len(made),
        f"{'; '.join(places)}; the rest was taken" if places else "",
        comments_left(state.text),
    )


def _fenced_work(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the active work that a memory fills; what is null or empty there is not known."""
    parts = (tree.get("work_queue"), tree.get("current_context"))
    queue, current = (value if isinstance(value, Mapping) else {} for value in parts)
    lists = (queue.get(key) for key in _WAITING)
    waiting = [in_words(item) for listed in lists if isinstance(listed, list) for item in listed if item]
    doing = in_words(queue.get("in_progress") or current.get("monitoring_worker_run"))
    todos = [{"content": doing, "status": "in_progress"}] if doing else []
    todos += [{"content": item, "status": "pending"} for item in waiting if item != doing]
    following = current.get("next_in_queue")
    return {
        **({"todos": todos} if todos else {}),
        **({"current_task": doing, "work_status": "in_progress"} if doing else {}),
        **({"next_steps": [in_words(following)]} if following else {}),
    }


def _fenced_run(source: Source, state: Fence, agent: str, key: str, number: int, row: object) -> Part:
    """A run of the history as a checkpoint of its own."""
    tree = row if isinstance(row, Mapping) else {"run": row}
    run = in_words(tree.get("run_id") or number)
    text = "\n".join(f"- {name}: {in_words(value)}" for name, value in tree.items())
    fields: dict[str, Any] = {"title": f"{agent}: {run}", "timestamp": str(tree.get("timestamp") or "")}
    if tree.get("decision"):  # recommend, defer or reject, and of what
        about = next((in_words(tree[name]) for name in _ID if tree.get(name)), "")
        rest = {name: value for name, value in tree.items() if name not in ("decision", "timestamp")}
        fields["decision"] = {
            "decision": f"{in_words(tree['decision'])} {about}".strip(),
            "rationale": ", ".join(f"{name} {in_words(v)}" for name, v in rest.items() if v not in (None, [], {})),
            "timestamp": fields["timestamp"],
            "label": f"{source.session()}#{run}",
        }
    rows = enumerate(state.text.split("\n"), start=state.first)
    line = next((n for n, words in rows if run in words and not words.lstrip().startswith("#")), state.first)
    status = next((in_words(value) for name, value in tree.items() if value and name.endswith("status")), "")
    event = source.note(f"## {key}: {run}\n\n{text}", line, **fields)
    return _run_part(source, cleaning.slug(agent), run, event, status, in_words(tree.get("notes")))


# ---- family B: Markdown ----


def _read_plain(source: Source, lines: Sequence[Line], fences: Sequence[Fence]) -> Reading:
    """What such a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    header = _header_of(lines)
    agent = cleaning.slug("-".join(header.get("Agent", "").lower().split()) or _agent_of(source, lines))
    task = found[0] if (found := _TASK.search(header.get("Task", "")[:_LONGEST_TASK])) else ""
    route = cleaning.slug(task or agent)
    sections = [section for section in markdown.sections_of(lines) if section.level > 1]
    inner = [section for section in sections if any(map(_state_in, section.under))]
    by_name = {name: one for one in reversed(sections) if (name := _state_in(one.heading)) and one not in inner}
    fence = next((one for one in fences if "Current Assignment" in map(_state_in, one.under)), None)
    assignment: Mapping[str, Any] = {}
    if fence is not None:
        try:
            assignment = guarded_yaml.load(handwritten.tidied(fence.text))
        except guarded_yaml.BadYaml:
            fence = None  # its words are kept
    queue = list(_queue(by_name["Work Queue"], sections)) if "Work Queue" in by_name else []
    runs = [section for section in inner if _state_in(section.under[-1]) == "Work History"]
    when = header.get("Created", "")
    memory = {
        "source": {"path": source.name, "sha256": source.sha256},
        "header": {key.lower(): value for key, value in header.items()},
        **({"current_assignment": assignment} if fence is not None else {}),
        **({"work_queue": queue} if queue else {}),
        "work_history": [_bullets(section) | {"run": section.heading} for section in runs],
    }
    work = {**_plain_work(header, task, assignment, queue), f"memory_of_{agent}": memory}
    first = min((section.first for section in by_name.values()), default=len(source.lines) + 1)
    head = source.excerpt(1, first - 1).strip().rstrip("-").rstrip()
    state = "\n\n".join((head, *(f"## {name}\n\n{text_of(by_name[name].lines)}" for name in _STATE if name in by_name)))
    told = [
        source.note(state, timestamp=when, title=f"Memory of {agent}", work=work, aside=True),
        _summary_of(source, agent, when, len(runs), work.get("todos", ())),
    ]
    for section in sections:
        told += [] if section in inner or section in by_name.values() else _aside(source, section, section.own)
    made = [_plain_run(source, agent, route, one) for one in runs]
    parts, rule = _parts(source, agent, route, made, told), BY_TASK if task else BY_AGENT
    return Reading("imported", "family B", parts, rule, notes=len(told) + len(made))


def _state_in(heading: str) -> str:
    """The part of the state that stands below a heading, remarks aside; "" for none."""
    bare = plain(heading).casefold()
    return next((name for name in _STATE if bare.startswith(name.casefold())), "")


def _queue(top: Section, sections: Sequence[Section]) -> Iterator[dict[str, Any]]:
    """The items of the queue: what they say, whether they are done, below which heading, and inside which item."""
    groups = [one for one in sections if top.heading in one.under and top.first < one.first <= top.last]
    for group in (top, *groups):
        above: list[tuple[int, str]] = []
        for line in group.own:
            found = None if line.fence else ITEM.match(line.text)
            if found is None:
                continue
            depth, text, mark = line.indent, found["text"].strip(), found["box"] or " "
            while above and above[-1][0] >= depth:
                above.pop()
            yield {
                "item": text,
                "done": mark in "xX",
                **({"begun": True} if mark in "~>/" else {}),
                **({"under": group.heading} if group is not top else {}),
                **({"part_of": above[-1][1]} if above else {}),
            }
            above.append((depth, text))


def _plain_work(
    header: Mapping[str, str], task: str, assignment: Mapping[str, Any], queue: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    doing, blocked = assignment.get("in_progress") or assignment.get("monitoring"), assignment.get("blocked_by")
    following = assignment.get("next_item")
    todos = []
    for item in queue:
        text = f"{str(item['part_of']).rstrip(':')}: {item['item']}" if "part_of" in item else item["item"]
        begun = "begun" in item or (doing and in_words(doing) in item["item"])
        status = "completed" if item["done"] else "in_progress" if begun else "pending"
        todos.append({"content": plain(text), "status": status})
    all_done = bool(queue) and all(item["done"] for item in queue)
    ended = all_done or (following and _ENDED.search(in_words(following)))
    status = "in_progress" if doing else "blocked" if blocked else "completed" if ended else "pending" * bool(queue)
    work = {
        "current_phase": header.get("Phase", ""),
        "current_task": task,
        "task_title": header["Task"] if task and header["Task"] != task else "",
        "todos": todos,
        "next_steps": [in_words(following)] if following else [],
        "work_status": status,
    }
    blockers = [in_words(item) for item in (blocked if isinstance(blocked, list) else [blocked]) if item]
    return {**{key: value for key, value in work.items() if value}, "blockers": blockers}


def _bullets(section: Section) -> dict[str, str]:
    return {found["name"].lower(): found["value"].strip() for line in section.own if (found := FIELD.match(line.text))}


def _plain_run(source: Source, agent: str, route: str, section: Section) -> Part:
    """A run of the history as a checkpoint of its own."""
    told = _bullets(section)
    findings = plain(told.get("findings", ""))
    fields: dict[str, Any] = {"work": {"findings": [findings]}} if findings else {}
    when = told.get("completed") or told.get("started") or ""
    text = f"### {section.heading}\n\n{text_of(section.own)}"
    event = source.note(text, section.first, timestamp=when, title=f"{agent}: {section.heading}", **fields)
    return _run_part(source, route, section.heading, event, told.get("status", ""), findings)


# ---- both ----


def _parts(source: Source, agent: str, route: str, runs: Sequence[Part], told: Sequence[Event]) -> tuple[Part, ...]:
    """What goes into a memory's route: its runs, then what it says of itself."""
    state = source.notes(told, WHAT)
    state.agent_type = agent
    return (*runs, Part(route, state))


def _run_part(source: Source, route: str, run: str, event: Event, status: str, said: str) -> Part:
    attempt = Attempt(source.session(run), None, outcome_of(status), event.timestamp, said)
    return Part(route, source.notes([event], WHAT, part=run, attempt=attempt))


def _header_of(lines: Sequence[Line]) -> dict[str, str]:
    """The fields in bold below the title, down to the first rule, fence or heading."""
    made: dict[str, str] = {}
    for line in lines:
        if line.rule or line.fence or line.level > 1:
            break
        if (found := FIELD.match(line.text)) and found["value"].strip():
            made[found["name"]] = found["value"].strip()
    return made


def _agent_of(source: Source, lines: Sequence[Line]) -> str:
    """The agent of a memory that does not name it in its state: by its heading, else by the folder in which it lies."""
    heading = next((line.heading for line in lines if line.level == 1), "")
    folder = source.path.absolute().parent
    words = re.sub(r"\btimeline memory\b", "", plain(heading), flags=re.IGNORECASE).split()
    return "-".join(words).lower() or (folder.parent.name if folder.name == "memory" else folder.name)


def _summary_of(source: Source, agent: str, when: str, runs: int, queue: Sequence[Mapping[str, Any]]) -> Event:
    """What the section says of a memory: its state stands in the active work, and is not told again."""
    done = sum(item.get("status") == "completed" for item in queue)
    of_queue = f"{done} of {len(queue)} items of its queue done" if queue else "an empty queue"
    count = f"{runs} run{'s' * (runs != 1)}" if runs else "no runs"
    text = f"Memory of {agent}{f', last updated {when}' if when else ''}: {count}, {of_queue}."
    return source.note(text, timestamp=when)


def _aside(source: Source, section: Section, lines: Sequence[Line]) -> list[Event]:
    """A section that is kept as evidence alone."""
    text = text_of(lines)
    heading = f"{'#' * section.level} {section.heading}"
    return [source.note(f"{heading}\n\n{text}", section.first, aside=True)] if text else []
