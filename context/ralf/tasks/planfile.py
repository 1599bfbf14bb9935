"""The plan file `.autonomous/tasks/plan.yaml`: reading, writing and undoing it.

docs/sequence.md is its format. It is written whole; what it was before lies in the cache, for `undo`.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralf import config
from ralf.errors import Busy, DamagedPlan, NotFound, UsageError
from ralf.format import guarded_yaml
from ralf.format.codec import meaning, quoted
from ralf.project import Project, find
from ralf.storage import durable, files
from ralf.storage.files import content_of
from ralf.tasks.model import Task, TaskState
from ralf.tasks.sequence import AUTOMATIC, BY_HAND, BY_SYNC, SETTLED, Chain, Plan, learnt, make_plan
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

VERSION = 1

MOST_BYTES = 16 << 20
"""The size of the largest plan that is read."""

_MOST_ITEMS = 100_000

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
    known = {task.id: task for task in tasks}
    chains = [line for chain in plan.chains for line in _chain_lines(chain, plan, known)]
    lines = [
        f"version: {VERSION}",
        *([f"every: {plan.every}"] if plan.every else []),
        *([f"budget: {plan.budget}"] if plan.budget else []),
        f"order: {BY_HAND if plan.by_hand else 'by priority'}",
        *([] if plan.by_hand else [f'sum: "{_sum(plan.chains)}"']),
        *(["chains:", *chains] if chains else ["chains: []"]),
    ]
    return (_HEAD + "".join(f"{line}\n" for line in lines)).encode()


def _chain_lines(chain: Chain, plan: Plan, known: Mapping[str, Task]) -> Iterator[str]:
    keys = []
    if chain.role:
        keys.append(f"role: {_scalar(chain.role)}")
    if chain.route:
        keys.append(f"route: {_scalar(chain.route)}")
    if chain.tokens:
        keys.append(f"tokens: {chain.tokens}")
    if chain.guessed:
        keys.append("guessed: true")
    keys.append("tasks:")
    yield f"  - {keys[0]}"
    yield from (f"    {key}" for key in keys[1:])
    for number, ids in enumerate(chain.segments):
        if number:
            placed = chain.placed[number - 1]
            waits = _awaited(plan, known.get(ids[0])) if placed == BY_SYNC else ""
            yield f"      - {_CHECKPOINT}: {placed if placed in (*AUTOMATIC, BY_HAND) else quoted(placed)}{waits}"
        for each in ids:
            name = _scalar(each)
            task = known.get(each)
            title = trimmed(one_line(clean(task.title)), _MOST_TITLE) if task else ""
            name = f"{_TASK}: {name}" if each == _CHECKPOINT else name
            yield f"      - {name}  # {title}" if title else f"      - {name}"


def _awaited(plan: Plan, task: Task | None) -> str:
    """A comment that names what a sync point waits for."""
    own = plan.chain(task.id) if task else None
    names = [each for each in (task.after if task else ()) if plan.chain(each) not in (None, own)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"  # waits for {one_line(clean(', '.join(names[:3])))}{more}" if names else ""


def _scalar(text: str) -> str:
    if _REFUSED.search(text):
        raise UsageError(clean(text), "holds control characters: it cannot be in a plan")
    return text if _PLAIN.match(text) and isinstance(meaning(text), str) else quoted(text)


def _sum(chains: Sequence[Chain]) -> str:
    """What the order of all tasks comes to: a person who moves one need not say so."""
    told = "\n".join(quoted("\n".join((*chain.key, *chain.tasks))) for chain in chains)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def parse(content: bytes, where: Path | str) -> Plan:
    """The plan that a file holds; DamagedPlan names the line, as far as one can be named, and what to do."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DamagedPlan(where, "not UTF-8", _MEND, line=line) from None
    conflict = _CONFLICT.search(text)
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        raise DamagedPlan(where, "an unresolved merge", "keep one side of it, then: ralf serialize", line=line)
    try:
        tree = guarded_yaml.load(text, most_bytes=MOST_BYTES, most_items=_MOST_ITEMS)
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
        chains = tree.get("chains") or []
        if not isinstance(chains, list):
            raise self._damaged("chains", "expected a list", chains)
        made = tuple(chain for number, each in enumerate(chains, 1) if (chain := self._chain(number, each)).segments)
        keys = {chain.key for chain in made}
        if len(keys) < len(made):
            raise DamagedPlan(self._where, f"{self._twice(made)} is there twice", f"make one of both: {_MEND}")
        is_moved = "sum" in tree and str(tree["sum"]) != _sum(made)
        every, budget = (self._count(tree, key, "") for key in ("every", "budget"))
        return Plan(made, every, budget, _ORDERS[order] or is_moved)

    def _twice(self, chains: Sequence[Chain]) -> str:
        counts = Counter(chain.key for chain in chains)
        role, route = next(key for key, count in counts.items() if count > 1)
        what = f"of role {role}" if role else f"of route {route}" if route else "without role and route"
        return f"the chain {clean(what)}"

    def _chain(self, number: int, tree: Any) -> Chain:
        at = f"chain {number}: "
        if not isinstance(tree, dict):
            raise self._damaged(f"chain {number}", "expected `role:` or `route:`, and `tasks:`", tree)
        self._check_keys(tree, ("role", "route", "tokens", "guessed", "tasks"), at)
        role, route = (
            self._name(tree.get(key, ""), f"{at}{key}") if tree.get(key) else "" for key in ("role", "route")
        )
        if role and route:
            raise DamagedPlan(self._where, f"{at}has a role and a route", f"keep one of them: {_MEND}")
        guessed = tree.get("guessed", False)
        if not isinstance(guessed, bool):
            raise self._damaged(f"{at}guessed", "expected true or false", guessed)
        items = tree.get("tasks") or []
        if not isinstance(items, list):
            raise self._damaged(f"{at}tasks", "expected a list", items)
        segments, placed = self._segments(items, at)
        return Chain(role, route, segments, placed, self._count(tree, "tokens", at) or 0, guessed)

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
        if not segments[-1]:
            segments.pop()
            placed = placed[: max(len(segments) - 1, 0)]
        return tuple(map(tuple, segments)), tuple(placed)

    def _checkpoint(self, item: Any, at: str) -> str:
        """Who placed a checkpoint; "" for what is not one."""
        if item == _CHECKPOINT:
            return BY_HAND
        if not isinstance(item, dict) or _CHECKPOINT not in item:
            return ""
        who = item[_CHECKPOINT]
        if len(item) > 1 or isinstance(who, dict | list):
            raise self._damaged(f"{at}{_CHECKPOINT}", f"expected `- {_CHECKPOINT}: {BY_HAND}`", who)
        return one_line(clean(str(who))) if isinstance(who, str) and clean(who).strip() else BY_HAND

    def _task(self, item: Any, at: str) -> str:
        if isinstance(item, dict) and [*item] == [_TASK]:
            item = item[_TASK]
        name = self._name(item, f"{at}tasks")
        if name in self._seen:
            lines = [each.line + 1 for each in guarded_yaml.scalars(self._text) if each.text == name]
            first = f", first in line {lines[0]}" if len(lines) > 1 else ""
            raise DamagedPlan(
                self._where,
                f"{name} is there twice{first}",
                f"keep one of both: {_MEND}",
                line=lines[-1] if lines else 0,
            )
        self._seen[name] = None
        return name

    def _name(self, value: Any, at: str) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            raise self._damaged(at, "expected a name", value)
        return value

    def _count(self, tree: Mapping[str, Any], key: str, at: str) -> int | None:
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
        lines = [each.line + 1 for each in guarded_yaml.scalars(self._text) if each.text == text]
        return lines[0] if len(lines) == 1 else 0


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
    content = _content(path)
    return None if content is None else parse(content, path)


def _content(path: Path) -> bytes | None:
    try:
        return content_of(path, most=MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DamagedPlan(path, f"cannot be read: {error.strerror}", "put it right, or rename it") from None


def serialize_states(
    project: Project,
    states: Sequence[TaskState],
    *,
    every: int | None = None,
    budget: int | None = None,
    anew: bool = False,
    dry_run: bool = False,
) -> Plan:
    """As `serialize`, of tasks that are known already; `states` are all tasks of the project."""
    path = path_of(project)
    if dry_run:
        return _planned(project, states, _content(path), every, budget, anew)[0]
    with _writing(project) as kept:
        for _ in range(_MOST_TRIES):
            before = _content(path)
            plan, content = _planned(project, states, before, every, budget, anew)
            plan = replace(plan, notes=(*kept, *plan.notes))
            if content is None or _replaced(project, before, content):
                return plan
    raise Busy(path, "changes faster than it can be written", "try again")


def _planned(
    project: Project,
    states: Sequence[TaskState],
    content: bytes | None,
    every: int | None,
    budget: int | None,
    anew: bool,
) -> tuple[Plan, bytes | None]:
    """The plan, and the file to write; None where the file that is there says the same."""
    path = path_of(project)
    before = None if content is None or anew else parse(content, path)
    if every is None and budget is None:
        if before is not None:
            every, budget = before.every, before.budget
        else:
            settings = config.of(project)
            budget = max(settings.window * settings.pressure // 100, 1)
    tasks = [state.task for state in states]
    plan = make_plan(
        tasks,
        every=every,
        budget=budget,
        tokens=learnt(states),
        before=before,
        running={state.task.id for state in states if state.claim is not None},
        without={state.task.id for state in states if state.is_foreign},
    )
    plan = replace(plan, notes=tuple(_notes(plan, before, states)))
    if before is None and content is None and not plan.chains:
        return plan, None
    if before == plan and f"order: {BY_HAND if plan.by_hand else 'by priority'}\n".encode() in (content or b""):
        return plan, None
    made = _rendered(path, plan, tasks)
    return plan, None if made == content else made


def _rendered(path: Path, plan: Plan, tasks: Sequence[Task]) -> bytes:
    """The file, without titles where they would make it too large to be read."""
    for known in (tasks, ()):
        made = render(plan, known)
        items = max((len(chain.tasks) + len(chain.placed) for chain in plan.chains), default=0)
        if len(made) <= MOST_BYTES and items <= _MOST_ITEMS:
            return made
    raise UsageError(path, "more tasks than one plan can hold", "give them roles or routes")


def _notes(plan: Plan, before: Plan | None, states: Sequence[TaskState]) -> Iterator[str]:
    if plan.by_hand:
        yield "a person has moved tasks: that order stays; to go by priority again: ralf serialize --anew"
    guessed = next((chain.tokens for chain in plan.chains if chain.guessed), 0)
    if guessed:
        yield f"no history says how many tokens a task takes: {guessed:,} is a guess"
    known = {state.task.id for state in states}
    gone = [each for each in before or () if each not in known]
    if gone:
        more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
        yield f"in the plan, but no such task, so left out: {', '.join(gone[:3])}{more}"
    foreign = sum(state.is_foreign and state.task.status not in SETTLED for state in states)
    if foreign:
        yield f"left out, as they came with the repository: {foreign} of the tasks; to accept them: ralf task trust"


def undo(root: str | os.PathLike[str] | None = None) -> Plan | None:
    """Give the plan file the content that it had before `serialize` wrote it, or none; the plan that is in force then.

    Several times: one step back each. NotFound where what is there was not written by `serialize` here: then it may
    hold what a person did to it, and stays.
    """
    project = find(root)
    path = path_of(project)
    with _writing(project) as kept:
        now = _content(path)
        try:
            memory = content_of(_memory(project, now))
        except OSError:
            what = "nothing to undo: `ralf serialize` did not write what is there"
            hint = "edit the file by hand" if now is not None else "ralf serialize"
            raise NotFound(path, what if now is not None else "nothing to undo: there is no plan", hint) from None
        before = memory.removeprefix(_PRESENT) if memory.startswith(_PRESENT) else None
        if before is None:
            durable.removed([path])
        elif not _exchanged(path, now, before):
            raise Busy(path, "was saved in this very moment", "look at it, then: ralf serialize --undo")
    if before is None:
        return None
    try:
        plan = parse(before, path)
    except DamagedPlan as error:  # as it was before
        plan = Plan(notes=(str(error),))
    return replace(plan, notes=(*kept, *plan.notes))


# ---- writing ----

_MOST_TRIES = 5

_MODE = 0o644

_ABSENT, _PRESENT = b"absent\n", b"present\n"

_MEMORIES = 20  # of `undo`


@contextmanager
def _writing(project: Project) -> Iterator[list[str]]:
    """Hold the lock of all who write the plan. Gives lines that name saves which a dead writer had displaced."""
    path = path_of(project)
    for folder in (path.parent, path.parent.parent):
        if folder.is_symlink():
            raise UsageError(folder, "is a symbolic link: not followed", "remove the link")
    project.prepare()
    with files.locked(project.folder / "locks" / "plan.lock", str(path)):
        kept = []
        for displaced in durable.sweep(path, grace=0):
            if _is_known(project, displaced.content):  # a writer died before it could give the file its name
                displaced.remove()
                continue
            place = path.with_name(f"plan.displaced-{_digest(displaced.content)[:8]}.yaml")
            displaced.keep(place)
            kept.append(f"{place}: was saved while the plan was written")
        yield kept


def _replaced(project: Project, before: bytes | None, content: bytes) -> bool:
    """Write the plan. False, and nothing is changed, where a person has saved it meanwhile."""
    path = path_of(project)
    memory = _memory(project, content)
    files.make(memory.parent)
    durable.write(memory, _ABSENT if before is None else _PRESENT + before)
    _forget_memories(memory.parent)
    if not path.parent.is_dir():
        files.make(path.parent, mode=files.NOT_WRITABLE_BY_OTHERS)
        durable.sync_folder(path.parent.parent)
    return _exchanged(path, before, content)


def _exchanged(path: Path, before: bytes | None, content: bytes) -> bool:
    try:
        displaced = durable.exchange(path, content, _digest(before or b""), mode=_MODE if before is None else None)
        if displaced is not None and displaced.content != before:
            back = durable.exchange(path, displaced.content, _digest(content))
            for each in (displaced, back):
                if each is not None:
                    each.remove()
            return False
    except durable.BeingSaved as error:
        raise Busy(path, str(error.strerror), "try again") from None
    if displaced is not None:
        displaced.remove()
    return True


def _memory(project: Project, content: bytes | None) -> Path:
    """Where it is kept what the plan was before it became this one."""
    return project.cache / "plans" / (_digest(content) if content is not None else "absent")


def _is_known(project: Project, content: bytes) -> bool:
    """Whether a content of the plan can be had again: it is there, we wrote it, or `undo` restores it."""
    memory = _memory(project, content)
    if content == _content(path_of(project)) or memory.exists():
        return True
    with suppress(OSError):
        return any(content_of(each) == _PRESENT + content for each in memory.parent.iterdir())
    return False


def _forget_memories(folder: Path) -> None:
    """Keep the newest, and nothing that a dead writer left."""
    with suppress(OSError):
        found = sorted((each.stat().st_mtime_ns, each.path) for each in os.scandir(folder) if each.is_file())
        dead = [path for _, path in found if durable.is_hidden(Path(path).name)]
        whole = [path for _, path in found if path not in dead]
        for path in (*dead, *whole[:-_MEMORIES]):
            Path(path).unlink()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
