"""Forgetting: the words are gone from every file of the store, it verifies, and nothing else is lost."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import reduce
from pathlib import Path

import pytest

import ralf
import storekit
from ralf import project as projects, routing
from ralf.checkpointing.section import Extractive, Segment, Summary
from ralf.errors import UsageError
from ralf.maintenance.forget import forget
from ralf.maintenance.purge import Wording, remains
from ralf.route import fold
from ralf.route.archive import archive
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.text.cleaning import MARK
from ralf.transcripts.events import read_evidence

pytestmark = pytest.mark.ci

ROUTE = "tide"
WORDS = "The harbour master's key lies under the third stone"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two routes of the same session, decisions by hand, an edit, and a search index."""
    tmp_path = tmp_path_factory.mktemp("template")
    storekit.write_session(tmp_path / "session.jsonl", 700)
    text = (tmp_path / "session.jsonl").read_text(encoding="utf-8")
    said = json.dumps(f"We use the third key instead of the second.\n\nBy the way: {WORDS}, so it was found.")[1:-1]
    (tmp_path / "session.jsonl").write_text(text.replace("I read src/part_1.py first.", said), encoding="utf-8")
    for route in (ROUTE, "other"):
        ralf.checkpoint(route, tmp_path / "session.jsonl", root=tmp_path, summarizer=storekit.Listing())
    ralf.record_decision(ROUTE, WORDS, rationale="he told it to nobody else", alternatives=["no"], root=tmp_path)
    ralf.search("harbour", root=tmp_path)
    return tmp_path


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    """A copy of that project."""
    storekit.copied(template, tmp_path / "p")
    return tmp_path / "p"


def store_of(root: Path) -> Path:
    return projects.find(root).folder


def label_of(root: Path, text: str = WORDS, route: str = ROUTE) -> str:
    return next(item.id for item in ralf.get_context(route, root=root).decisions if item.decision == text)


def records(root: Path, route: str = ROUTE) -> list[Record]:
    return [record for _, record in journal.read(projects.find(root).store, route)]


def verify(root: Path) -> None:
    """Every record has the payload that it says, or says that it was purged; every blob is whole; files are current."""
    project = projects.find(root)
    for route in routing.names_of(project):
        found = records(root, route)
        assert [record.revision for record in found] == list(range(1, len(found) + 1))
        assert all(map(storekit.is_intact, found))
        context = ralf.get_context(route, root=root)
        assert context.warnings == ()
        if found:
            folded = reduce(fold.apply, found, fold.empty(route))
            assert context.decisions == folded.decisions
        for record in found:
            if record.payload.get("evidence"):
                assert list(read_evidence(project.store, record.payload["evidence"]))


def places(root: Path, *words: str) -> list[str]:
    """Where words stand, by a search of its own: plain bytes of every file, and of what compressed ones hold."""
    return [path.name for path in remains(store_of(root), Wording(words))]


# ---- a decision ----


def test_what_was_said_around_it_is_kept_with_a_mark_in_its_place(root: Path) -> None:
    forget(ROUTE, label_of(root), root=root)
    (record,) = [record for record in records(root) if record.kind == "checkpoint"]
    said = [line.text for line in read_evidence(projects.find(root).store, record.payload["evidence"])]
    assert f"We use the third key instead of the second.\n\nBy the way: {MARK}, so it was found." in said


def test_a_forgotten_decision_that_a_summariser_lists_again_does_not_come_back(root: Path) -> None:
    text = "We use the third key instead of the second."
    label = label_of(root, text)
    forget(ROUTE, label, root=root)
    ralf.checkpoint(ROUTE, root / "session.jsonl", root=root, restart=True, summarizer=storekit.Listing())
    storekit.write_session(root / "again.jsonl", 3_000, "s-2")
    again = (root / "again.jsonl").read_text(encoding="utf-8").replace("I read src/part_1.py first.", text)
    (root / "again.jsonl").write_text(again, encoding="utf-8")
    ralf.checkpoint(ROUTE, root / "again.jsonl", root=root, summarizer=storekit.Listing())
    assert text not in [item.decision for item in ralf.get_context(ROUTE, root=root).decisions]


@pytest.mark.parametrize("text", ["", " ", "abc", "a b c", "****----"])
def test_a_text_that_stands_everywhere_is_refused(root: Path, text: str) -> None:
    with pytest.raises(UsageError, match="at least 4 letters"):
        forget(ROUTE, text=text, root=root)


# ---- where words may stand ----


@pytest.mark.parametrize("is_killed", [False, True])
def test_an_archived_route_is_purged_too_with_what_a_killed_process_left_of_its_archive(
    root: Path, is_killed: bool
) -> None:
    project, label = projects.find(root), label_of(root)
    assert archive(project, ROUTE)
    (packed,) = (project.folder / "journal" / "routes").glob("*.gz")
    before = packed.read_bytes()
    assert packed.name in places(root, WORDS)
    forget(ROUTE, label, root=root)
    if is_killed:
        packed.write_bytes(before)
        forget(ROUTE, label, root=root)
    assert places(root, WORDS) == []
    verify(root)


PLACES = """
    tasks/active/T-1.md tasks/completed/T-2.md tasks/plan.yaml tasks/.ralf-T-1.md-0123456789ab.tmp
    context/prev/tasks/T-1 context/prev/tasks/.T-1.aside context/prev/memory/main.md context/prev/routes/other.md
    context/routes/tide.displaced-12345678 context/routes/archive/moon.md context/routes/tide.md.damaged
    context/routes/.ralf-tide.md-0123456789ab.tmp context/journal/routes/.ralf-tide.jsonl-0123456789ab.tmp
    context/journal/routes/tide.damaged context/journal/routes/tide.jsonl.gz.damaged context/blobs/aa/x.damaged
    context/blobs/.ralf-x-0123456789ab.tmp context/memory/main.md context/migrations/x.json context/installed/x.json
    context/config.yaml context/locks/x.lock context/damaged/routes/x.md context/shared/0123456789abcdef/000001-x.json
    CACHE/hooks/s-1.json CACHE/loop/loop.log CACHE/loop/logs/1.log CACHE/chosen/s-1 CACHE/renders/tide/1.json.z
    CACHE/spend.json CACHE/index.db-wal context/cache/others/hooks/s-2.json
""".split()


def test_words_in_any_file_of_the_store_of_tasks_and_of_logs_are_gone_or_the_file_is_named(root: Path) -> None:
    cache = projects.find(root).cache.relative_to(root / ".autonomous").as_posix()
    for place in PLACES:
        path = root / ".autonomous" / place.replace("CACHE", cache)
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(before + f"# {WORDS}\n".encode())
    done = forget(ROUTE, text=WORDS, root=root)
    still = remains(root / ".autonomous", Wording([WORDS]))
    assert {path.as_posix().rpartition("/.autonomous/")[2] for path in still} == {
        *("context/config.yaml", "context/installed/x.json", "context/locks/x.lock"),
        *("context/shared/0123456789abcdef/000001-x.json", "tasks/.ralf-T-1.md-0123456789ab.tmp", "tasks/plan.yaml"),
    }
    assert len(done.left) == len(still)


class Forgetful:
    """A summariser during whose work a person has words forgotten."""

    name = "forgetful"

    def __init__(self, root: Path) -> None:
        self.root = root

    def summarize(self, segment: Segment) -> Summary:
        """What the embedded one says of the segment, after the words have gone."""
        if places(self.root, WORDS):
            assert forget(ROUTE, text=WORDS, root=self.root).left == ()
        return Extractive().summarize(segment)


def with_a_to_do(root: Path) -> None:
    """A session whose to-do list says the words; they are carried on into each of its later checkpoints."""
    todo = {"content": f"Ask him: {WORDS}?", "status": "pending", "activeForm": "Asking"}
    call = {"type": "tool_use", "id": "todo", "name": "TodoWrite", "input": {"todos": [todo]}}
    done = {"type": "tool_result", "tool_use_id": "todo", "content": "Todos have been modified", "is_error": False}
    with (root / "session.jsonl").open("a", encoding="utf-8") as file:
        for role, block in (("assistant", call), ("user", done)):
            record = storekit.turn(1)[0] | {
                "type": role,
                "uuid": f"todo-{role}",
                "message": {"role": role, "content": [block]},
            }
            file.write(json.dumps(record) + "\n")
    ralf.checkpoint(ROUTE, root / "session.jsonl", root=root)
    assert any(WORDS in todo.content for todo in ralf.get_context(ROUTE, root=root).active_work.todos)
    storekit.grow(root / "session.jsonl", 500, 50)


def test_a_checkpoint_that_was_at_work_meanwhile_writes_nothing_of_it_again(root: Path) -> None:
    with_a_to_do(root)
    report = ralf.checkpoint(ROUTE, root / "session.jsonl", root=root, summarizer=Forgetful(root))
    assert len(report.checkpoints) == 1
    assert places(root, WORDS) == []
    assert [todo.content for todo in ralf.get_context(ROUTE, root=root).active_work.todos] == ["Ask him: [forgotten]?"]
    verify(root)


# ---- how words are laid out ----


FORMS = {
    "as it is": "Zürich keys: naïve café",
    "other case": "zÜRICH KEYS: NAÏVE CAFÉ",
    "NFD": unicodedata.normalize("NFD", "Zürich keys: naïve café"),
    "percent": "Z%C3%BCrich%20keys%3A%20na%C3%AFve%20caf%C3%A9",
    "entities": "Z&uuml;rich&nbsp;keys: na&#239;ve caf&#xE9;",
    "JSON": r"Z\u00fcrich keys: na\u00efve caf\u00e9",
}


@pytest.mark.parametrize("form", FORMS)
def test_words_are_found_in_the_forms_that_data_and_addresses_give_them(form: str) -> None:
    text = f"before {FORMS[form]} after"
    assert Wording([FORMS["as it is"]]).without(text) == "before [forgotten] after"
    assert Wording([FORMS[form]]).without(f"before {FORMS['as it is']} after") == "before [forgotten] after"


@pytest.mark.parametrize("what", [{"text": "Name tables"}, {"id": "DEC-003"}])
def test_what_a_person_wrote_into_the_file_and_no_write_has_absorbed_is_forgotten(
    tmp_path: Path, what: dict[str, str]
) -> None:
    for text in ("Keep the old columns", "Store the rows by month"):
        ralf.record_decision(ROUTE, text, root=tmp_path)
    path = storekit.route_file(tmp_path, ROUTE)
    whole, added = path.read_text(), '  - id: "DEC-003"\n    decision: "Name tables"\n    status: "active"\n'
    path.write_text(re.sub(r"(\ndecisions:\n(?:  .*\n)+)", lambda found: found[1] + added, whole))
    assert "Name tables" in ralf.get_context(ROUTE, root=tmp_path).render()
    forget(ROUTE, root=tmp_path, **what)
    assert "Name tables" not in path.read_text() + storekit.journal_file(tmp_path, ROUTE).read_text()
