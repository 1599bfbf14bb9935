"""The state of a route at one moment: loaded from its snapshot in the cache, its journal and its file."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ralf.errors import DamagedRouteFile, UnreadableRouteFile
from ralf.format.codec import Items, from_tree, outline
from ralf.format.places import sizes
from ralf.model import RouteContext, Tombstone
from ralf.project import Project
from ralf.storage import files
from ralf.storage.files import content_of, open_single_link
from ralf.storage.journal import MALFORMED, Record, Token
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from ralf.format.merge import Change

# ---- the snapshot: a route's folded state in the cache ----
#
# It begins with a checksum and names the journal record that it ends with. One that is missing, damaged or of another
# journal is ignored.

VERSION = 9


KEPT_RENDERS = 16


MOST_SHOWN = 64 << 20
"""Bytes of a remembered context that are read, whatever its file makes itself out to be."""


MOST_ITEMS = 100_000
"""Items of one: a file's are a few hundred."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after the record at `token`; "": before the first one.

    renders  revision and digest of the last route files that were written, oldest first (`state.State`)
    """

    token: Token
    context: RouteContext
    renders: tuple[tuple[int, str], ...] = ()


def path_of(cache: Path, route: str) -> Path:
    """The path of a route's snapshot."""
    return cache / "routes" / f"{route}.json"


def load_snapshot(cache: Path, route: str) -> Snapshot | None:
    """A route's snapshot, None if there is no usable one."""
    try:
        content = content_of(path_of(cache, route))
        _, _, summed = content.partition(b"\n")
        if with_sum(summed) != content:
            return None
        dropped, rest = summed.split(b"\n", 1)
        tree = _read(rest)
        if tree["v"] != VERSION:
            return None
        context = from_tree(RouteContext, tree["context"])
        sizes.know_all(context.decisions, _whole_numbers(tree["sizes"]))
        context = replace(context, dropped=_stones_of(dropped))
        renders = tuple((int(revision), str(digest)) for revision, digest in tree["renders"])
        return Snapshot(str(tree["token"]), context, renders)
    except (OSError, *MALFORMED):
        return None


def save_snapshot(cache: Path, route: str, snapshot: Snapshot, *, shown: bool = True) -> None:
    """Save a snapshot; the caller holds the route's lock.

    A cache that cannot be written costs time, not data: nothing is raised.

    shown  whether the route file is our render; else the snapshot gets the oldest time, which tells `list_routes`
    """
    from ralf.storage import durable  # which readers do not need

    snapshot = replace(snapshot, renders=snapshot.renders[-KEPT_RENDERS:])
    tree = {
        "v": VERSION,
        "token": snapshot.token,
        "renders": [list(render) for render in snapshot.renders],
        "sizes": sizes.of(snapshot.context.decisions),
        "context": outline(replace(snapshot.context, dropped=())),
    }
    path = path_of(cache, route)
    temporary = path.with_name(f".{path.name}.tmp")  # one name: the next holder of the lock removes a dead writer's
    with suppress(OSError):
        content = with_sum(b"\n".join((_dropped_as_json(snapshot.context.dropped), _written(tree))))
        time_ns = None if shown else 0
        files.replace_undurably(path, content, temporary, time_ns=time_ns, rename=durable.exchange_names)


def with_sum(content: bytes) -> bytes:
    """The content of a snapshot's file: its checksum, then `content`."""
    return b"%08x\n%s" % (zlib.crc32(content), content)


def _whole_numbers(tree: list[int]) -> list[int]:
    if not {int}.issuperset(map(type, tree)):
        raise ValueError("a count is a whole number")
    return tree


_dropped: deque[tuple[bytes, tuple[Tombstone, ...]]] = deque(maxlen=4)
"""What was last read or written of tombstones, by route: a route may have thousands, and few writes add one."""


def _stones_of(content: bytes) -> tuple[Tombstone, ...]:
    for known, stones in tuple(_dropped):  # threads add to it
        if known == content:
            return stones
    stones = tuple(_stone(*row) for row in json.loads(content))
    _dropped.append((content, stones))
    return stones


def _stone(label: str, kind: str, said: str, words: str, extra: Mapping[str, Any], record: str = "") -> Tombstone:
    if not all(isinstance(text, str) for text in (label, kind, said, words, record)):
        raise TypeError("a tombstone is text")
    return Tombstone(label, kind, said, words, record, dict(extra))


def _dropped_as_json(stones: tuple[Tombstone, ...]) -> bytes:
    for content, known in tuple(_dropped):
        if known is stones:
            return content
    content = _json([[stone.id, stone.kind, stone.said, stone.words, stone.extra, stone.record] for stone in stones])
    _dropped.append((content, stones))
    return content


def _json(tree: object) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()


_ITEMS = "#items"


_ALIKE = regex("#+items")


def _written(tree: Any) -> bytes:
    """An outline: JSON on one line, then the texts of all items as they are, one a line."""
    texts: list[str] = []
    head = json.dumps(_marked(tree, texts), ensure_ascii=False, separators=(",", ":"))
    return "\n".join((head, *texts)).encode()


def _read(content: bytes) -> Any:
    """What `_written` made the bytes of."""
    if content.count(b"\n") > MOST_ITEMS:
        raise ValueError("more items than any context has")
    head, *texts = content.decode().split("\n")
    return json.loads(head, object_hook=partial(_unmarked, iter(texts)))


def _marked(tree: Any, texts: list[str]) -> Any:
    """An outline as JSON can hold it, its items among the texts, in order: how many. What a person calls so has another
    mark.
    """
    if isinstance(tree, dict):
        return {f"#{key}" if _ALIKE.fullmatch(key) else key: _marked(inner, texts) for key, inner in tree.items()}
    if tree.__class__ is Items:
        texts += tree
        return {_ITEMS: len(tree)}
    return [_marked(inner, texts) for inner in tree] if isinstance(tree, list) else tree


def _unmarked(texts: Iterator[str], tree: dict[str, Any]) -> Any:
    """What `_marked` made a mark of. Each text is read once: what is read is never more than was written."""
    if _ITEMS in tree:
        items = Items(islice(texts, tree[_ITEMS]))
        if len(items) != tree[_ITEMS]:
            raise ValueError("texts are missing")
        return items
    return {key[1:] if _ALIKE.fullmatch(key) else key: inner for key, inner in tree.items()}


def keep_shown(cache: Path, route: str, context: RouteContext, token: Token) -> None:
    """Cache the context that a route file shows: the base of a later edit, which then needs no fold."""
    path = _shown_path(cache, route, context.revision)
    if path.parent.is_symlink():
        return
    with suppress(OSError, ValueError):
        files.make(path.parent)
        path.unlink(missing_ok=True)
        with open(path, "xb", opener=open_single_link) as file:  # a new file: never through a planted link
            file.write(zlib.compress(_written({"token": token, "context": outline(context)}), 1))
        revisions = sorted(int(name.split(".")[0]) for name in os.listdir(path.parent))  # noqa: PTH208
        for old in revisions[:-KEPT_RENDERS]:
            _shown_path(cache, route, old).unlink(missing_ok=True)


def shown_at(cache: Path, route: str, revision: int) -> Snapshot | None:
    """The context that a revision's route file showed, and the token of its record; None if it is not cached."""
    try:
        machine = zlib.decompressobj()
        content = machine.decompress(content_of(_shown_path(cache, route, revision)), MOST_SHOWN)
        if not machine.eof:
            return None
        tree = _read(content)
        return Snapshot(str(tree["token"]), from_tree(RouteContext, tree["context"]))
    except (OSError, zlib.error, *MALFORMED):
        return None


def _shown_path(cache: Path, route: str, revision: int) -> Path:
    return cache / "renders" / route / f"{revision}.json.z"


MAX_BYTES = 64 << 20
"""The largest route file that is read."""


TAKEN_IN = 0
"""In the place of a file's revision: a person's, which the journal has all of. It is no edit of what came after it."""


FileStatus = Literal["current", "stale", "missing", "edited", "damaged", "own", "foreign"]
"""What the route file is to its journal.

current  ours, showing the newest revision
stale    ours, of an older revision, untouched
missing  not there, or empty
edited   changed by a person
damaged  not readable; never overwritten
own      there is no journal; this user put the file there
foreign  this user's ralf did not write it, and it is no edit of theirs; never taken in, never overwritten
"""


@dataclass(frozen=True, slots=True)
class State:
    """A route at one moment.

    context   what the route comes to, a person's unrecorded edits included; what is foreign stands apart in it
    recorded  what the journal alone comes to, and of that what is this user's
    token     the journal's newest record, None for none
    content   the route file's bytes, None where there is none
    status    what the file is to the journal
    changes   what a person changed in the file, not yet in the journal
    behind    whether the journal has more than the file, edited or not, shows
    renders   revision and digest of the last files that we wrote; `TAKEN_IN` and its digest for one that a person saved
              and no file of ours has taken the place of yet
    whole     whether the file is one of ours with these changes and, but for its header, nothing else
    brought   of a foreign file, its bytes as they came; `changes` are then what a person has changed in these since
    lost      of a file that is newer than its journal, the revision that it shows: the records after the journal's head
              are lost, and `changes` are what the file still has of them; 0 else
    base      of an edit, the revision that the person's file shows
    undoes    the revisions of the edits that were taken in and that the file takes back: it is, byte for byte, what it
              was before them
    unplaced  as `renders`, out of a cache of another journal: this one was replaced, cut or rewritten since, and need
              not have what they show
    damage    what is wrong with the file, "" for nothing
    moved     whether `changes` move lines that a person wrote into the brief or among the facts below the brief
    """

    context: RouteContext
    recorded: RouteContext
    token: Token | None
    content: bytes | None
    status: FileStatus
    changes: tuple[Change, ...] = ()
    behind: bool = False
    renders: tuple[tuple[int, str], ...] = ()
    whole: bool = False
    brought: bytes = b""
    lost: int = 0
    base: int = 0
    undoes: tuple[int, ...] = ()
    unplaced: tuple[tuple[int, str], ...] = ()
    damage: str = ""
    moved: bool = False

    @property
    def own(self) -> RouteContext:
        """The context without what is foreign: what work goes on from."""
        return self.recorded if self.context.foreign else self.context


def digest_of(content: bytes) -> str:
    """The sha256 of a route file's bytes."""
    return hashlib.sha256(content).hexdigest()


_REFUSED = {
    errno.EISDIR: "is a directory",
    errno.ELOOP: "is a symbolic link, no regular file: not read",
    **dict.fromkeys((errno.ENXIO, errno.EINVAL), "is no regular file"),
    errno.EFBIG: f"has more than {MAX_BYTES >> 20} MiB",  # a part of it would be an edit that drops the rest
}


def read_file(project: Project, route: str) -> bytes | None:
    """The route file's bytes, None where there is none. DamagedRouteFile for what is no file, or too large, and
    UnreadableRouteFile for one that this user may not read.
    """
    path = project.route_file(route)
    try:
        return content_of(path, most=MAX_BYTES)
    except FileNotFoundError:
        return None
    except PermissionError:
        raise UnreadableRouteFile(path, "may not be read by you", f"sudo chown {os.geteuid()} {path}") from None
    except OSError as error:
        what = _REFUSED.get(error.errno or 0)
        if what is None:
            raise
        raise DamagedRouteFile(path, what, f"move it away: {path}") from None


def parse_file(project: Project, route: str, content: bytes) -> RouteContext:
    """What a route file's bytes say. DamagedRouteFile."""
    from ralf.format.routefile import parse  # a read that finds the file untouched never pays for YAML

    return parse(content, project.route_file(route))


def with_route(context: RouteContext, route: str) -> RouteContext:
    """A context out of a file that anybody may have brought: the route is that of the file, whatever stands in it."""
    return replace(context, context_checkpoint=replace(context.context_checkpoint, route=route))


def lost_warning(path: Path, lost: int, recorded: int) -> str:
    """What a person is told of a route file that is newer than its journal, which ends at a revision; 0: has none."""
    ends = f"its journal ends at {recorded}" if recorded else "it has no journal"
    return f"{path}: shows revision {lost}, and {ends}: records are lost; what the file shows of them is kept"


def redacted(project: Project, change: Change) -> Change:
    """A person's change without its secrets, including a value that only its key marks as one."""
    from ralf.redact import redactor_for

    redactor = redactor_for(project)
    clean: Change = redactor.tree(change)
    if "value" in change and change["at"] and change["at"][-1] != change["value"]:  # not an item, which names itself
        (clean["value"],) = redactor.tree({change["at"][-1]: change["value"]}).values()
    return clean


def shown_by(project: Project, route: str, record: Record, content: bytes) -> RouteContext | None:
    """The context in a route file that is, byte for byte, what a record says it should be; else None."""
    if record.foreign or record.render != digest_of(content) or record.outdated:
        return None
    from ralf.format.routefile import render

    try:
        found = parse_file(project, route, content)
    except DamagedRouteFile:
        return None
    if found.folded.tombstone_count:
        return None  # it does not tell all that the next write has to know
    if render(found).encode() != content:
        return None  # by another version: the journal says what it meant
    return found if found.route == route else with_route(found, route)  # it was renamed since


def damaged(state: State, error: DamagedRouteFile) -> State:
    """The state with a file that is never overwritten and of which nothing is taken."""
    warned = replace(state.recorded, warnings=(f"{error}; this is what the journal holds", error.hint))
    return replace(state, context=warned, status="damaged", damage=str(error))
