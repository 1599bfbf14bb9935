"""Renames a route: its journal gets another name at once, and the old name still finds it.

The stream `moved/OLD` names the new route first; that counts for nothing while there is a journal OLD. Then the journal
is renamed, and what was OLD is NEW to everyone. A process that dies before has changed nothing; one that dies after
leaves the file of the old name and the record of the rename to the same call, or to a repair.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass

from ralf import environment, project as projects, routing
from ralf.document.place import all_displaced
from ralf.errors import RalfError, UsageError
from ralf.maintenance.forget import alone, held
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route.family import context_of, document_of, recorded
from ralf.route.write import open_route, utc_now
from ralf.routing import Move
from ralf.storage import durable, files, journal
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Record, stream_of
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line


@dataclass(frozen=True, slots=True)
class Moved:
    """What a rename came to.

    old, new   the route's name before, and the one under which it is found now
    revision   that the route has come to
    warnings   what the caller should know of; `damage`: what is wrong with the route file, "" for nothing
    changed    whether this call did it, or it was done before
    """

    old: str
    new: str
    revision: int
    warnings: tuple[str, ...] = ()
    damage: str = ""
    changed: bool = True


def rename_route(
    route: str, name: str, *, because: str = "", by: str = "", root: str | os.PathLike[str] | None = None
) -> Moved:
    """Give a route another name; its earlier one still finds it. Durable when this returns.

    Edits that wait in the route file are recorded, and the rename is a record. Records keep their ids and labels.
    Sessions, tasks and clients that use the earlier name mean this route from now on. `default` begins anew, but for
    the sessions that were recorded there: they go on in the renamed route. One that was broken off is completed, and
    one that is done already changes nothing.

    Raises RouteNotFound, UsageError (a refused name, one that is taken, a file that is not the user's, a store on
    servers), Busy, DamagedJournal, OSError: then the route is called as before.
    """
    project = projects.find(root)
    with alone(project):
        store = project.store.inner
        if type(store) is not FileStore:  # other machines know a route by its name there
            raise UsageError(project.root, "its routes are kept on servers, too, where none can be renamed yet")
        old = routing.existing(project, route)
        cleaning.check(name)
        if old == name != route and (move := routing.move_of(project, route)) is not None:
            return finish(project, move, because, by)
        _check_free(project, old, name)
        _check_own(project, old)
        move = Move(old, name, f"rename-{uuid.uuid4().hex}")
        with held(project, (old, name)):
            stream, line = routing.stream_of_move(old), journal.line_of(Record(1, "move", move._asdict()))
            project.store.append(stream, line, id=move.record, after=project.store.head(stream))
            store.rename(stream_of(old), stream_of(name))
        return finish(project, move, because, by)


def unfinished(project: Project) -> list[Move]:
    """The renames of which a process that died has left something: the file of the old name."""
    moves = (move for move in routing.moves_of(project) if routing.renamed(project, move.old))
    return [move for move in moves if move.old == routing.DEFAULT or os.path.lexists(project.route_file(move.old))]


def finish(project: Project, move: Move, because: str = "", by: str = "") -> Moved:
    """Put right what goes with a journal that has its new name: the old file, in which somebody may have saved an edit
    meanwhile, the record of the rename, and the sessions of `default`. `by`: `user` or `agent`, "": as the environment
    says. Errors: `open_route`.
    """
    new = routing.renamed(project, move.old) or move.new
    with held(project, (move.old, new)):
        old, displaced = project.route_file(move.old), document_of(project, new).place.prev
        if os.path.lexists(old):
            files.make(displaced.parent)
            with suppress(FileExistsError):  # the next one that finishes it has room there
                durable.rename_free(old, displaced)  # where the next write looks for edits
        durable.removed(all_displaced(document_of(project, move.old).place))  # absorbed before the journal moved
    with open_route(project, new) as writer:
        before = writer.context.revision
        said = redactor_for(project).text(one_line(clean(because)))
        whose = by or ("agent" if environment.is_agent() else "user")
        payload = {"from": [move.old], "timestamp": utc_now(), "origin": whose}
        writer.append("rename", payload | ({"because": said} if said else {}), id=move.record)
        writer.render_file()
    if move.old == routing.DEFAULT:
        _keep_sessions(project, new)
        project.store.drop(routing.stream_of_move(move.old))  # the route of all that has no other begins anew
    revision = writer.context.revision
    return Moved(move.old, new, revision, tuple(writer.warnings), writer.damage, changed=revision > before)


def _check_free(project: Project, old: str, name: str) -> None:
    """UsageError for a name that is another route's, now or once."""
    taken = routing.known(project, name)
    if name.casefold() == old.casefold():
        what = f"differs in nothing but case from {old}" if name != old else "is its name already"
    elif taken is None or taken == old:
        return
    else:
        what = "is a route already" if taken.casefold() == name.casefold() else f"is an earlier name of {taken}"
    raise UsageError(name, what, f"ralf route {old} --rename NAME")


def _check_own(project: Project, route: str) -> None:
    """UsageError for a route whose file this user's ralf did not write, or that cannot be read."""
    with open_route(project, route) as writer:
        if writer.foreign:
            raise UsageError(route, "holds what your ralf did not write", f"ralf trust {route}")
        if writer.damage or writer.token is None:
            what = writer.damage or "has no record"
            raise UsageError(route, what, f"ralf doctor {route} --repair")
        writer.render_file()


def _keep_sessions(project: Project, route: str) -> None:
    """Have the sessions that were recorded in `default` go on where that went: in the new one they would begin anew."""
    with suppress(RalfError):
        entries = recorded(project, route, lambda state: context_of(state.rows, route).checkpoint_history)
        for session in {entry.session for entry in entries}:
            if session and routing.choose(project, session=session).rule != routing.CHOSEN:
                routing.use(project, route, session=session)
