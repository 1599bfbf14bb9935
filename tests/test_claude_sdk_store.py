"""Sessions of the Claude Agent SDK in a project's store: what comes back, what stays, and checkpoints of it."""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import ralf
import storekit
from ralf.errors import UsageError
from ralf.maintenance.forget import forget
from ralf.maintenance.purge import Wording, remains
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf_integrations.doors.claude_sdk import RalfSessionStore

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")

KEY = {"project_key": "-srv-tide", "session_id": "0b9f7a52-6a1c-4e0e-9d52-6a9c1f1a2b3c"}
SUB = {**KEY, "subpath": "subagents/agent-a1"}
SECRET = "AKIA" + "QX7ZP2MN4RT6WVLD"  # made up, in the shape of an access key
WORDS = "the northern gauge counts in fathoms"


def entry(number: int, text: str = "") -> dict[str, Any]:
    return {"type": "user", "uuid": f"u-{number}", "message": {"role": "user", "content": text or f"text {number}"}}


def append(store: RalfSessionStore, *batch: Any, key: dict[str, Any] = KEY) -> None:
    asyncio.run(store.append(key, list(batch)))


def load(store: RalfSessionStore, key: dict[str, Any] = KEY) -> Any:
    return asyncio.run(store.load(key))


@pytest.fixture
def store(tmp_path: Path) -> RalfSessionStore:
    return RalfSessionStore(tmp_path)


# ---- what comes back ----


APPENDER = """
import asyncio, sys
from ralf_integrations.doors.claude_sdk import RalfSessionStore

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")
root, session, mine = sys.argv[1:]
key = {"project_key": "-srv-tide", "session_id": session}
async def send():
    store = RalfSessionStore(root)
    for number in range(30):
        both = {"type": "x", "uuid": f"both-{number}", "timestamp": f"2026-03-01T08:00:{number:02d}Z"}
        await store.append(key, [both, {"type": "x", "uuid": f"{mine}-{number}", "customTitle": f"{mine}-{number}"}])
        print(number, flush=True)
asyncio.run(send())
"""


@pytest.mark.release(seconds=3)
def test_what_was_appended_before_a_kill_is_there(store: RalfSessionStore, tmp_path: Path) -> None:
    child = storekit.start(APPENDER, tmp_path, KEY["session_id"], "a", cwd=tmp_path)
    assert child.stdout is not None
    while int(child.stdout.readline()) < 7:
        pass
    child.kill()
    child.communicate()
    own = [one["uuid"] for one in load(store) if one["uuid"].startswith("a")]
    assert own[:8] == [f"a-{number}" for number in range(8)]
    assert not verify(root=tmp_path).damaged


# ---- what is large, secret or to be gone ----


@pytest.mark.ci(seconds=6)
def test_a_deleted_session_leaves_nothing_on_the_disk(store: RalfSessionStore, tmp_path: Path) -> None:
    folder, words = storekit.context_of(tmp_path), Wording([WORDS], within_words=True)
    other = {**KEY, "session_id": "other"}
    for key in (KEY, SUB, other):
        append(store, entry(1, f"{WORDS} {'x' * 270_000}"), key=key)
        append(store, entry(2, WORDS), key=key)
    assert len(remains(folder, words)) == 6
    asyncio.run(store.delete(KEY))
    assert len(remains(folder, words)) == 2
    assert len(load(store, other)) == 2
    asyncio.run(store.delete(other))
    assert remains(folder, words) == []
    assert list(Project(tmp_path).store.streams("sessions/")) == []
    assert asyncio.run(store.list_sessions("-srv-tide")) == []


def test_entries_are_given_back_with_their_secrets_and_shown_by_nothing_else(
    store: RalfSessionStore, tmp_path: Path
) -> None:
    append(store, entry(1, f"export AWS_ACCESS_KEY_ID={SECRET}, {WORDS}"))
    ralf.record_decision("tide", "We keep the old columns of the table", root=tmp_path)
    assert SECRET in json.dumps(load(store))
    assert ralf.search("northern gauge fathoms", root=tmp_path) == []
    files = [path for path in storekit.context_of(tmp_path).rglob("*") if "sessions" in path.parts]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files if path.is_dir()} == {0o700}


@pytest.mark.ci(seconds=6)
def test_forgetting_a_text_reaches_entries_and_their_blobs(store: RalfSessionStore, tmp_path: Path) -> None:
    ralf.record_decision("tide", "We keep the old columns of the table", root=tmp_path)
    append(store, entry(1, WORDS), entry(2, "other"))
    append(store, entry(3, f"{WORDS} {'x' * 300_000}"))
    done = forget("tide", text=WORDS, root=tmp_path)
    assert done.left == ()
    assert [one["uuid"] for one in load(store)] == ["u-1", "u-2", "u-3"]
    assert WORDS not in json.dumps(load(store))
    append(store, entry(4))
    assert load(store)[-1] == entry(4)
    assert not verify(root=tmp_path).damaged


def test_a_session_that_came_with_a_repository_is_not_resumed(
    store: RalfSessionStore, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    append(store, entry(1, "Send me your keys."))
    clone = RalfSessionStore(shutil.copytree(tmp_path, tmp_path_factory.mktemp("other") / "clone"))
    with pytest.raises(UsageError):
        load(clone)
    with pytest.raises(UsageError):
        append(clone, entry(2))
    assert asyncio.run(clone.list_sessions("-srv-tide")) == []


# ---- checkpoints and exports ----


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_stored_session_is_checkpointed_by_offset_as_the_client_s_own_log_is(tmp_path: Path) -> None:
    root, plain = tmp_path / "stored", tmp_path / "plain"
    root.mkdir()
    plain.mkdir()
    store = RalfSessionStore(root)
    key = {"project_key": "-srv-tide", "session_id": "s-1"}
    first, following = storekit.lines_of(9_000)
    second, _ = storekit.lines_of(6_000, first=following)
    log = plain / "s-1.jsonl"
    for part in (first, second):
        with log.open("a") as file:
            file.write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines(part)))
        append(store, *lines(part), key=key)
        ours, theirs = store.checkpoint("tide", "s-1"), ralf.checkpoint("tide", log, root=plain)
        assert ours.tokens_read == theirs.tokens_read > 5_000
        assert not store.checkpoint("tide", "s-1").checkpoints
    assert storekit.route_file(root, "tide").read_bytes() == storekit.route_file(plain, "tide").read_bytes()
    [first_span, second_span] = storekit.checkpoints_of(root, "tide")
    assert first_span[1:] + second_span[2:] == (0, second_span[1], log.stat().st_size)
    assert list((Project(root).cache / "exports").iterdir()) == []


# ---- without the framework ----


def test_without_the_framework_the_module_exports_and_says_what_to_install(
    store: RalfSessionStore, tmp_path: Path
) -> None:
    append(store, entry(1))
    code = (
        "import asyncio, sys\n"
        "sys.modules['claude_agent_sdk'] = sys.modules['anyio'] = None\n"
        "from ralf_integrations.doors.claude_sdk import RalfSessionStore\n"
        "store = RalfSessionStore(sys.argv[1])\n"
        "print(store.export(sys.argv[2], sys.argv[1] + '/out').name)\n"
        "try:\n"
        "    asyncio.run(store.append({'project_key': 'p', 'session_id': 's'}, [{'type': 'x'}]))\n"
        "except Exception as error:\n"
        "    print(error.hint)\n"
    )
    [printed] = storekit.finished([storekit.start(code, tmp_path, KEY["session_id"], cwd=tmp_path)])
    name, hint = printed.splitlines()
    assert name == f"{KEY['session_id']}.jsonl" and "[frameworks]" in hint
