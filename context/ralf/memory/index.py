"""The index of a memory: one SQLite file in the cache, of what the records come to. It may be deleted or torn at any
time: then it is made anew.

Records are folded into it one by one, so neither a write nor a look at the items that concern a task costs more the
more items there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralf.errors import UnknownToken
from ralf.memory import document, fold, records
from ralf.memory.fold import Pages, identity
from ralf.memory.model import Item, Memory, order_of
from ralf.memory.ranking import text_of, worth
from ralf.memory.records import Record, fields_of, stream_of, tree_of
from ralf.project import Project
from ralf.storage.database import Database
from ralf.storage.journal import Token
from ralf.tasks.origin import boot
from ralf.text import matcher

_MOST_SHOWN = 8  # renders whose digests are remembered

_OF_A_WORD = 48  # items of the highest worth that are looked at for one word

_MOST_WORDS = 64  # of a task

_SCHEMA = """
create table meta(key text primary key, value text) without rowid;
create table item(id text primary key, rank real, identity text, kind text, data text, words text) without rowid;
create index item_rank on item(rank, length(id), id);
create index item_kind on item(kind, rank, id);
create index item_identity on item(identity);
create table word(word text, rank real, id text, primary key(word, rank, id)) without rowid;
create table buried(identity text primary key) without rowid;
create table record(id text primary key) without rowid;
create table absorbed(digest text primary key) without rowid;
"""


class Index(Database):
    """What the records of one memory come to: a `fold.Book`. sqlite3.DatabaseError when it is damaged.

    Everything is read and written within `alone` or `writing`.
    """

    version, schema = 3, _SCHEMA

    def __init__(self, project: Project, agent: str, path: Path | None) -> None:
        super().__init__(path, boot())
        self._project = project
        self._agent = agent
        self._stream = stream_of(agent)
        self.head = Memory(agent)

    # ---- keeping up ----

    @property
    def token(self) -> Token | None:
        """The place of the newest record that is folded."""
        return self.meta("token") or None

    @property
    def foreign(self) -> int:
        """How many records this user's ralf did not write."""
        return int(self.meta("foreign", 0))

    @property
    def later(self) -> int:
        """How many deltas only a later version knows."""
        return int(self.meta("later", 0))

    def keep_up(self) -> None:
        """Fold the records that are new. DamagedJournal."""
        self.load()
        self.recall()
        if self._project.store.head(self._stream) != self.token:
            with self.writing():
                self.recall()
                self._take_in()

    def recall(self) -> None:
        """Read the head; for after `load`."""
        self.head = _head_of(self._agent, self.meta("head", {}))

    def _take_in(self) -> None:
        if self.token is None:
            self._rebuild()
            return
        try:
            read = list(self._project.store.read(self._stream, after=self.token))
        except UnknownToken:  # it was rewritten, or is another one
            self._rebuild()
            return
        for entry in read:
            record = self._noted(entry.id, records.parsed(self._stream, entry))
            if record is not None:
                fold.apply(self, record)
            self.set_meta("token", entry.token)
        self._keep_head()

    def _rebuild(self) -> None:
        """Fold the whole stream, in memory first."""
        for table in ("item", "word", "buried", "record", "absorbed"):
            self.db.execute(f"delete from {table}")  # noqa: S608  # names of our own
        for name in ("token", "foreign", "later"):
            self.set_meta(name, 0)
        pages = Pages(Memory(self._agent))
        for entry in self._project.store.read(self._stream):
            record = self._noted(entry.id, records.parsed(self._stream, entry))
            if record is not None:
                fold.apply(pages, record)
            self.set_meta("token", entry.token)
        self.head = pages.head
        for item in pages.items.values():
            self._insert(item)
        self.db.executemany("insert into buried values(?)", [(one,) for one in pages.buried()])
        self._keep_head()

    def _noted(self, id_: str, record: Record | None) -> Record | None:
        if record is None:
            self.set_meta("foreign", self.foreign + 1)
            return None
        self.db.execute("insert or ignore into record values(?)", (id_,))
        if record.file:
            self.db.execute("insert or ignore into absorbed values(?)", (record.file,))
        if record.later:
            self.set_meta("later", self.later + record.later)
        return record

    def _keep_head(self) -> None:
        self.set_meta("head", {name: value for name, value in tree_of(self.head).items() if name != "agent"})

    # ---- a book ----

    def get(self, label: str) -> Item | None:
        """The item of a label, None for none."""
        return self._one("select data from item where id = ?", label)

    def find(self, identity: str) -> Item | None:
        """The first item of an identity, None for none."""
        return self._one("select data from item where identity = ? order by length(id), id limit 1", identity)

    def _one(self, statement: str, value: str) -> Item | None:
        row = self.db.execute(statement, (value,)).fetchone()
        return _item(row[0]) if row is not None else None

    def put(self, item: Item) -> None:
        """Keep an item, in the place of the one with its label."""
        old = self.get(item.id)
        if old is not None:
            self.remove(old)
        self._insert(item)

    def _insert(self, item: Item) -> None:
        rank, words = -worth(item), words_of(item)
        row = (item.id, rank, identity(item), item.kind, records.item_text(item), "\n".join(words))
        self.db.execute("insert into item values(?, ?, ?, ?, ?, ?)", row)
        self.db.executemany("insert into word values(?, ?, ?)", [(word, rank, item.id) for word in words])

    def remove(self, item: Item) -> None:
        """Take an item out."""
        rank = -worth(item)
        self.db.executemany(
            "delete from word where word = ? and rank = ? and id = ?",
            [(word, rank, item.id) for word in words_of(item)],
        )
        self.db.execute("delete from item where id = ?", (item.id,))

    def bury(self, identity: str, buried: bool) -> None:
        """Keep whether rules may not bring an identity back."""
        statement = "insert or ignore into buried values(?)" if buried else "delete from buried where identity = ?"
        self.db.execute(statement, (identity,))

    def is_buried(self, identity: str) -> bool:
        """Whether rules may not bring an identity back."""
        return self.db.execute("select 1 from buried where identity = ?", (identity,)).fetchone() is not None

    # ---- asking ----

    def memory(self) -> Memory:
        """All of it."""
        rows = self.db.execute("select data from item")
        return replace(self.head, items=tuple(sorted((_item(data) for (data,) in rows), key=order_of)))

    def count(self) -> int:
        """How many items there are."""
        return int(self.db.execute("select count(*) from item").fetchone()[0])

    def best(self, most: int) -> Memory:
        """The memory with the items of the highest worth alone: so many bytes of them in a file, and one more."""
        rows = self.db.execute("select data from item order by rank, length(id), id")
        items: list[Item] = []
        for (data,) in rows:
            items.append(_item(data))
            most -= document.size_of(items[-1])
            if most < 0:
                break
        rows.close()
        return replace(self.head, items=tuple(sorted(items, key=order_of)))

    def candidates(self, words: Iterable[str], kinds: Sequence[str], limit: int) -> list[tuple[Item, set[str]]]:
        """Items that have any of some words, and the best of some kinds whatever they say, each with all words that it
        has; at most so many for each word and each kind.
        """
        labels: dict[str, None] = {}
        for kind in kinds:
            rows = self.db.execute("select id from item where kind = ? order by rank, id limit ?", (kind, limit))
            labels |= dict.fromkeys(label for (label,) in rows)
        for word in list(dict.fromkeys(words))[:_MOST_WORDS]:
            rows = self.db.execute(
                "select id from word where word = ? order by rank limit ?", (word, min(limit, _OF_A_WORD))
            )
            labels |= dict.fromkeys(label for (label,) in rows)
        rows = self.db.execute(
            "select id, data, words from item where id in (select value from json_each(?))", (json.dumps(list(labels)),)
        )
        found = {label: (_item(data), own) for label, data, own in rows}
        return [(item, set(own.split("\n"))) for item, own in map(found.__getitem__, labels)]

    def has_record(self, id_: str) -> bool:
        """Whether a record was appended under an id."""
        return self.db.execute("select 1 from record where id = ?", (id_,)).fetchone() is not None

    # ---- the file ----

    def shown_at(self, digest: str) -> int:
        """The revision of which a file of this digest was rendered lately, 0 for none."""
        return next((revision for revision, known in self.meta("shown", []) if known == digest), 0)

    def is_absorbed(self, digest: str) -> bool:
        """Whether the edits in a file of this digest were taken in."""
        return self.db.execute("select 1 from absorbed where digest = ?", (digest,)).fetchone() is not None

    def show(self, digest: str, *, patient: bool = True) -> None:
        """Remember a file that is rendered; `patient`: see `writing`."""
        with self.writing(patient=patient):
            shown = [one for one in self.meta("shown", []) if one[1] != digest]
            self.set_meta("shown", [*shown, [self.head.revision, digest]][-_MOST_SHOWN:])


def words_of(item: Item) -> set[str]:
    """The words under which an item is found."""
    return {word.text for word in matcher.words(text_of(item))}


def _item(data: str) -> Item:
    return records.item_of(json.loads(data))


def _head_of(agent: str, tree: dict[str, Any]) -> Memory:
    known = {name for name, _ in fields_of(Memory)}
    values = {name: value for name, value in tree.items() if name in known}
    with suppress(TypeError):
        return Memory(agent, **values)
    return Memory(agent)
