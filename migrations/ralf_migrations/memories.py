"""Reads timeline-memory.md, an agent's long-term memory, in both shapes.

One has its state in a fence of YAML that begins with `timeline_memory:`; its history is null until a run is added. The
other has it in Markdown, and one fence of YAML below `## Current Assignment`. What other fences hold are templates and
examples, and so is what stands in comments: neither is state, however it looks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
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
    FIELD,
    Kind,
    Part,
    Reading,
    Source,
    Unreadable,
    in_words,
    task_in,
    text_of,
)

_TOP = "timeline_memory"  # the key with which the state begins
_BEGINS = regex(rf"^{_TOP}:", re.MULTILINE)
_HISTORY = regex(r"(?:\w+_)?history$")
_WAITING = ("priority_sources", "priority_patterns", "priority_recommendations", "backlog")
_ID = ("pattern_id", "task_id", "source", "worker_run_id", "run_id")
_STATE = ("Work History", "Work Queue", "Current Assignment")
_LOOKS = regex(rf"^ {{0,3}}#{{1,6}}[ \t]+({'|'.join(_STATE)})\b", re.MULTILINE)


def read(source: Source) -> Reading:
    """What a memory comes to: the work as it stands, and a checkpoint for each run that it tells of."""
    lines = markdown.lines_of(source.text)
    # The state stands above all sections; in one, a fence shows how such a memory looks.
    fences = markdown.fences_of(lines)
    state = next((fence for fence in fences if _BEGINS.search(fence.text) and len(fence.under) < 2), None)
    if state is not None:
        return _read_fenced(_Memory(source, lines), state)
    if len(set(_LOOKS.findall(source.text))) > 1:
        return _read_plain(_Memory(source, lines))
    return Reading("left", why="neither a fence with `timeline_memory` nor `## Current Assignment`")


class _Memory:
    """A memory as it is read: whose it is, and its runs.

    header  the fields in bold below the title, down to the first rule, fence or heading
    """

    def __init__(self, source: Source, lines: Sequence[Line]) -> None:
        self.source = source
        self.lines = lines
        self.agent = self.route = ""
        self.runs: list[Part] = []
        self.header: dict[str, str] = {}
        for line in lines:
            if line.rule or line.fence or line.level > 1:
                break
            if (found := FIELD.match(line.text)) and found["value"].strip():
                self.header[found["name"]] = found["value"].strip()

    def name(self, agent: str, task: str = "") -> None:
        """Say whose it is: else its heading tells it, else the folder in which it lies; and of which task."""
        heading = next((line.heading for line in self.lines if line.level == 1), "")
        folder = self.source.path.absolute().parent
        words = re.sub(r"\btimeline memory\b", "", plain(heading), flags=re.IGNORECASE).split()
        by_folder = folder.parent.name if folder.name == "memory" else folder.name
        self.agent = agent or cleaning.slug("-".join(words).lower() or by_folder)
        self.route = cleaning.slug(task or self.agent)

    def add_run(self, run: str, event: Event, status: str, said: str) -> None:
        """Add a run of its history, as a checkpoint of its own."""
        attempt = Attempt(self.source.session(run), None, outcome_of(status), event.timestamp, said)
        notes = self.source.notes([event], "timeline-memory", part=run, attempt=attempt)
        self.runs.append(Part(self.route, notes))

    def parts(
        self, words: str, within: Collection[int], when: str, work: Mapping[str, Any], state: Mapping[str, Any]
    ) -> list[Part]:
        """What goes into its route: its runs, then the state, whose words stand on some lines, what the section says of
        it, and what stands around it, which is kept in its words, and told nowhere.
        """
        about = {"path": self.source.name, "sha256": self.source.sha256}
        work = {**work, f"memory_of_{self.agent}": {"source": about, **state}}
        title, queue = f"Memory of {self.agent}", work.get("todos", ())
        done = sum(item["status"] == "completed" for item in queue)
        of_queue = f"{done} of {len(queue)} items of its queue done" if queue else "an empty queue"
        count = f"{len(self.runs)} run{'s' * (len(self.runs) != 1)}" if self.runs else "no runs"
        text = f"{title}{f', last updated {when}' if when else ''}: {count}, {of_queue}."
        told = [
            self.source.note(words, min(within, default=1), timestamp=when, title=title, work=work, aside=True),
            self.source.note(text, timestamp=when),
            *self.source.rest(within, aside=True),
        ]
        notes = self.source.notes(told, "timeline-memory")
        notes.agent_type = self.agent
        return [*self.runs, Part(self.route, notes)]


# ---- a fence of YAML ----


def _read_fenced(memory: _Memory, state: Fence) -> Reading:
    """What a memory comes to whose state stands in this fence. Unreadable where that is no YAML."""
    wrong = "the fence with its state is no YAML"
    try:
        record = handwritten.load(state.text)
    except guarded_yaml.BadYaml as error:
        raise Unreadable(f"line {state.first + max(error.line, 1) - 1}: {wrong}: {error.what}") from None
    tree = record.tree
    about = value if isinstance(value := tree.get(_TOP), Mapping) else {}
    memory.name(str(about.get("agent") or ""))
    histories = {key: rows for key, rows in tree.items() if _HISTORY.match(key) and isinstance(rows, list)}
    for key, rows in histories.items():
        for number, row in enumerate(rows, start=1):
            _add_fenced_run(memory, state, key, number, row if isinstance(row, Mapping) else {"run": row})
    work = _fenced_work(tree)
    if not (memory.runs or work or about.get("total_runs") or record.broken):
        return Reading("nothing", why="a template: it tells of no run and of no work")
    header = {name.lower(): value for name, value in memory.header.items()}
    kept = {"header": header} if header else {}
    kept |= {key: value for key, value in tree.items() if not histories.get(key)}
    bare = "\n".join(line for line in state.text.split("\n") if line.strip() and not line.lstrip().startswith("#"))
    within = range(state.first - 1, state.last + 2)
    parts = memory.parts(bare, within, str(about.get("last_updated") or ""), work, kept)
    if not record.broken:
        return Reading("imported", parts)
    places = "; ".join(f"line {state.first + first - 1}: {wrong}: {what}" for first, _, what in record.broken)
    return Reading("unreadable", parts, f"{places}; the rest was taken")


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
    work = {
        "todos": todos,
        "current_task": doing,
        "work_status": "in_progress" if doing else "",
        "next_steps": [in_words(following)] if following else [],
    }
    return {key: value for key, value in work.items() if value}


def _add_fenced_run(memory: _Memory, state: Fence, key: str, number: int, row: Mapping[str, Any]) -> None:
    run = in_words(row.get("run_id") or number)
    text = "\n".join(f"- {name}: {in_words(value)}" for name, value in row.items())
    fields: dict[str, Any] = {"title": f"{memory.agent}: {run}", "timestamp": str(row.get("timestamp") or "")}
    if row.get("decision"):  # recommend, defer or reject, and of what
        about = next((in_words(row[name]) for name in _ID if row.get(name)), "")
        rest = {name: value for name, value in row.items() if name not in ("decision", "timestamp")}
        fields["decision"] = {
            "decision": f"{in_words(row['decision'])} {about}".strip(),
            "rationale": ", ".join(f"{name} {in_words(v)}" for name, v in rest.items() if v not in (None, [], {})),
            "timestamp": fields["timestamp"],
            "label": f"{memory.source.session()}#{run}",
        }
    rows = enumerate(state.text.split("\n"), start=state.first)
    line = next((n for n, words in rows if run in words and not words.lstrip().startswith("#")), state.first)
    status = next((in_words(value) for name, value in row.items() if value and name.endswith("status")), "")
    event = memory.source.note(f"## {key}: {run}\n\n{text}", line, **fields)
    memory.add_run(run, event, status, in_words(row.get("notes")))


# ---- Markdown ----


def _read_plain(memory: _Memory) -> Reading:
    """What a memory comes to whose state stands in Markdown."""
    header = memory.header
    task = task_in(header.get("Task", ""))
    memory.name(cleaning.slug("-".join(header.get("Agent", "").lower().split())) if "Agent" in header else "", task)
    sections = [one for one in markdown.sections_of(memory.lines) if one.level > 1]
    state = {name: one for one in reversed(sections) if (name := _state_in(one.heading))}
    within = {number for one in state.values() for number in range(one.first, one.last + 1)}
    lines = {name: state[name].lines if name in state else () for name in _STATE}
    assignment: Mapping[str, Any] = {}
    for fence in markdown.fences_of(lines["Current Assignment"])[:1]:
        with suppress(guarded_yaml.BadYaml):  # its words are kept
            assignment = guarded_yaml.load(handwritten.tidied(fence.text))
    queue = list(_queue(lines["Work Queue"]))
    history = []
    for section in markdown.sections_of(lines["Work History"]):
        bullets = (found for line in section.own if (found := FIELD.match(line.text)))
        told = {found["name"].lower(): found["value"].strip() for found in bullets}
        history.append(told | {"run": section.heading})
        _add_plain_run(memory, section, told)
    kept = {
        "header": {key.lower(): value for key, value in header.items()},
        **({"current_assignment": assignment} if assignment else {}),
        **({"work_queue": queue} if queue else {}),
        "work_history": history,
    }
    words = "\n\n".join(f"## {name}\n\n{text_of(lines[name])}" for name in _STATE if name in state)
    work = _plain_work(header, task, assignment, queue)
    return Reading("imported", memory.parts(words, within, header.get("Created", ""), work, kept))


def _state_in(heading: str) -> str:
    """The part of the state that stands below a heading, remarks aside; "" for none."""
    bare = plain(heading).casefold()
    return next((name for name in _STATE if bare.startswith(name.casefold())), "")


def _queue(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """The items of the queue: what they say, whether they are done, below which heading, and inside which item."""
    under = ""
    above: list[tuple[int, str]] = []
    for line in lines:
        found = None if line.fence else ITEM.match(line.text)
        if line.level:
            under, above = line.heading, []
        elif found is not None:
            text, mark = found["text"].strip(), found["box"] or " "
            above = [(depth, item) for depth, item in above if depth < line.indent]
            item: dict[str, Any] = {"item": text, "done": mark in "xX", "begun": mark in "~>/", "under": under}
            item["part_of"] = above[-1][1] if above else ""
            yield {name: value for name, value in item.items() if value or name == "done"}
            above.append((line.indent, text))


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
    ended = bool(queue) and all(item["done"] for item in queue)
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


def _add_plain_run(memory: _Memory, section: Section, told: Mapping[str, str]) -> None:
    findings = plain(told.get("findings", ""))
    fields: dict[str, Any] = {"work": {"findings": [findings]}} if findings else {}
    when = told.get("completed") or told.get("started") or ""
    text = f"### {section.heading}\n\n{text_of(section.own)}"
    title = f"{memory.agent}: {section.heading}"
    event = memory.source.note(text, section.first, timestamp=when, title=title, **fields)
    memory.add_run(section.heading, event, told.get("status", ""), findings)


KIND = Kind(
    ("timeline-memory.md", "*timeline-memory.md", "timeline-memory-*.md"),
    lambda text: _TOP in text or len(set(_LOOKS.findall(text))) > 1,
    read,
    # a worker and its validator may share a task's route: the worker knows where the work stands
    lambda path: ("validator" not in path.as_posix(), path),
)
