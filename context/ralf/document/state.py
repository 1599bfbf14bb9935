"""What the records of a document come to, with what the machinery keeps of them: kept up through the index."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf.document.family import Family, Stamp
from ralf.document.index import Index, Unusable
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.errors import UnknownToken
from ralf.storage.journal import Entry, Store, Token
from ralf.text import digests

if TYPE_CHECKING:
    from sqlite3 import Connection

_HEAD, _IDS, _DISPLACED, _BEFORE = "head", "id/", "displaced", "before/"

_MOST_BEFORE = 16  # records of which the rows are kept that they changed: an editor may show a file of before

_MOST_SAVES = 32  # absorbed saves that may be the base of another one

_held: dict[tuple[Path, str], tuple[Token, Any]] = {}
"""What families have made of rows in this process, by index and stream: the same as long as the place is."""

_MOST_HELD = 16

_EMPTY: dict[str, Any] = {"revision": 0, "at": "", "mark": "", "render": "", "saves": [], "later": 0}


class State:
    """The state of a document at a place of its journal.

    rows   of its family
    token  the place of the newest record that is folded, None before the first
    head   what its first row says, where that is known
    """

    def __init__(self, family: Family, rows: Rows, token: Token | None, head: dict[str, Any] | None = None) -> None:
        self.family = family
        self.rows = rows
        self.token = token
        self._kept = token
        self._shown: bytes | None = None
        self._head: dict[str, Any] = head or rows.one(_HEAD) or dict(_EMPTY)

    @property
    def revision(self) -> int:
        """The number of the newest record, 0 before the first."""
        return int(self._head["revision"])

    @property
    def mark(self) -> str:
        """The document's mark, "" before the first record."""
        return str(self._head["mark"])

    @property
    def render(self) -> str:
        """The sha256 of the file that shows this state, "" where no record says it."""
        return str(self._head["render"])

    @property
    def later(self) -> int:
        """How many records only a later version can read."""
        return int(self._head["later"])

    def has(self, id_: str) -> bool:
        """Whether a record was appended under an id."""
        return self.rows.one(f"{_IDS}{id_}") is not None

    def save_of(self, stamp: str) -> str:
        """The digest of the newest save with a stamp that was absorbed, "" for none."""
        return next((digest for digest, known in reversed(self._head["saves"]) if known == stamp), "")

    def has_absorbed(self, digest: str) -> bool:
        """Whether a save of these bytes was absorbed."""
        return any(known == digest for known, _ in self._head["saves"])

    def stamp(self) -> Stamp:
        """The stamp of a file that shows this state."""
        return Stamp(self.revision, self.family.layout, self.mark)

    def shown(self) -> bytes:
        """The file that shows this state."""
        if self._shown is None:
            self._shown = self.family.render(self.rows, self.stamp())
        return self._shown

    def add(self, record: Record, id_: str = "") -> None:
        """Fold a record."""
        head = self._head | {"revision": record.revision, "at": record.at, "render": record.render}
        head["mark"] = head["mark"] or record.mark
        head["later"] += record.is_later
        if record.save is not None:
            head["saves"] = [*head["saves"], list(record.save)][-_MOST_SAVES:]
        self._put(head)
        self._shown = None
        if id_:
            self.rows.put(f"{_IDS}{id_}", record.revision)
        self.family.fold(self.rows, record)

    def with_record(self, record: Record, id_: str = "", *, is_shown: bool = False) -> State:
        """This state with a record that is not in the journal; `is_shown`: and that says then what file shows it."""
        made = State(self.family, Rows(self.rows), self.token, self._head)
        made.add(record, id_)
        if is_shown:
            made._put(made._head | {"render": digest_of(made.shown())})
        return made

    def become(self, above: State, token: Token) -> None:
        """Be what this state is with a record: it has landed at a place."""
        before = self.rows.some(key for key in above.rows.changed if not key.startswith(_IDS))
        self.rows.changed |= above.rows.changed
        self.rows.put(f"{_BEFORE}{above.revision % _MOST_BEFORE}", [above.revision, before])
        self.rows.held = above.rows.held
        self._head, self._shown, self.token = above._head, above._shown, token

    def at(self, revision: int) -> State | None:
        """The state at one of the last revisions; None where writers have not kept what has changed since."""
        if revision >= self.revision:
            return self if revision == self.revision else None
        rows, number = Rows(self.rows), self.revision
        rows.held = None
        while number > revision:
            of, before = rows.one(f"{_BEFORE}{number % _MOST_BEFORE}") or (0, {})
            if of != number:
                return None
            for key, value in before.items():
                rows.put(key, value)
            number -= 1
        return State(self.family, rows, None)

    @property
    def displaced(self) -> str:
        """The digest of what the last write of this index displaced and that is ours, or absorbed; "" for none."""
        return str(self.rows.one(_DISPLACED) or "")

    def has_displaced(self, digest: str) -> None:
        """Know what a write has displaced."""
        self.rows.put(_DISPLACED, digest)

    def take(self, stream: str, entry: Entry) -> Record:
        """Fold the record of an entry, and return it. DamagedJournal."""
        record = self.family.decoded(stream, entry)
        self.add(record, entry.id)
        self.token = entry.token
        return record

    @property
    def kept(self) -> Token | None:
        """The place at which the index has the document, None where it has it not."""
        return self._kept

    def keep(self, stream: str, index: Index | None, beside: Callable[[Connection], None] | None = None) -> None:
        """Leave in the index what changed since the state was read from it; `beside`: see `Index.keep`."""
        if index is not None and self.token is not None and self.rows.held is not None:
            if len(_held) >= _MOST_HELD:
                _held.clear()
            _held[index.path, stream] = self.token, self.rows.held
        if index is not None and self.token is not None and self.rows.changed:
            index.keep(stream, self._kept, self.token, self.rows.changed, beside)
            self._kept = self.token

    def _put(self, head: dict[str, Any]) -> None:
        self._head = head
        self.rows.put(_HEAD, head)


def is_saved(rows: Rows, stamp: str) -> bool:
    """Whether a save with a stamp was absorbed."""
    return any(known == stamp for _, known in (rows.one(_HEAD) or _EMPTY)["saves"])


def digest_of(content: bytes) -> str:
    """The sha256 of a file, in hexadecimal digits."""
    return digests.sha256(content).hexdigest()


def caught_up(family: Family, store: Store, stream: str, index: Index | None) -> State:
    """The state of a document by its journal, from the index as far as that fits. DamagedJournal.

    What is read of the state later is folded anew where the index has become unusable meanwhile.
    """

    def instead(token: Token) -> Rows:
        return _folded(family, store, stream, lambda entry, _: entry.token == token).rows

    state = State(family, Rows(), None)
    if index is not None:
        with suppress(Unusable):
            if (found := index.state(stream, instead)) is not None:
                state = State(family, Rows(found[1]), found[0])
                token, held = _held.get((index.path, stream), ("", None))
                state.rows.held = held if token == state.token else None
    if store.head(stream) == state.token:
        return state
    try:
        entries = list(store.read(stream, after=state.token))
    except UnknownToken:  # it was rewritten, or is another one
        state = State(family, Rows(), None)
        entries = list(store.read(stream))
    for entry in entries:
        state.take(stream, entry)
    return state


def state_at(family: Family, store: Store, stream: str, revision: int) -> State | None:
    """The state of a document at one of its revisions; None for one that its journal does not have. DamagedJournal."""
    state = _folded(family, store, stream, lambda _, state: state.revision >= revision)
    return state if state.revision == revision else None


def _folded(family: Family, store: Store, stream: str, ends: Callable[[Entry, State], bool]) -> State:
    """The state of a document up to a record, by its journal."""
    state = State(family, Rows(), None)
    for entry in store.read(stream):
        state.take(stream, entry)
        if ends(entry, state):
            break
    return state
