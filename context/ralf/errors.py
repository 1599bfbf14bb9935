"""Every error that ralf raises on purpose, in one small tree.

    RalfError                       exit status 1   failed: unwritable, disk full
    ├── UsageError                  exit status 2   a refused name, a wrong argument
    ├── NotFound                    exit status 3
    │   ├── RouteNotFound                           names the closest routes
    │   ├── TranscriptNotFound
    │   ├── BlobNotFound
    │   └── UnknownToken                            a place that a stream does not have (it was rebuilt)
    ├── Damaged                     exit status 4   a file that cannot be read as what it is
    │   ├── DamagedRouteFile
    │   │   └── UnreadableRouteFile                 whole perhaps, but not this user's to read
    │   │   └── LaterRouteFile                      of a format that only a later version knows
    │   ├── DamagedJournal
    │   ├── DamagedTranscript
    │   └── DamagedBlob
    └── Busy                        exit status 5   somebody else is at it, or it moved on; trying again may help
        ├── Conflict                                the stream's head is not the one that the writer saw
        └── TranscriptChanged                       shrank, or was replaced, since the last checkpoint

The message starts with the path or route, then says what is wrong; `hint` is the next command to type.
"""

from __future__ import annotations

MEND_JOURNAL = "ralf context verify --repair"
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


class UsageError(RalfError):
    """A name that is refused, or an argument that makes no sense."""

    exit_status = 2


class OtherOwner(UsageError):
    """A store that belongs to another user, whom this one has not named as safe."""


class NotFound(RalfError):
    """A route, transcript or id that is not there."""

    exit_status = 3


class RouteNotFound(NotFound):
    """There is no such route; `closest` names those that resemble it, best first."""

    def __init__(self, route: str, closest: tuple[str, ...] = ()) -> None:
        hint = f"ralf context show {closest[0]}" if closest else "ralf context list"
        what = "no such route" + (f"; closest: {', '.join(closest)}" if closest else "")
        super().__init__(route, what, hint)
        self.route = route
        self.closest = closest


class TranscriptNotFound(NotFound):
    """There is no transcript at this path, or none for this project."""


class BlobNotFound(NotFound):
    """There is no blob of this digest; it was pruned, or never put."""


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


class UnreadableRouteFile(DamagedRouteFile):
    """A route file that this user may not read."""


class LaterRouteFile(DamagedRouteFile):
    """A route file of a format that only a later version of ralf knows: nothing is wrong with it."""


class DamagedJournal(Damaged):
    """A record of a journal whose bytes are not those that were written."""


class DamagedTranscript(Damaged):
    """A file that is no transcript, or one of whose lines not one can be read."""


class DamagedBlob(Damaged):
    """A blob whose bytes are not those that were put."""


class Busy(RalfError):
    """Somebody else holds what is needed, or it has moved on."""

    exit_status = 5


class Conflict(Busy):
    """The stream has moved on: `head` is its token now."""

    def __init__(self, stream: str, head: str | None) -> None:
        super().__init__(stream, "another writer was faster", "try again")
        self.head = head


class TranscriptChanged(Busy):
    """A transcript that shrank or was replaced since the last checkpoint of this session."""
