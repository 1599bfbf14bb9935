"""The plan file `.autonomous/tasks/plan.yaml`: its form, written and read.

docs/tasks.md#the-plan says by which rules, and is its format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ralf.document import guarded_yaml
from ralf.document.tree import BadTree, from_tree
from ralf.document.yaml_text import flow
from ralf.errors import DamagedPlan
from ralf.project import Project
from ralf.storage import files
from ralf.tasks.model import Task
from ralf.tasks.sequence import BY_HAND, Chain, Plan
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass

VERSION = 1

MOST_BYTES = 16 << 20
"""The size of the largest plan that is read."""

MOST_ITEMS = 100_000
"""Chains, and tasks of one chain, in the largest plan that is read."""

_MOST_TITLE = 60  # characters of a title that are shown beside an id

_HEAD = """\
# The plan, written by `ralf plan`: each chain runs its tasks from top to bottom, one after the other.
# You may move lines and add `- checkpoint: by hand`; both are kept. Comments are dropped, and titles are ignored.
"""

_CHECKPOINT = "checkpoint"

_MEND = "mend it in an editor, or make it anew: ralf plan --anew"


@dataclass(frozen=True, slots=True)
class _Chain:
    role: str = ""
    route: str = ""
    tasks: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _File:
    version: int = VERSION
    every: int | None = None
    budget: int | None = None
    chains: tuple[_Chain, ...] = ()


def render(plan: Plan, tasks: Iterable[Task] = ()) -> bytes:
    """The file of a plan; `tasks` give the titles that stand beside ids, for people."""
    titles = {task.id: trimmed(one_line(clean(task.title)), _MOST_TITLE) for task in tasks}
    numbers = {"version": VERSION, "every": plan.every, "budget": plan.budget}
    lines = [f"{key}: {number}" for key, number in numbers.items() if number]
    lines += ["chains:" if plan.chains else "chains: []"]
    lines += [line for chain in plan.chains for line in _lines(chain, titles)]
    return (_HEAD + "".join(f"{line}\n" for line in lines)).encode("utf-8", "replace")


def _lines(chain: Chain, titles: Mapping[str, str]) -> Iterator[str]:
    head = [f"{key}: {flow(name)}" for key, name in (("role", chain.role), ("route", chain.route)) if name]
    for number, line in enumerate([*head, "tasks:"]):
        yield f"    {line}" if number else f"  - {line}"
    for who, ids in zip(("", *chain.placed), chain.segments, strict=True):
        if who:
            yield f"      - {_CHECKPOINT}: {flow(who)}"
        for id_ in ids:
            title = titles.get(id_, "")
            yield f"      - {flow(id_)}" + (f"  # {title}" if title else "")


def parse(content: bytes, where: Path | str) -> Plan:
    """The plan that a file holds; DamagedPlan says what is wrong with it, and what to do."""
    try:
        file = from_tree(_File, guarded_yaml.load(content.decode(), most_bytes=MOST_BYTES, most_items=MOST_ITEMS))
        if file.version != VERSION:
            raise DamagedPlan(where, f"a plan of version {file.version}, which another ralf reads", "update ralf")
        seen = set[str]()
        chains = tuple(Chain(one.role, one.route, *_segments(one.tasks, seen)) for one in file.chains)
    except UnicodeDecodeError as error:
        raise DamagedPlan(where, "not UTF-8", _MEND, line=content.count(b"\n", 0, error.start) + 1) from None
    except guarded_yaml.BadYaml as error:
        raise DamagedPlan(where, error.what, _MEND, line=error.line) from None
    except BadTree as error:
        raise DamagedPlan(where, clean(str(error)), _MEND) from None
    return Plan(tuple(chain for chain in chains if chain.segments), file.every, file.budget)


def _segments(items: Sequence[Any], seen: set[str]) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Segments, and who placed the checkpoints between them; of checkpoints without a task between them the last."""
    segments, placed = list[list[str]](), list[str]()
    who = ""
    for item in items:
        if isinstance(item, dict) and [*item] == [_CHECKPOINT]:
            said = item[_CHECKPOINT]
            who = (one_line(clean(said)) if isinstance(said, str) else "") or BY_HAND
            continue
        id_ = str(item) if isinstance(item, int) and not isinstance(item, bool) else item
        if not isinstance(id_, str) or not id_.strip():
            raise BadTree(("chains", "tasks"), f"a task's id, or `{_CHECKPOINT}: {BY_HAND}`", item)
        if id_ in seen:
            raise BadTree(("chains", "tasks"), "each task once", id_)
        seen.add(id_)
        if segments and who:
            placed.append(who)
        if who or not segments:
            segments.append([])
        segments[-1].append(id_)
        who = ""
    return tuple(map(tuple, segments)), tuple(placed)


# ---- the file ----


def path_of(project: Project) -> Path:
    """The plan of a project, which may not be there."""
    return project.folder.parent / "tasks" / "plan.yaml"


def load(project: Project) -> Plan | None:
    """The plan in force; None where there is none. DamagedPlan where it cannot be read."""
    path = path_of(project)
    content = content_at(path)
    return None if content is None else parse(content, path)


def content_at(path: Path) -> bytes | None:
    """The plan's bytes, None where there is none. DamagedPlan for what is no file that can be read."""
    try:
        return files.content_of(path, most=MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DamagedPlan(path, f"cannot be read: {error.strerror}", "put it right, or rename it") from None
