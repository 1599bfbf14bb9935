"""What of a memory is handed over for a task: what concerns it, the most valuable first, within the tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import storekit
from ralf.memory import selection, writing
from ralf.memory.family import Delta, new_item
from ralf.memory.selection import for_task
from ralf.project import Project, find
from ralf.text import tokens

SERVICES = "harbour ledger invoice parcel customs beacon granary tariff".split()
TOOLS = "terraform ansible helm gradle bazel sphinx alembic celery".split()


def distractors(count: int) -> list[Delta]:
    """Traps of other parts of a project."""
    return [
        new_item(
            "trap",
            command=f"{TOOLS[n % 8]} deploy {SERVICES[n // 8 % 8]}-{n}",
            error=f"Error: quota {n} of {SERVICES[n % 8]} exceeded",
            resolution=f"{TOOLS[n % 8]} prune --older {n}",
            origin="mechanical",
            uses=1 + n % 3,
        )
        for n in range(count)
    ]


def trap(command: str, error: str, resolution: str, **more: object) -> Delta:
    return new_item("trap", command=command, error=error, resolution=resolution, origin="mechanical", uses=1, **more)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    own = [
        trap("npm test", "connect ECONNREFUSED 127.0.0.1:6379", "docker compose up -d redis"),
        trap("make docs", "mkdocs: plugin 'awesome-pages' not installed", "pip install -r docs/requirements.txt"),
        new_item("preference", key="indent", value="tabs", origin="person"),
        new_item("command", command="npm test", purpose="test", origin="mechanical", routes=("a",)),
    ]
    writing.record(find(root), "main", [*distractors(300), *own])
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Project:
    return find(storekit.copied(made, tmp_path, dirs_exist_ok=True))


def labels(found: selection.Selection) -> list[str]:
    return [item.id for item in found.items]


@pytest.mark.ci
@pytest.mark.parametrize(
    ("task", "resolution"),
    [
        ("Run npm test and repair what fails in the session store", "docker compose up -d redis"),
        ("redis refuses the connection", "docker compose up -d redis"),
        ("Write a page for docs/requirements.txt and the plugin of mkdocs", "docs/requirements.txt"),
    ],
)
def test_the_trap_that_a_task_touches_stands_first_among_traps(project: Project, task: str, resolution: str) -> None:
    found = for_task(project, "main", task)
    assert found.tokens == tokens.count(found.text) <= 600
    traps = [item for item in found.items if item.kind == "trap"]
    assert resolution in traps[0].resolution
    assert found.text.count(resolution) == 1


@pytest.mark.ci
def test_a_text_that_has_no_room_for_all_says_how_many_are_left_out(project: Project) -> None:
    task = "Prune the quota of terraform and ansible: deploy harbour, ledger, invoice and parcel again"
    found = for_task(project, "main", task)
    assert found.left > 0
    assert f"({found.left:,} of less value left out: ralf memory show --for" in found.text
    more = for_task(project, "main", task, tokens=5_000)
    assert found.tokens <= 600 < more.tokens <= 5_000
    assert len(more.items) + more.left == len(found.items) + found.left
    assert labels(more)[: len(found.items) // 2] == labels(found)[: len(found.items) // 2]


@pytest.mark.ci
def test_what_is_offered_or_has_expired_is_never_handed_over(project: Project) -> None:
    old = new_item("fact", text="The quay of redis is closed", origin="person", expires="2026-01-31")
    offered = new_item("fact", text="The quay of redis is open", origin="agent")
    writing.record(project, "main", [old, offered])
    found = for_task(project, "main", "the quay of redis", now=datetime(2026, 2, 1, tzinfo=UTC))
    assert "quay" not in found.text
    before = for_task(project, "main", "the quay of redis", now=datetime(2026, 1, 31, tzinfo=UTC))
    assert "is closed" in before.text
    assert "is open" not in before.text


def test_a_command_that_one_task_needed_is_handed_to_a_task_that_names_it_alone(tmp_path: Path) -> None:
    project = find(tmp_path)
    learned = new_item("command", command="python -m mypy", purpose="lint", origin="mechanical", routes=("a",))
    writing.record(project, "main", [learned])
    assert [item.command for item in for_task(project, "main", "mypy").items] == ["python -m mypy"]
    assert not for_task(project, "main", "the harbour").items


WORDS = st.lists(st.sampled_from([*SERVICES, *TOOLS, "npm", "test", "redis", "quota", "🙂", "<!--"]), max_size=20)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = find(tmp_path_factory.mktemp("shared"))
    writing.record(made, "main", distractors(60))
    return made


@pytest.mark.ci
@settings(max_examples=25, deadline=None)
@given(task=WORDS, most=st.integers(0, 900))
def test_no_text_is_larger_than_the_tokens_that_are_asked_for(shared: Project, task: list[str], most: int) -> None:
    found = for_task(shared, "main", " ".join(task), tokens=most)
    assert found.tokens == tokens.count(found.text) <= most
