"""What the commands of the session printed, and the smaller files that the agent wrote."""

from __future__ import annotations

from tidepool_files import RESOURCES

LOG = """b1c9e02 Release 0.3.2
7fa4410 Show the number of records after a sync
02d3c8e Calibrations: keep the technician's note
e94a7b5 Annotations may carry tags
5570d1f Release 0.3.1
c3b28aa Read settings from the environment
91f00d6 Outages, with their cause
4d2e6c7 Alerts may concern the whole coast"""

SLOW = """syncing stations ...
   21 stations
syncing sensors ...
   64 sensors
syncing readings ...
Traceback (most recent call last):
  File "/home/dev/tidepool/.venv/bin/tidepool", line 8, in <module>
    sys.exit(main())
  File "/home/dev/tidepool/src/tidepool/cli.py", line 18, in main
    sync_all()
  File "/home/dev/tidepool/src/tidepool/sync.py", line 21, in sync_all
    items = fetch()
  File "/home/dev/tidepool/src/tidepool/models/readings.py", line 42, in fetch_readings
    response.raise_for_status()
requests.exceptions.HTTPError: 504 Server Error: Gateway Timeout for url: https://harbour.example/api/v1/readings?limit=2000
real 212.40"""

SYNC_DOC = """# What a sync promises

1. It may be interrupted at any moment, by a signal, a lost link or an empty battery. What was stored stays.
2. The next sync goes on after the last page that was stored. It never starts over unless the server says so (410).
3. A record is never half written: the page, its cursor and the outbox change together.
4. A change made offline reaches the server once, in the order in which it was made.
5. Nothing that a person typed is dropped.

## How the old one failed

| what | why | seen |
| --- | --- | --- |
| 504 on readings | pages of 2,000 take longer than the gateway's 10 s | on every sync by radio |
| all or nothing | saved at the end of a resource | 60 MB again after each break |
| hangs | no time-out | twice in February |
| lost readings | `updated_after` compares whole seconds | harbour log of 14 January |
"""

MODELS = '''"""The resources, in the order in which they have to be stored: what is pointed to comes first."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from tidepool.models.alerts import Alert
from tidepool.models.annotations import Annotation
from tidepool.models.calibrations import Calibration
from tidepool.models.outages import Outage
from tidepool.models.predictions import Prediction
from tidepool.models.readings import Reading
from tidepool.models.sensors import Sensor
from tidepool.models.stations import Station


class Resource(Protocol):
    """What all records have in common."""

    path: ClassVar[str]
    id: str

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Self: ...
    def to_json(self) -> dict[str, Any]: ...


ALL: list[type[Resource]] = [Station, Sensor, Reading, Prediction, Alert, Calibration, Outage, Annotation]
'''

COLLECT = (
    "\n".join(
        f"ERROR tests/test_{name}.py - ImportError: cannot import name 'KEYS' from 'tidepool.models.{name}'"
        for name in sorted(RESOURCES)
    )
    + "\n!!!!!!!!!!!!!!!!!!! Interrupted: 8 errors during collection !!!!!!!!!!!!!!!!!!!"
)

SEVERITY = """    def test_alert_refuses_a_severity_that_is_no_number(bad):
        with pytest.raises(BadRecord) as caught:
            Alert.from_json(RAW | {"severity": bad})
>       assert caught.value.resource == "alerts"
E       AttributeError: 'BadRecord' object has no attribute 'resource'
tests/test_alerts.py:41: AttributeError"""

MYPY = """src/tidepool/times.py:6: error: Function is missing a type annotation  [no-untyped-def]
src/tidepool/times.py:10: error: Function is missing a type annotation  [no-untyped-def]
src/tidepool/models/alerts.py:41: error: Call to untyped function "parse_time" in typed context  [no-untyped-call]
src/tidepool/models/outages.py:39: error: Call to untyped function "parse_time" in typed context  [no-untyped-call]
src/tidepool/models/readings.py:40: error: Call to untyped function "parse_time" in typed context  [no-untyped-call]
Found 5 errors in 4 files (checked 14 source files)"""

PIP = """Collecting httpx
  Downloading httpx-0.28.1-py3-none-any.whl (73 kB)
Collecting httpcore==1.*
  Downloading httpcore-1.0.7-py3-none-any.whl (78 kB)
Requirement already satisfied: certifi in ./.venv/lib/python3.12/site-packages
Requirement already satisfied: idna in ./.venv/lib/python3.12/site-packages
Installing collected packages: h11, httpcore, anyio, httpx
Successfully installed anyio-4.8.0 h11-0.14.0 httpcore-1.0.7 httpx-0.28.1"""

RESPX_TEST = '''"""Transport, with httpx intercepted."""

import httpx
import respx

from tidepool.transport import Transport


@respx.mock
def test_page_follows_next():
    route = respx.get("https://h.example/v1/readings/changes")
    route.side_effect = [
        httpx.Response(200, json={"items": [1], "next": "/v1/readings/changes?cursor=1", "cursor": "1"}),
        httpx.Response(200, json={"items": [2], "next": None, "cursor": "2"}),
    ]
    pages = list(Transport("https://h.example", "k").pages("/v1/readings/changes"))
    assert [p["items"] for p in pages] == [[1], [2]]
'''

RESPX_FAIL = """>       assert [p["items"] for p in pages] == [[1], [2]]
E       AssertionError: assert [[1], [1], [1], [1], [1], [1], ...] == [[1], [2]]
E         Left contains 998 more items, first extra item: [1]
tests/test_transport.py:18: AssertionError"""

CONFTEST = '''"""A fresh server, database and transport for each test."""

import pytest

from tests.harbour import Harbour
from tidepool.retry import Retry
from tidepool.store import Store
from tidepool.transport import Transport


@pytest.fixture
def harbour():
    server = Harbour()
    yield server
    server.close()


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "tidepool.db")
    yield store
    store.close()


@pytest.fixture
def transport(harbour):
    with Transport(harbour.url, "key", Retry(sleep=lambda seconds: None)) as transport:
        yield transport
'''

IMPORT_ERROR = """ImportError while loading conftest '/home/dev/tidepool/tests/conftest.py'.
tests/conftest.py:6: in <module>
    from tidepool.retry import Retry
E   ModuleNotFoundError: No module named 'tidepool.retry'"""

ONE_TRY = '''"""When to try again: not yet, this makes one attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Attempt:
    number: int

    def failed(self, retry_after: str | None) -> None:
        """Step 4 will wait here."""


@dataclass
class Retry:
    def attempts(self) -> Iterator[Attempt]:
        yield Attempt(1)
'''

SAMPLES = '''"""Records for the tests, as the server would send them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"


def _first(resource: str) -> dict[str, Any]:
    return json.loads((FIXTURES / f"{resource}.json").read_text())["items"][0]


def reading(n: int) -> dict[str, Any]:
    return _first("readings") | {"id": f"north-quay:{1741500000 + n}:0", "level_mm": 2000 + n % 700}


def calibration(n: int) -> dict[str, Any]:
    return _first("calibrations") | {"id": f"nq-radar-1:2026-02-{n:02}"}


def annotation(n: int) -> dict[str, Any]:
    return _first("annotations") | {"id": f"an-{n:06x}", "text": f"remark {n}"}
'''

PROBE_SCRIPT = '''"""How long does a page take, by its size?"""

import argparse
import statistics
import time

from tidepool.config import settings
from tidepool.errors import TidepoolError
from tidepool.transport import Transport

parser = argparse.ArgumentParser()
parser.add_argument("--limit", type=int, action="append", required=True)
parser.add_argument("-n", type=int, default=40)
args = parser.parse_args()

print("limit   n    median    p90      max     504s")
with Transport(settings["base_url"], settings["api_key"]) as transport:
    for limit in args.limit:
        times, late = [], 0
        for _ in range(args.n):
            start = time.monotonic()
            try:
                transport.get("/v1/readings/changes", limit=limit)
            except TidepoolError:
                late += 1
            times.append(time.monotonic() - start)
        times.sort()
        middle, most = statistics.median(times), times[-args.n // 10]
        print(f"{limit:5} {args.n:3} {middle:7.2f} s {most:6.2f} s {times[-1]:6.2f} s {late:6}")
'''

PROBE = """limit   n    median    p90      max     504s
  500  40    2.61 s   3.90 s   5.12 s      0
 2000  40    9.42 s  13.71 s  14.06 s     17"""

TEST_IMPORTS = """import pytest

from tidepool import errors, outbox
from tidepool.delta import pull
from tidepool.models import Annotation, Calibration, Reading
from tests.samples import annotation, calibration, reading"""

RETRY_IMPORTS = """import pytest

from tidepool.errors import Unreachable
from tidepool.retry import Retry"""

MERGE_IMPORTS = """import pytest

from tidepool.merge import merge"""

TRANSPORT_CASES = [
    (
        "pages are followed to the end",
        """
harbour.add("readings", *[reading(n) for n in range(1203)])
pages = list(transport.pages("/v1/readings/changes"))
assert [len(page["items"]) for page in pages] == [500, 500, 203]
assert pages[-1]["next"] is None
""",
    ),
    (
        "the key travels with every request",
        """
transport.get("/v1/stations")
assert harbour.seen["GET /v1/stations"] == 1
""",
    ),
    (
        "a refusal is not repeated",
        """
harbour.faults.append((403, {}))
with pytest.raises(errors.Refused, match="403"):
    transport.get("/v1/stations")
assert harbour.seen["GET /v1/stations"] == 1
""",
    ),
    (
        "an expired cursor has its own error",
        """
harbour.oldest_cursor = 10
with pytest.raises(errors.CursorExpired):
    transport.get("/v1/readings/changes", cursor="3")
""",
    ),
]

RETRY_CASES = [
    (
        "the pause doubles up to the cap",
        """
pauses = []
for attempt in Retry(limit=9, sleep=pauses.append, chance=lambda: 1.0).attempts():
    attempt.failed(None)
assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
""",
    ),
    (
        "retry after wins over our own pause",
        """
pauses = []
for attempt in Retry(limit=2, sleep=pauses.append).attempts():
    attempt.failed("2")
assert pauses == [2.0]
""",
    ),
    (
        "the last failure is not followed by a pause",
        """
pauses = []
for attempt in Retry(limit=1, sleep=pauses.append).attempts():
    attempt.failed(None)
assert pauses == []
""",
    ),
    (
        "it gives up with the last reason",
        """
harbour.faults.extend([(503, {})] * 6)
with pytest.raises(Unreachable, match="status 503"):
    transport.get("/v1/stations")
assert harbour.seen["GET /v1/stations"] == 6
""",
    ),
]

RETRY_FAIL = """    def test_retry_after_wins_over_our_own_pause(harbour, store, transport):
        pauses = []
        for attempt in Retry(limit=2, sleep=pauses.append).attempts():
            attempt.failed("2")
>       assert pauses == [2.0]
E       assert [0.3134] == [2.0]
tests/test_retry.py:27: AssertionError"""

RUFF = """tests/conftest.py:3:1: I001 [*] Import block is un-sorted or un-formatted
tests/test_retry.py:3:1: I001 [*] Import block is un-sorted or un-formatted
Found 2 errors.
[*] 2 fixable with the `--fix` option."""

HEADERS = """HTTP/2 200
server: harbour-gateway
content-type: application/json
cache-control: no-store
vary: accept-encoding
x-request-id: 0c8d41"""

DELTA_CASES = [
    (
        "the second pull moves nothing",
        """
harbour.add("readings", *[reading(n) for n in range(700)])
assert pull(transport, store, Reading).changed == 700
assert pull(transport, store, Reading).changed == 0
""",
    ),
    (
        "a broken link costs one page at most",
        """
harbour.add("readings", *[reading(n) for n in range(1400)])
harbour.faults.extend([(200, {})] * 0 + [(403, {})] * 0)
pages = transport.pages("/v1/readings/changes")
first = next(pages)
with store.transaction():
    store.upsert("readings", first["items"])
    store.set_cursor("readings", first["cursor"])
assert pull(transport, store, Reading).changed == 900
""",
    ),
    (
        "a bad record is skipped and the rest is kept",
        """
harbour.add("readings", reading(1), {"id": "broken"}, reading(2))
outcome = pull(transport, store, Reading)
assert (outcome.changed, outcome.skipped) == (2, 1)
""",
    ),
    (
        "a forgotten cursor starts over",
        """
harbour.add("readings", *[reading(n) for n in range(20)])
pull(transport, store, Reading)
harbour.oldest_cursor = 100
assert pull(transport, store, Reading).full
""",
    ),
    (
        "a deleted record is no longer shown but still there",
        """
harbour.add("readings", reading(1), reading(1) | {"deleted_at": "2026-03-09T08:00:00Z"})
pull(transport, store, Reading)
assert store.get("readings", reading(1)["id"]) is None
""",
    ),
]

SQL_FAIL = """    def upsert(self, resource: str, records: Iterable[dict[str, Any]]) -> int:
>       self._db.executemany(
E       sqlite3.OperationalError: near "UPDATE": syntax error
src/tidepool/store.py:45: OperationalError"""

DUMP = """BEGIN TRANSACTION;
CREATE TABLE cursors (resource TEXT PRIMARY KEY, cursor TEXT) WITHOUT ROWID;
CREATE TABLE records (
        resource TEXT NOT NULL,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        deleted_at TEXT,
        PRIMARY KEY (resource, id)
    ) WITHOUT ROWID;
COMMIT;"""

FLUSH = """    sent, refused = outbox.flush(transport, store)
    log.info("sent %d changes, %d refused", sent, refused)
"""

CLI_IMPORTS = """import logging
from pathlib import Path

from tidepool.config import settings
from tidepool.store import Store
from tidepool.sync import sync
from tidepool.transport import Transport"""

CLI_SYNC = """        logging.basicConfig(level=logging.DEBUG if args.verbose else logging.WARNING)
        with Transport(settings["base_url"], settings["api_key"]) as transport:
            for outcome in sync(transport, Store(Path(settings["data_dir"]) / "tidepool.db")):
                print(f"{outcome.resource}: {outcome.changed}")
"""

CLI_SHOW = """        for item in Store(Path(settings["data_dir"]) / "tidepool.db").all(args.resource):"""

STATION_FAIL = """    def test_station_survives_a_round_trip(raw):
>       assert Station.from_json(raw).to_json() == raw
E       AssertionError: assert {'retired_at': None} == {'retired_at': ''}
tests/test_stations.py:17: AssertionError"""

PUSH = """remote: error: GH006: Protected branch update failed for refs/heads/delta-sync.
To git.example:harbour/tidepool.git
 ! [remote rejected] delta-sync -> delta-sync (protected branch hook declined)
error: failed to push some refs to 'git.example:harbour/tidepool.git'"""

OUTBOX_CASES = [
    (
        "a change is shown at once and waits",
        """
outbox.put(store, "annotations", annotation(1))
assert store.get("annotations", annotation(1)["id"]) == annotation(1)
assert len(outbox.waiting(store)) == 1
""",
    ),
    (
        "changes arrive in the order in which they were made",
        """
for n in (3, 1, 2):
    outbox.put(store, "annotations", annotation(n))
assert outbox.flush(transport, store) == (3, 0)
assert [c["id"] for c in harbour.changes["annotations"]] == [annotation(n)["id"] for n in (3, 1, 2)]
""",
    ),
    (
        "a change sent twice around a crash arrives once",
        """
outbox.put(store, "annotations", annotation(1))
entry = outbox.waiting(store)[0]
transport.put("/v1/annotations/1", entry.body, key=entry.key)
outbox.flush(transport, store)
assert len(harbour.changes["annotations"]) == 1
""",
    ),
    (
        "offline keeps the order and loses nothing",
        """
outbox.put(store, "annotations", annotation(1))
outbox.put(store, "annotations", annotation(2))
harbour.faults.extend([(503, {})] * 6)
assert outbox.flush(transport, store) == (0, 0)
assert len(outbox.waiting(store)) == 2
""",
    ),
    (
        "a pull keeps what is waiting",
        """
harbour.add("calibrations", calibration(1))
pull(transport, store, Calibration)
outbox.put(store, "calibrations", calibration(1) | {"note": "seen from the boat"})
harbour.add("calibrations", calibration(1) | {"deviation_mm": 9})
pull(transport, store, Calibration)
assert len(outbox.waiting(store)) == 1
""",
    ),
]

UUID_FAIL = """        outbox.flush(transport, store)
>       assert len(harbour.changes["annotations"]) == 1
E       AssertionError: assert 2 == 1
tests/test_outbox.py:36: AssertionError"""

UPSERT = """(?, ?, ?, ?) "
            "ON CONFLICT (resource, id) DO UPDATE SET body = excluded.body, deleted_at = excluded.deleted_at",
"""

CASCADE = """        pull(transport, store, Calibration)
>       assert len(outbox.waiting(store)) == 1
E       assert 0 == 1
tests/test_outbox.py:58: AssertionError"""

LWW_TEST = '''"""Conflicts: the later one wins."""

from tidepool.merge import resolve


def test_the_later_one_wins():
    early, late = {"written_at": "2026-03-09T06:00:00Z"}, {"written_at": "2026-03-09T07:00:00Z"}
    assert resolve(early, late) is late
    assert resolve(late, early) is late
'''

MERGE_CASES = [
    (
        "a field that only we changed keeps our change",
        """
merged = merge({"note": "a", "n": 1}, {"note": "b", "n": 1}, {"note": "a", "n": 2})
assert merged.record == {"note": "b", "n": 2}
assert merged.lost == {}
""",
    ),
    (
        "both texts are kept",
        """
merged = merge({"note": "a"}, {"note": "ours"}, {"note": "theirs"})
assert merged.record["note"].splitlines() == ["theirs", "ours"]
""",
    ),
    (
        "lists are united",
        """
merged = merge({"tags": []}, {"tags": ["wake"]}, {"tags": ["ice"]})
assert merged.record["tags"] == ["ice", "wake"]
""",
    ),
    (
        "where the server wins what we had is shown",
        """
merged = merge({"severity": 1}, {"severity": 2}, {"severity": 3})
assert merged.record["severity"] == 3
assert merged.lost == {"severity": 2}
""",
    ),
    (
        "nothing changed here means theirs",
        """
assert merge({"n": 1}, {"n": 1}, {"n": 5}).record == {"n": 5}
""",
    ),
]

MERGE_FAIL = """    def test_both_texts_are_kept(harbour, store, transport):
        merged = merge({"note": "a"}, {"note": "ours"}, {"note": "theirs"})
>       assert merged.record["note"].splitlines() == ["theirs", "ours"]
E       AssertionError: assert ['theirs\\\\nours'] == ['theirs', 'ours']
tests/test_merge.py:21: AssertionError"""

REBASE_FAIL = """src/tidepool/delta.py:52: in _pull
    good = [_rebase(store, kind, record) for record in good]
E   NameError: name '_rebase' is not defined. Did you mean: 'release'?
src/tidepool/delta.py:52: NameError"""
