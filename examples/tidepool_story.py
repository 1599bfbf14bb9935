"""The session itself: who said and did what, from the first request to the middle of step 7."""

from __future__ import annotations

import tidepool_later as later
import tidepool_outputs as out
from recorder import Recorder
from tidepool_files import RESOURCES, initial, new_model, new_test

PLAN = [
    "Map the current sync path and write down how it fails",
    "Replace the dicts by typed records",
    "Put all HTTP behind one Transport with time-outs",
    "Retry with backoff and Retry-After",
    "Local copy in SQLite, delta sync by cursor",
    "Outbox for changes made offline",
    "Merge records that both sides have changed",
    "Fetch resources in parallel, within the server's rate limit",
    "Commands: sync --since, status, --dry-run",
    "Documentation, changelog, release 0.4.0",
]
SRC = "src/tidepool"


def tell() -> Recorder:
    """The whole session."""
    s = Recorder(initial())
    for chapter in (survey, records, transport, retry, store, outbox, merge):
        chapter(s)
    return s


def run_tests(s: Recorder, failed: dict[str, str] | None = None, *, verbose: bool = False, only: str = "") -> None:
    """The agent runs the tests; those in `failed` fail."""
    command = "python -m pytest" + (" -v" if verbose else " -q") + (f" tests/{only}.py" if only else "")
    log = later.pytest_log(s.files, failed or {}, verbose=verbose, only=only)
    s.bash(command, log, code=1 if failed else 0, why="Run the tests")


def survey(s: Recorder) -> None:
    """Step 1: what is there, how it fails, what the person wants."""
    s.user(
        """
tidepool downloads everything on every sync, which never finishes on the survey boat's radio link. Please make it a
delta sync that can be interrupted at any point and goes on where it stopped, and let people edit annotations and
calibration notes while they are offline. Keep `tidepool sync` and `tidepool show` working as they do. Make a plan
first, then work through it; commit after each step on the branch delta-sync.

One rule for the whole job: never commit without having run the full test suite.
""",
        after=0,
    )
    s.think(
        """
The user wants a delta sync, resumable, with offline edits. I should read the code first: sync.py, store.py, the
models, and the API documentation to see whether the server has anything like a change feed.
"""
    )
    s.say("I'll read the code and the API documentation before I plan anything.")
    s.glob("**/*.py", "src/")
    s.read(f"{SRC}/sync.py")
    s.read(f"{SRC}/store.py")
    s.read(f"{SRC}/config.py")
    s.read("docs/api.md")
    for name in ("stations", "readings", "calibrations", "annotations"):
        s.read(f"{SRC}/models/{name}.py")
    s.subagent(
        "Find out how the tests of tidepool reach the network and which of them need it.",
        [
            "I'll look at the test modules and their imports.",
            "No test calls a fetch function; all of them read pages recorded under tests/fixtures.",
        ],
        """
None of the 24 tests touches the network. They load recorded pages from tests/fixtures/*.json and call the clean_ and
dump_ functions. `fetch_*`, store.py, sync.py and cli.py are not tested at all.
""",
    )
    s.say("The skipper left a log of last week's attempts in logs/. Let me see where it breaks.")
    s.bash("ls -la logs docs tests/fixtures", later.listing(s.files))
    s.read("logs/survey-boat.log")
    s.bash("git log --oneline | head -8", out.LOG)
    s.grep(r"requests\.", "src/")
    run_tests(s, verbose=True)
    s.bash("TIDEPOOL_DATA=/tmp/tp time -p tidepool sync", out.SLOW, code=1, why="Watch a full sync fail")
    s.think(
        """
So it dies with ReadTimeout... actually requests has no default timeout; it is the gateway's 504 after 10 seconds with
limit 2000. And since store.save writes only at the end of a resource, everything of that resource is lost. The server
has /changes with a cursor since 1.4. Good: that is the way to go.
"""
    )
    s.say(
        """
Here is how the present sync fails:

1. `readings` asks for pages of 2,000; the gateway ends requests after 10 seconds, so a slow link gets a 504.
2. Nothing is stored before a resource is complete, so an interruption loses up to 60 MB.
3. There is no time-out and no retry: one dropped packet ends the run.
4. `updated_after` compares whole seconds, and several readings share one second, so a delta by time would lose some.

The API has had `/changes?cursor=` since 1.4, which solves 2 and 4.
"""
    )
    s.todos(PLAN, 1)
    s.say(
        """
One question before I start: should we ask for changes by `updated_after`, which every server version has, or by the
cursor of `/changes`, which needs 1.4?
"""
    )
    s.user("By cursor. All three harbours run 1.4 or newer, I checked last week.", after=210)
    s.say(
        """
Then we go by the opaque cursor of `/changes` rather than by `updated_after`: clocks on the gauges differ by up to a
minute, and two readings may share a second, so a time stamp can both repeat and lose records. The cursor does neither.
"""
    )
    s.bash("tidepool --version", "usage: tidepool [-h] {sync,show} ...\ntidepool: error: the following", code=2)
    s.write("docs/sync.md", out.SYNC_DOC)
    run_tests(s)
    s.commit("Write down how the sync fails and what it shall promise")
    s.todos(PLAN, 2)


def records(s: Recorder) -> None:
    """Step 2: typed records instead of dicts."""
    s.say(
        """
Step 2. I considered three ways to type the records: pydantic models, TypedDicts, and plain dataclasses. I'm going with
frozen dataclasses with slots. Pydantic would add 70 ms to the start of a command that often does nothing, and its
coercion would accept "12" for 12, which we want to see as a bad record; TypedDict checks nothing at run time.
"""
    )
    s.write(f"{SRC}/errors.py", later.ERRORS.replace("        self.resource = resource\n", ""))
    for name in RESOURCES:
        if name not in ("stations", "readings", "calibrations", "annotations"):
            s.read(f"{SRC}/models/{name}.py")
        s.write(f"{SRC}/models/{name}.py", new_model(name))
    s.progress("ruff format --quiet")
    s.write(f"{SRC}/models/__init__.py", out.MODELS)
    s.bash("python -m pytest -q", out.COLLECT, code=2, why="See which tests are left behind")
    s.say("As expected: the old tests import `clean_*`. I'll rewrite them one by one against the recorded pages.")
    for name in RESOURCES:
        s.read(f"tests/test_{name}.py")
        s.read(f"tests/fixtures/{name}.json", limit=55)
        s.write(f"tests/test_{name}.py", new_test(name))
    run_tests(s, {"test_alert_refuses_a_severity_that_is_no_number[None]": out.SEVERITY})
    s.think(
        "int(None) raises TypeError, which from_json catches. The failure is that BadRecord has no attribute resource."
    )
    s.say("The exception is the right one, but it doesn't keep the resource that it was made with. I'll add that.")
    s.edit(
        f"{SRC}/errors.py",
        "        self.record_id = record_id\n",
        "        self.resource = resource\n        self.record_id = record_id\n",
    )
    run_tests(s)
    s.say("Tests pass. Let me check the types as well before I go on.")
    s.bash("python -m mypy", out.MYPY, code=1, why="Check the types")
    s.edit(
        f"{SRC}/times.py",
        "def parse_time(text):\n    return",
        'def parse_time(text: str) -> datetime:\n    """Raises ValueError where `text` is no time."""\n    return',
    )
    s.edit(f"{SRC}/times.py", "def format_time(value):", "def format_time(value: datetime) -> str:")
    s.bash("python -m mypy", "Success: no issues found in 14 source files", why="Check the types")
    s.user(
        """
Looks good. One thing that holds from here on: log through the logging module, never print, from anything under src/
except cli.py. The skipper pipes the output into another program.
""",
        after=140,
    )
    s.say(
        """
Understood: logging everywhere under src/, print only in cli.py. The old sync.py still prints; it goes when I rewrite it
in step 5.
"""
    )
    s.say("Let me look over three of the changed modules before I commit.")
    s.diff(f"{SRC}/models/readings.py", f"{SRC}/models/outages.py", f"{SRC}/models/sensors.py")
    run_tests(s)
    s.commit("Replace the dicts by frozen dataclasses")
    s.todos(PLAN, 3)


def transport(s: Recorder) -> None:
    """Step 3: one place for HTTP; a failed approach with mocks."""
    s.say(
        """
Step 3. For the HTTP library the choice is between staying with requests, aiohttp and httpx. We use httpx: it has
time-outs by default and a connection pool that may be shared by threads. requests has no default time-out, which is how
we got here; aiohttp would force async through the whole command line for no gain at four connections.
"""
    )
    s.say("Installing it into the project's environment first.")
    s.bash("pip install httpx", out.PIP, why="Install httpx")
    s.edit("pyproject.toml", 'dependencies = ["requests>=2.31"]', 'dependencies = ["httpx>=0.27"]')
    s.edit("pyproject.toml", ', "types-requests"]', "]")
    s.write(f"{SRC}/transport.py", later.TRANSPORT)
    s.say("For the tests I'll try respx, which intercepts httpx calls.")
    s.bash("pip install respx", "Successfully installed respx-0.21.1")
    s.write("tests/test_transport.py", out.RESPX_TEST)
    run_tests(s, {"test_page_follows_next": out.RESPX_FAIL}, only="test_transport")
    s.think(
        """
respx matches the pattern on the path without the query, and the second page has the same path, so it answers page one
for ever. I could match on params, but a mock that has to be told the answer cannot catch wrong time-outs or pooling.
"""
    )
    s.say(
        """
The respx approach doesn't work for us: it answers the first page for ever because both pages have the same path, and it
never opens a socket, so time-outs and broken connections, the very thing we are building for, can't be tested. I'm
dropping respx and writing a small real server on `http.server` instead, with faults on request.
"""
    )
    s.bash("pip uninstall -y respx", "Found existing installation: respx 0.21.1\nSuccessfully uninstalled respx-0.21.1")
    s.write("tests/harbour.py", later.HARBOUR)
    s.write("tests/conftest.py", out.CONFTEST)
    s.write("tests/samples.py", out.SAMPLES)
    s.write("tests/test_transport.py", later.tests_of("Transport", out.TRANSPORT_CASES, out.TEST_IMPORTS))
    s.bash("python -m pytest -q tests/test_transport.py", out.IMPORT_ERROR, code=4, why="Run the new tests")
    s.write(f"{SRC}/retry.py", out.ONE_TRY)
    run_tests(s, only="test_transport", verbose=True)
    s.say("How large should a page be? I'll measure two sizes against the staging server.")
    s.write("scripts/probe.py", out.PROBE_SCRIPT)
    s.bash("python scripts/probe.py --limit 500 --limit 2000", out.PROBE, why="Time pages of two sizes")
    s.say(
        """
2,000 records take 9 to 14 seconds over the radio link, 500 take 2.6. So the page size is 500 rather than 2,000: it
stays far from the gateway's limit of 10 seconds, and an interruption costs one small page.
"""
    )
    s.queue("please put the read timeout above the gateway's 10 s, otherwise we never see its 504")
    s.say("Good point. The read time-out is 12 seconds, so that we get the gateway's 504 rather than our own time-out.")
    s.read(f"{SRC}/transport.py", 1, 40)
    s.remove("scripts/probe.py")
    run_tests(s)
    s.diff()
    s.commit("Put all HTTP behind one Transport with time-outs")
    s.todos(PLAN, 4)


def retry(s: Recorder) -> None:
    """Step 4: backoff."""
    s.user("Before you do the retries: is there a reason not to use tenacity? I'd rather not own such code.", after=60)
    s.say(
        """
There is one: tenacity decides on the pause before it has seen the response, so honouring `Retry-After` needs a custom
wait callback with state, about as long as the loop itself. I'd write our own 40 lines instead of taking tenacity, with
the clock and the dice passed in so that tests don't sleep. If you still prefer the library, say so.
"""
    )
    s.user("Fine, own code then. Keep it in one module and cap the pause at 30 s.", after=75)
    s.think("Full jitter, cap 30, Retry-After wins. Retry only idempotent requests: GET and PUT with key.")
    s.say(
        """
Decision: exponential backoff with full jitter, first bound 0.5 s, cap 30 s, six attempts. Full jitter instead of equal
jitter, because after a gateway restart all boats come back in the same second. A `Retry-After` from the server takes
precedence over our own pause. Only requests that may be repeated are retried: GET, and PUT with an idempotency key.
"""
    )
    early = later.RETRY.replace(
        "            yield attempt\n", "            wait = attempt.wait\n            yield attempt\n"
    )
    s.write(f"{SRC}/retry.py", early.replace("attempt.wait if attempt.wait is not None", "wait if wait is not None"))
    s.write("tests/test_retry.py", later.tests_of("Retry", out.RETRY_CASES, out.RETRY_IMPORTS))
    run_tests(s, {"test_retry_after_wins_over_our_own_pause": out.RETRY_FAIL}, only="test_retry")
    s.say("The server sends `Retry-After: 2` and we slept 0.5: `attempt.wait` is read before the caller has set it.")
    s.edit(
        f"{SRC}/retry.py", "            wait = attempt.wait\n            yield attempt\n", "            yield attempt\n"
    )
    s.edit(f"{SRC}/retry.py", "wait if wait is not None", "attempt.wait if attempt.wait is not None")
    run_tests(s, only="test_retry")
    s.say("Green. A look at the linter now.")
    s.bash("ruff check src tests", out.RUFF, code=1, why="Lint")
    s.bash("ruff check --fix src tests", "Found 2 errors (2 fixed, 0 remaining).", why="Lint")
    s.say("Now the same against staging, with the gateway's own faults rather than mine.")
    s.bash("tidepool sync -v 2>&1 | tail -90", later.sync_log("retry", 84), why="Try it against staging")
    s.bash("ssh staging tail -n 140 /var/log/harbour/access.log", later.access_log("retry", 140))
    s.say(
        """
Against staging: each 503 was followed by one pause and then an answer; no run gave up. The bad records in the log have
no `station_id`; they are skipped and named, which is what we want.
"""
    )
    run_tests(s, verbose=True)
    s.diff(f"{SRC}/retry.py")
    s.commit("Retry with full jitter, and do as Retry-After says")
    s.todos(PLAN, 5)


def store(s: Recorder) -> None:
    """Step 5: SQLite and cursors; ETags fail, INSERT OR REPLACE fails."""
    s.say(
        """
Step 5. First I want to try whether ETags would do instead of a local cursor table: a conditional GET per resource is
less code.
"""
    )
    s.bash("curl -sI -H 'X-Harbour-Key: ***' https://harbour.example/api/v1/readings | grep -i etag", "", code=1)
    s.bash("curl -sI -H 'X-Harbour-Key: ***' https://harbour.example/api/v1/stations", out.HEADERS)
    s.say(
        """
ETags are a dead end: the gateway strips the header from every answer, so If-None-Match never matches. Cursors it is,
stored per resource.
"""
    )
    s.say(
        """
For the local copy we use SQLite from the standard library in WAL mode instead of the JSON files. Records and the cursor
have to change in one transaction, which separate files cannot do; DuckDB can, but it is a 40 MB wheel and has no build
for the boat's ARM computer.
"""
    )
    s.say("I'll read the promises again that I wrote down this morning, since the schema has to keep them.")
    s.read("docs/sync.md")
    s.write(f"{SRC}/migrations.py", later.MIGRATIONS)
    s.write(f"{SRC}/store.py", later.STORE.replace("DO UPDATE SET body", "UPDATE SET body"))
    s.write(f"{SRC}/delta.py", later.DELTA)
    s.write("tests/test_delta.py", later.tests_of("Delta", out.DELTA_CASES, out.TEST_IMPORTS))
    run_tests(s, {"test_a_broken_link_costs_one_page_at_most": out.SQL_FAIL}, only="test_delta")
    s.edit(f"{SRC}/store.py", "UPDATE SET body", "DO UPDATE SET body")
    run_tests(s, only="test_delta")
    s.user(
        """
One thing about the migrations module: steps that have been released must never be edited, always append a new one. We
had two boats with different schemas last year and it took a week to find.
""",
        after=40,
    )
    s.say("I've put that rule at the head of migrations.py and will only ever append steps.")
    s.say(
        """
Deleted records: I'll keep tombstones (`deleted_at` set, row kept) rather than delete rows. An annotation written
offline may still point to a reading that the server has removed, and the foreign key must not break. Tombstones older
than 30 days can go at a later time.
"""
    )
    s.say("Let me have a look at the schema that came out of it.")
    s.bash("sqlite3 /tmp/tp/tidepool.db .schema", "/bin/bash: line 1: sqlite3: command not found", code=127)
    s.bash(
        "python -c \"import sqlite3; print(*sqlite3.connect('/tmp/tp/tidepool.db').iterdump(), sep='\\n')\" | head -20",
        out.DUMP,
    )
    s.write(f"{SRC}/sync.py", later.SYNC.replace("from tidepool import outbox\n", "").replace(out.FLUSH, ""))
    s.edit(f"{SRC}/cli.py", "from tidepool import store\nfrom tidepool.sync import sync_all", out.CLI_IMPORTS)
    s.edit(f"{SRC}/cli.py", "        sync_all()\n", out.CLI_SYNC)
    s.edit(f"{SRC}/cli.py", "        for item in store.load(args.resource):", out.CLI_SHOW)
    s.bash("python -m tidepool sync", "/usr/bin/python: No module named tidepool.__main__", code=1, why="Run a sync")
    s.write(
        f"{SRC}/__main__.py",
        '"""`python -m tidepool`."""\n\nfrom tidepool.cli import main\n\nraise SystemExit(main())\n',
    )
    s.say("It should start now.")
    s.bash("python -m tidepool sync", "", why="Run a sync")
    s.bash("python -m tidepool sync -v 2>&1 | head -150", later.sync_log("store", 132), why="Sync from nothing")
    s.bash("kill -9 %1; python -m tidepool sync -v 2>&1 | head -40", later.sync_log("again", 34), why="Resume")
    s.say(
        """
Killed in the middle of `predictions` and started again: it went on with the page after the last one stored, and the
second run moved 1.9 MB instead of 60.
"""
    )
    s.say("I'll check that the four large resources have nothing that a page could break.")
    for name in ("readings", "predictions", "alerts", "outages"):
        s.read(f"{SRC}/models/{name}.py")
    run_tests(s, {"test_station_survives_a_round_trip[north-quay-3]": out.STATION_FAIL})
    s.read(f"{SRC}/models/stations.py", 30, 30)
    s.say("A page recorded yesterday has an empty string where the documentation says null. We always send null.")
    s.edit(
        "tests/test_stations.py",
        "    assert Station.from_json(raw).to_json() == raw\n",
        '    assert Station.from_json(raw).to_json() == raw | {"retired_at": raw["retired_at"] or None}\n',
    )
    run_tests(s, verbose=True)
    s.bash("python -m mypy", "Success: no issues found in 19 source files", why="Check the types")
    s.diff()
    s.commit("Keep the local copy in SQLite and sync by cursor")
    s.bash("git push -u origin delta-sync", out.PUSH, code=1, why="Publish the branch")
    s.user("Don't push, I do that myself after review. Carry on with step 6.", after=30)
    s.todos(PLAN, 6)


def outbox(s: Recorder) -> None:
    """Step 6: changes made offline."""
    s.say(
        """
Understood, no pushing. Step 6, the outbox. It will live in the same database as the records rather than in a file of
its own, so that a record and its outbox entry are written in one transaction; with two files a crash in between either
loses the change or sends one that is not shown.
"""
    )
    s.edit(f"{SRC}/migrations.py", "]\n", later.OUTBOX_STEP)
    s.write(f"{SRC}/outbox.py", later.OUTBOX.replace("uuid.uuid5(SPACE, text)", "uuid.uuid4()"))
    s.write("tests/test_outbox.py", later.tests_of("Outbox", out.OUTBOX_CASES, out.TEST_IMPORTS))
    run_tests(s, {"test_a_change_sent_twice_around_a_crash_arrives_once": out.UUID_FAIL}, only="test_outbox")
    s.think(
        """
The key is random, so the retry after the crash carries another one and the server stores the change twice. It has to be
made from the content. uuid5 over number, resource, id and body.
"""
    )
    s.say(
        """
A random uuid4 as idempotency key fails exactly where it is needed: after a crash between sending and noting it, the
second attempt has a new key and the server books the change twice. I'm making the key a uuid5 of the entry's content
instead, so both attempts carry the same one.
"""
    )
    s.edit(f"{SRC}/outbox.py", "uuid.uuid4()", "uuid.uuid5(SPACE, text)")
    run_tests(s, only="test_outbox")
    s.say("Let me go through the new tests once more, and through the server that they talk to.")
    for path in ("tests/harbour.py", "tests/test_outbox.py", "tests/test_delta.py", "tests/conftest.py"):
        s.read(path)
    s.say("Now a test that syncs while entries are waiting, because upsert and the foreign key meet there.")
    s.edit(f"{SRC}/store.py", '            "INSERT INTO records', '            "INSERT OR REPLACE INTO records')
    s.edit(f"{SRC}/store.py", out.UPSERT, '(?, ?, ?, ?)",\n')
    run_tests(s, {"test_a_pull_keeps_what_is_waiting": out.CASCADE}, only="test_outbox")
    s.say(
        """
That was the wrong simplification: INSERT OR REPLACE deletes the row before it inserts, ON DELETE CASCADE follows, and
the waiting change is gone without a word. Back to ON CONFLICT DO UPDATE, with a comment so that nobody tries it again.
"""
    )
    s.edit(f"{SRC}/store.py", '            "INSERT OR REPLACE INTO records', '            "INSERT INTO records')
    s.edit(f"{SRC}/store.py", '(?, ?, ?, ?)",\n', out.UPSERT)
    run_tests(s, only="test_outbox", verbose=True)
    s.write(f"{SRC}/sync.py", later.SYNC)
    s.user("What happens to an entry that the server refuses, say because the reading is gone? Does it block the rest?")
    s.say(
        """
It did in my first version. A refused entry is now parked: its reason goes to the column `refused`, it is no longer
sent, and the ones behind it go on. Dropping it silently was the alternative, but a technician's note must not vanish;
`tidepool status` (step 9) will list what is parked.
"""
    )
    s.say("Let me see that every place that reads the outbox leaves out what is parked.")
    s.grep("refused", "src/")
    s.read(f"{SRC}/outbox.py")
    s.bash("ssh staging grep PUT /var/log/harbour/access.log | tail -n 90", later.access_log("outbox", 90, "PUT"))
    s.bash("python -m tidepool sync -v 2>&1 | tail -70", later.sync_log("outbox", 66), why="Sync with changes waiting")
    run_tests(s, verbose=True)
    s.diff()
    s.commit("Keep offline changes in an outbox, sent oldest first")
    s.todos(PLAN, 7)


def merge(s: Recorder) -> None:
    """Step 7: begins with last write wins, is told off, goes on with a three-way merge, and breaks off."""
    s.say(
        """
Step 7. For records that both sides have changed I'll go with last write wins by `written_at`: it is one line, and
conflicts should be rare, since a calibration has one technician.
"""
    )
    s.write(f"{SRC}/merge.py", later.MERGE_LWW)
    s.write("tests/test_merge.py", out.LWW_TEST)
    run_tests(s, only="test_merge")
    s.user(
        """
No, not last write wins. Last autumn exactly that threw away a calibration note: the office fixed a typo, the technician
had written half a page. Never drop what a person typed. Merge field by field against the version both started from.
""",
        after=120,
    )
    s.think(
        """
The outbox already stores `base`, the record before the local change. So a three-way merge is possible without a new
column. For free text: join both. Lists: union. Others: server wins, remember what was lost.
"""
    )
    s.say(
        """
You're right. I'm replacing last write wins with a three-way merge field by field: a field that one side changed keeps
that change; free text that both changed is joined; lists are united; for anything else the server's value wins and
ours goes to `lost`, to be shown. The outbox already keeps `base`, so no migration is needed. A CRDT library would also
do it, but the server would have to speak it too.
"""
    )
    s.write(f"{SRC}/merge.py", later.MERGE.replace("\\n", "\\\\n"))
    s.write("tests/test_merge.py", later.tests_of("Merge", out.MERGE_CASES, out.MERGE_IMPORTS))
    run_tests(s, {"test_both_texts_are_kept": out.MERGE_FAIL}, only="test_merge")
    s.say("The line break between the two texts is escaped once too often, so it is a backslash and an n.")
    s.edit(f"{SRC}/merge.py", "{there}\\\\n{here}", "{there}\\n{here}")
    run_tests(s, only="test_merge", verbose=True)
    s.say("All green; types and lint next.")
    s.bash("python -m mypy && ruff check src tests", "Success: no issues found in 21 source files\nAll checks passed!")
    s.say(
        """
merge.py is done and tested. What is left of step 7: call it in delta.pull for records that have an entry in the outbox,
rebase that entry onto the server's version, and show `lost` in the log. I'll start with delta.py.
"""
    )
    for path in ("delta", "store", "outbox", "sync", "migrations"):
        s.read(f"{SRC}/{path}.py")
    s.think(
        """
Where to hook in: `_pull` upserts the page as it comes. For a record with a waiting entry the upsert would overwrite
what the person sees. So before the upsert: look for waiting entries with that id; merge(base, body, theirs) for each,
store the merged record, and set the entry's base to theirs and its body to merged. Several entries for one record: fold
them in order, each one's merged record is the next one's "mine".
"""
    )
    s.say("Both kinds that people edit are calibrations and annotations; I want their fields in front of me.")
    for name in ("calibrations", "annotations"):
        s.read(f"{SRC}/models/{name}.py")
        s.read(f"tests/test_{name}.py")
        s.read(f"tests/fixtures/{name}.json", limit=120)
    s.refused("git stash && git checkout main -- src/tidepool/store.py")
    s.user(
        "Leave store.py alone, compare with git show instead. And the parallel fetch in step 8: threads, not asyncio."
    )
    s.say(
        """
Noted for step 8: a ThreadPoolExecutor with four workers instead of asyncio, since httpx.Client and our Transport are
safe to share between threads. And store.py stays as it is.
"""
    )
    s.edit(
        f"{SRC}/delta.py",
        "from tidepool.errors import BadRecord, CursorExpired\n",
        "from tidepool.errors import BadRecord, CursorExpired\nfrom tidepool.merge import merge\n",
    )
    s.edit(
        f"{SRC}/delta.py",
        "        with store.transaction():\n            changed += store.upsert(kind.path, good)\n",
        "        with store.transaction():\n"
        "            good = [_rebase(store, kind, record) for record in good]\n"
        "            changed += store.upsert(kind.path, good)\n",
    )
    run_tests(s, {"test_a_pull_keeps_what_is_waiting": out.REBASE_FAIL}, verbose=True)
    s.say(
        """
As expected, `_rebase` does not exist yet. Next I write it in delta.py: look up the waiting entries for the record,
merge `base`, ours and theirs, and update the entry's base and body in the same transaction.
"""
    )
    s.say("First a look at who calls `waiting` today.")
    s.grep("waiting", "src/")
