"""The plan file `.autonomous/tasks/plan.yaml` as text. docs/sequence.md is its format."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ralf.document import guarded_yaml
from ralf.document.yaml_text import meaning, quoted
from ralf.errors import DamagedPlan, UsageError
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.tasks.model import Task
from ralf.tasks.sequence import AUTOMATIC, BY_HAND, BY_SYNC, Chain, Plan
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

VERSION = 1

MOST_BYTES = 16 << 20
"""The size of the largest plan that is read."""

MOST_ITEMS = 100_000
"""Chains, and tasks of one chain, in the largest plan that is read."""

_MOST_TITLE = 60  # characters of a title that are shown beside an id

_HEAD = """\
# The plan, made by `ralf serialize`: each chain does its tasks from top to bottom, one after the other.
# You may move lines and add `- checkpoint: by hand`; both stay. Comments are not kept, and no one reads the titles.
"""

_ORDERS = {"by priority": False, BY_HAND: True}

_PLAIN = regex(r"[A-Za-z][A-Za-z0-9._-]*\Z")

_REFUSED = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # by the loader, wherever it stands

_CONFLICT = regex(r"(?m)^(?:<{7}|={7}|>{7})(?: |$)")

_CHECKPOINT, _TASK = "checkpoint", "task"

_MEND = "mend it in an editor"

# ---- as text ----


def render(plan: Plan, tasks: Iterable[Task] = ()) -> bytes:
    """The file of a plan; `tasks` give the titles that stand beside ids, for people."""
    known, keys = {task.id: task for task in tasks}, plan.keys()
    chains = [line for chain in plan.chains for line in _chain_lines(chain, keys, known)]
    lines = [
        f"version: {VERSION}",
        *([f"every: {plan.every}"] if plan.every else []),
        *([f"budget: {plan.budget}"] if plan.budget else []),
        f"order: {BY_HAND if plan.by_hand else 'by priority'}",
        *([] if plan.by_hand else [f'sum: "{_sum(plan.chains)}"']),
        *(["chains:", *chains] if chains else ["chains: []"]),
    ]
    return (_HEAD + "".join(f"{line}\n" for line in lines)).encode()


def _chain_lines(chain: Chain, keys: Mapping[str, tuple[str, str]], known: Mapping[str, Task]) -> Iterator[str]:
    head = [f"{key}: {_scalar(name)}" for key, name in (("role", chain.role), ("route", chain.route)) if name]
    head += [f"tokens: {chain.tokens}"] if chain.tokens else []
    head += ["guessed: true"] if chain.guessed else []
    for number, key in enumerate([*head, "tasks:"]):
        yield f"    {key}" if number else f"  - {key}"
    for number, ids in enumerate(chain.segments):
        if number:
            placed, task = chain.placed[number - 1], known.get(ids[0])
            others = [one for one in task.after if keys.get(one, chain.key) != chain.key] if task is not None else []
            waits = f"  # waits for {one_line(clean(some(others)))}" if placed == BY_SYNC and others else ""
            yield f"      - {_CHECKPOINT}: {placed if placed in (*AUTOMATIC, BY_HAND) else quoted(placed)}{waits}"
        for id_ in ids:
            name = f"{_TASK}: {_CHECKPOINT}" if id_ == _CHECKPOINT else _scalar(id_)
            title = trimmed(one_line(clean(known[id_].title)), _MOST_TITLE) if id_ in known else ""
            yield f"      - {name}  # {title}" if title else f"      - {name}"


def _scalar(text: str) -> str:
    if _REFUSED.search(text):
        raise UsageError(clean(text), "holds control characters: it cannot be in a plan")
    return text if _PLAIN.match(text) and isinstance(meaning(text), str) else quoted(text)


def some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return f"{', '.join(names[:3])} and {len(names) - 3} more" if len(names) > 3 else ", ".join(names)


def _sum(chains: Sequence[Chain]) -> str:
    """What the order of all tasks comes to: a person who moves one need not say so."""
    told = "\n".join(quoted("\n".join((*chain.key, *chain.tasks))) for chain in chains)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def parse(content: bytes, where: Path | str) -> Plan:
    """The plan that a file holds; DamagedPlan names the line, as far as one can be named, and what to do."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise DamagedPlan(where, "not UTF-8", _MEND, line=content.count(b"\n", 0, error.start) + 1) from None
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        raise DamagedPlan(where, "an unresolved merge", "keep one side of it, then: ralf serialize", line=line)
    try:
        tree = guarded_yaml.load(text, most_bytes=MOST_BYTES, most_items=MOST_ITEMS)
    except guarded_yaml.BadYaml as error:
        raise DamagedPlan(where, error.what, _MEND, line=error.line) from None
    return _Reader(where, text).plan(tree)


class _Reader:
    """Makes a plan of a tree, and says what is wrong with it."""

    def __init__(self, where: Path | str, text: str) -> None:
        self._where = where
        self._text = text
        self._seen: dict[str, None] = {}

    def plan(self, tree: Mapping[str, Any]) -> Plan:
        self._check_keys(tree, ("version", "every", "budget", "order", "sum", "chains"), "")
        version = tree.get("version", VERSION)
        if not _is_number(version):
            raise self._damaged("version", f"expected {VERSION}", version)
        if version > VERSION:
            raise DamagedPlan(self._where, f"a plan of version {version}, which a later ralf reads", "update ralf")
        order = tree.get("order", "by priority" if "sum" in tree else BY_HAND)
        if order not in _ORDERS:
            raise self._damaged("order", f"expected {' or '.join(_ORDERS)}", order)
        chains = [self._chain(f"chain {number}", each) for number, each in enumerate(self._list(tree, "chains"), 1)]
        made = tuple(chain for chain in chains if chain.segments)
        key, count = next(iter(Counter(chain.key for chain in made).most_common(1)), (("", ""), 0))
        if count > 1:
            what = f"the chain {''.join(key) or 'without role and route'} is there twice"
            raise DamagedPlan(self._where, clean(what), f"make one of both: {_MEND}")
        is_moved = "sum" in tree and str(tree["sum"]) != _sum(made)
        every, budget = (self._count(tree, key) for key in ("every", "budget"))
        return Plan(made, every, budget, _ORDERS[order] or is_moved)

    def _chain(self, at: str, tree: Any) -> Chain:
        if not isinstance(tree, dict):
            raise self._damaged(at, "expected `role:` or `route:`, and `tasks:`", tree)
        self._check_keys(tree, ("role", "route", "tokens", "guessed", "tasks"), f"{at}: ")
        role, route = (self._name(tree[key], f"{at}: {key}") if tree.get(key) else "" for key in ("role", "route"))
        if role and route:
            raise DamagedPlan(self._where, f"{at}: has a role and a route", f"keep one of them: {_MEND}")
        guessed = tree.get("guessed", False)
        if not isinstance(guessed, bool):
            raise self._damaged(f"{at}: guessed", "expected true or false", guessed)
        segments, placed = self._segments(self._list(tree, "tasks", f"{at}: "), at)
        return Chain(role, route, segments, placed, self._count(tree, "tokens", f"{at}: ") or 0, guessed)

    def _segments(self, items: Sequence[Any], at: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
        """Segments, and who placed the checkpoints between them, without those at either end and second ones."""
        segments, placed = [list[str]()], list[str]()
        for item in items:
            who = self._checkpoint(item, at)
            if not who:
                segments[-1].append(self._task(item, at))
            elif segments[-1]:
                placed.append(who)
                segments.append([])
            elif placed and placed[-1] in AUTOMATIC:
                placed[-1] = who
        whole = tuple(tuple(ids) for ids in segments if ids)
        return whole, tuple(placed[: max(len(whole) - 1, 0)])

    def _checkpoint(self, item: Any, at: str) -> str:
        """Who placed a checkpoint; "" for what is not one."""
        if item == _CHECKPOINT:
            return BY_HAND
        if not isinstance(item, dict) or _CHECKPOINT not in item:
            return ""
        who = item[_CHECKPOINT]
        if len(item) > 1 or isinstance(who, dict | list):
            raise self._damaged(f"{at}: {_CHECKPOINT}", f"expected `- {_CHECKPOINT}: {BY_HAND}`", who)
        return (one_line(clean(who)) if isinstance(who, str) else "") or BY_HAND

    def _task(self, item: Any, at: str) -> str:
        name = self._name(item[_TASK] if isinstance(item, dict) and [*item] == [_TASK] else item, f"{at}: tasks")
        if name in self._seen:
            lines = self._lines(name)
            first = f", first in line {lines[0]}" if len(lines) > 1 else ""
            what = f"{name} is there twice{first}"
            raise DamagedPlan(self._where, what, f"keep one of both: {_MEND}", line=lines[-1] if lines else 0)
        self._seen[name] = None
        return name

    def _name(self, value: Any, at: str) -> str:
        if _is_number(value):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self._damaged(at, "expected a name", value)
        return value

    def _list(self, tree: Mapping[str, Any], key: str, at: str = "") -> Sequence[Any]:
        value = tree.get(key) or []
        if not isinstance(value, list):
            raise self._damaged(f"{at}{key}", "expected a list", value)
        return value

    def _count(self, tree: Mapping[str, Any], key: str, at: str = "") -> int | None:
        value = tree.get(key)
        if value is not None and (not _is_number(value) or value < 1):
            raise self._damaged(f"{at}{key}", "expected a number, 1 or more", value)
        return value

    def _check_keys(self, tree: Mapping[str, Any], known: Sequence[str], at: str) -> None:
        for key in tree:
            if key not in known:
                what = f"{at}unknown key {clean(key)!r}, expected one of: {', '.join(known)}"
                raise DamagedPlan(self._where, what, _MEND, line=self._line(key))

    def _damaged(self, at: str, expected: str, found: Any) -> DamagedPlan:
        line = self._line(str(found)) if isinstance(found, str | int | float) else 0
        return DamagedPlan(self._where, f"{at}: {expected}, got {_short(found)}", _MEND, line=line)

    def _line(self, text: str) -> int:
        """The line of the only scalar that says this; 0 where there are more."""
        lines = self._lines(text)
        return lines[0] if len(lines) == 1 else 0

    def _lines(self, text: str) -> list[int]:
        return [each.line + 1 for each in guarded_yaml.scalars(self._text) if each.text == text]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a mapping"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    return repr(trimmed(one_line(clean(str(value))), _MOST_TITLE))


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
        return content_of(path, most=MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DamagedPlan(path, f"cannot be read: {error.strerror}", "put it right, or rename it") from None
