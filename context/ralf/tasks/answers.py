"""What is asked of the index of tasks, each by one look into its tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ralf.project import Project
from ralf.storage import files
from ralf.storage.database import Database, Torn
from ralf.tasks import origin, records
from ralf.tasks.database import SCHEMA, VERSION, KnownRows
from ralf.tasks.model import Task, TaskState
from ralf.tasks.records import Known

_MOST_MOVED = 50  # files that one write moves to where they belong

_MOST_SEEN = 200  # digests that one record tells

UNMET = "coalesce(d.status, '') <> 'completed'"
"""Of a need and the task `d` that it names: that it keeps a task from being claimed."""

EARLIER = "e.chain = task.chain and e.status in ('pending', 'failed') and e.place < task.place"
"""Of a task and another one `e`: that the plan puts it before, and that it is not done."""

_WAITS = (
    "select n.id, n.on_id from need n left join task d on d.id = n.on_id"  # noqa: S608  # parts of our own
    f" where n.id in (select value from json_each(?)) and {UNMET} order by n.id, n.on_id"
)

_WAITS_BY_PLAN = (
    f"select id, (select e.id from task e where {EARLIER} order by e.place desc limit 1) from task"  # noqa: S608
    " where chain is not null and id in (select value from json_each(?))"
)

_GONE = (
    "select n.id, n.on_id, d.status from need n join task t on t.id = n.id left join task d on d.id = n.on_id"
    " where n.id in (select value from json_each(?)) and t.status = 'pending'"
    " and coalesce(d.status, 'cancelled') = 'cancelled' order by n.id, n.on_id"
)
"""Needs that nothing will ever meet: the task is cancelled, or there is none."""

_READY = "status = 'pending' and is_foreign = 0 and blocked = 0 and claim = 0"

_ORDER = "priority desc, created, seq, id"


class Row(NamedTuple):
    """A task file as the index has it; `problem`: why it cannot be read."""

    path: str
    digest: str
    is_foreign: bool
    task: Task | None
    problem: str


class Chain(NamedTuple):
    """A chain of the plan: its name, and its segments, between two of which a checkpoint lies."""

    name: str
    segments: tuple[tuple[str, ...], ...]


class Answers(Database):
    """The index as it was last kept up; see `ralf.tasks.index.Index`."""

    version, schema = VERSION, SCHEMA

    def __init__(self, project: Project, path: Path | None) -> None:
        super().__init__(path, origin.boot())
        self.known = KnownRows(self.db)
        self._root = os.fspath(project.folder.parents[1])
        self.used: set[str] = set()  # tasks that were asked for

    # ---- files ----

    def name(self, path: str) -> str:
        """The name of a file in the index, and in records: from the project's folder on."""
        return path[len(self._root) + 1 :]

    def path(self, name: str) -> Path:
        """The path of a file by its name in the index."""
        return Path(self._root, name)

    def rows(self, id_: str) -> list[Row]:
        """The files of a task."""
        found = self.db.execute("select path, digest, is_foreign, data, problem from file where id = ?", (id_,))
        return [
            Row(path, digest, bool(is_foreign), _task_of(data), problem)
            for path, digest, is_foreign, data, problem in found
        ]

    # ---- asking ----

    def ready(self, role: str | None, most: int, without: Sequence[str] = ()) -> list[str]:
        """Tasks that can be claimed, the first one first: own role before any.

        role  None: of any role; "": of none
        """
        roles = [None] if role is None else [role, ""] if role else [""]
        found: list[str] = []
        for one in roles:
            where = _READY if one is None else f"{_READY} and role = :role"
            rows = self.db.execute(
                f"select id from task where {where} and id not in (select value from json_each(:without))"  # noqa: S608
                f" order by {_ORDER} limit :most",
                {"role": one, "most": most - len(found), "without": json.dumps(list(without))},
            )
            found += [id_ for (id_,) in rows]
        return found

    def ready_for(self, roles: Sequence[str], most: int, *, others: bool, without: Sequence[str]) -> list[str]:
        """Tasks of these roles that can be claimed, or of all but these, the first one first; without some."""
        where = f"{_READY} and role {'not ' if others else ''}in (select value from json_each(:roles))"  # noqa: S608  # parts of our own
        rows = self.db.execute(
            f"select id from task where {where} and id not in (select value from json_each(:without))"  # noqa: S608
            f" order by {_ORDER} limit :most",
            {"roles": json.dumps(list(roles)), "without": json.dumps(list(without)), "most": most},
        )
        return [id_ for (id_,) in rows]

    def check(self, id_: str) -> str:
        """The digest of the file of a task that is about to be claimed, "" for none. `Torn` where the index has another
        status of it than its file, or knows nothing of a claim: a torn index may look whole.
        """
        (told,) = self.db.execute("select path from task where id = ?", (id_,)).fetchone()
        path = self.path(told)
        try:
            content = files.content_of(path)
        except OSError:
            return ""
        digest = records.digest_of(content)
        row = self.db.execute("select digest, is_foreign from file where path = ?", (told,)).fetchone()
        if row != (digest, 0):
            return ""  # saved in this very moment
        if content.startswith(f'---\nid: "{id_}"\nstatus: "pending"\n'.encode()):  # as ralf writes it
            return digest
        from ralf.tasks import taskfile  # which loads YAML: that takes as long as all else

        task = taskfile.parse(content, path)
        if (task.id, task.status) != (id_, "pending") and id_ not in self.meta("owed", []):
            raise Torn(f"{id_} is {task.status}")
        return digest

    def held(self) -> list[str]:
        """Tasks with a claim, which may have run out; also such as have no file now."""
        return sorted(self.meta("claims", {}))

    def states(self, ids: Sequence[str]) -> dict[str, tuple[TaskState, Known]]:
        """Tasks, with what is known of them; claims as they are recorded."""
        self.used.update(ids)
        listed = json.dumps(list(ids), ensure_ascii=False)
        waits, hopeless = self.waits(ids), self._hopeless(listed)
        rows = self.db.execute(
            "select t.id, t.data, t.path, t.is_foreign, t.warnings, k.data from task t left join known k on k.id = t.id"
            " where t.id in (select value from json_each(?))",
            (listed,),
        )
        found = {}
        for id_, data, path, is_foreign, warnings, kept in rows:
            known = records.known_of(kept) if kept else Known()
            state = TaskState(
                task=records.task_of(json.loads(data)),
                path=self.path(path),
                claim=known.claim,
                attempts=known.attempts,
                progress=known.progress,
                progress_at=known.progress_at,
                summary=known.summary,
                reason=known.reason,
                finished=known.finished,
                tokens=known.tokens,
                evidence=known.evidence,
                waits_for=waits.get(id_, ()),
                is_foreign=bool(is_foreign),
                warnings=(*json.loads(warnings), *hopeless.get(id_, ())),
            )
            found[id_] = (state, known)
        return {id_: found[id_] for id_ in ids if id_ in found}

    def _hopeless(self, listed: str) -> dict[str, list[str]]:
        """What to type for pending tasks that wait for one that is cancelled, or is not there."""
        found: dict[str, list[str]] = {}
        rows = self.db.execute(_GONE, (listed,)).fetchall()
        for id_, on, status in rows:
            rest = [
                one for one in self.needs([id_])[id_] if one not in {gone for other, gone, _ in rows if other == id_}
            ]
            options = " ".join(f"--after {one}" for one in rest) or '--after ""'
            what = "is cancelled" if status else "does not exist"
            again = f", or put that one back: ralf task edit {on} --status pending" if status else ""
            line = f"{id_} waits for {on}, which {what}; to do it without: ralf task edit {id_} {options}{again}"
            found.setdefault(id_, []).append(line)
        return found

    def waits(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """What keeps tasks from being claimed: their own dependencies first, then what the plan puts before them."""
        found: dict[str, dict[str, None]] = {}
        listed = json.dumps(list(ids), ensure_ascii=False)
        for asked in (_WAITS, _WAITS_BY_PLAN):
            for id_, on in self.db.execute(asked, (listed,)):
                if on is not None:
                    found.setdefault(id_, {})[on] = None
        return {id_: tuple(ons) for id_, ons in found.items()}

    def use_before(self, id_: str) -> None:
        """Count what must be completed before a task among the tasks that were asked for: its own dependencies, and
        what the plan puts right before it.
        """
        by_plan = "select p.id from plan p join plan t on p.chain = t.chain and p.place = t.place - 1 where t.id = ?"
        self.used.update(self.needs([id_])[id_], (before for (before,) in self.db.execute(by_plan, (id_,))))

    def needs(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """The dependencies of tasks, met or not."""
        found: dict[str, list[str]] = {id_: [] for id_ in ids}
        rows = self.db.execute(
            "select id, on_id from need where id in (select value from json_each(?))",
            (json.dumps(list(ids), ensure_ascii=False),),
        )
        for id_, on in rows:
            found[id_].append(on)
        return found

    def waiting_for(self, id_: str) -> list[str]:
        """The tasks that name another one in their `after`."""
        return [one for (one,) in self.db.execute("select id from need where on_id = ?", (id_,))]

    def matching(self, where: str, given: Mapping[str, Any], most: int | None) -> list[str]:
        """Ids by a condition, in the order in which they would be claimed."""
        rows = self.db.execute(
            f"select id from task where {where} order by status <> 'pending', {_ORDER} limit :most",  # noqa: S608
            {**given, "most": -1 if most is None else most},
        )
        return [id_ for (id_,) in rows]

    def count(self, where: str = "1", given: Mapping[str, Any] | None = None) -> int:
        """How many tasks there are of a kind."""
        return int(self.db.execute(f"select count(*) from task where {where}", given or {}).fetchone()[0])  # noqa: S608

    def counts(self) -> dict[str, int]:
        """How many tasks there are, by status, and of those that are pending by what keeps them."""
        found = dict.fromkeys(("pending", "completed", "failed", "cancelled"), 0)
        found.update(self.db.execute("select status, count(*) from task group by status").fetchall())
        found["ready"] = self.count(_READY)
        found["claimed"] = self.count("claim > 0")
        found["blocked"] = self.count("status = 'pending' and blocked > 0 and is_foreign = 0")
        found["foreign"] = self.count("is_foreign = 1")
        return found

    def chains(self) -> list[Chain]:
        """The chains of the plan in force, none where there is none."""
        rows = self.db.execute("select name, segments from chain order by number")
        return [Chain(name, tuple(map(tuple, json.loads(segments)))) for name, segments in rows]

    def status_of(self, ids: Sequence[str]) -> dict[str, str]:
        """The status of tasks; one that is not there is missing."""
        listed = json.dumps(list(ids), ensure_ascii=False)
        rows = self.db.execute("select id, status from task where id in (select value from json_each(?))", (listed,))
        return dict(rows.fetchall())

    def problems(self) -> list[tuple[Path, str]]:
        """Files that cannot be read, and why."""
        rows = self.db.execute("select id, path, problem from file where problem <> '' order by path").fetchall()
        self.used.update(id_ for id_, _, _ in rows)
        return [(self.path(path), problem) for _, path, problem in rows]

    # ---- what lies hidden beside files ----

    @property
    def met(self) -> list[list[str]] | None:
        """The files, and the tasks, of changes that were recorded since `keep_left`: by others, or by a writer who
        died. None for an index that is new: it does not know.
        """
        found: list[list[str]] | None = self.meta("met", None)
        return found

    def keep_left(self, left: Sequence[tuple[str, int, str, str, float]]) -> None:
        """Keep what the next write is to look at, and the bases of these files alone."""
        if [*map(list, left)] != self.meta("left", []) or self.met != []:
            with self.writing():
                self.set_meta("left", [*map(list, left)])
                self.set_meta("met", [])
                inodes = json.dumps([inode for _, inode, *_ in left])
                self.db.execute("delete from aside where inode not in (select value from json_each(?))", (inodes,))

    def keep_base(self, inode: int, content: bytes) -> None:
        """Keep what a displaced file held, by its number."""
        self.db.execute("insert or replace into aside values(?, ?)", (inode, content))

    def base_of(self, inode: int) -> bytes | None:
        """What a displaced file held; None where nobody knows."""
        row = self.db.execute("select content from aside where inode = ?", (inode,)).fetchone()
        return bytes(row[0]) if row is not None else None

    # ---- ids ----

    def all_ids(self) -> list[str]:
        """Every id that a file or a record has."""
        rows = self.db.execute("select id from task union select id from known union select id from file")
        return [id_ for (id_,) in rows]

    def unrecorded(self) -> tuple[str, ...]:
        """Digests of files that were found to be this user's and of which no record says so yet, some of them."""
        rows = self.db.execute("select digest from own where recorded = 0 limit ?", (_MOST_SEEN,))
        return tuple(digest for (digest,) in rows)

    def misplaced(self) -> list[str]:
        """Tasks whose files, in ralf's own form, stand in the folder of another status: a person changed it."""
        rows = self.db.execute(
            "select id from task where misplaced = 1 and is_foreign = 0 and claim = 0 limit ?", (_MOST_MOVED,)
        )
        return [id_ for (id_,) in rows]

    def taken(self, id_: str) -> str:
        """The id that stands in the way of a new one, perhaps in another case; "" for none."""
        row = self.db.execute(
            "select id from task where id = :id collate nocase union select id from known where id = :id collate nocase"
            " union select id from file where id = :id collate nocase",
            {"id": id_},
        ).fetchone()
        return str(row[0]) if row is not None else ""

    def unaccepted(self) -> list[tuple[str, str]]:
        """Ids and digests of the files that are foreign."""
        rows = self.db.execute(
            "select id, digest from file where is_foreign = 1 and problem = '' order by id"
        ).fetchall()
        return [(id_, digest) for id_, digest in rows]


def words_of(title: str) -> str:
    """A title as it is looked for."""
    return " ".join(title.casefold().split())


def _task_of(data: str) -> Task | None:
    return records.task_of(json.loads(data)) if data else None


def with_live_claim(state: TaskState, *, alive: bool) -> TaskState:
    """A task whose claim is told only while it lives."""
    return state if alive or state.claim is None else replace(state, claim=None)
