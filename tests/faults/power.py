"""Power loss: lay out every state in which a disk can be found after the plug was pulled, and look at the store on it.

The work runs on a real file system (ext4) whose disk logs every block and every flush (`blocklog`). A state is what was
safe at some moment, and any part of what was not yet: all of it in order, or a random choice of its blocks. Each state
is mounted, so that the kernel replays its own journal, and must hold all that had been acknowledged by then, whole;
the next writer must go on at once.

    python -m tests.faults.power --states 10000 --mode writeback
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.clocks import slower
from tests.faults import blocklog, rig
from tests.faults.blocklog import BLOCK, Entry, Mark, Write

import ralf
from ralf import project as projects
from ralf.errors import RalfError
from ralf.maintenance import forget, purge
from ralf.maintenance.purge import Wording
from ralf.route import archive, fold, routefile, taking_back
from ralf.storage import journal
from ralf.transcripts.events import read_evidence

SESSION = Path(__file__).parents[2] / "examples" / "session.jsonl"
ROUTE = "TASK-1"
IMAGE_BYTES = 12 << 20
_WORDS = "the harbour master of berth nine"
_MOST_SECONDS = 1.0  # a writer that comes after waits no longer
_LOOKS = 3  # at a state whose next writer was slow: a lock that is held stays held, a busy machine does not


def why_not() -> str:
    """Why the power cannot be cut here, "" where it can."""
    missing = [name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name, path=_path()) is None]
    return f"needs {', '.join(missing)}" if missing else blocklog.why_not()


# ---- the work ----


def ordinary_work(root: Path, acknowledged: Callable[[str], None]) -> None:
    """Decisions, a checkpoint of several segments, edits by a person between them, an archive, a revert, a forget; what
    was acknowledged is `decision TEXT`, `checkpoint ID` and so on.
    """
    ralf.record_decision(ROUTE, "Keep the journal as JSON lines", rationale="a person can read it", root=root)
    acknowledged("decision Keep the journal as JSON lines")
    for entry in ralf.checkpoint(ROUTE, SESSION, root=root).checkpoints:
        acknowledged(f"checkpoint {entry.checkpoint_id}")
    path = projects.find(root).route_file(ROUTE)
    for number in range(3):
        edited = path.read_text(encoding="utf-8").replace("a person can read it", f"read by people {number}")
        path.write_text(edited, encoding="utf-8")
        ralf.record_decision(ROUTE, f"Choose the port {4000 + number}", rationale=f"{number} is free", root=root)
        acknowledged(f"decision Choose the port {4000 + number}")
    assert archive.archive(projects.find(root), ROUTE)
    taking_back.revert(ROUTE, "r1", root=root)
    acknowledged("a revert")
    ralf.record_decision(ROUTE, f"Ask {_WORDS}", rationale="to be forgotten", root=root)
    ralf.search(_WORDS, root=root)
    forget.forget(ROUTE, text=_WORDS, root=root)
    acknowledged("a forget")


# ---- recording ----


def _run(states: int, seed: int, mode: str) -> rig.Found:
    blocklog.own_mounts()
    with rig.store() as place:
        _warm(place / "warm")
        base, log = _recorded(place, mode)
        result = rig.Found()
        for name, image, marks in _states(base, log, states, seed):
            result.rounds += 1
            result.acknowledged += len(marks)
            _look(place, mode, name, image, marks, result)
            if result.faults.total() > 100:
                break
        return result


def _warm(folder: Path) -> None:
    """Load what the children would each load again."""
    folder.mkdir()
    ordinary_work(folder, lambda _: None)
    list(check(folder, ()))


def _recorded(place: Path, mode: str) -> tuple[bytes, list[Entry]]:
    base, mounted, log = place / "base", place / "mounted", list[Entry]()
    mounted.mkdir()
    with base.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    call("mkfs.ext4", "-q", "-F", "-b", str(BLOCK), "-J", "size=4", "-O", "^resize_inode", str(base))
    image = base.read_bytes()
    with blocklog.logged(image, place / "disk", log) as disk:
        mount(disk.path, mounted, mode)
        root = mounted / "project"
        root.mkdir()
        os.sync()
        _in_child(lambda: ordinary_work(root, disk.mark))
        call("umount", "-l", str(mounted))
    return image, log[: 1 + max(n for n, entry in enumerate(log) if isinstance(entry, Mark))]


# ---- the states ----


def _states(base: bytes, log: Sequence[Entry], most: int, seed: int) -> Iterator[tuple[str, bytearray, list[str]]]:
    """States of the disk, each with what was acknowledged by then: after every write in order (evenly chosen ones,
    where these would be more than half), then random ones: all that was safe at a moment, and of the rest any blocks.
    """
    draw = random.Random(seed)
    image, marks = bytearray(base), list[str]()
    writes = [number for number, entry in enumerate(log) if isinstance(entry, Write)]
    shown = set(writes[:: max(1, -(-2 * len(writes) // most))])
    for number, entry in enumerate(log):
        if isinstance(entry, Write):
            image[entry.offset : entry.offset + len(entry.data)] = entry.data
        elif isinstance(entry, Mark):
            marks.append(entry.text)
        if number in shown:
            yield f"after write {number}", image, marks
    for _ in range(most - len(shown)):
        yield _random_state(base, log, draw)


def _random_state(base: bytes, log: Sequence[Entry], draw: random.Random) -> tuple[str, bytearray, list[str]]:
    moment = draw.randrange(1, len(log) + 1)
    image, told_as = blocklog.remains(base, log[:moment], draw.random(), draw)
    return told_as, image, [entry.text for entry in log[:moment] if isinstance(entry, Mark)]


def _look(place: Path, mode: str, name: str, image: bytearray, marks: Sequence[str], result: rig.Found) -> None:
    """Mount a state as the next boot would, and look at the store in it."""
    path, mounted = place / "state", place / "mounted"
    for _ in range(_LOOKS):
        path.write_bytes(image)
        mount(path, mounted, mode)
        try:
            found = _in_child(lambda: check(mounted / "project", marks)).splitlines()
        finally:
            call("umount", str(mounted))
        if not found or any(not line.startswith("blocked ") for line in found):
            break
    for line in found:
        kind, _, text = line.partition(" ")
        result.note(kind, f"{mode}, {name}: {text}")


def check(root: Path, marks: Sequence[str]) -> Iterator[str]:
    """What is wrong with a store that has to hold what was acknowledged: `lost …`, `torn …` or `blocked …`."""
    if not root.is_dir():
        yield from (f"lost {mark}" for mark in marks)
        return
    project = projects.find(root)
    records = [record for _, record in journal.read(project.store, ROUTE)]
    if [record.revision for record in records] != list(range(1, len(records) + 1)):
        yield "torn revisions are not 1, 2, 3 …"
    folded, held = fold.empty(ROUTE), set[str]()
    for record in records:
        folded = fold.apply(folded, record)
        held |= {f"decision {decision.decision}" for decision in folded.decisions}
        held |= {f"checkpoint {entry.checkpoint_id}" for entry in folded.checkpoint_history}
        held.add(f"a {record.kind}")
    yield from (f"lost {mark}" for mark in marks if mark not in held)
    if records and ralf.get_context(ROUTE, root=root).decisions[0].decision != folded.decisions[0].decision:
        yield "torn what is read is not what the journal comes to"
    if "a forget" in marks and (found := purge.remains(project.folder, Wording([_WORDS]))):
        yield f"lost a forget: the words are in {found}"
    for record in records:
        if record.kind == "checkpoint" and not list(read_evidence(project.store, record.payload["evidence"])):
            yield f"lost the evidence of revision {record.revision}"
    started = time.monotonic()
    ralf.record_decision(ROUTE, "Go on after the lights are back", root=root)
    took = time.monotonic() - started
    if took > _MOST_SECONDS and took > _MOST_SECONDS * slower(time.monotonic):
        yield "blocked the next writer"
    after = ralf.get_context(ROUTE, root=root)
    if after.decisions[-1].decision != "Go on after the lights are back" or after.warnings:
        yield f"torn after the next write: {after.warnings}"
    path = project.live_file(ROUTE)
    if routefile.parse(path.read_bytes(), path).decisions[-1].decision != after.decisions[-1].decision:
        yield "torn the route file does not show the next write"
    left = [path for path in project.routes.rglob("*") if path.is_file() and path != project.live_file(ROUTE)]
    if left:
        yield f"torn left behind after the next write: {left}"


# ---- processes and mounts ----


def _in_child(call: Callable[[], Iterator[str] | None]) -> str:
    """What `call` yields, line by line, run in a process of its own: nothing that it remembers is known to the next."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "w", encoding="utf-8", errors="backslashreplace") as file:
            whole = False
            try:
                for line in call() or ():
                    file.write(" ".join(line.split()) + "\n")
                whole = True
            except (RalfError, OSError) as error:
                whole = True
                file.write(f"torn {type(error).__name__}: {' '.join(str(error).split())}\n")
            finally:
                if not whole:
                    traceback.print_exc()
                    file.write("torn the look at it ended in a traceback\n")
                file.flush()
                os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as file:
        found = file.read()
    os.waitpid(child, 0)
    return found


def mount(image: Path, folder: Path, mode: str) -> None:
    """Mount an image with ext4, whose journal is replayed if the power was cut."""
    call("mount", "-t", "ext4", "-o", f"loop,data={mode},noatime", str(image), str(folder))


def call(*arguments: str) -> None:
    """Run a program of the system; OSError with what it says where it fails."""
    done = subprocess.run(arguments, env={"PATH": _path()}, capture_output=True, timeout=60, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")


def _path() -> str:
    """Where the programs are that make and mount file systems: often not where a user looks."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


@dataclass(frozen=True)
class Size:
    """How many states, of a file system in which mode of its journal."""

    states: int = 500
    mode: str = "ordered"


BROKEN = {"anything": lambda: patch.multiple(os, fsync=lambda _: None, fdatasync=lambda _: None)}


def run(size: Size, seed: int, _: Sequence[str]) -> rig.Found:
    """Record the work once on a logged disk, then look at so many states of that disk.

    Runs in a process of its own, so that its mounts are seen by nobody else and go with it.
    """
    return rig.apart(lambda: _run(size.states, seed, size.mode))


if __name__ == "__main__":
    sys.exit(rig.command("power", Size(), run, broken=BROKEN, why_not=why_not))
