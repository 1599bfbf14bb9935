"""What the harnesses of the write path share: work that acknowledges, and what has to hold of a route afterwards.

Work runs in processes that are forked from one that has imported everything, so that a fault comes in the middle of
the work and not of an import. What is acknowledged goes through a pipe, one line each, and carries a marker; whatever
happens to the worker, the marker has to be found in the journal, once, for ever after.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import frontmatter.default_handlers  # noqa: F401  # of who reads an edit: an injected failure is not to hit its import
from tests import storekit
from tests.clocks import slower
from tests.faults.figures import SKIPPED as SKIPPED, Figure, size_options, told

import ralf
from ralf import project
from ralf.checkpointing.section import Summarizer
from ralf.document.tree import to_tree
from ralf.errors import RalfError
from ralf.route import filed, fold
from ralf.storage import durable, journal
from ralf.text.cleaning import MARK

ROUTE = "TASK-1"
MOST_BLOCKED = 1.0  # seconds that the writer after a fault may take

Acknowledge = Callable[[str], None]
"""Tells the harness that a marker is safe."""


@dataclass
class Found:
    """What a harness has found: how often each fault, the first of each in words, and figures to print."""

    rounds: int = 0
    acknowledged: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)

    def note(self, kind: str, example: str, count: int = 1) -> None:
        """Note a fault."""
        if count:
            self.faults[kind] += count
            self.examples.setdefault(kind, example)

    def add(self, other: Found) -> None:
        """Take in what another process has found."""
        self.rounds += other.rounds
        self.acknowledged += other.acknowledged
        self.faults += other.faults
        self.examples = other.examples | self.examples
        self.figures |= other.figures


# ---- work ----


def decide(root: Path, marker: str, acknowledge: Acknowledge, route: str = ROUTE) -> None:
    """Record a decision that says the marker."""
    ralf.record_decision(route, f"Choose d-{marker}", rationale="so that it is found again", root=root)
    acknowledge(f"d-{marker}")


def checkpoint(
    root: Path,
    marker: str,
    acknowledge: Acknowledge,
    route: str = ROUTE,
    *,
    summarizer: Summarizer | None = None,
    when: str = "",
) -> None:
    """Let a transcript of this process grow by a request that says the marker, and take it in.

    when  the time of its records; else they are of a spring that is long gone
    """
    path = root / f"session-{os.getpid()}.jsonl"
    session = f"s-{os.getpid()}"
    request = {
        "type": "user",
        "sessionId": session,
        "timestamp": "2026-03-01T08:00:00.000Z",
        "cwd": "/srv/tide",
        "message": {"role": "user", "content": f"Please carry c-{marker} of the tide table over to the new reader."},
    }
    with path.open("a", encoding="utf-8") as file:
        for record in (request, *storekit.turn(7, session)):
            file.write(json.dumps(record | ({"timestamp": when} if when else {})) + "\n")
    if ralf.checkpoint(route, path, root=root, summarizer=summarizer).checkpoints:
        acknowledge(f"c-{marker}")


def edited(text: str, marker: str) -> str:
    """A route file, as a person saves it who notes a marker in it."""
    return text.replace("\ndecisions:", f"\nnote_{marker}: true\ndecisions:", 1)


def save(root: Path, marker: str, acknowledge: Acknowledge, route: str = ROUTE) -> None:
    """Save the route file as an editor does, by rename, with a note that says the marker."""
    path = storekit.route_file(root, route)
    with suppress(FileNotFoundError):
        text = edited(path.read_text(encoding="utf-8"), marker)
        if f"\nnote_{marker}: true" in text:
            made = path.with_name(f".swap-{os.getpid()}")
            made.write_text(text, encoding="utf-8")
            os.replace(made, path)
            acknowledge(f"note_{marker}")


def take_in(root: Path, marker: str, acknowledge: Acknowledge) -> None:
    """Save the route file, and have a decision take that in."""
    save(root, marker, acknowledge)
    decide(root, marker, acknowledge)


def warm() -> None:
    """Do everything once, so that whoever is forked afterwards has imported and loaded what it takes."""
    with store() as root:
        for work in (decide, checkpoint, take_in):
            work(root, "warm", lambda marker: None)
    gc.freeze()  # else the first full collection of each child copies every page that it shares with the others


# ---- processes ----


@contextmanager
def store() -> Iterator[Path]:
    """A project directory of its own, for one run."""
    with tempfile.TemporaryDirectory(prefix="ralf-faults-") as folder:
        yield Path(folder)


def forked(work: Callable[[], None]) -> int:
    """Do work in a process of its own; its id. It ends with 0, or 1 when the work raised what it should not."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    return pid if pid else _work(work)


def _work(work: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # a child of ours ends here whatever happens
        traceback.print_exc()
    finally:
        os._exit(status)


def apart(work: Callable[[], Found]) -> Found:
    """What work finds in a process of its own, with which its mounts and namespaces go."""
    return _begun(work)()


def _begun(work: Callable[[], Found]) -> Callable[[], Found]:
    """Begin work in a process of its own; what waits for what it finds."""
    pipe = Pipe()
    child = forked(lambda: pipe.acknowledge(json.dumps(vars(work()))))
    os.close(pipe.write)

    def ended() -> Found:
        text = pipe.read()
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the harness itself failed; see above")
        tree = json.loads(text)
        return Found(**tree | {"faults": Counter(tree["faults"])})

    return ended


def cases(
    judge: Callable[[random.Random], Iterable[str]], rounds: int, seed: int = 1, *, first: int = 0, jobs: int = 2
) -> Found:
    """What a judge yields of so many random cases, in so many processes; each fault names the case that shows it."""

    def share(numbers: Sequence[int]) -> Found:
        found = Found(rounds=len(numbers))
        for number in numbers:
            for what in judge(random.Random(f"{seed}:{number}")):
                found.note(what.partition(":")[0], f"--seed {seed} --first {number}: {what}")
        return found

    return shared_out(share, range(first, first + rounds), jobs=jobs)


_One = TypeVar("_One")


def shared_out(work: Callable[[Sequence[_One]], Found], items: Sequence[_One], *, jobs: int) -> Found:
    """What work finds in so many processes, of which each has a share of the items."""
    found = Found()
    for ended in [_begun(partial(work, items[part::jobs])) for part in range(min(jobs, len(items)))]:
        found.add(ended())
    return found


class Pipe:
    """Where a worker writes what it has acknowledged. A line is whole: a write of a few bytes to a pipe is."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()

    def acknowledge(self, marker: str) -> None:
        """Say that a marker is safe."""
        os.write(self.write, f"{marker}\n".encode())

    def markers(self) -> list[str]:
        """What was acknowledged, once all workers are dead."""
        return self.text().split()

    def text(self) -> str:
        """Everything that was written, once all workers are done."""
        os.close(self.write)
        return self.read()

    def read(self) -> str:
        """The same where nobody here writes any more."""
        with os.fdopen(self._read, "rb") as file:
            return file.read().decode()


def until(condition: Callable[[], object], patience: float = 60.0) -> None:
    """Wait for something; AssertionError where it does not come."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited for nothing"
        time.sleep(0.01)


# ---- processes that are killed ----

_NO_FILES = (str, bytes, bytearray, list, set, dict)  # whose `replace` and `remove` touch no disk

DEADLY = frozenset(
    "write pwrite fsync fdatasync rename replace link unlink remove mkdir rmdir symlink ftruncate utime flock".split()
)
"""Calls before and after which a process is killed."""


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do work in a process of its own that is killed at its n-th call of `DEADLY`; whether it was."""
    return _was_killed(forked(lambda: _work_until(number, work)))


def _was_killed(child: int) -> bool:
    """Whether a process was killed; AssertionError where it failed."""
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"a worker failed: {status}"
    return os.WIFSIGNALED(status)


def _work_until(number: int, work: Callable[[], object]) -> None:
    count = 0

    def hook(frame: Any, event: str, what: Any) -> None:
        nonlocal count
        is_call = event in ("c_call", "c_return") and getattr(what, "__name__", "") in DEADLY
        is_call = is_call and not isinstance(getattr(what, "__self__", None), _NO_FILES)
        if is_call or (event in ("call", "return") and frame.f_code.co_name == "_renamed"):  # by ctypes
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        work()
    finally:
        sys.setprofile(None)


# ---- what has to hold ----


def look(root: Path, acknowledged: set[str], found: Found, when: str, route: str = ROUTE) -> None:
    """Look at a route right after a fault: every read is whole, and nothing acknowledged is missing."""
    try:
        context = ralf.get_context(route, root=root)
        said = markers_in(root, route)
    except (RalfError, OSError) as error:
        if acknowledged:
            found.note("torn", f"{when}: {error!r}")
        return
    if context.warnings:
        found.note("torn", f"{when}: {context.warnings[0]}")
    shown = {*context.extra, *(item.decision.rpartition(" ")[2] for item in context.decisions)}
    quick = {marker for marker in said if not marker.startswith("c-")}  # a checkpoint may fold its requests
    found.note("torn", f"{when}: what is read lacks what the journal says", len(quick - shown))
    lost = acknowledged - {*said, *context.extra}
    found.note("lost", f"{when}: {sorted(lost)[:3]}", len(lost))


def settle(root: Path, acknowledged: set[str], found: Found, when: str, *, marker: str, route: str = ROUTE) -> None:
    """Write once more, as the next agent does, and look: at once, everything in its place, nothing left behind."""
    started = time.monotonic()
    try:
        decide(root, marker, acknowledged.add, route)
    except (RalfError, OSError) as error:
        found.note("blocked", f"{when}: {error!r}")
        return
    took = time.monotonic() - started
    if took > MOST_BLOCKED and took > MOST_BLOCKED * slower(time.monotonic):
        found.note("blocked", f"{when}: the next writer took {took:.1f} s")
    whole(root, acknowledged, found, when, route)


def whole(root: Path, acknowledged: set[str], found: Found, when: str, route: str = ROUTE) -> None:
    """Look at a route at rest: journal, file and cache agree, and hold each marker once."""
    try:
        records = _records(root, route)
        recorded = _folded(records, route)
        context = ralf.get_context(route, root=root)
    except (RalfError, OSError) as error:
        found.note("torn", f"{when}: {error!r}")
        return
    said = _markers(records)
    lost = acknowledged - set(said)
    found.note("lost", f"{when}: {sorted(lost)[:3]}", len(lost))
    doubled = [marker for marker, count in said.items() if count > 1 and marker != MARK]
    found.note("doubled", f"{when}: {doubled[:3]}", len(doubled))
    if context.warnings or to_tree(context) != to_tree(recorded):
        found.note("torn", f"{when}: what is read is not what the journal comes to {context.warnings}")
    if storekit.route_file(root, route).read_bytes() != filed.content_of(recorded):
        found.note("torn", f"{when}: the route file is not what the journal comes to")
    left = leftovers(root)
    found.note("left", f"{when}: {left[:3]}", len(left))


def folded(root: Path, route: str = ROUTE) -> ralf.RouteContext:
    """What the journal alone comes to, every record of it read and checked; DamagedJournal where it is torn."""
    return _folded(_records(root, route), route)


def markers_in(root: Path, route: str = ROUTE) -> Counter[str]:
    """Every marker in a journal, and in how many records."""
    return _markers(_records(root, route))


def _records(root: Path, route: str) -> list[journal.Record]:
    return [record for _, record in journal.read(project.find(root).store, route)]


def _folded(records: Sequence[journal.Record], route: str) -> ralf.RouteContext:
    revisions = [record.revision for record in records]
    if revisions != list(range(1, len(records) + 1)):
        raise AssertionError(f"the revisions have gaps: {revisions}")
    return reduce(fold.apply, records, fold.empty(route))


def _markers(records: Sequence[journal.Record]) -> Counter[str]:
    said: Counter[str] = Counter()
    for record in records:
        payload = record.payload
        if record.kind == "decision":
            said[str(payload["decision"]["decision"]).rpartition(" ")[2]] += 1
        elif record.kind == "checkpoint":
            requests = payload["facts"].get("requests", [])
            said.update(word for item in requests for word in item["request"].split() if word.startswith("c-"))
        elif record.kind == "edit":
            said.update({str(change["at"][0]) for change in payload["changes"] if str(change["at"][0])[:5] == "note_"})
    return said


_WAITS = re.compile(r"blobs/|journal/.*\.jsonl\.gz-")


def leftovers(root: Path) -> list[str]:
    """What dead writers have left in a store, but for what only a checkpoint, or an archive, writes: that goes at the
    next one.
    """
    top = storekit.context_of(root)
    names = (path for path in top.rglob("*") if path.name.startswith(durable.TEMPORARY_PREFIX) or ".tmp" in path.name)
    found = (path.relative_to(top).as_posix() for path in names)
    return sorted(name for name in found if not _WAITS.match(name))


# ---- the command ----

Broken = Mapping[str, Callable[[], AbstractContextManager[object]]]
_Size = TypeVar("_Size")


@dataclass(frozen=True)
class Rounds:
    """How much is done: of random cases, in so many processes, from the first one on."""

    rounds: int = 100
    first: int = 0
    jobs: int = 2


def command(
    name: str,
    size: _Size,
    run: Callable[[_Size, int, Sequence[str]], Found],
    *,
    kinds: Iterable[str] = (),
    broken: Broken = MappingProxyType({}),
    why_not: Callable[[], str] = lambda: "",
) -> int:
    """`python -m tests.faults.NAME`: run a harness, and print a line a figure; the exit status.

    size     what can be said of how much is done: a dataclass, whose every field is an option
    run      called with it, a seed and the kinds, all where none is named
    why_not  why it cannot run here, "" where it can
    """
    given, how = size_options(name, size, kinds, broken)
    if reason := why_not():
        print(reason, file=sys.stderr)
        return SKIPPED
    with broken[given.broken]() if given.broken else nullcontext():
        found = run(how, given.seed, given.only or list(kinds))
    figures: list[Figure] = [
        (f"{name}: faults", f"{found.faults.total()} of {found.acknowledged or found.rounds:,}", "0"),
        *((f"{name}: {figure}", value, "") for figure, value in found.figures.items()),
    ]
    return told(figures, [f"{kind}: {example}" for kind, example in found.examples.items()])
