"""A route as a document: how its records fold, what its file shows, and what a change of that file means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ralf.document.access import BY_AGENT, Document
from ralf.document.family import Parsed, Stamp
from ralf.document.index import NAME, Index, using
from ralf.document.place import Place
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.document.state import State, caught_up, is_saved
from ralf.errors import DamagedRouteFile
from ralf.model import LAYOUT, RouteContext
from ralf.project import Project
from ralf.route import rows as routes
from ralf.route.rows import context_of as context_of
from ralf.storage import journal
from ralf.storage.journal import Entry
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.document.merge import Change

MAX_BYTES = 64 << 20
"""The largest route file that is read."""

# The fold, the render and YAML are imported by whoever needs one: a read of an untouched file needs none of them.

T = TypeVar("T")


Tree = tuple[RouteContext, str]
"""What a route file says, and the part of it that is written anew at each write."""


@dataclass(frozen=True, slots=True)
class RouteFamily:
    """A route. See `ralf.document.family.Family`.

    redact  removes secrets from a file; redact_change: from a change that a person made
    """

    route: str
    redact: Callable[[str], str]
    redact_change: Callable[[Change], Change]
    layout: int = LAYOUT

    def decoded(self, stream: str, entry: Entry) -> Record:
        """See `Family.decoded`."""
        found = journal.parsed(self.route, entry)
        return Record(
            found.revision,
            "",
            {"record": found},
            "",
            found.mark,
            found.render,
            found.save,
            is_later=found.version > journal.VERSION,
        )

    def encoded(self, record: Record) -> bytes:
        """See `Family.encoded`."""
        return journal.line_of(_of_journal(record))

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        from ralf.route import fold

        made, before = _of_journal(record), context_of(rows, self.route)
        routes.put_context(rows, before, fold.apply(before, made))
        routes.take(rows, made)

    def render(self, rows: Rows, stamp: Stamp) -> bytes:
        """See `Family.render`."""
        from ralf.route import filed

        return filed.content_of(context_of(rows, self.route))

    def parse(self, content: bytes, path: Path) -> Parsed:
        """See `Family.parse`."""
        from ralf.route.routefile import parse

        found = parse(content, path)
        return Parsed((found, found.body.brief), stamp_of(found), not found.body.is_cut)

    def changes(self, base: Tree | None, found: Tree, rows: Rows, *, is_whole: bool) -> Mapping[str, Any] | None:
        """See `Family.changes`."""
        from ralf.route import edits, own_lines

        ours, both = context_of(rows, self.route), list[Any]()
        if base is None:
            theirs = own_lines.with_own_lines(found[0])
            made = edits.changes_of_foreign(ours, theirs)
        else:
            before = own_lines.with_own_lines(base[0])  # somebody may have edited what they saved before
            theirs = own_lines.with_own_lines(found[0], base[0], is_whole=is_whole)
            is_again = is_saved(rows, str(stamp_of(found[0])))
            made = edits.changes_of_edit(before, theirs, ours, self.redact_change, is_whole=is_whole, is_again=is_again)
            both = edits.conflicts(before, ours, made)
        return edits.body_of(made, both) if made else None

    def redacted(self, text: str) -> str:
        """See `Family.redacted`."""
        return self.redact(text)


def _of_journal(record: Record) -> journal.Record:
    """A record as the journal of a route has it."""
    found = record.body.get("record")
    if found is not None:
        return found  # type: ignore[no-any-return]
    body = record.body
    payload = body["payload"] | ({"origin": "agent"} if record.by == BY_AGENT else {})
    return journal.Record(
        record.revision, body["kind"], payload, render=record.render, mark=record.mark, save=record.save
    )


_STAMP = regex(r"([0-9]{1,9})\.([0-9]{1,9})\.(.+)\Z")


def stamp_of(context: RouteContext) -> Stamp | None:
    """The stamp that a file's header has; None for none that is ours."""
    found = _STAMP.match(context.context_checkpoint.mark)
    return Stamp(int(found[1]), int(found[2]), found[3]) if found else None


def document_of(project: Project, route: str, *, redacts: bool = True, is_written: bool = False) -> Document:
    """A route as a document.

    redacts     whether what it says of an edit is without secrets, for which a key is made
    is_written  whether its file is where writers put it, also while that of an archived route lies elsewhere
    """
    stream = journal.stream_of(route)
    file = project.live_file(route) if is_written else project.route_file(route)
    place = Place(
        file=file,
        prev=project.folder / "prev" / "routes" / file.name,
        lock=project.route_lock(route),
        index=project.room_for(NAME),
        left=lambda: project.git.would_commit(file),
        brought=partial(project.git.has_brought, file),
        most=MAX_BYTES - 1,
    )
    family = RouteFamily(route, partial(redacted_file, project), partial(redacted, project))
    family = family if redacts else RouteFamily(route, str, dict)

    def author() -> str:
        from ralf.facts.editor import author_of  # an edit is seldom

        return author_of(project, stream, file)

    return Document(family, project.store, stream, place, author=author)


def recorded(project: Project, route: str, work: Callable[[State], T]) -> T:
    """What `work` says of a route by its journal alone. DamagedJournal."""
    with using(project.room_for(NAME)) as index:
        return of_one(project, route, index, work)


def of_one(project: Project, route: str, index: Index | None, work: Callable[[State], T]) -> T:
    """As `recorded`, with an index that is open. DamagedJournal."""
    document = document_of(project, route)
    state = caught_up(document.family, document.store, document.stream, index)
    found = work(state)
    state.keep(document.stream, index)
    return found


# ---- without secrets ----


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

    redactor = redactor_for(project)
    plain: str = redactor.text(text)
    try:
        tree = to_tree(parse(plain.encode(), project.folder))
    except DamagedRouteFile:
        return plain
    clean = redactor.tree(tree)
    return plain if clean == tree else render(from_tree(RouteContext, clean))
