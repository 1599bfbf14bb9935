"""The package `ralf`: its names, what importing it loads, and that its functions stay functions."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import ralf
import storekit

HEAVY = ("click", "yaml", "tiktoken", "frontmatter", "regex", "sqlite3")


def python(code: str, tmp_path: Path) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=storekit.environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "own"), [("ralf", ["ralf.errors"]), ("ralf.api", ["ralf.api", "ralf.errors"])])
def test_an_import_loads_nothing_heavy_and_no_module_of_its_own_but_the_errors(
    tmp_path: Path, name: str, own: list[str]
) -> None:
    code = f"import sys, {name}\nprint([m for m in sys.modules if m.startswith('ralf.') or m in {HEAVY!r}])"
    assert sorted(ast.literal_eval(python(code, tmp_path))) == own


def test_the_api_has_every_verb_of_the_command_line() -> None:
    from ralf import api

    verbs = """
        get_context render list_routes status search why log diff context_at checkpoint watch
        record_decision revert undo drop take_in change use verify repair drop_evidence forget forget_route
        init uninstall switch accept_route find
        add_task edit_task split_task get_task list_tasks claim renew progress done fail release retry
        run_agent send_signal tail list_runs get_run retry_run cancel_run forget_run
    """.split()
    for verb in verbs:
        function = getattr(api, verb)
        assert inspect.isfunction(function), verb
        assert inspect.getdoc(function), verb
    assert inspect.iscoroutinefunction(api.run_agent_async)
    assert inspect.isclass(api.AgentRun)
    assert api.checkpoint is ralf.checkpoint
    with pytest.raises(AttributeError, match="nonesuch"):
        api.nonesuch  # noqa: B018


def test_every_name_that_is_promised_is_there_and_documented() -> None:
    for name in ralf.__all__:
        value = getattr(ralf, name)
        assert inspect.getdoc(value), name
    assert set(ralf.__all__) >= {
        "get_context", "list_routes", "checkpoint", "record_decision", "search", "RouteContext", "RouteSummary",
        "CheckpointReport", "Decision", "SearchHit", "errors",
    }  # fmt: skip
    with pytest.raises(AttributeError, match="nonesuch"):
        ralf.nonesuch  # noqa: B018


@pytest.mark.ci
def test_the_library_leaves_the_terminal_the_folder_and_the_environment_alone(tmp_path: Path) -> None:
    storekit.write_session(tmp_path / "s.jsonl", 500)
    code = """
import json, os, sys, ralf
before = dict(os.environ), os.getcwd()
ralf.checkpoint("one", "s.jsonl", root=".")
ralf.record_decision("one", "Two", root=".")
ralf.get_context("one", root=".").render(300)
ralf.list_routes(root="."); ralf.search("two", root=".")
assert before == (dict(os.environ), os.getcwd())
"""
    assert python(code, tmp_path) == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [".autonomous", "s.jsonl"]
