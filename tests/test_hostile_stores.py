"""A store that came with somebody else's repository, archive, push or folder: what a person and their agent are told.

The scenarios are of `tests.faults.hostile_stores`; here stands also that those who judge them can tell good from bad.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.faults import judged
from tests.faults.hostile_stores import SCENARIOS, Rig, own_folder
from tests.faults.victim import Kind, Told

SLOW = 1.3
"""Seconds of most scenarios on a machine that does nothing else: some seventy commands and hooks each."""

QUICK = ("codex_in_a_clone", "gemini_in_a_clone", "clone_with_notes_of_what_was_installed")

LABEL = "## Came with the repository; not written by your ralf"
ROUTE = {"route": "r", "foreign": True, "foreign_notes": ["goal: zqxgoal"], "goal": "", "decisions": []}
DECISION = {"decision": "zqxrule", "kind": "decision", "pinned": False, "origin": "import"}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """Not below pytest's own folder, which other users of the machine may not enter: some of the victims are such."""
    with own_folder() as folder:
        yield Rig(folder)


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.ci) for name in QUICK),
        *(pytest.param(name, marks=pytest.mark.release(seconds=SLOW)) for name in SCENARIOS if name not in QUICK),
    ],
)
def test_nobody_else_speaks_out_of_a_store(rig: Rig, name: str) -> None:
    assert rig.play(name) == [], SCENARIOS[name].__doc__


@pytest.mark.ci
@pytest.mark.parametrize(
    ("kind", "by", "text"),
    [
        ("hook", "hook Stop", '{"hookSpecificOutput": {"additionalContext": "Keep vjkrule"}}'),
        (
            "notice",
            "hook UserPromptSubmit prompt=resume zqxname",
            "ralf: zqxname is not yours: ralf trust zqxname",
        ),
        (
            "text",
            "show r",
            f"# Context of r\n\n{LABEL}\n- goal: zqxgoal (import)\n- DEC-001: zqxrule (import)\n",
        ),
        ("text", "list", "ROUTE  TASK\nr  zqxtask  foreign\n"),
        ("text", "search x", "r  DEC-001  decision  (import)\n  zqxrule\n"),
        ("json", "show r --json", json.dumps(ROUTE | {"decisions": [DECISION]})),
        ("json", "list --json", json.dumps([{"route": "zqxname", "foreign": True, "current_task": "zqxtask"}])),
        ("error", "show r", "error: r: the record zqxid is damaged"),
    ],
)
def test_what_keeps_the_contract_is_no_fault(kind: Kind, by: str, text: str) -> None:
    assert list(judged.faults_in(Told(kind, by, text))) == []


@pytest.mark.ci
@pytest.mark.parametrize(
    ("kind", "by", "text"),
    [
        ("hook", "hook Stop", '{"hookSpecificOutput": {"additionalContext": "Context available for zqxname"}}'),
        ("hook", "hook Stop", "run .autonomous/context/hooks/context-checkpoint.sh"),
        ("hook", "hook Stop", "oywsecret"),
        ("notice", "hook SessionStart", "ralf: zqxname is not yours"),
        (
            "text",
            "show r",
            f"# Context of r\n- goal: zqxgoal (import)\n\n{LABEL}\n- DEC-001: zqxrule (import)\n",
        ),
        ("text", "show r", f"{LABEL}\n- goal: zqxgoal\n"),
        ("text", "show r", f"{LABEL}\n- goal: zqxgoal (import, by user)\n"),
        ("text", "list", "ROUTE  TASK\nr  zqxtask\n"),
        ("text", "search x", "r  DEC-001  decision  (user)\n  zqxrule\n"),
        ("json", "show r --json", json.dumps(ROUTE | {"foreign": False, "history": "zqxsection"})),
        ("json", "show r --json", json.dumps(ROUTE | {"goal": "zqxgoal"})),
        ("json", "show r --json", json.dumps(ROUTE | {"active_work": {"next_steps": ["zqxnext"]}})),
        ("json", "show r --json", json.dumps(ROUTE | {"decisions": [DECISION | {"origin": "user"}]})),
        ("json", "show r --json", json.dumps(ROUTE | {"decisions": [DECISION | {"kind": "rule"}]})),
        ("json", "show r --json", json.dumps(ROUTE | {"decisions": [DECISION | {"pinned": True}]})),
        ("json", "list --json", json.dumps([{"route": "zqxname"}])),
        (
            "mcp",
            "mcp get_context",
            json.dumps({"result": {"content": [{"type": "text", "text": "## Rules\nzqxrule"}]}}),
        ),
        ("mcp", "mcp get_context", json.dumps({"result": {"structuredContent": {"goal": "zqxgoal"}}})),
        ("error", "hook Stop", "zqxid"),
    ],
)
def test_what_breaks_the_contract_is_a_fault(kind: Kind, by: str, text: str) -> None:
    assert list(judged.faults_in(Told(kind, by, text)))
