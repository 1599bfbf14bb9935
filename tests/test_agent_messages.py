"""Messages between agents: short, without contents of files, delivered once (formats/agent-memory.md, 28)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ralf import project
from ralf.errors import NotFound, UsageError
from ralf.project import Project
from ralf_integrations import copied_text, inbox
from ralf_integrations.agent_messages import Message, compose, receive, send

CODE = "def tide(level, base):\n    return level - base if base else None\n"


@pytest.fixture
def here(tmp_path: Path) -> Project:
    (tmp_path / "tides.py").write_text("".join(CODE.replace("tide", f"tide_{number}") for number in range(20)))
    return project.find(tmp_path)


def test_statement_28_a_message_has_sender_summary_facts_artifacts_and_action_and_is_delivered_once(
    here: Project,
) -> None:
    message = compose(
        here,
        "The reader is done. All tests pass.",
        facts=["`read()` returns None for an empty table."],
        artifacts=["src/reader.py"],
        action="Review it.",
        sender="executor-1",
    )
    receiver, id_ = send(here, "reviewer", message, waits=True)
    assert receiver == "reviewer"
    [notice] = receive(here, ["reviewer"])
    assert (notice.id, notice.sender) == (id_, "executor-1")
    said = ("The reader is done. All tests pass.", "`read()` returns None for", "src/reader.py", "Review it.")
    assert [words for words in said if words not in notice.text] == []
    assert receive(here, ["reviewer"]) == []


@pytest.mark.parametrize(
    ("summary", "facts", "artifacts"),
    [
        ("", (), ()),
        ("One. Two. Three.", (), ()),
        ("Look.", ["a\n" * 10 + "a"], ()),
        ("Look.", ["x" * 401], ()),
        ("Look.", [f"word {'is another one of them ' * 15}" for _ in range(9)], ()),
        ("Look.", (), ["def f():\n    pass"]),
        ("Look.", (), ["x" * 301]),
    ],
)
def test_statement_28_a_message_that_is_too_long_or_has_no_path_for_an_artifact_is_refused(
    here: Project, summary: str, facts: list[str], artifacts: list[str]
) -> None:
    with pytest.raises(UsageError):
        compose(here, summary, facts=facts, artifacts=artifacts)


def test_statement_28_ten_lines_or_400_characters_of_a_file_may_be_quoted_and_no_more(here: Project) -> None:
    lines = (here.root / "tides.py").read_text().split("\n")
    compose(here, "Look at this.", facts=["\n".join(lines[:10])])
    with pytest.raises(UsageError, match=r"11 .*tides\.py"):
        compose(here, "Look at this.", facts=["\n".join(lines[:6]), "\n".join(lines[6:11])])


WAYS: dict[str, Callable[[list[str]], list[str]]] = {
    "plain": lambda lines: ["\n".join(lines)],
    "quoted": lambda lines: ["\n".join(f"> {line}" for line in lines)],
    "fenced": lambda lines: ["```python\n" + "\n".join(lines) + "\n```"],
    "dedented": lambda lines: ["\n".join(map(str.strip, lines))],
    "joined": lambda lines: [" / ".join(map(str.strip, lines))],
    "escaped": lambda lines: [json.dumps("\n".join(lines))],
    "numbered": lambda lines: ["\n".join(f"{number:>4}| {line}" for number, line in enumerate(lines, 40))],
    "as a diff": lambda lines: ["\n".join(f"+{line}" for line in lines)],
    "as a list": lambda lines: ["\n".join(f"- {line.strip()}" for line in lines)],
    "a fact a line": lambda lines: [line.strip() for line in lines],
    "in pieces": lambda lines: ["\n".join(lines[at : at + 4]) for at in range(0, len(lines), 4)],
    "in capitals": lambda lines: ["\n".join(lines).upper()],
    "double spaced": lambda lines: ["\n\n".join(lines)],
}


@pytest.mark.parametrize("way", WAYS)
def test_statement_28_contents_of_a_file_are_refused_however_they_are_dressed(here: Project, way: str) -> None:
    facts = WAYS[way]((here.root / "tides.py").read_text().split("\n")[3:18])
    with pytest.raises(UsageError):
        compose(here, "The reader changed.", facts=facts, action="Review it.")


@pytest.mark.parametrize(
    ("summary", "facts"),
    [
        ("The reader in tides.py is done. All 9 tests pass.", ["`tide_4` takes a second argument since 4f05e2."]),
        (
            "Do not touch tides.py before noon.",
            ["`pytest -q` failed:\n    E   assert 2 == 3\nand passed after the fix."],
        ),
        (
            "Which form should it take?",
            ["Decided: SQLite, because nobody has to run a server for it.", "1. rename 2. run"],
        ),
    ],
)
def test_statement_28_honest_messages_are_accepted(here: Project, summary: str, facts: list[str]) -> None:
    compose(here, summary, facts=facts, action="Run the tests again on your branch, then merge.")


def test_hidden_folders_and_links_are_not_looked_at(here: Project, tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "copy.py").write_text("\n".join(f"beta{number} = {number}" for number in range(12)))
    (tmp_path / "link.py").symlink_to(tmp_path / ".hidden" / "copy.py")
    text = " ".join(f"beta{number} = {number}" for number in range(12))
    assert copied_text.most_copied(text, here.root, lines=10, characters=400) is None


def test_secrets_are_redacted_before_a_message_is_stored(here: Project) -> None:
    key = "AKIA" + "QX7ZP2MN4RT6WVLD"
    send(here, "reviewer", compose(here, f"The key is {key}."), waits=True)
    assert key not in inbox.waiting(here, "reviewer")[0].text


def test_a_name_that_begins_several_sessions_or_is_nobodys_is_refused_unless_it_may_wait_for_its_agent(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ralf_integrations.health.look.known_ids", lambda root: {"abcd-1", "abcd-2", "efgh-1"})
    message = Message("me", "Look.")
    with pytest.raises(UsageError, match="abcd"):
        send(here, "abcd", message)
    assert send(here, "efgh", message)[0] == "efgh-1"
    assert send(here, "abcd-1", message)[0] == "abcd-1"
    with pytest.raises(NotFound, match="executor-7"):
        send(here, "executor-7", message)
    assert not inbox.waiting(here, "executor-7")
    assert send(here, "executor-7", message, waits=True)[0] == "executor-7"
