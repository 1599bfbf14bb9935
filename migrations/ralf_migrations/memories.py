"""Reads timeline-memory.md, an agent's long-term memory: its state stands in a fence of YAML that begins with
`timeline_memory:`, or in Markdown, below `## Current Assignment` and its like. Both come to one tree. What other fences
hold are templates and examples, and so is what stands in comments: neither is state, however it looks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from ralf.document import guarded_yaml
from ralf.model import Attempt
from ralf.project import Project
from ralf.text import cleaning
from ralf.text.patterns import regex
from ralf.transcripts.notes import Notes
from ralf_integrations.blackbox5.runs import handwritten, markdown
from ralf_integrations.blackbox5.runs.markdown import ITEM, Fence, Line, Section, plain
from ralf_integrations.blackbox5.runs.records import outcome_of
from ralf_migrations.reading import FIELD, Reading, Source, Unreadable, opened, task_in

_TOP = "timeline_memory"  # the key with which the state begins
_BEGINS = regex(rf"^{_TOP}:", re.MULTILINE)
_HISTORY = regex(r"(?:\w+_)?history$")
_WAITING = ("priority_sources", "priority_patterns", "priority_recommendations", "backlog")
_ID = ("pattern_id", "task_id", "source", "worker_run_id", "run_id")
_STATE = ("Work History", "Work Queue", "Current Assignment")


class _State(NamedTuple):
    """Where the work stands: as a tree, in words, on which lines; and why not all of it can be read."""

    tree: Mapping[str, Any]
    words: str
    within: Collection[int]
    broken: str = ""


def by_worker(path: Path) -> tuple[bool, Path]:
    """A worker and its validator may share a task's route: the worker knows where the work stands, and comes last."""
    return "validator" not in path.as_posix(), path


def read(project: Project, path: Path) -> Reading:
    """What a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    source = opened(project, path)
    lines = markdown.lines_of(source.text)
    # The state stands above all sections; in one, a fence shows how such a memory looks.
    fences = [one for one in markdown.fences_of(lines) if _BEGINS.search(one.text) and len(one.under) < 2]
    state = _fenced(fences[0]) if fences else _in_sections(lines)
    if state is None:
        return Reading("left", why="neither a fence with `timeline_memory` nor `## Current Assignment`")
    top = takewhile(lambda line: not (line.rule or line.fence or line.level > 1), lines)
    fields = (found for line in top if (found := FIELD.match(line.text)))
    header = {found["name"].lower(): found["value"].strip() for found in fields if found["value"].strip()}
    about = _mapping(state.tree.get(_TOP))
    heading = plain(next((line.heading for line in lines if line.level == 1), ""))
    folder = path.absolute().parent
    by_folder = folder.parent.name if folder.name == "memory" else folder.name
    named = (about.get("agent"), header.get("agent"), re.sub(r"(?i)\btimeline memory\b", "", heading), by_folder)
    agent = cleaning.slug("-".join(next(filter(None, (str(one or "").lower().split() for one in named)))))
    task = task_in(header.get("task", ""))
    histories = {key: rows for key, rows in state.tree.items() if _HISTORY.match(key) and isinstance(rows, list)}
    runs = [
        _run(source, state, agent, key, row if isinstance(row, Mapping) else {"run": row}, number)
        for key, rows in histories.items()
        for number, row in enumerate(rows, start=1)
    ]
    work = _work(state.tree, header, task)
    if not (runs or work or about.get("total_runs") or state.broken):
        return Reading("nothing", why="a template: it tells of no run and of no work")
    kept = {key: value for key, value in state.tree.items() if not histories.get(key)}
    kept |= {"header": header, "source": {"path": source.name, "sha256": source.sha256}}
    work = {"blockers": [], **work, f"memory_of_{agent}": kept}
    when, title = str(about.get("last_updated") or header.get("created", "")), f"Memory of {agent}"
    todos = work.get("todos", ())
    done = sum(item["status"] == "completed" for item in todos)
    count = f"{len(runs)} run{'s' * (len(runs) != 1)}, {done} of {len(todos)} items of its queue done"
    # Its words, and what stands around it, are kept and found, and told nowhere.
    notes = [
        source.note(state.words, min(state.within), timestamp=when, title=title, work=work, aside=True),
        source.note(f"{title}{f', last updated {when}' if when else ''}: {count}.", timestamp=when),
        *source.rest(state.within, aside=True),
    ]
    now = source.notes(notes, "timeline-memory")
    now.agent_type = agent
    parts = [(cleaning.slug(task or agent), one) for one in (*runs, now)]
    return Reading("unreadable" if state.broken else "imported", parts, state.broken)


def _run(source: Source, state: _State, agent: str, key: str, row: Mapping[str, Any], number: int) -> Notes:
    """A run of its history, as a checkpoint of its own; what an analyst decided is a decision."""
    run = in_words(row.get("run_id") or row.get("run") or number)
    when = str(row.get("timestamp") or row.get("completed") or row.get("started") or "")
    findings = in_words(row.get("findings"))
    fields: dict[str, Any] = {"work": {"findings": [findings]}} if findings else {}
    if row.get("decision"):  # recommend, defer or reject, and of what
        about = next((in_words(row[name]) for name in _ID if row.get(name)), "")
        rest = {name: v for name, v in row.items() if name not in ("decision", "timestamp") and v not in (None, [], {})}
        fields["decision"] = {
            "decision": f"{in_words(row['decision'])} {about}".strip(),
            "rationale": in_words(rest),
            "timestamp": when,
            "label": f"{source.session()}#{run}",
        }
    text = "\n".join((f"## {key}: {run}\n", *(f"- {name}: {in_words(value)}" for name, value in row.items())))
    event = source.note(text, min(state.within), title=f"{agent}: {run}", timestamp=when, **fields)
    status = next((in_words(value) for name, value in row.items() if value and name.endswith("status")), "")
    said = findings or in_words(row.get("notes"))
    attempt = Attempt(source.session(run), None, outcome_of(status), when, said)
    return source.notes([event], "timeline-memory", part=run, attempt=attempt)


def _work(tree: Mapping[str, Any], header: Mapping[str, str], task: str) -> dict[str, Any]:
    """The fields of the active work that a memory fills; what is null or empty there is not known."""
    queue, current = tree.get("work_queue"), _mapping(tree.get("current_context") or tree.get("current_assignment"))
    running = _mapping(queue).get("in_progress") or current.get("in_progress") or current.get("monitoring_worker_run")
    doing, blocked = in_words(running), current.get("blocked_by")
    listed = (
        queue if isinstance(queue, list) else [one for key in _WAITING for one in _listed(_mapping(queue).get(key))]
    )
    todos = []
    for item in listed:
        about = item if isinstance(item, Mapping) and "done" in item else {"item": in_words(item)}
        text = plain(f"{about['part_of'].rstrip(':')}: {about['item']}" if "part_of" in about else about["item"])
        begun = about.get("begun") or (doing and doing in text)
        todos.append(
            {"content": text, "status": "completed" if about.get("done") else "in_progress" if begun else "pending"}
        )
    if doing and not any(one["status"] == "in_progress" for one in todos):
        todos.insert(0, {"content": doing, "status": "in_progress"})
    ended = all(one["status"] == "completed" for one in todos)
    status = "in_progress" if doing else "blocked" if blocked else "completed" if ended else "pending"
    following = in_words(current.get("next_in_queue") or current.get("next_item"))
    work = {
        "current_phase": header.get("phase", ""),
        "current_task": task or doing,
        "task_title": header["task"] if task and header["task"] != task else "",
        "todos": todos,
        "next_steps": [following] if following else [],
        "work_status": status if todos or blocked else "",
        "blockers": [in_words(item) for item in _listed(blocked) if item],
    }
    return {key: value for key, value in work.items() if value}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def in_words(value: object) -> str:
    """A value in words, on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(inner)}" for key, inner in value.items())
    return ", ".join(map(in_words, value)) if isinstance(value, list) else plain(str(value or ""))


# ---- the two shapes ----


def _fenced(fence: Fence) -> _State:
    """The state in a fence of YAML; Unreadable where that is none."""
    wrong = "the fence with its state is no YAML"
    try:
        record = handwritten.load(fence.text)
    except guarded_yaml.BadYaml as error:
        raise Unreadable(f"line {fence.first + max(error.line, 1) - 1}: {wrong}: {error.what}") from None
    bare = "\n".join(line for line in fence.text.split("\n") if line.strip() and not line.lstrip().startswith("#"))
    broken = "; ".join(f"line {fence.first + first - 1}: {wrong}: {what}" for first, _, what in record.broken)
    return _State(
        record.tree, bare, range(fence.first - 1, fence.last + 2), f"{broken}; the rest was taken" * bool(broken)
    )


def _in_sections(lines: Sequence[Line]) -> _State | None:
    """The state below headings of Markdown, None where fewer than two of them are there."""
    found: dict[str, Section] = {}
    for section in markdown.sections_of(lines):
        bare = plain(section.heading).casefold()  # remarks may follow
        if name := next((one for one in _STATE if bare.startswith(one.casefold())), ""):
            found.setdefault(name, section)
    if len(found) < 2:
        return None
    history, queue, assignment = (found[name].lines if name in found else () for name in _STATE)
    runs = []
    for section in markdown.sections_of(history):
        bullets = (told for line in section.own if (told := FIELD.match(line.text)))
        runs.append({"run": section.heading, **{told["name"].lower(): told["value"].strip() for told in bullets}})
    tree: dict[str, Any] = {"work_history": runs, "work_queue": list(_items(queue))}
    for fence in markdown.fences_of(assignment)[:1]:
        with suppress(guarded_yaml.BadYaml):  # its words are kept
            tree["current_assignment"] = guarded_yaml.load(handwritten.tidied(fence.text))
    words = "\n\n".join(f"## {name}\n\n{markdown.text_of(one.lines)}" for name, one in found.items())
    return _State(tree, words, {number for one in found.values() for number in range(one.first, one.last + 1)})


def _items(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """The items of a queue: what they say, whether they are done or begun, inside which item."""
    above: list[tuple[int, str]] = []
    for line in lines:
        found = None if line.fence else ITEM.match(line.text)
        if line.level:
            above = []
        elif found is not None:
            text, mark = found["text"].strip(), found["box"] or " "
            above = [(depth, item) for depth, item in above if depth < line.indent]
            part_of = {"part_of": above[-1][1]} if above else {}
            yield {"item": text, "done": mark in "xX", **({"begun": True} if mark in "~>/" else {}), **part_of}
            above.append((line.indent, text))
