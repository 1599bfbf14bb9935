"""Notices to a session arrive with its next hook, each once, and within what a client takes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import hookkit
import storekit
from hookkit import Rig, Said, answered
from kit.command import run
from ralf_integrations import agent_messages, inbox
from ralf_integrations.hooks.messages import LIMIT


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = hookkit.rig(tmp_path / "project")
    made.configure(threshold=50_000)
    made.grow(1_000)
    return made


def nudge(rig: Rig, text: str) -> None:
    inbox.send(rig.project, rig.session, text, sender="Ana")


def test_a_notice_makes_an_idle_hook_look_and_is_handed_over_once(rig: Rig) -> None:
    assert [rig.hook().out for _ in range(2)] == ["", ""]
    nudge(rig, "The schema has changed.")
    assert "The schema has changed." in rig.hook().context
    assert [rig.hook().out for _ in range(2)] == ["", ""]
    nudge(rig, "And again.")
    assert "And again." in rig.hook().context


@pytest.mark.ci
def test_many_notices_come_one_answer_after_the_other(rig: Rig) -> None:
    for number in range(5):
        nudge(rig, f"{number}: " + "word " * 800)
    seen: list[str] = []
    for _ in range(5):
        text = rig.hook("UserPromptSubmit", prompt="Go on").context
        assert len(text) <= LIMIT
        seen += [str(number) for number in range(5) if f"  {number}: word" in text]
    assert seen == list("01234")


def test_an_inbox_that_cannot_be_read_breaks_no_hook(rig: Rig) -> None:
    nudge(rig, "The schema has changed.")
    journal = rig.project.folder / "journal" / f"{inbox.stream_of(rig.session)}.jsonl"
    journal.write_bytes(b"nonsense\n")
    said = rig.hook("UserPromptSubmit", prompt="Go on")
    assert said.context == "" and "inbox" in said.notice


KILLED = """
import os, signal, sys
from ralf_integrations.hooks import entry, instant
from ralf_integrations import agent_messages, inbox
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "before":
    instant.say = killed
else:
    inbox.deliver = killed
entry.run("claude-code", "PostToolBatch", sys.stdin.buffer.read(), instant.say)
"""


def killed(rig: Rig, moment: str) -> str:
    """What the model was handed by a hook that was killed before it wrote its answer, or right after."""
    environment = storekit.environment(rig.root.parent, **rig.environment)
    done = run(moment, code=KILLED, stdin=rig.payload("PostToolBatch"), cwd=rig.root, env=environment)
    assert done.status == -signal.SIGKILL
    return Said(done.out).context


@pytest.mark.ci
def test_a_hook_that_is_killed_before_it_answers_loses_no_notice(rig: Rig) -> None:
    rig.hook()
    nudge(rig, "The schema has changed.")
    assert killed(rig, "before") == ""
    assert "The schema has changed." in rig.hook().context
    assert [rig.hook().out for _ in range(2)] == ["", ""]


@pytest.mark.ci
def test_of_hooks_at_once_as_installed_one_hands_it_over(rig: Rig) -> None:
    nudge(rig, "The schema has changed.")
    said = answered([rig.start("PostToolBatch") for _ in range(6)])
    assert sum("The schema has changed." in one.context for one in said) == 1


def test_a_message_to_the_name_that_a_loop_gave_an_agent_arrives_in_its_session_once(rig: Rig) -> None:
    sender = agent_messages.compose(rig.project, "The schema has changed.", sender="planner")
    agent_messages.send(rig.project, "executor-3", sender, waits=True)
    rig.environment["RALF_AGENT"] = "executor-3"
    said = rig.hook("SessionStart", source="startup")
    found = said.context + rig.hook("UserPromptSubmit", prompt="Go on").context + rig.hook().context
    assert found.count("The schema has changed.") == 1 and "from planner" in found
