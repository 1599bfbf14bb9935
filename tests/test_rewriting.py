"""Whatever dies while a journal is rewritten or mended, all of it is as it was or as it is to be."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

import ralf
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.storage.filestore import FileStore
from storekit import context_of, copied, journal_file, start, write_session

pytestmark = pytest.mark.ci

STREAM = "routes/r"
REWRITE = """
import sys
from pathlib import Path
from ralf.storage.filestore import FileStore
store = FileStore(Path(sys.argv[1]))
print("go", flush=True)
store.replace("routes/r", lambda entry: entry.record.replace(b"secret", b"------"))
"""
REPAIR = """
import sys
from ralf.route import write as writer
from ralf.maintenance.repair import repair
print("go", flush=True)
repair(root=sys.argv[1])
"""


def killed(code: str, folder: Path, after: float) -> None:
    child = start(code, folder, cwd=folder)
    assert child.stdout is not None
    assert child.stdout.readline() == b"go\n"
    time.sleep(after)
    child.send_signal(signal.SIGKILL)
    child.communicate()


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    made = FileStore(tmp_path)
    tokens = [None]
    for number in range(300):
        record = json.dumps({"n": number, "text": "secret " * 200}).encode()
        tokens.append(made.append(STREAM, record, id=f"{number}", after=tokens[-1]))
    assert made.archive(STREAM, str(tokens[-1]))
    return made


@pytest.mark.parametrize("delay", [0.0, 0.006, 0.012, 0.025])
def test_a_killed_rewrite_did_all_or_nothing_and_leaves_nothing_when_repeated(
    store: FileStore, tmp_path: Path, delay: float
) -> None:
    killed(REWRITE, tmp_path, delay)
    found = [json.loads(entry.record) for entry in store.read(STREAM)]
    assert [record["n"] for record in found] == list(range(300))
    assert len({record["text"] for record in found}) == 1
    store.replace(STREAM, lambda entry: entry.record.replace(b"secret", b"------"))
    assert {json.loads(entry.record)["text"] for entry in store.read(STREAM)} == {"------ " * 200}
    assert b"secret" not in everything(tmp_path / "journal")
    assert [path.name for path in (tmp_path / "journal" / "routes").iterdir()] == ["r.jsonl"]


@pytest.fixture(scope="module")
def harmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("harmed")
    write_session(root / "session.jsonl", 3_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=400)
    journal = journal_file(root, "tide")
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = b"x" * 500 + b"\n"
    journal.write_bytes(b"".join(lines))
    blob = next((context_of(root) / "blobs").glob("??/*"))
    blob.write_bytes(b"broken")
    return root


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.06, 0.1])
def test_a_repair_that_is_killed_loses_nothing_and_done_again_completes(
    harmed: Path, tmp_path: Path, delay: float
) -> None:
    root = copied(harmed, tmp_path / "project")
    titles = {section.title for section in ralf.get_context("tide", root=root).body.sections}
    whole = [line for line in journal_file(root, "tide").read_bytes().splitlines() if line.startswith(b'{"id":')]
    killed(REPAIR, root, delay)
    repair(root=root)
    assert not verify(root=root).damaged
    ralf.record_decision("tide", "Go on", root=root)  # takes in what a file that was left as it is has
    assert {section.title for section in ralf.get_context("tide", root=root).body.sections} == titles
    lines = journal_file(root, "tide").read_bytes().splitlines()
    assert [line for line in whole if line not in lines] == []
    kept = b"".join(path.read_bytes() for path in context_of(root).rglob("*.damaged"))
    assert b"x" * 500 in kept
    assert b"broken" in kept
