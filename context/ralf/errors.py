"""Every error that ralf raises on purpose, in one small tree.

    RalfError                       exit status 1   failed: unwritable, disk full
    ├── NotVerified                                 the command that says whether a task is done says that it is not
    ├── RunCancelled                                somebody has cancelled the run of an agent
    ├── UsageError                  exit status 2   a refused name, a wrong argument
    │   ├── Cycle                                   tasks that wait for each other
    │   └── RunEnded                                a run that has ended, is paused or waits: nothing can be written
    ├── NotFound                    exit status 3
    │   ├── RouteNotFound                           names the closest routes
    │   ├── TranscriptNotFound
    │   ├── BlobNotFound
    │   ├── TaskNotFound                            names the closest tasks
    │   ├── RunNotFound                             names the closest runs
    │   ├── NothingReady                            no task can be claimed; says what keeps each
    │   ├── UnknownDependency                       a task that another one waits for
    │   └── UnknownToken                            a place that a stream does not have (it was rebuilt)
    ├── Damaged                     exit status 4   a file that cannot be read as what it is
    │   ├── DamagedRouteFile
    │   │   └── LaterRouteFile                      of a format that only a later version knows
    │   ├── DamagedTask                             a task file
    │   ├── DamagedJournal
    │   ├── DamagedTranscript
    │   ├── DamagedPlan
    │   └── DamagedBlob
    └── Busy                        exit status 5   somebody else is at it, or it moved on; trying again may help
        ├── Claimed                                 somebody has the task or the run; names the holder
        ├── Fenced                                  the engine that says who may write is away, or says: not you
        ├── UnknownAnswer                           a call of a run was asked, and whether it was answered is unknown
        ├── Conflict                                the stream's head is not the one that the writer saw
        │   └── StaleLease                          whoever shows it has lost the task or the run since
        └── TranscriptChanged                       shrank, or was replaced, since the last checkpoint

The message starts with the path or route, then says what is wrong; `hint` is the next command to type.
"""

from __future__ import annotations

import sys

_LONGEST_LINE = 200  # characters of a line of others that a message repeats

MEND_JOURNAL = "ralf doctor --repair"
"""What to do about a DamagedJournal."""


class RalfError(Exception):
    """The root of the tree.

    where   the path or route that it is about
    what    what is wrong with it
    hint    the next thing to type, or ""
    """

    exit_status = 1

    def __init__(self, where: object, what: str, hint: str = "") -> None:
        super().__init__(f"{where}: {what}")
        self.where = str(where)
        self.what = what
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Made anew from its words and fields: it passes between processes, whatever its class is made from."""
        return Exception.__new__, (type(self), *self.args), self.__dict__


class NotVerified(RalfError):
    """A task's `verify:` command did not pass: it is not done. `output` is the end of what the command printed."""

    def __init__(self, task: str, what: str, output: str = "") -> None:
        last = output.strip().rpartition("\n")[2][:_LONGEST_LINE]
        what += f"; it printed last: {last}" if last else ""
        super().__init__(task, what, f"mend it and say it again, or give the task up: ralf task fail --task {task} WHY")
        self.task = task
        self.output = output


class RunCancelled(RalfError):
    """Somebody has cancelled the run that this process works at: nothing was recorded."""

    def __init__(self, run: str, reason: str = "") -> None:
        super().__init__(run, "was cancelled" + (f": {reason}" if reason else ""), f"ralf run show {run}")
        self.run = run
        self.reason = reason


class UsageError(RalfError):
    """A name that is refused, or an argument that makes no sense."""

    exit_status = 2


class OtherOwner(UsageError):
    """A store that belongs to another user, whom this one has not named as safe."""


class Cycle(UsageError):
    """Tasks that wait for each other, so that none of them can begin: `path` leads from one back to itself."""

    def __init__(self, path: tuple[str, ...]) -> None:
        hint = f"take one of these dependencies out: ralf task edit {path[0]}"
        super().__init__(path[0], f"waits for itself: {' → '.join(path)}", hint)
        self.path = path


class RunEnded(UsageError):
    """A step of a run that is not open: `status` says whether it has ended, is paused or waits."""

    def __init__(self, run: str, status: str, hint: str = "") -> None:
        super().__init__(run, f"is {status}: nothing was recorded", hint or f"ralf run show {run}")
        self.run = run
        self.status = status


class NotFound(RalfError):
    """A route, transcript or id that is not there."""

    exit_status = 3


class RouteNotFound(NotFound):
    """There is no such route; `closest` names those that resemble it, best first."""

    def __init__(self, route: str, closest: tuple[str, ...] = ()) -> None:
        hint = f"ralf show {closest[0]}" if closest else "ralf list"
        what = "no such route" + (f"; closest: {', '.join(closest)}" if closest else "")
        super().__init__(route, what, hint)
        self.route = route
        self.closest = closest


class TranscriptNotFound(NotFound):
    """There is no transcript at this path, or none for this project."""


class BlobNotFound(NotFound):
    """There is no blob of this digest; it was pruned, or never put."""


class TaskNotFound(NotFound):
    """There is no such task; `closest` has the ids of those that resemble it, best first."""

    def __init__(self, task: str, closest: tuple[str, ...] = (), told: str = "") -> None:
        what = "no such task" + (f"; closest: {told or ', '.join(closest)}" if closest else "")
        super().__init__(task, what, f"ralf task show {closest[0]}" if closest else "ralf task list")
        self.task = task
        self.closest = closest


class RunNotFound(NotFound):
    """There is no such run; `closest` names those that resemble it, best first. `foreign`: there is one of this name,
    all of whose records somebody else has written.
    """

    def __init__(self, run: str, closest: tuple[str, ...] = (), *, foreign: bool = False) -> None:
        what = "no such run" + (f"; closest: {', '.join(closest)}" if closest else "")
        hint = f"ralf run show {closest[0]}" if closest else "ralf run show"
        if foreign:
            what, hint = "its records are not those of this user's ralf", "if they are yours: ralf trust"
        super().__init__(run, what, hint)
        self.run = run
        self.closest = closest


class NothingReady(NotFound):
    """No task can be claimed. `reasons` has a line for each thing that keeps tasks from it, the gravest first."""

    def __init__(self, where: object, reasons: tuple[str, ...], hint: str = "ralf task list") -> None:
        super().__init__(where, f"nothing is ready: {'; '.join(reasons)}", hint)
        self.reasons = reasons


class UnknownDependency(NotFound):
    """A task waits for one that is not there; `closest` are ids that resemble it, best first."""

    def __init__(self, task: str, needed: str, closest: tuple[str, ...] = ()) -> None:
        what = f"waits for {needed}, and there is no such task"
        what += f"; closest: {', '.join(closest)}" if closest else ""
        super().__init__(task, what, f"name another one, or none: ralf task edit {task}")
        self.needed = needed
        self.closest = closest


class UnknownToken(NotFound):
    """The token names no place in this stream: the stream was rewritten since."""


class Damaged(RalfError):
    """A file that cannot be read as what it is. It is left as it stands."""

    exit_status = 4


class DamagedRouteFile(Damaged):
    """A route file that is not one: `line` is where, counted from 1, or 0 where no line can be named."""

    def __init__(self, where: object, what: str, hint: str = "", *, line: int = 0) -> None:
        super().__init__(where, f"line {line}: {what}" if line else what, hint)
        self.line = line


class LaterRouteFile(DamagedRouteFile):
    """A route file of a format that only a later version of ralf knows: nothing is wrong with it."""


class DamagedTask(Damaged):
    """A task file that is not one: `line` is where, counted from 1, or 0 where no line can be named."""

    def __init__(self, where: object, what: str, hint: str = "", *, line: int = 0) -> None:
        super().__init__(where, f"line {line}: {what}" if line else what, hint)
        self.line = line


class DamagedJournal(Damaged):
    """A record of a journal whose bytes are not those that were written."""


class DamagedPlan(Damaged):
    """A plan of tasks that is not one: `line` is where, counted from 1, or 0 where no line can be named."""

    def __init__(self, where: object, what: str, hint: str = "", *, line: int = 0) -> None:
        super().__init__(where, f"line {line}: {what}" if line else what, hint)
        self.line = line


class DamagedTranscript(Damaged):
    """A file that is no transcript, or one of whose lines not one can be read."""


class DamagedBlob(Damaged):
    """A blob whose bytes are not those that were put."""


class Busy(RalfError):
    """Somebody else holds what is needed, or it has moved on."""

    exit_status = 5


class Conflict(Busy):
    """The stream has moved on: `head` is its token now."""

    def __init__(
        self, stream: str, head: str | None, what: str = "another writer was faster", hint: str = "try again"
    ) -> None:
        super().__init__(stream, what, hint)
        self.head = head


class Claimed(Busy):
    """Somebody else has a task: `by` is the holder's name, `since` when it was claimed, `until` when the holder's lease
    ends if it is not renewed, "" where nobody can tell.
    """

    def __init__(self, task: str, by: str, since: str, hint: str = "ralf task claim", *, until: str = "") -> None:
        more = f", until {until} unless the holder renews it" if until else ""
        super().__init__(task, f"claimed by {by} since {since}{more}", hint)
        self.task = task
        self.by = by
        self.since = since
        self.until = until


class Fenced(Busy):
    """The engine that decides who may write cannot be reached, or has given the lease to somebody else: nothing was
    recorded, unless a record was under way; the next look at the stream settles that.

    lost  whether the lease has ended; else the engine cannot be reached
    """

    def __init__(self, where: object, what: str, hint: str = "ralf doctor", *, lost: bool = False) -> None:
        super().__init__(where, what, hint)
        self.lost = lost


class UnknownAnswer(Busy):
    """A call of a run was asked and has no answer: whether it was made is not known. `key` names the call, and
    `idempotency_key` is what it was made with.
    """

    def __init__(self, run: str, key: str, idempotency_key: str) -> None:
        what = f"the call {key!r} was asked and has no answer: it may have been made"
        super().__init__(run, what, "look the answer up by its idempotency key, or allow repeats: unknown='repeat'")
        self.run = run
        self.key = key
        self.idempotency_key = idempotency_key


class StaleLease(Conflict):
    """A lease that holds no longer: nothing was recorded. `by` is who has the task now, "" for nobody."""

    def __init__(self, task: str, what: str, by: str = "", hint: str = "ralf task claim") -> None:
        Busy.__init__(self, task, what, hint)
        self.head = None
        self.task = task
        self.by = by


class TranscriptChanged(Busy):
    """A transcript that shrank or was replaced since the last checkpoint of this session."""


# ---- systems that lack what ralf needs ----

_NEEDED = frozenset({"fcntl", "posix", "pwd", "resource"})  # modules of Python that only POSIX systems have


def unsupported(error: ImportError) -> RalfError | None:
    """Returns the error to raise where a module is missing that Windows does not have; None for any other module."""
    if error.name not in _NEEDED:
        return None
    system = "Windows" if sys.platform == "win32" else sys.platform
    what = f"{system} is not supported: it lacks the locks and renames ({error.name}) that keep what was acknowledged"
    return RalfError("ralf", what, "use it on Linux, or in WSL 2, where it is one")
