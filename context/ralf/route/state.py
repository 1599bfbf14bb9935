"""The state of a route at one moment, by its journal and its file."""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ralf.document import place as places
from ralf.errors import DamagedRouteFile
from ralf.model import RouteContext
from ralf.project import Project
from ralf.storage.journal import Token
from ralf.text.frozen import dataclass

if TYPE_CHECKING:
    from ralf.document.merge import Change

MAX_BYTES = 64 << 20
"""The largest route file that is read."""

FileStatus = Literal["current", "stale", "missing", "edited", "damaged", "foreign"]
"""What the route file is to its journal.

current  ours, showing the newest revision
stale    ours, of an older revision, or no file that a write has left
missing  not there, or empty
edited   changed by a person
damaged  not readable, or git tracks it; never overwritten
foreign  this user's ralf did not write it, and it is no edit of theirs; never taken in, never overwritten
"""


@dataclass(frozen=True, slots=True)
class State:
    """A route at one moment.

    context   what the route comes to, a person's unrecorded edits included; what is foreign stands apart in it
    recorded  what the journal alone comes to, and of that what is this user's
    token     the journal's newest record, None for none
    content   the route file's bytes, b"" where there is none
    status    what the file is to the journal
    damage    what is wrong with the file, "" for nothing
    """

    context: RouteContext
    recorded: RouteContext
    token: Token | None
    content: bytes
    status: FileStatus
    damage: str = ""

    @property
    def own(self) -> RouteContext:
        """The context without what is foreign: what work goes on from."""
        return self.recorded if self.context.foreign else self.context

    @property
    def behind(self) -> bool:
        """Whether the journal has more than the file shows."""
        return self.status in ("stale", "missing", "edited")


def digest_of(content: bytes) -> str:
    """The sha256 of a route file's bytes."""
    return hashlib.sha256(content).hexdigest()


def read_file(project: Project, route: str) -> bytes:
    """The route file's bytes, b"" where there is none. DamagedRouteFile for what is no file, too large, or not this
    user's to read.
    """
    path = project.route_file(route)
    try:
        return places.content(path, MAX_BYTES)
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from None


def unreadable(path: Path, why: str) -> DamagedRouteFile:
    """The error for a route file that cannot be read."""
    is_refused = why == os.strerror(errno.EACCES)
    return DamagedRouteFile(path, why, f"sudo chown {os.geteuid()} {path}" if is_refused else f"move it away: {path}")


def parse_file(project: Project, route: str, content: bytes) -> RouteContext:
    """What a route file's bytes say. DamagedRouteFile."""
    from ralf.route.routefile import parse  # a read that finds the file untouched never pays for YAML

    return parse(content, project.route_file(route))


def with_route(context: RouteContext, route: str) -> RouteContext:
    """A context out of a file that anybody may have brought: the route is that of the file, whatever stands in it."""
    return replace(context, context_checkpoint=replace(context.context_checkpoint, route=route))


def redacted(project: Project, change: Change) -> Change:
    """A person's change without its secrets, including a value that only its key marks as one."""
    from ralf.redact import redactor_for

    redactor = redactor_for(project)
    clean: Change = redactor.tree(change)
    if "value" in change and change["at"] and change["at"][-1] != change["value"]:  # not an item, which names itself
        (clean["value"],) = redactor.tree({change["at"][-1]: change["value"]}).values()
    return clean


def redacted_file(project: Project, text: str) -> str:
    """A route file without its secrets, including one that only its key marks as one, or that a quotation hides."""
    from ralf.document.tree import from_tree, to_tree
    from ralf.redact import redactor_for
    from ralf.route.routefile import parse, render

    redactor, path = redactor_for(project), project.folder
    plain: str = redactor.text(text)
    try:
        tree, left = to_tree(parse(text.encode(), path)), to_tree(parse(plain.encode(), path))
    except DamagedRouteFile:
        return plain
    clean = redactor.tree(tree)
    return plain if redactor.tree(left) == left else render(from_tree(RouteContext, clean))
