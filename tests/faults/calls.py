"""Kills at every system call, and fails each one once: what is there is old or new, and the next writer works at once.

A shim (shim.c) between Python and the C library counts the calls of one piece of work; then the work is done again, for
every call and every fault that this call can have, each time by a fresh process on a fresh copy of the same store. The
log of the run without faults also shows whether everything was synced before it was acknowledged.

    python -m tests.faults.calls                 every call with every fault
    python -m tests.faults.calls --part 5        every fifth of these
    python -m tests.faults.calls --rounds 20000  then so many pairs of faults
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests import storekit
from tests.faults import broken, rig
from tests.faults.kept import Kept

import ralf
from ralf.errors import RalfError
from ralf.maintenance import repair
from ralf.project import find
from ralf.route import archive, corrections, taking_back

_SHIM = Path(__file__).with_name("shim.c")
_LIBRARY = "RALF_FAULTS_SHIM"
_KILL, _SHORT = -9, -2
_REFUSED = 3  # the exit status of work that ended with an error that it is meant to end with
_HANGS = 60.0  # seconds
_ANY = ("EIO", "EACCES")
_FULL = ("ENOSPC", "EDQUOT", "EIO", "EROFS")
FAULTS = {
    "create": ("EACCES", "EROFS", "ENOSPC", "EDQUOT", "EMFILE", "EIO", "EINTR"),
    "open for writing": ("EACCES", "EROFS", "EMFILE", "EIO", "EINTR"),
    "open": ("EACCES", "EMFILE", "EIO", "EINTR"),
    "opendir": ("EACCES", "EMFILE", "EIO"),
    "read": ("EIO", "EINTR"),
    "pread64": ("EIO", "EINTR"),
    "write": (*_FULL, "EINTR", "SHORT"),
    "pwrite64": (*_FULL, "EINTR", "SHORT"),
    "fsync": ("EIO", "ENOSPC", "EDQUOT", "EINTR", "EROFS"),
    "fdatasync": ("EIO", "ENOSPC", "EDQUOT", "EINTR", "EROFS"),
    "close": ("EIO", "EINTR", "ENOSPC", "EDQUOT"),
    "flock": ("EINTR", "ENOLCK"),
    "fcntl": ("EACCES", "EINTR"),
    "fstat64": ("EIO",),
    "lseek64": ("EIO",),
}
"""What each call is failed with; all others that change something with `_MORE`, those that look with `_ANY`."""
_MORE = (*_FULL, "EACCES", "EINTR")
_LOOKING = ("stat64", "lstat64")


# ---- what is done ----


def _decide(root: Path, acknowledge: rig.Acknowledge) -> None:
    rig.decide(root, "new", acknowledge)


def _checkpoint(root: Path, acknowledge: rig.Acknowledge) -> None:
    if ralf.checkpoint(rig.ROUTE, root / "session.jsonl", root=root).checkpoints:
        acknowledge("c-new")


@dataclass(frozen=True)
class Work:
    """A piece of work, on a store that is prepared for it.

    again  what whoever meets an error does first: the same once more, where nothing else helps
    """

    prepare: Callable[[Path], list[str]]
    do: Callable[[Path, rig.Acknowledge], None]
    again: Callable[[Path, rig.Acknowledge], None] | None = None


def _repair(root: Path, _: rig.Acknowledge) -> None:
    repair.repair(root=root)


def _none(_: object) -> None:
    """What a piece of work returns is nobody's."""


def _some(root: Path) -> list[str]:
    """A route with a decision and a checkpoint, and a session that has grown since; what is acknowledged of it."""
    said: list[str] = []
    rig.decide(root, "old", said.append)
    rig.checkpoint(root, "old", said.append)
    (written,) = root.glob("session-*.jsonl")
    written.rename(root / "session.jsonl")
    with (root / "session.jsonl").open("a", encoding="utf-8") as file:
        said_next = {"role": "user", "content": "Please carry c-new of the tide table over."}
        file.write(json.dumps({"type": "user", "sessionId": f"s-{os.getpid()}", "message": said_next}) + "\n")
    return said


def _saved(root: Path) -> list[str]:
    """The same, with a person's save that nobody has taken in."""
    said = _some(root)
    rig.save(root, "old", said.append)
    return said


def _archived(root: Path) -> list[str]:
    """The same, archived: the next record brings it back."""
    said = _some(root)
    assert archive.archive(find(root), rig.ROUTE)
    return said


def _harmed(root: Path) -> list[str]:
    """A journal with something in it that nobody wrote, and no cache that tells what the file is."""
    said = _some(root)
    context = storekit.context_of(root)
    with (context / "journal" / "routes" / f"{rig.ROUTE}.jsonl").open("ab") as file:
        file.write(b"nonsense\n")
    shutil.rmtree(context / "cache")
    return said


WORKS: dict[str, Work] = {
    "a repair": Work(_harmed, _repair, again=_repair),  # first: it takes as long as all others
    "the first decision": Work(lambda _: [], _decide),
    "a decision": Work(_some, _decide),
    "a checkpoint": Work(_some, _checkpoint),
    "a decision that takes a save in": Work(_saved, _decide),
    "a drop": Work(_some, lambda root, _: _none(corrections.drop(rig.ROUTE, "DEC-001", root=root))),
    "a revert": Work(_some, lambda root, _: _none(taking_back.revert(rig.ROUTE, "r1", root=root))),
    "an archive": Work(_some, lambda root, _: _none(archive.archive(find(root), rig.ROUTE))),
    "a decision of an archived route": Work(_archived, _decide),
}


# ---- one case ----


class Shim:
    """The shim in this process, which was started with it."""

    def __init__(self) -> None:
        library = ctypes.CDLL(os.environ[_LIBRARY])
        self.arm, self.disarm, self._log = library.ralf_arm, library.ralf_disarm, library.ralf_log
        self.arm.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_long, ctypes.c_int]
        self._log.restype = ctypes.c_char_p

    def log(self) -> str:
        """The calls since `arm(0, 0, 0, 0)`."""
        return str(self._log().decode())


Fault = tuple[int, str]


def _done(shim: Shim, work: Work, root: Path, faults: Sequence[Fault], said_to: int) -> None:
    """In a process of its own: the work, with its faults."""
    plan = [(place, _number(name)) for place, name in faults] + [(0, 0)] * 2
    said: list[str] = []
    shim.arm(*plan[0], *plan[1])
    try:
        work.do(root, said.append)
    except (RalfError, OSError) as error:
        shim.disarm()
        if not str(error):
            raise
        os._exit(_REFUSED)
    shim.disarm()
    os.write(said_to, "".join(f"{marker}\n" for marker in said).encode() if faults else shim.log().encode())


def _number(name: str) -> int:
    return {"KILL": _KILL, "SHORT": _SHORT}.get(name) or int(getattr(errno, name))


def _ended(pid: int) -> int | None:
    """How a process ended: its exit status, minus the signal; None where it hung."""
    process = os.pidfd_open(pid)
    hung = not select.select([process], [], [], _HANGS)[0]
    os.close(process)
    if hung:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return None if hung else os.waitstatus_to_exitcode(status)


class Nursery:
    """A process that does nothing but start others. Whoever is forked from one that works makes it copy, or at least
    fault in, each page that it writes to afterwards; here nobody does.
    """

    def __init__(self, do: Callable[[Sequence[Fault], int], None]) -> None:
        plans, self._plans = os.pipe()
        self._said, said = os.pipe()
        self._process = rig.forked(partial(self._serve, do, plans, said))
        os.close(plans)
        os.close(said)
        self._lines = os.fdopen(self._said, encoding="utf-8")

    def _serve(self, do: Callable[[Sequence[Fault], int], None], plans: int, said: int) -> None:
        os.close(self._plans)
        gc.freeze()
        with os.fdopen(plans, encoding="utf-8") as file:
            for line in file:
                faults = [(place, name) for place, name in json.loads(line)]
                ended = _ended(rig.forked(partial(do, faults, said)))
                os.write(said, f"ended {json.dumps(ended)}\n".encode())

    def run(self, faults: Sequence[Fault]) -> tuple[int | None, list[str]]:
        """Do the work with these faults in a process of its own: how it ended (see `_ended`), and the lines it said."""
        os.write(self._plans, f"{json.dumps(faults)}\n".encode())
        said: list[str] = []
        for line in self._lines:
            if line.startswith("ended "):
                return json.loads(line.removeprefix("ended ")), said
            said.append(line.removesuffix("\n"))
        raise RuntimeError("the process that starts the others has died")

    def close(self) -> None:
        """Let it end."""
        os.close(self._plans)
        self._lines.close()
        os.waitpid(self._process, 0)


_Laid = list[tuple[Kept, Path]]


def _lay(kept: _Laid) -> None:
    for one, place in kept:
        one.lay(place)


class Harness:
    """One run: the works, one after the other, each with all its faults."""

    def __init__(self, found: rig.Found) -> None:
        self._shim = Shim()
        self._found = found

    def run(self, name: str, work: Work, folder: Path, pairs: int, random_: random.Random, part: int = 1) -> None:
        """Do one piece of work with every fault, or each so many-th, then with pairs of them."""
        root, own = folder / "project", folder / "own"
        root.mkdir()
        own.mkdir()
        os.environ["XDG_CONFIG_HOME"] = str(own)  # the registration is laid out with the store that it is of
        acknowledged = set(work.prepare(root))
        kept = [(Kept(each), each) for each in (root, own)]
        work.do(root, [].append)  # once here, so that everything is imported
        nursery = Nursery(partial(_done, self._shim, work, root))
        calls = self._calls(name, kept, nursery, root)
        single = list(_faults(calls))[random_.randrange(part) :: part]
        plans: list[tuple[Fault, ...]] = [(fault,) for fault in single]
        plans += [tuple(sorted(random_.sample(single, 2))) for _ in range(pairs)]
        for plan in plans:
            when = f"{name}: " + ", ".join(f"{fault} at call {place} ({calls[place - 1]})" for place, fault in plan)
            _lay(kept)
            ended, said = nursery.run(plan)
            self._look(work, root, acknowledged | set(said), ended, when)
        nursery.close()
        self._found.figures[f"{name}: calls, cases"] = f"{len(calls)}, {len(plans)}"

    def _calls(self, name: str, kept: _Laid, nursery: Nursery, root: Path) -> list[str]:
        """The calls that the work makes when nothing fails; what it has not synced is a fault."""
        _lay(kept)
        ended, said = nursery.run(())
        assert ended == 0, name
        calls = [line.replace(f"{root}/", "") for line in said]
        unsynced = _unsynced(calls)
        self._found.note("not synced", f"{name}: {sorted(unsynced)}", len(unsynced))
        return calls

    def _look(self, work: Work, root: Path, acknowledged: set[str], ended: int | None, when: str) -> None:
        self._found.rounds += 1
        self._found.acknowledged += len(acknowledged)
        if ended is None:
            self._found.note("hangs", when)
        elif ended not in (0, _REFUSED, -signal.SIGKILL):
            self._found.note("no clear error", when)
        if work.again is not None:
            work.again(root, [].append)
        if self._found.rounds % 5 == 0:
            for path in find(root).cache.glob("index.db*"):
                path.unlink()
        rig.look(root, acknowledged, self._found, when)
        rig.settle(root, acknowledged, self._found, when, marker="after")


def _faults(calls: list[str]) -> Iterator[Fault]:
    for place, line in enumerate(calls, 1):
        call = line.partition("\t")[0]
        yield place, "KILL"
        for name in FAULTS.get(call, _ANY if call in _LOOKING else _MORE):
            yield place, name


def _unsynced(calls: list[str]) -> set[str]:
    """The files and folders of what is kept that were changed and not synced at the end; files of documents are views,
    which records make anew.
    """
    dirty: set[str] = set()
    for line in calls:
        call, _, path = line.partition("\t")
        kept = f"/{path}".partition("/.autonomous/context/")[2] or f"/{path}".partition("/own/ralf/")[2]
        folder = os.path.dirname(path)
        is_plan = os.path.dirname(f"/{path}").endswith("/.autonomous/tasks")
        if call in ("fsync", "fdatasync"):
            dirty.discard(path)
        elif kept.startswith(("journal/", "blobs/", "projects/")) or is_plan:
            if call in ("write", "pwrite64", "ftruncate64"):
                dirty.add(path)
            elif call.startswith("rename"):
                dirty.add(folder)
    return {path for path in dirty if not path.endswith(".tmp")}


@dataclass(frozen=True)
class Size:
    """How much is done: of every call with every fault each so many-th, then so many pairs of faults."""

    part: int = 1
    rounds: int = 0


def run(size: Size, seed: int, only: Sequence[str]) -> rig.Found:
    """Each piece of work, in a process of its own, two at once."""

    def share(names: Sequence[str]) -> rig.Found:
        found = rig.Found()
        for name in names:
            with tempfile.TemporaryDirectory(prefix="ralf-faults-", dir=storekit.MEMORY) as folder:
                dice = random.Random(f"{seed} {name}")
                Harness(found).run(name, WORKS[name], Path(folder), size.rounds // len(only), dice, size.part)
        return found

    return rig.shared_out(share, only, jobs=2)


def main() -> int:
    """The command; it starts itself again, with the shim."""
    if _LIBRARY in os.environ:
        return rig.command("calls", Size(), run, kinds=WORKS, broken=broken.VARIANTS)
    compiler = shutil.which("cc")
    if compiler is None:
        print("skipped: there is no C compiler (cc)", file=sys.stderr)
        return rig.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "shim.so")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, _SHIM, "-ldl"], check=True)
        more = {_LIBRARY: str(library), "LD_PRELOAD": str(library)}
        command = [sys.executable, "-m", "tests.faults.calls", *sys.argv[1:]]
        return subprocess.run(command, env=storekit.environment(Path(folder), **more)).returncode


if __name__ == "__main__":
    sys.exit(main())
