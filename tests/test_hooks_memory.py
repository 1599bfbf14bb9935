"""What agents learned before comes with the first prompt of a session, and what a session teaches stays."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import hookkit
import ralf
from hookkit import Rig
from ralf.memory import writing
from ralf.memory.family import new_item
from ralf.memory.model import Item
from ralf.text.tokens import count
from test_memory_harvest import REDIS, Step, ran, session as log_of

pytestmark = pytest.mark.ci

FIX = "docker compose up -d redis"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    found = hookkit.rig(tmp_path / "project")
    for name, value in found.environment.items():  # a log counts where the client keeps its own
        monkeypatch.setenv(name, value)
    return found


def learned(rig: Rig, name: str = "main") -> list[Item]:
    return list(writing.load(rig.project, name).items)


def ends(rig: Rig, *kinds: str, name: str = "main", event: str = "SessionEnd") -> list[Item]:
    """Have the session end, and wait until its memory has items of these kinds, and nothing more becomes of them."""
    rig.hook(event, **({"reason": "other"} if event == "SessionEnd" else {}))
    hookkit.wait(lambda: [item.kind for item in learned(rig, name)] == list(kinds), 20)
    hookkit.wait(lambda: _is_quiet(rig, name))
    return learned(rig, name)


def _is_quiet(rig: Rig, name: str) -> bool:
    """Whether nobody has written to a memory for a while."""
    before = writing.load(rig.project, name).revision
    time.sleep(0.3)
    return writing.load(rig.project, name).revision == before


def trap(rig: Rig, *, command: str = "npm test", resolution: str = FIX, name: str = "main") -> None:
    said = {"command": command, "error": "connect ECONNREFUSED", "resolution": resolution}
    item = new_item("trap", **said, origin="mechanical")
    writing.record(rig.project, name, [item])


def worked(rig: Rig, *steps: Step) -> None:
    """Have the session take these steps."""
    text = log_of(rig.root, rig.session, *steps).read_text()
    with rig.transcript.open("a") as file:
        file.write(text)


def arrives(rig: Rig, text: str) -> None:
    """Have the client write into its log what a hook handed to the model."""
    rig.add({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [text]}})


def test_a_first_prompt_brings_what_concerns_its_task_once_in_a_window(rig: Rig) -> None:
    trap(rig)
    writing.record(rig.project, "main", [new_item("pattern", text="Squash before a merge", origin="person")])
    assert FIX not in rig.hook("SessionStart", source="startup").context
    handed = rig.hook("UserPromptSubmit", prompt="Find out why `npm test` is red and repair it.").context
    assert FIX in handed
    assert "Squash" not in handed
    assert count(handed) <= 600
    assert rig.hook("UserPromptSubmit", prompt="Run `npm test` once more.").context == ""
    rig.hook("SessionStart", source="clear")
    assert FIX in rig.hook("UserPromptSubmit", prompt="Run `npm test` again, please.").context


@pytest.mark.parametrize("keys", [{"memory": "off"}, {"inject": "off"}, {"inject": "line"}])
def test_nothing_of_the_memory_is_handed_over_where_that_is_not_wanted(rig: Rig, keys: dict[str, str]) -> None:
    trap(rig)
    rig.configure(**keys)
    assert rig.hook("UserPromptSubmit", prompt="Find out why `npm test` is red.").context == ""
    if "memory" in keys:  # nor is anything learned
        worked(rig, *REDIS)
        rig.hook("SessionEnd", reason="other")
        assert [item.id for item in learned(rig)] == ["trap-1"]


def test_a_memory_that_cannot_be_read_costs_a_line_in_the_error_log_and_no_brief(rig: Rig) -> None:
    trap(rig)
    (rig.project.folder / "journal" / "agents" / "main.jsonl").write_bytes(b"not a record\n")
    said = rig.hook("UserPromptSubmit", prompt="Find out why `npm test` is red.")
    assert said.context == ""
    assert "agents/main" in said.notice


def test_a_task_that_is_completed_leaves_what_it_taught_before_the_session_ends(rig: Rig) -> None:
    worked(rig, *REDIS)
    ends(rig, "trap", "command", event="TaskCompleted")


@pytest.mark.parametrize(
    ("arrived", "failed", "counted"), [(True, False, (1, 0)), (False, False, (0, 0)), (True, True, (0, 1))]
)
def test_what_arrived_is_judged_by_what_the_session_did_then(
    rig: Rig, arrived: bool, failed: bool, counted: tuple[int, int]
) -> None:
    trap(rig)
    rig.answers(1_000)
    handed = rig.hook("UserPromptSubmit", prompt="Find out why `npm test` is red.").context
    if arrived:
        arrives(rig, handed)
    again = [ran("npm test", "connect ECONNREFUSED", failed=True), ran("make clean")]
    worked(rig, *(again if failed else [ran(FIX)]), ran("npm test", "12 passing"))
    found, *_ = ends(rig, "trap", *["trap"] * failed, *["command"] * (1 + failed))
    assert (found.helpful, found.harmful) == counted


def test_the_memory_is_the_one_that_the_environment_names(rig: Rig) -> None:
    rig.environment["RALF_MEMORY"] = "reviewer"
    trap(rig, name="reviewer")
    assert rig.hook("UserPromptSubmit", prompt="Why is `npm test` red?", agent_id="a1").context == ""  # a sub-agent
    assert FIX in rig.hook("UserPromptSubmit", prompt="Find out why `npm test` is red.").context
    worked(rig, *REDIS)
    ends(rig, "trap", "command", name="reviewer")
    assert learned(rig) == []


def test_offers_to_the_memory_are_said_in_one_line_once_after_a_session(rig: Rig) -> None:
    rig.hook("SessionStart", source="startup")
    worked(rig, ran("make test"))
    ralf.hand_over("default", "## Lasting\n- Never push on a Friday", author="user", root=rig.root)
    rig.hook("SessionEnd", reason="other")
    hookkit.wait((rig.project.cache / "hooks.unsaid").exists, 20)
    (item,) = [item for item in learned(rig) if item.status == "offered"]
    line = f"1 offered to the memory: ralf memory show; to take one in: ralf memory accept {item.id}"
    assert rig.hook("SessionStart", source="startup").notice == f"ralf: {line}"
    assert rig.hook("UserPromptSubmit", prompt="Go on").notice == ""
