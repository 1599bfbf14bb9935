"""The index of tasks: one SQLite file in the cache, of their files and of what the records come to. It may be deleted
or torn at any time: then it is made anew.

A file is opened only where its times or its size changed; records are folded from where the index has them. What is
asked most often, which task is ready, is one look into a table.

Whether files changed takes one stat each. In a tree of many files a command that reads or claims does that only if no
other did within the last second (`LATELY`). Else it stats the folders, in which nothing comes, goes or is replaced
without a trace, does its work, and stats the files of the tasks that the work was about (`Index.sure`). Where one of
these changed, or the work failed, it looks at all files and works again. So what a command shows or claims is as its
file says; of any other task's file an edit in place is seen within a second.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ralf.errors import Damaged, DamagedJournal, RalfError, UnknownToken
from ralf.project import Project
from ralf.storage.files import content_of
from ralf.storage.journal import Token
from ralf.tasks import folders, origin, records
from ralf.tasks.answers import EARLIER, UNMET, Answers, Row, words_of
from ralf.tasks.model import MAX_BYTES, Task
from ralf.tasks.records import STREAM, Change, Known

T = TypeVar("T")

MANY = 500
"""Files that every command looks at, each: it takes 2 ms."""

LATELY = 1_000_000_000
"""Nanoseconds for which one look at all of more files is enough."""

_AT_ONCE = 64 << 20  # bytes of files that are held at the same time

_MOST_MET = 500  # files that are looked at one by one; beyond that all are

_MOST_TOLD = 5  # files of one task that are named

_SETTLED, _SETTLED_COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds after which a change of a file changes its times, too; the second for a clock that counts seconds."""

_COUNT = (
    "update task set blocked = (select count(*) from need n left join task d on d.id = n.on_id"  # noqa: S608
    f" where n.id = task.id and {UNMET}) + exists(select 1 from task e where {EARLIER})"
    " where id in (select value from json_each(:ids)"
    " union select id from need where on_id in (select value from json_each(:ids)))"
)

_FIRST = "select id from task where chain = ? and status = ? order by place limit ?"


class Index(Answers):
    """The index, kept up with files, plan and records: a `records.Book`. sqlite3.DatabaseError when it is damaged."""

    def __init__(self, project: Project, path: Path | None) -> None:
        super().__init__(project, path)
        self._project = project
        self._folder = project.folder.parent / folders.TASKS
        self.number, self.write = 0, ""
        self.owed: dict[str, None] = {}
        self._is_whole = False  # whether all files were looked at since this was opened
        self._new_own: list[str] = []

    @property
    def token(self) -> Token | None:
        """The place of the newest record that is folded."""
        return self.meta("token") or None

    @property
    def journal_problem(self) -> str:
        """Why records that follow cannot be read; "" where all were."""
        return str(self.meta("journal_problem"))

    # ---- keeping up ----

    def renew(self, *, lately: bool = False) -> None:
        """Take in what changed of files, plan and records.

        lately  whether files need not be looked at if that was done a moment ago, as `sure` completes it
        """
        self.load()
        generation = self.meta("generation", 0)
        self._is_whole = not (lately and self._was_looked_lately())
        found = self._looked() if self._is_whole else _Looked({}, [], [])
        head = self._project.store.head(STREAM)
        plan = self._plan_stamp()
        if found.is_empty and head == self.token and plan == self.meta("plan"):
            self._recall()
            if found.at:
                with suppress(sqlite3.OperationalError), self.writing(patient=False):  # else the next one looks, too
                    self._keep_looked(found)
            return
        with self.writing():
            if self._is_whole and generation != self.meta("generation", 0):  # another process has looked later
                found = self._looked()
            self.set_meta("generation", self.meta("generation", 0) + 1)
            ids = self._take_records()  # first: they say of some files whose they are
            self._derive(ids | self._take_files(found))
            self._keep_looked(found)
            if plan != self.meta("plan"):
                self._recount(self._take_plan(plan))

    def sure(self, work: Callable[[], T]) -> T:
        """What `work`, which only reads, says of the index as files are now; it may be called twice. For after `renew`
        with `lately`.
        """
        self.used.clear()
        try:
            found = work()
            if self._is_whole or self._is_still_so():
                return found
        except RalfError:
            if self._is_whole:
                raise
        self.renew()
        return work()

    def _is_still_so(self) -> bool:
        """Whether the files of all tasks that were asked for are as the index had them then."""
        asked = self.meta("generation", 0)
        is_edited = self._is_edited(self.used)
        self.load()
        return not is_edited and asked == self.meta("generation", 0)  # else another process has seen the edit since

    def is_kept_up(self) -> bool:
        """Whether all records are folded, and files were looked at once."""
        return self.has_files and self._project.store.head(STREAM) == self.token

    @property
    def has_files(self) -> bool:
        """Whether files were looked at once."""
        return bool(self.meta("generation", 0))

    def take_records(self) -> None:
        """Take in what changed of records alone."""
        if self._project.store.head(STREAM) != self.token:
            self.take_in(())

    def take_in(self, paths: Iterable[Path]) -> None:
        """Look at the records and at these files only, which this process has just written."""
        with self.writing():
            self.set_meta("generation", self.meta("generation", 0) + 1)
            found = _Looked({}, [], [])
            for path in dict.fromkeys(map(os.fspath, paths)):
                name = self.name(path)
                try:
                    found.changed[name] = os.lstat(path)
                except OSError:
                    found.gone.append(name)
            ids = self._take_records()
            self._derive(ids | self._take_files(found))

    def _recall(self) -> None:
        self.number, self.write = self.meta("number", 0), self.meta("write")
        self.owed = dict.fromkeys(self.meta("owed", []))

    def _take_records(self) -> set[str]:
        """Fold the records that are new; the ids of the tasks that they are about."""
        self._recall()
        before, claims = set(self.owed), dict(self.meta("claims", {}))
        token = self.token
        try:
            entries, problem = self._read(token)
        except UnknownToken:  # it was rewritten, or begun anew
            for table in ("known", "shown"):
                self.db.execute(f"delete from {table}")  # noqa: S608
            self.number, self.write, self.owed = 0, "", {}
            claims = {}
            before |= {id_ for (id_,) in self.db.execute("select id from task")}
            self.known.changed.clear()
            entries, problem = self._read(None)
            token = None
        self.set_meta("journal_problem", problem)
        count = len(entries) + (self.meta("entries", 0) if token is not None else 0)
        found = [record for _, record in entries if record is not None]
        records.fold(found, self)
        self.number = max(self.number, count)  # also of records that are not this user's, or not yet
        for id_, known in self.known.changed.items():
            claims.pop(id_, None)
            if known.claim is not None:
                claims[id_] = known.claim.number
        ids = set(self.known.flush())
        ids |= self._flush_own()
        if entries or token is None:
            self.set_meta("token", entries[-1][0] if entries else "")
            self.set_meta("entries", count)
            self.set_meta("number", self.number)
            self.set_meta("write", self.write)
            self.set_meta("owed", list(self.owed))
            self.set_meta("claims", claims)
            met = self.met if token is not None else None
            if met is not None:
                changes = (one for record in found for one in getattr(record.body, "changes", ()))
                met = [*met, *([one.place, one.task] for one in changes)]
            self.set_meta("met", met if met is not None and len(met) <= _MOST_MET else None)
        return ids | before | set(self.owed) if found else ids

    def _read(self, after: Token | None) -> tuple[list[tuple[Token, records.Record | None]], str]:
        """The records after a place, up to one that is damaged, and what is wrong with that one. UnknownToken."""
        found: list[tuple[Token, records.Record | None]] = []
        try:
            for entry in self._project.store.read(STREAM, after=after):
                found.append((entry.token, records.parsed(entry)))  # noqa: PERF401  # what was read before an error stays
        except DamagedJournal as error:
            return found, str(error)
        return found, ""

    def own(self, digest: str) -> None:
        """Keep that bytes of a task's file are this user's; see `records.Book`."""
        self._new_own.append(digest)

    def _flush_own(self) -> set[str]:
        listed = json.dumps(self._new_own)
        self._new_own.clear()
        if listed == "[]":
            return set()
        self.db.execute("insert or replace into own select value, 1 from json_each(?)", (listed,))
        rows = self.db.execute(
            "select id from file where is_foreign = 1 and digest in (select value from json_each(?))", (listed,)
        ).fetchall()
        self.db.execute("update file set is_foreign = 0 where digest in (select value from json_each(?))", (listed,))
        return {id_ for (id_,) in rows}

    # ---- files ----

    def _looked(self) -> _Looked:
        """The files that are not as the index has them, by one stat each."""
        known = dict(self.db.execute("select path, stamp from file"))
        racy = [name for name, was in known.items() if not was]
        count, now, looked = len(known), time.monotonic_ns(), time.time_ns()
        above: dict[str, os.stat_result | None] = {}
        changed = folders.scan_changed(self._folder, known, above)
        unnamed: list[str] = []
        for name in [name for name in changed if not (name.isascii() or is_text(name))]:
            del changed[name]
            if known.pop(name := _as_text(name), None) is None:
                unnamed.append(name)
        for name in racy:
            if name in changed and not self._is_another(name, 0, changed[name], looked):
                del changed[name]
        if count <= MANY:
            return _Looked(changed, list(known), unnamed)
        stamps = {name: _folder_stamp(stat, looked) for name, stat in above.items()}
        return _Looked(changed, list(known), unnamed, now, stamps)

    def _is_another(self, name: str, was: int, stat: os.stat_result, looked: int) -> bool:
        """Whether a file is another than the index has, of which it has another stamp, or none (0)."""
        return was != 0 or _is_settled(stat, looked) or not self._is_same(name)

    def _keep_looked(self, found: _Looked) -> None:
        """Keep when all files were looked at, and how their folders were then; within `writing`."""
        if found.at > self.meta("looked", 0):
            self.set_meta("looked", found.at)
            self.set_meta("folders", found.above)

    def _was_looked_lately(self) -> bool:
        """Whether all files were looked at within a second, and no folder changed since."""
        looked = self.meta("looked", 0)  # 0: never, however short ago the clock began, with the machine
        if not looked or not 0 <= time.monotonic_ns() - looked < LATELY:
            return False
        return all(was and was == self._stamp_above(name) for name, was in self.meta("folders", {}).items())

    def _stamp_above(self, name: str) -> str:
        try:
            return _folder_stamp(os.lstat(self.path(name)), 0)
        except OSError:
            return _folder_stamp(None, 0)

    def _is_edited(self, ids: Iterable[str]) -> bool:
        """Whether the file of one of these tasks is not as the index has it."""
        rows = self.db.execute(
            "select path, stamp from file where id in (select value from json_each(?))",
            (json.dumps(list(ids), ensure_ascii=False),),
        )
        looked = time.time_ns()
        for name, was in rows.fetchall():
            try:
                stat = os.lstat(self.path(name))
            except OSError:
                return True
            if was != folders.stamp(stat) and self._is_another(name, was, stat, looked):
                return True
        return False

    def _is_same(self, name: str) -> bool:
        """Whether a file that changed a moment ago holds what the index has of it."""
        row = self.db.execute("select digest from file where path = ?", (name,)).fetchone()
        try:
            return row is not None and records.digest_of(content_of(self.path(name), most=MAX_BYTES)) == row[0]
        except OSError:
            return False

    def _take_files(self, found: _Looked) -> set[str]:
        if found.is_empty:
            return set()
        ids = set()
        for name in found.gone:
            ids |= self.ids_at(name)
            self.db.execute("delete from file where path = ?", (name,))
        for name in found.unnamed:
            row = (name, 0, "", folders.name_of(self.path(name)), 1, f"{self.path(name)}: its name is not UTF-8", "")
            self.db.execute("insert or replace into file values(?, ?, ?, ?, ?, ?, ?)", row)
        part, size = dict[str, os.stat_result](), 0
        for name, stat in found.changed.items():
            part[name] = stat
            size += stat.st_size
            if size > _AT_ONCE:
                ids |= self._take_some(part)
                part, size = {}, 0
        return ids | self._take_some(part)

    def _take_some(self, changed: Mapping[str, os.stat_result]) -> set[str]:
        """Take in files that are others than the index has; the ids of the tasks that they are, or were, of."""
        from ralf.tasks import taskfile  # which loads YAML

        ids = set()
        looked = time.time_ns()
        contents: dict[str, bytes] = {}
        rows: dict[str, tuple[Any, ...]] = {}
        for name, stat in changed.items():
            ids |= self.ids_at(name)
            stamp = folders.stamp(stat) if _is_settled(stat, looked) else 0
            path = self.path(name)
            try:
                content = content_of(path, most=MAX_BYTES)
            except FileNotFoundError:
                self.db.execute("delete from file where path = ?", (name,))
                continue
            except OSError as error:
                rows[name] = (stamp, "", folders.name_of(path), 0, f"{path}: cannot be read: {error.strerror}", "")
                continue
            contents[name] = content
            digest = records.digest_of(content)
            try:
                task = taskfile.parse(content, path)
                data = json.dumps(records.tree_of(task), ensure_ascii=False, separators=(",", ":"), default=str)
                data.encode()
                rows[name] = (stamp, digest, task.id, 0, "", data)
            except (Damaged, UnicodeEncodeError) as error:
                rows[name] = (stamp, digest, folders.name_of(path), 0, str(error), "")
        ours = {name for name, row in rows.items() if name in contents and self._was_ours(name, row[2])}
        brought = {name for name, row in rows.items() if name in contents and self._was_brought(row[2], row[1])}
        foreign, unsure = self._foreign_of({name: contents[name] for name in contents.keys() - brought}, ours)
        foreign |= brought
        for name, (stamp, digest, id_, _, problem, data) in rows.items():
            self.db.execute(
                "insert or replace into file values(?, ?, ?, ?, ?, ?, ?)",
                (name, 0 if name in unsure else stamp, digest, id_, name in foreign, problem, data),
            )
            ids.add(id_)
        return ids

    def ids_at(self, name: str) -> set[str]:
        """The tasks of a file."""
        return {id_ for (id_,) in self.db.execute("select id from file where path = ?", (name,))}

    def _was_ours(self, name: str, id_: str) -> bool:
        """Whether what lay in a file's place before was this user's, or the records know its task."""
        row = self.db.execute("select is_foreign from file where path = ?", (name,)).fetchone()
        return row[0] == 0 if row is not None else id_ in self.known

    def _was_brought(self, id_: str, digest: str) -> bool:
        """Whether a file is one that a pull brought and that a command has changed since."""
        known = self.known.get(id_)
        change = known.change if known is not None else None
        if change is None or not change.foreign or change.digest != digest:
            return False
        return self.db.execute("select 1 from own where digest = ?", (digest,)).fetchone() is None

    def _foreign_of(self, contents: Mapping[str, bytes], ours: Container[str]) -> tuple[set[str], set[str]]:
        """Those of the files whose bytes are not this user's, and those of them that are to be looked at again. What
        was found to be theirs once stays theirs.
        """
        digests = {name: records.digest_of(content) for name, content in contents.items()}
        listed = json.dumps(list(set(digests.values())))
        own = {
            digest
            for (digest,) in self.db.execute(
                "select digest from own where digest in (select value from json_each(?))", (listed,)
            )
        }
        unknown = {self.path(name): contents[name] for name, digest in digests.items() if digest not in own}
        if not unknown:
            return set(), set()
        edited = {path for path in unknown if self.name(os.fspath(path)) in ours}
        foreign, unsure = origin.foreign_of(self._project, unknown, edited, self.is_own)
        local = [records.digest_of(content) for path, content in unknown.items() if path not in foreign]
        self.db.executemany("insert or ignore into own values(?, 0)", [(digest,) for digest in local])
        return {self.name(os.fspath(path)) for path in foreign}, {self.name(os.fspath(path)) for path in unsure}

    def is_own(self, content: bytes) -> bool:
        """Whether bytes of a task's file are known to be this user's."""
        found = self.db.execute("select 1 from own where digest = ?", (records.digest_of(content),))
        return found.fetchone() is not None

    # ---- the plan ----

    def _plan_stamp(self) -> str:
        try:
            return str(folders.stamp(os.lstat(self._folder / "plan.yaml")))
        except OSError:
            return ""

    def _take_plan(self, stamp: str) -> set[str]:
        """Take in where the plan puts tasks; the ids of those that it has or had."""
        ids = {id_ for (id_,) in self.db.execute("select id from plan")}
        self.db.execute("delete from plan")
        self.db.execute("delete from chain")
        problem, chains = "", list[tuple[str, Sequence[Sequence[str]]]]()
        try:
            chains = _chains_of_plan(self._project) if stamp else []
        except RalfError as error:
            problem = str(error)
        rows = [
            (id_, number, place)
            for number, (_, segments) in enumerate(chains)
            for place, id_ in enumerate(id_ for ids in segments for id_ in ids)
        ]
        written = [(number, name, json.dumps(segments)) for number, (name, segments) in enumerate(chains)]
        self.db.executemany("insert into chain values(?, ?, ?)", written)
        self.db.executemany("insert or ignore into plan values(?, ?, ?)", rows)
        self.db.execute("update task set chain = null, place = null where chain is not null")
        self.db.execute("update task set chain = p.chain, place = p.place from plan p where p.id = task.id")
        self.set_meta("plan_problem", problem)
        self.set_meta("plan", stamp)
        return ids | {id_ for id_, _, _ in rows}

    @property
    def plan_problem(self) -> str:
        """Why the plan cannot be read; "" where it can."""
        return str(self.meta("plan_problem"))

    # ---- tasks: what files and records come to together ----

    def _derive(self, ids: set[str]) -> None:
        for id_ in ids:
            self._derive_one(id_)
        self._recount(ids)

    def _recount(self, ids: set[str]) -> None:
        """Count anew what keeps these tasks, those that name them, and those that the plan puts next."""
        listed = json.dumps(sorted(ids), ensure_ascii=False)
        rows = self.db.execute(
            "select chain, count(*) from plan where id in (select value from json_each(?)) group by chain", (listed,)
        ).fetchall()
        more = set(ids)
        for chain, count in rows:
            for status in ("pending", "failed"):
                more.update(id_ for (id_,) in self.db.execute(_FIRST, (chain, status, count + 2)))
        listed = json.dumps(sorted(more), ensure_ascii=False)
        if listed != "[]":
            self.db.execute(_COUNT, {"ids": listed})

    def owed_change(self, id_: str, known: Known | None) -> Change | None:
        """What a record did to a task's file that the file may not show yet."""
        if known is None or known.change is None or id_ not in self.owed:
            return None
        row = self.db.execute("select digest from shown where id = ?", (id_,)).fetchone()
        return known.change if row is None or row[0] != known.change.digest else None

    def _derive_one(self, id_: str) -> None:
        self.db.execute("delete from need where id = ?", (id_,))
        known = self.known.get(id_)
        rows = self.rows(id_)
        change = self.owed_change(id_, known)
        if change is not None and any(row.digest == change.digest for row in rows):
            self.db.execute("insert or replace into shown values(?, ?)", (id_, change.digest))
            change = None
        chosen, others = chosen_of(rows, known)
        warnings = [f"{self.path(row.path)}: a second file of {id_}; keep one of them" for row in others[:_MOST_TOLD]]
        if len(others) > _MOST_TOLD:
            warnings.append(f"{id_}: {len(others) - _MOST_TOLD:,} more files of it")
        if chosen is None:
            if change is None or change.tree is None:
                self.db.execute("delete from task where id = ?", (id_,))
                return
            task, path, is_foreign = records.task_of(change.tree), change.place, False
        else:
            task, path, is_foreign = chosen.task or Task(id_), chosen.path, chosen.is_foreign
            if change is not None:
                task = change.made_to(task)
        claim = known.claim if known is not None else None
        if claim is not None and task.status != "pending":
            warnings.append(f"{id_}: its file says {task.status}, but {claim.by} holds it")
        elif claim is not None and is_foreign:
            warnings.append(f"{id_}: a pull changed its file, but {claim.by} holds it: is another clone at it, too?")
        self.db.execute(
            "insert or replace into task values(?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?,"
            " (select chain from plan where id = ?), (select place from plan where id = ?), ?)",
            (
                *(id_, words_of(task.title), task.status, task.priority, task.role, task.context_route, task.created),
                *(known.order if known else 0,),
                *(known.finished if known else "", claim.number if claim else 0, claim.by if claim else ""),
                *(int(is_foreign), path),
                json.dumps(records.tree_of(task), ensure_ascii=False, separators=(",", ":"), default=str),
                json.dumps(warnings, ensure_ascii=False),
                *(id_, id_, int(chosen is not None and _is_misplaced(path, task))),
            ),
        )
        if not is_foreign:  # it is never claimed, and may name any number of tasks
            self.db.executemany("insert or ignore into need values(?, ?)", [(id_, on) for on in task.after])


class _Looked(NamedTuple):
    """Files that are others than the index has, those that are gone, and new ones whose names are no text.

    at, above  when a look at all of many files began, and stamps of their folders as they were before; else 0
    """

    changed: dict[str, os.stat_result]
    gone: list[str]
    unnamed: list[str]
    at: int = 0
    above: Mapping[str, str] = MappingProxyType({})

    @property
    def is_empty(self) -> bool:
        return not (self.changed or self.gone or self.unnamed)


def is_text(name: str) -> bool:
    """Whether a name of a file is UTF-8: git brings any other, too."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_text(name: str) -> str:
    """A name as text, the bytes of it that are none as `\\xff`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def chosen_of(rows: Sequence[Row], known: Known | None) -> tuple[Row | None, list[Row]]:
    """The file that counts of those that say that they are one task, and the others that are to be told of."""
    readable = [row for row in rows if row.task is not None]
    if not readable:
        return None, []
    change = known.change if known is not None else None
    places = (change.place, change.origin) if change is not None else ()
    order = {"completed": 0, "cancelled": 1, "failed": 2, "pending": 3}

    def rank(row: Row) -> tuple[bool, int, int, str]:
        status = row.task.status if row.task is not None else ""
        place = places.index(row.path) if row.path in places else len(places)
        return row.is_foreign, place, order.get(status, 4), row.path

    first, *others = sorted(readable, key=rank)
    left = (change.origin, change.base) if change is not None else ("", "")
    return first, [row for row in others if (row.path, row.digest) != left]


def _chains_of_plan(project: Project) -> list[tuple[str, Sequence[Sequence[str]]]]:
    """Of each chain of the plan its name and its segments. RalfError."""
    from ralf.tasks import planfile  # loaded where there is one

    found = planfile.load(project)
    return [(chain.name, chain.segments) for chain in (found.chains if found is not None else ())]


def _is_misplaced(path: str, task: Task) -> bool:
    """Whether a file that ralf has made stands in the folder of another status."""
    *_, folder, name = ("", *path.split("/"))
    wanted = task.status if task.status in folders.CLOSED else folders.OPEN[0]
    return name == f"{task.id}.md" and folder != wanted and folder in (folders.OPEN[0], *folders.CLOSED)


def _folder_stamp(stat: os.stat_result | None, looked: int) -> str:
    """What is another text once a folder was changed; "-" for none, "" where that may not show yet."""
    if stat is None:
        return "-"
    return str(folders.stamp(stat)) if not looked or _is_settled(stat, looked) else ""


def _is_settled(stat: os.stat_result, looked: int) -> bool:
    """Whether any later change of a file gives it another time."""
    newest = max(stat.st_mtime_ns, stat.st_ctime_ns)
    return newest < looked - (_SETTLED if stat.st_ctime_ns % 1_000_000 else _SETTLED_COARSE)
