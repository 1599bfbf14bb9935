"""Reading: points in time, the route that is meant, completion."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import ralf
import storekit
from ralf_cli import options

pytestmark = pytest.mark.ci

NOW = datetime(2026, 11, 27, 12, 0, 0, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2d", "2026-11-25T10:00:00Z"),
        ("12h", "2026-11-26T22:00:00Z"),
        ("30m", "2026-11-27T09:30:00Z"),
        ("1w", "2026-11-20T10:00:00Z"),
        ("today", "2026-11-26T22:00:00Z"),
        ("Yesterday", "2026-11-25T22:00:00Z"),
        ("2026-11-20T14:00:00Z", "2026-11-20T14:00:00Z"),
        ("2026-11-20T14:00+05:00", "2026-11-20T09:00:00Z"),
        ("soon", None),
        ("", None),
        ("2 years", None),
    ],
)
def test_an_age_or_a_date_is_a_time_in_utc(text: str, meant: str | None) -> None:
    assert options.moment(text, NOW) == meant


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose route has forty decisions; `made` is a copy of it."""
    root = tmp_path_factory.mktemp("forty")
    for number in range(40):
        ralf.record_decision("tide", f"Decision number {number}", rationale="it has to be", root=root)
    return root


@pytest.fixture
def made(forty: Path, tmp_path: Path) -> Path:
    return storekit.copied(forty, tmp_path, dirs_exist_ok=True)


def test_since_keeps_what_is_newer_in_log_list_and_search(made: Path) -> None:
    for command in (("log", "tide"), ("list",), ("search", "number")):
        assert storekit.process(*command, "--since", "1h", "--json", cwd=made).json() != []
        assert storekit.process(*command, "--since", "2099-01-01", "--json", cwd=made).json() == []
        assert storekit.process(*command, "--since", "soon", cwd=made).status == 2


def test_a_search_for_newer_words_looks_behind_older_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest are not the best."""
    with monkeypatch.context() as past:
        past.setattr("ralf.route.corrections.utc_now", lambda: "2020-01-01T00:00:00Z")
        for number in range(30):
            ralf.record_decision("old", f"Log tides {number}", root=tmp_path)
    ralf.record_decision("old", "Also: mark where the tides of the other harbour are", root=tmp_path)
    found = storekit.process("search", "tides", "--since", "1d", "-n", "2", "--json", cwd=tmp_path).json()
    assert [hit["id"] for hit in found] == ["DEC-031"]


# ---- the route that is meant ----


def test_the_only_route_is_the_one_that_a_person_means_and_no_agent(made: Path) -> None:
    ran = storekit.process("log", "-n", "1", cwd=made)
    assert (ran.status, "tide" in ran.err) == (0, True)
    assert storekit.process("log", cwd=made, CLAUDE_CODE_SESSION_ID="s-1").status == 2
    ralf.record_decision("gates", "Open the gates", root=made)
    assert storekit.process("log", cwd=made).status == 2


# ---- completion ----


def completed(root: Path, words: str, **more: str) -> list[str]:
    """What bash offers behind these words, the last of which is being typed."""
    typed = words.split(" ")
    ran = storekit.process(
        cwd=root,
        _RALF_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(typed) - 1),
        **more,
    )
    assert (ran.status, ran.err) == (0, ""), ran
    return [line.partition(",")[2] for line in ran.out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ralf sho", ["show"]),
        ("ralf show ti", ["tide"]),
        ("ralf show TI", ["tide"]),
        ("ralf search x --route t", ["tide"]),
        ("ralf schema c", ["config", "config.local"]),
        ("ralf show none-of-that-name", []),
    ],
)
def test_a_shell_completes_commands_and_routes(made: Path, words: str, offered: list[str]) -> None:
    assert completed(made, words) == offered
