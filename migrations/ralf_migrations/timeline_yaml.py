"""Reads a timeline-memory.md of family A: one `yaml` fence that begins with `timeline_memory:` and holds all state.

Its history list is null until a run is added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralf import names, yamltext
from ralf.model import Attempt
from ralf.runs import handwritten, markdown
from ralf.runs.markdown import Fence, Line
from ralf.runs.outcomes import outcome_of
from ralf.transcripts.events import Event
from ralf.transcripts.notes import note
from ralf_migrations.reading import Part, Reading, Source, Unreadable, accounted, in_words, notes, text_of
from ralf_migrations.report import Field
from ralf_migrations.timeline_around import FIELD, agent_of, aside, header_of, summary_of

TOP = "timeline_memory"
"""The key with which the state begins."""

_BEGINS = re.compile(rf"^{TOP}:", re.MULTILINE)
_HISTORY = re.compile(r"(?:\w+_)?history$")
_WAITING = ("priority_sources", "priority_patterns", "priority_recommendations", "priority_items", "backlog")
_ID = ("pattern_id", "task_id", "source", "worker_run_id", "run_id")


def state_in(lines: Sequence[Line], fences: Sequence[Fence]) -> Fence | None:
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


def read(source: Source, lines: Sequence[Line], fences: Sequence[Fence], state: Fence) -> Reading:
    """What such a memory comes to, whose state stands in this fence. Unreadable where that is no YAML."""
    try:
        record = handwritten.salvage(state.text)
    except yamltext.BadYaml as error:
        line = state.first + max(error.line, 1) - 1
        raise Unreadable(f"line {line}: the fence with its state is no YAML: {error.what}") from None
    tree = record.tree
    trouble = [(state.first + first - 1, state.first + last - 1, what) for first, last, what in record.broken]
    about = tree.get(TOP)
    about = about if isinstance(about, Mapping) else {}
    agent = str(about.get("agent") or agent_of(source, lines))
    route = names.slug(agent)
    tree = {**{key: value for key, value in about.items() if _is_state(key)}, **tree}
    histories = {key: _rows(rows) for key, rows in tree.items() if _HISTORY.match(key)}
    header = {name.lower(): value for name, value in header_of(lines).items()}
    memory = {
        "source": {"path": source.name, "sha256": source.sha256},
        **({"header": header} if header else {}),
        **{key: value for key, value in tree.items() if not histories.get(key)},
    }
    runs = [(key, number, row) for key, rows in histories.items() for number, row in enumerate(rows, start=1)]
    parts = [_run(source, state, agent, route, key, number, row) for key, number, row in runs]
    when = str(about.get("last_updated") or "")
    work = {**_work(tree), f"memory_of_{agent}": memory}
    events = [
        note(
            _uncommented(state),
            path=source.name,
            line=state.first,
            timestamp=when,
            title=f"Memory of {agent}",
            work=work,
            aside=True,
        ),
        summary_of(source, agent, when=when, runs=len(runs), queue=work.get("todos", ())),
    ]
    prose = list(_prose(source, lines, state))
    parts.append(Part(route, notes(source, [*events, *(event for event, _ in prose)], what="timeline-memory")))
    said = "; ".join(f"line {first}: the fence with its state is no YAML: {what}" for first, _, what in trouble)
    return Reading(
        "unreadable" if trouble else "imported",
        "family A",
        tuple(parts),
        "the agent's name",
        (
            *_fields_of(tree, agent, histories),
            *(Field(f"**{name}:**", "carried", f"active_work.memory_of_{agent}.header") for name in header),
            *(Field(f"lines {first} to {last}", "evidence", f"no YAML: {what}") for first, last, what in trouble),
            *_templates(state, histories),
            *(field for _, field in prose),
            *_other_fences(fences, state),
        ),
        decisions=sum(_decision(row) is not None for _, _, row in runs),
        notes=len(events) + len(prose) + len(runs),
        why=f"{said}; the rest was taken" if said else "",
    )


def _is_state(key: str) -> bool:
    """Whether a key is one of the state's own, which may stand a level deeper."""
    return key in ("work_queue", "current_context") or _HISTORY.match(key) is not None


def _rows(history: object) -> list[Any]:
    """The runs of a history: a list of them, or a mapping of their ids to them."""
    if isinstance(history, Mapping) and history and all(isinstance(row, Mapping) for row in history.values()):
        return [{"run_id": run, **row} for run, row in history.items()]
    return history if isinstance(history, list) else []


def _work(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the active work that a memory fills; what is null or empty there is not known."""
    queue, current = (
        value if isinstance(value, Mapping) else {} for value in (tree.get("work_queue"), tree.get("current_context"))
    )
    todos = [{"content": in_words(item), "status": "pending"} for key in _WAITING for item in _items(queue.get(key))]
    doing = queue.get("in_progress") or current.get("monitoring_worker_run")
    if doing:
        todos = [todo for todo in todos if todo["content"] != in_words(doing)]
        todos.insert(0, {"content": in_words(doing), "status": "in_progress"})
    work: dict[str, Any] = {"todos": todos} if todos else {}
    if doing:
        work |= {"current_task": in_words(doing), "work_status": "in_progress"}
    if following := current.get("next_in_queue"):
        work["next_steps"] = [in_words(following)]
    return work


def _run(source: Source, state: Fence, agent: str, route: str, key: str, number: int, row: object) -> Part:
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
    attempt = Attempt(source.session(run), None, outcome_of(status), when, in_words(tree.get("notes")))
    return Part(route, notes(source, [event], part=run, what="timeline-memory", attempt=attempt))


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


def _fields_of(tree: Mapping[str, Any], agent: str, histories: Mapping[str, Sequence[Any]]) -> list[Field]:
    kept = f"active_work.memory_of_{agent}"
    fates = {
        key: ("carried", "a checkpoint for each run") if rows else ("carried", f"{kept}: no runs")
        for key, rows in histories.items()
    }
    fates |= {f"work_queue.{key}": ("carried", f"active_work.todos, {kept}") for key in (*_WAITING, "in_progress")}
    fates["current_context.next_in_queue"] = ("carried", f"active_work.next_steps, {kept}")
    return accounted(tree, fates, ("carried", kept))


def _templates(state: Fence, histories: Mapping[str, Any]) -> Iterator[Field]:
    """The example rows and remarks that stand in comments."""
    count = sum(line.lstrip().startswith("#") for line in state.text.split("\n"))
    if count:
        yield Field("# lines of comments in the fence", "left", "examples and remarks of the template: no state", count)


def _uncommented(state: Fence) -> str:
    """The fence without its comments: an example row is no history, and is not to be found as one."""
    kept = [line for line in state.text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return "\n".join(kept)


def _other_fences(fences: Sequence[Fence], state: Fence) -> Iterator[Field]:
    for fence in fences:
        if fence is not state:
            under = f" below {fence.under[-1]}" if fence.under else ""
            yield Field(f"fence at line {fence.first}{under}", "evidence", "a template or an example: no state")


def _prose(source: Source, lines: Sequence[Line], state: Fence) -> Iterator[tuple[Event, Field]]:
    """What stands around the state: kept in its words, and told nowhere."""
    for section in markdown.sections_of(lines):
        own = [line for line in section.own if not state.first - 1 <= line.number <= state.last + 1]
        text = text_of(own if section.level > 1 else [line for line in own if not FIELD.match(line.text)])
        if text:
            yield aside(source, section, text)


def _items(value: object) -> list[Any]:
    return [item for item in value if item] if isinstance(value, list) else [value] if value else []


def _line_of(state: Fence, run: str) -> int:
    lines = state.text.split("\n")
    here = (number for number, line in enumerate(lines) if run in line and not line.lstrip().startswith("#"))
    return state.first + next(here, 0)
