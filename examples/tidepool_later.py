"""The files that the agent writes in the course of the session, and the logs of the commands that it runs."""

from __future__ import annotations

import re

from tidepool_files import RESOURCES, pick

ERRORS = '''"""Everything that tidepool raises on purpose."""

from __future__ import annotations


class TidepoolError(Exception):
    """The root."""


class BadRecord(TidepoolError):
    """The server sent a record that is not one."""

    def __init__(self, resource: str, record_id: object, cause: Exception) -> None:
        super().__init__(f"{resource}/{record_id}: {type(cause).__name__}: {cause}")
        self.resource = resource
        self.record_id = record_id


class Unreachable(TidepoolError):
    """No answer, after all the attempts that were allowed."""


class Refused(TidepoolError):
    """The server answered, and the answer is no; trying again would not help."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class CursorExpired(TidepoolError):
    """The server no longer knows this cursor: the resource has to be read from the start."""
'''

TRANSPORT = '''"""All HTTP of tidepool: one client, one place for time-outs, keys and retries."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import httpx

from tidepool.errors import CursorExpired, Refused, Unreachable
from tidepool.retry import Retry

log = logging.getLogger("tidepool.transport")

# The gateway gives up after 10 seconds; waiting longer than that only waits for its 504.
TIMEOUT = httpx.Timeout(connect=5.0, read=12.0, write=12.0, pool=5.0)
PAGE = 500


class Transport:
    """Speaks to one server with one key. Safe to use from several threads."""

    def __init__(self, base_url: str, key: str, retry: Retry | None = None) -> None:
        self._retry = retry or Retry()
        self._http = httpx.Client(
            base_url=base_url, headers={"X-Harbour-Key": key}, timeout=TIMEOUT, follow_redirects=False
        )

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """One JSON object. Raises Unreachable, Refused or CursorExpired."""
        return self._send("GET", path, params=params)

    def put(self, path: str, body: dict[str, Any], *, key: str) -> dict[str, Any]:
        """Idempotent: the server remembers `key` for a day and answers a repetition with its first answer."""
        return self._send("PUT", path, json=body, headers={"Idempotency-Key": key})

    def pages(self, path: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Page after page, each as the server sent it."""
        params.setdefault("limit", PAGE)
        body = self.get(path, **params)
        yield body
        while body.get("next"):
            body = self.get(body["next"])
            yield body

    def _send(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        last = "no attempt"
        for attempt in self._retry.attempts():
            try:
                response = self._http.request(method, path, **options)
            except httpx.TransportError as error:
                last = f"{type(error).__name__}: {error}"
                log.warning("%s %s: %s (attempt %d)", method, path, last, attempt.number)
                attempt.failed(None)
                continue
            if response.status_code in (429, 502, 503, 504):
                last = f"status {response.status_code}"
                log.warning("%s %s: %s (attempt %d)", method, path, last, attempt.number)
                attempt.failed(response.headers.get("Retry-After"))
                continue
            if response.status_code == 410:
                raise CursorExpired(path)
            if response.is_error:
                raise Refused(response.status_code, response.json().get("message", ""))
            return dict(response.json())
        raise Unreachable(f"{method} {path}: {last}")
'''

RETRY = '''"""When to try again, and how long to wait before."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Attempt:
    """One try; call `failed` if it did not work out."""

    number: int
    wait: float | None = None

    def failed(self, retry_after: str | None) -> None:
        self.wait = _seconds(retry_after)


@dataclass
class Retry:
    """Exponential backoff with full jitter.

    first   upper bound of the first pause, seconds; doubles with every attempt
    cap     no pause is longer, unless the server asks for it in Retry-After
    limit   attempts in all
    """

    first: float = 0.5
    cap: float = 30.0
    limit: int = 6
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = field(default=random.random)

    def attempts(self) -> Iterator[Attempt]:
        for number in range(1, self.limit + 1):
            attempt = Attempt(number)
            yield attempt
            if number == self.limit:
                return
            bound = min(self.cap, self.first * 2 ** (number - 1))
            self.sleep(attempt.wait if attempt.wait is not None else bound * self.chance())


def _seconds(retry_after: str | None) -> float | None:
    try:
        return max(0.0, float(retry_after)) if retry_after else None
    except ValueError:
        return None  # the date form: the harbour's server never sends it
'''

STORE = '''"""The local copy: one SQLite database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidepool.migrations import migrate


class Store:
    """Records by resource, and what is needed to go on where the last sync stopped."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None)
        # Before any transaction: inside one, SQLite ignores both without a word.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA foreign_keys = ON")
        migrate(self._db)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def upsert(self, resource: str, records: Iterable[dict[str, Any]]) -> int:
        """Never INSERT OR REPLACE: that deletes the row first, and with it the outbox entries that point to it."""
        rows = [(resource, r["id"], json.dumps(r, sort_keys=True), r.get("deleted_at")) for r in records]
        self._db.executemany(
            "INSERT INTO records (resource, id, body, deleted_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (resource, id) DO UPDATE SET body = excluded.body, deleted_at = excluded.deleted_at",
            rows,
        )
        return len(rows)

    def get(self, resource: str, record_id: str) -> dict[str, Any] | None:
        row = self._db.execute(
            "SELECT body FROM records WHERE resource = ? AND id = ? AND deleted_at IS NULL", (resource, record_id)
        ).fetchone()
        return json.loads(row[0]) if row else None

    def all(self, resource: str) -> Iterator[dict[str, Any]]:
        rows = self._db.execute(
            "SELECT body FROM records WHERE resource = ? AND deleted_at IS NULL ORDER BY id", (resource,)
        )
        return (json.loads(body) for (body,) in rows)

    def cursor(self, resource: str) -> str | None:
        row = self._db.execute("SELECT cursor FROM cursors WHERE resource = ?", (resource,)).fetchone()
        return row[0] if row else None

    def set_cursor(self, resource: str, cursor: str | None) -> None:
        self._db.execute(
            "INSERT INTO cursors (resource, cursor) VALUES (?, ?) "
            "ON CONFLICT (resource) DO UPDATE SET cursor = excluded.cursor",
            (resource, cursor),
        )
'''

MIGRATIONS = '''"""The schema, as a list of steps. A step that has been released is never edited: add another one."""

from __future__ import annotations

import sqlite3

STEPS = [
    """
    CREATE TABLE records (
        resource TEXT NOT NULL,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        deleted_at TEXT,
        PRIMARY KEY (resource, id)
    ) WITHOUT ROWID;
    CREATE TABLE cursors (resource TEXT PRIMARY KEY, cursor TEXT) WITHOUT ROWID;
    """,
]


def migrate(db: sqlite3.Connection) -> None:
    """Brings the database up to the newest step; `user_version` counts those that are done."""
    (done,) = db.execute("PRAGMA user_version").fetchone()
    for number, step in enumerate(STEPS[done:], done + 1):
        db.executescript(f"BEGIN; {step}; PRAGMA user_version = {number}; COMMIT;")
'''

DELTA = '''"""Brings one resource up to date: only what has changed since the last cursor."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from tidepool.errors import BadRecord, CursorExpired
from tidepool.models import Resource
from tidepool.store import Store
from tidepool.transport import Transport

log = logging.getLogger("tidepool.delta")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one resource came to."""

    resource: str
    changed: int
    skipped: int
    full: bool


def pull(transport: Transport, store: Store, kind: type[Resource]) -> Outcome:
    """Each page and its cursor are stored in one transaction, so that a broken link costs one page at most."""
    cursor = store.cursor(kind.path)
    try:
        return _pull(transport, store, kind, cursor)
    except CursorExpired:
        log.info("%s: the server has forgotten our cursor, reading from the start", kind.path)
        return _pull(transport, store, kind, None)


def _pull(transport: Transport, store: Store, kind: type[Resource], cursor: str | None) -> Outcome:
    changed = skipped = 0
    query = {"cursor": cursor} if cursor else {}
    for page in transport.pages(f"/v1/{kind.path}/changes", **query):
        good = []
        for raw in page["items"]:
            try:
                good.append(kind.from_json(raw).to_json() | {"deleted_at": raw.get("deleted_at")})
            except BadRecord as error:
                skipped += 1
                log.warning("skipped %s", error)
        with store.transaction():
            changed += store.upsert(kind.path, good)
            store.set_cursor(kind.path, page["cursor"])
        log.debug("%s: page of %d, cursor %s", kind.path, len(good), page["cursor"])
    return Outcome(kind.path, changed, skipped, cursor is None)
'''

OUTBOX = '''"""What was written here and has not reached the server yet."""

from __future__ import annotations

import json
import logging
import uuid
from dataclasses import dataclass
from typing import Any

from tidepool.errors import Refused, Unreachable
from tidepool.store import Store
from tidepool.transport import Transport

log = logging.getLogger("tidepool.outbox")
SPACE = uuid.UUID("6f0b1c1e-2d8a-5c64-9a0e-7b3f5e9d2a10")


@dataclass(frozen=True, slots=True)
class Entry:
    """One local change, in the order in which it was made."""

    number: int
    resource: str
    record_id: str
    base: dict[str, Any]
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """Made from the content, so that a change sent twice around a crash carries the same key both times."""
        text = json.dumps([self.number, self.resource, self.record_id, self.body], sort_keys=True)
        return str(uuid.uuid5(SPACE, text))


def put(store: Store, resource: str, body: dict[str, Any]) -> None:
    """The record and its outbox entry, in one transaction."""
    with store.transaction() as db:
        base = store.get(resource, body["id"]) or {}
        store.upsert(resource, [body])
        db.execute(
            "INSERT INTO outbox (resource, record_id, base, body) VALUES (?, ?, ?, ?)",
            (resource, body["id"], json.dumps(base), json.dumps(body)),
        )


def waiting(store: Store) -> list[Entry]:
    with store.transaction() as db:
        rows = db.execute("SELECT number, resource, record_id, base, body FROM outbox ORDER BY number").fetchall()
    return [Entry(n, resource, rid, json.loads(base), json.loads(body)) for n, resource, rid, base, body in rows]


def flush(transport: Transport, store: Store) -> tuple[int, int]:
    """Sends what is waiting, oldest first; returns how many were sent and how many the server refused.

    Stops at the first one that finds no network, so that the order is kept.
    """
    sent = refused = 0
    for entry in waiting(store):
        try:
            answer = transport.put(f"/v1/{entry.resource}/{entry.record_id}", entry.body, key=entry.key)
        except Unreachable:
            log.info("offline, %d changes wait", len(waiting(store)))
            break
        except Refused as error:
            refused += 1
            log.warning("%s/%s refused: %s", entry.resource, entry.record_id, error)
            _park(store, entry, str(error))
            continue
        with store.transaction() as db:
            store.upsert(entry.resource, [answer])
            db.execute("DELETE FROM outbox WHERE number = ?", (entry.number,))
        sent += 1
    return sent, refused


def _park(store: Store, entry: Entry, reason: str) -> None:
    with store.transaction() as db:
        db.execute("UPDATE outbox SET refused = ? WHERE number = ?", (reason, entry.number))
'''

OUTBOX_STEP = '''    """
    CREATE TABLE outbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        resource TEXT NOT NULL,
        record_id TEXT NOT NULL,
        base TEXT NOT NULL,
        body TEXT NOT NULL,
        refused TEXT,
        FOREIGN KEY (resource, record_id) REFERENCES records (resource, id) ON DELETE CASCADE
    );
    """,
]
'''

MERGE_LWW = '''"""What to do when the server and this device have both changed a record."""

from __future__ import annotations

from typing import Any


def resolve(mine: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """The later `written_at` wins, whole."""
    return mine if mine.get("written_at", "") > theirs.get("written_at", "") else theirs
'''

MERGE = '''"""What to do when the server and this device have both changed a record: merge field by field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Free text is joined rather than lost; of anything else one side has to win.
TEXT = {"note", "text"}


@dataclass(frozen=True, slots=True)
class Merged:
    """The record to keep, and the fields in which one side lost."""

    record: dict[str, Any]
    lost: dict[str, Any] = field(default_factory=dict)


def merge(base: dict[str, Any], mine: dict[str, Any], theirs: dict[str, Any]) -> Merged:
    """Three-way: a field that only one side has changed keeps that change.

    Where both have: text becomes both texts, lists their union, anything else the server's value; what we had
    goes to `lost`, so that it can be shown.
    """
    record = dict(theirs)
    lost = {}
    for name in sorted(base.keys() | mine.keys()):
        was, here, there = base.get(name), mine.get(name), theirs.get(name)
        if here == was or here == there:
            continue
        if there == was:
            record[name] = here
        elif name in TEXT:
            record[name] = f"{there}\\n{here}"
        elif isinstance(here, list) and isinstance(there, list):
            record[name] = sorted(set(here) | set(there))
        else:
            lost[name] = here
    return Merged(record, lost)
'''

SYNC = '''"""Brings the local copy up to date: first our changes out, then theirs in."""

from __future__ import annotations

import logging

from tidepool import outbox
from tidepool.delta import Outcome, pull
from tidepool.models import ALL
from tidepool.store import Store
from tidepool.transport import Transport

log = logging.getLogger("tidepool.sync")


def sync(transport: Transport, store: Store) -> list[Outcome]:
    """Ours first: the server's answer to each change comes back with the pull, so that one sync is enough."""
    sent, refused = outbox.flush(transport, store)
    log.info("sent %d changes, %d refused", sent, refused)
    outcomes = []
    for kind in ALL:
        outcome = pull(transport, store, kind)
        log.info("%s: %d changed, %d skipped", outcome.resource, outcome.changed, outcome.skipped)
        outcomes.append(outcome)
    return outcomes
'''

HARBOUR = '''"""A small harbour server for the tests: real HTTP on a free port, with faults on request."""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Harbour:
    """Holds records and a log of changes; `faults` are answered before anything else, one per request."""

    def __init__(self) -> None:
        self.changes: dict[str, list[dict[str, Any]]] = {}
        self.faults: deque[tuple[int, dict[str, str]]] = deque()
        self.seen: Counter[str] = Counter()
        self.keys: dict[str, dict[str, Any]] = {}
        self.oldest_cursor = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, resource: str, *records: dict[str, Any]) -> None:
        self.changes.setdefault(resource, []).extend(records)

    def _handler(harbour) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                harbour.seen[f"GET {url.path}"] += 1
                if self.fault():
                    return
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                _, _, resource, *_ = url.path.split("/")
                start, limit = int(query.get("cursor", 0)), int(query.get("limit", 500))
                if start < harbour.oldest_cursor and "cursor" in query:
                    return self.answer(410, {"code": "gone", "message": "cursor expired"})
                log = harbour.changes.get(resource, [])
                end = min(len(log), start + limit)
                more = f"{url.path}?cursor={end}&limit={limit}" if end < len(log) else None
                self.answer(200, {"items": log[start:end], "next": more, "cursor": str(end)})

            def do_PUT(self) -> None:
                harbour.seen[f"PUT {self.path}"] += 1
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.fault():
                    return
                key = self.headers["Idempotency-Key"]
                if key not in harbour.keys:
                    harbour.keys[key] = body
                    harbour.add(self.path.split("/")[2], body)
                self.answer(200, harbour.keys[key])

            def fault(self) -> bool:
                if not harbour.faults:
                    return False
                status, headers = harbour.faults.popleft()
                self.answer(status, {"code": "fault", "message": "on request"}, headers)
                return True

            def answer(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        return Handler
'''


def tests_of(module: str, cases: list[tuple[str, str]], imports: str) -> str:
    """A test module: each case is (name in words, body)."""
    head = f'"""{module}: what it promises, tried against a real server and a real database."""\n\n{imports}\n'
    return head + "".join(
        f"\n\ndef test_{name.replace(' ', '_')}(harbour, store, transport):\n"
        + "\n".join(f"    {line}" if line else "" for line in body.strip("\n").split("\n"))
        + "\n"
        for name, body in cases
    )


def cases_in(files: dict[str, str]) -> list[str]:
    """The test ids that pytest would find, one per test or parameter."""
    found = []
    for path in sorted(files):
        if not path.startswith("tests/test_"):
            continue
        for ids, name in re.findall(r"(?:parametrize\(([^\n]*)\)\n)?def (test_\w+)", files[path]):
            if "ids=" in ids:
                resource = path[11:-3]
                found += [f"{path}::{name}[{i}]" for i in re.findall(r'"id": "([^"]+)"', files_page(files, resource))]
            elif ids:
                found += [f"{path}::{name}[{i}]" for i in ("-", "twelve", "None", "bad3")]
            else:
                found.append(f"{path}::{name}")
    return found


def files_page(files: dict[str, str], resource: str) -> str:
    """The recorded page of a resource."""
    return files[f"tests/fixtures/{resource}.json"]


def pytest_log(files: dict[str, str], failed: dict[str, str], *, verbose: bool = False, only: str = "") -> str:
    """What pytest prints: `failed` maps the end of a test's id to the lines of its failure."""
    cases = [case for case in cases_in(files) if only in case]
    bad = {case: text for case in cases for end, text in failed.items() if case.endswith(end)}
    out = ["=" * 29 + " test session starts " + "=" * 29, "platform linux -- Python 3.12.3, pytest-8.3.4, pluggy-1.5.0"]
    out += ["rootdir: /home/dev/tidepool", "configfile: pyproject.toml", f"collected {len(cases)} items", ""]
    if verbose:
        for n, case in enumerate(cases, 1):
            out.append(f"{case} {'FAILED' if case in bad else 'PASSED'} [{100 * n // len(cases):3}%]")
    else:
        for path in dict.fromkeys(case.split("::")[0] for case in cases):
            marks = "".join("F" if case in bad else "." for case in cases if case.startswith(path + "::"))
            out.append(f"{path} {marks}")
    if bad:
        out += ["", "=" * 35 + " FAILURES " + "=" * 35]
        for case, text in bad.items():
            out += [f"{'_' * 20} {case.split('::')[1]} {'_' * 20}", "", text.strip("\n"), ""]
        out.append("=" * 27 + " short test summary info " + "=" * 27)
        out += [f"FAILED {case} - {text.strip().splitlines()[-2].strip(' E')}" for case, text in bad.items()]
    total = f"{len(bad)} failed, {len(cases) - len(bad)} passed" if bad else f"{len(cases)} passed"
    return "\n".join([*out, f"{'=' * 25} {total} in {len(cases) * 0.037:.2f}s {'=' * 25}"])


def sync_log(key: str, lines: int, *, faults: bool = True) -> str:
    """What `tidepool sync -v` writes to standard error."""
    out = []
    clock = 9 * 3600 + 41 * 60
    names = list(RESOURCES)
    for n in range(lines):
        clock += pick(f"{key}{n}s", 4)
        stamp = f"2026-03-09 {clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02},{pick(f'{key}{n}', 1000):03}"
        name = names[n * len(names) // lines]
        size, where = 500 - (pick(f"{key}{n}z", 40) if n % 9 == 8 else 0), pick(f"{key}{n}c", 10**8)
        if faults and pick(f"{key}{n}f", 11) == 0:
            status = (503, 504, 429)[pick(f"{key}{n}g", 3)]
            wait = pick(f"{key}{n}w", 2900)
            out.append(f"{stamp} WARNING tidepool.transport GET /v1/{name}/changes: status {status} (attempt 1)")
            out.append(f"{stamp} DEBUG tidepool.retry pause of {wait / 1000:.2f} s before attempt 2")
        out.append(f"{stamp} DEBUG tidepool.delta {name}: page of {size}, cursor c1.{name[:3]}.{where:08x}")
        if pick(f"{key}{n}b", 23) == 0:
            out.append(f"{stamp} WARNING tidepool.delta skipped {name}/{where}: KeyError: 'station_id'")
    return "\n".join(out)


def access_log(key: str, lines: int, method: str = "GET") -> str:
    """The server's log of requests."""
    out = []
    clock = 9 * 3600 + 41 * 60
    for n in range(lines):
        clock += pick(f"{key}{n}t", 5)
        name = list(RESOURCES)[pick(f"{key}{n}r", len(RESOURCES))]
        status = (200, 200, 200, 200, 200, 503, 200, 429)[pick(f"{key}{n}u", 8)]
        path = f"/v1/{name}/changes?cursor={pick(f'{key}{n}c', 10**8):08x}&limit=500"
        if method == "PUT":
            path = f"/v1/annotations/an-{pick(f'{key}{n}a', 10**6):06x}"
        size, took = pick(f"{key}{n}y", 90_000), pick(f"{key}{n}m", 4000)
        stamp = f"09/Mar/2026:{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
        out.append(f'10.8.0.{2 + pick(key + str(n), 9)} [{stamp}] "{method} {path}" {status} {size} {took}ms tidepool')
    return "\n".join(out)


def listing(files: dict[str, str]) -> str:
    """`ls -la` of three folders."""
    out = []
    for folder in ("docs", "logs", "tests/fixtures"):
        out.append(f"{folder}:")
        for path, text in sorted(files.items()):
            if path.rpartition("/")[0] == folder:
                out.append(
                    f"-rw-r--r-- 1 dev dev {len(text):6} Mar  2 18:{pick(path, 60):02} {path.rpartition('/')[2]}"
                )
        out.append("")
    return "\n".join(out)
