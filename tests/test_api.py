"""The package `ralf`: its names, what importing it loads, and that its functions stay functions."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ralf
import storekit

EXAMPLE = Path(__file__).parents[1] / "examples" / "session.jsonl"
HEAVY = ("click", "yaml", "tiktoken", "frontmatter", "rich", "regex", "sqlite3")


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


def test_importing_ralf_loads_nothing_heavy(tmp_path: Path) -> None:
    found = python(f"import sys, ralf\nprint([m for m in {HEAVY!r} if m in sys.modules])", tmp_path)
    assert found == "[]\n"


def test_importing_ralf_loads_no_module_of_its_own_but_the_errors(tmp_path: Path) -> None:
    found = python("import sys, ralf\nprint(sorted(m for m in sys.modules if m.startswith('ralf.')))", tmp_path)
    assert found == "['ralf.errors']\n"


def test_errors_are_reachable_after_import_ralf(tmp_path: Path) -> None:
    assert python("import ralf\nprint(ralf.errors.RouteNotFound.exit_status)", tmp_path) == "3\n"


def test_a_list_loads_neither_yaml_nor_the_tokenizer(tmp_path: Path) -> None:
    ralf.record_decision("tide", "One", root=tmp_path)
    code = f"import sys, ralf\nralf.list_routes(root='.')\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    assert python(code, tmp_path) == "[]\n"


def test_a_read_within_a_budget_loads_neither_yaml_nor_the_tokenizer(tmp_path: Path) -> None:
    ralf.record_decision("tide", "One", root=tmp_path)
    code = (
        "import sys, ralf\nralf.get_context('tide', root='.').render(500)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert python(code, tmp_path) == "[]\n"


def test_a_checkpoint_with_nothing_new_loads_neither_summariser_nor_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_bytes(b"".join(EXAMPLE.read_bytes().splitlines(keepends=True)[:20]))
    assert ralf.checkpoint("tide", tmp_path / "talk.jsonl", root=tmp_path).checkpoints
    code = (
        "import sys, ralf\nassert not ralf.checkpoint('tide', 'talk.jsonl', root='.').checkpoints\n"
        "print([m for m in ('ralf.checkpointing.record', 'ralf.redact.redactor', 'ralf.summarize.extractive',"
        " 'tiktoken') if m in sys.modules])"
    )
    assert python(code, tmp_path) == "[]\n"


FIRST = (
    "import ralf.checkpointing.due",
    "import ralf.finding.search",
    "from ralf.checkpointing.flow import CheckpointReport",
    "from ralf import checkpoint",
    "from ralf import search",
    "import ralf.finding.search_index",
    "import ralf.checkpointing.progress",
    "import importlib; importlib.import_module('ralf.checkpointing'); importlib.import_module('ralf.finding')",
    "ralf.checkpoint",
    "ralf.search",
)


@pytest.mark.parametrize(
    "order", [*((one,) for one in FIRST), *itertools.islice(itertools.permutations(FIRST, 3), 0, None, 240)]
)
def test_checkpoint_and_search_are_functions_whatever_was_imported_first(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    code = "\n".join(
        ["import ralf", *order, "import ralf", "print(type(ralf.checkpoint).__name__, type(ralf.search).__name__)"]
    )
    assert python(code, tmp_path) == "function function\n"


def test_the_modules_can_still_be_imported_by_name(tmp_path: Path) -> None:
    code = (
        "import ralf, sys\nfrom ralf.checkpointing import flow\nfrom ralf.finding.search import SearchHit\n"
        "print(flow.checkpoint is ralf.checkpoint, ralf.SearchHit is SearchHit)"
    )
    assert python(code, tmp_path) == "True True\n"


def test_the_former_name_of_the_summarisers_still_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"ralf\.summarize\b"):
        former = importlib.import_module("ralf.summarizers")
    assert former.Summary is importlib.import_module("ralf.summarize").Summary


CORE = Path(ralf.__file__).parent
BY_NAME = {"extensions.py", "environment.py"}  # entry points of others; the module that a background process runs


def imports_of(tree: ast.Module) -> list[tuple[str, str]]:
    """(module, name) of each import, and (function, "") of each call that may import by a string."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found += [(node.module or "", each.name) for each in node.names]
        elif isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names]
        elif isinstance(node, ast.Call):
            found.append((getattr(node.func, "attr", getattr(node.func, "id", "")), ""))
    return found


def test_no_core_module_imports_what_the_package_re_exports_or_imports_by_a_string() -> None:
    exported = {("ralf", name) for name in {*ralf.__all__, "api"} - {"errors"}} | {("ralf", "")}
    by_string = {("import_module", ""), ("__import__", "")}
    suspect = re.compile(r"\b(from|import)\b.*\bralf\b(?!\.)|import_module|__import__")  # others need not be parsed
    for path in sorted(CORE.rglob("*.py")):
        name = path.relative_to(CORE).as_posix()
        source = path.read_text()
        found = set(imports_of(ast.parse(source))) if suspect.search(source) else set()
        assert not found & exported - ({("ralf", "api")} if name == "__init__.py" else set()), name
        assert name in BY_NAME or not found & by_string, name


def test_the_api_has_every_verb_of_the_command_line() -> None:
    from ralf import api

    verbs = """
        get_context render list_routes status search why log diff context_at loss_reports checkpoint watch
        record_decision revert drop open_file take_in change use verify repair archive prune forget forget_route
        init uninstall switch accept_route find
        add_task edit_task split_task get_task list_tasks trust_tasks claim renew progress done fail release retry
        run_agent send_signal tail list_runs get_run retry_run cancel_run forget_run
    """.split()
    for verb in verbs:
        function = getattr(api, verb)
        assert inspect.isfunction(function), verb
        assert inspect.getdoc(function), verb
    assert inspect.iscoroutinefunction(api.run_agent_async)
    assert inspect.isclass(api.AgentRun)
    assert api.checkpoint is ralf.checkpoint
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        api.nonesuch  # noqa: B018


def test_importing_the_api_loads_no_other_module_of_its_own_but_the_errors(tmp_path: Path) -> None:
    code = "import sys, ralf.api\nprint(sorted(m for m in sys.modules if m.startswith('ralf.')))"
    assert python(code, tmp_path) == "['ralf.api', 'ralf.errors']\n"


def test_every_name_that_is_promised_is_there_and_documented() -> None:
    for name in ralf.__all__:
        value = getattr(ralf, name)
        assert inspect.getdoc(value), name
    assert set(ralf.__all__) >= {
        "get_context", "list_routes", "checkpoint", "record_decision", "search", "RouteContext", "RouteSummary",
        "CheckpointReport", "Decision", "SearchHit", "errors",
    }  # fmt: skip
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        ralf.nonesuch  # noqa: B018


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("get_context", ["route", "root", "max_tokens", "query"]),
        ("list_routes", ["root"]),
        ("checkpoint", ["route", "transcript", "root", "summarizer", "reason"]),
        ("record_decision", ["route", "decision", "rationale", "alternatives", "supersedes", "origin", "root"]),
        ("search", ["query", "route", "root", "limit"]),
    ],
)
def test_the_signatures_are_those_of_the_contract(name: str, parameters: list[str]) -> None:
    """More keywords may follow, none may be missing or become positional."""
    signature = inspect.signature(getattr(ralf, name)).parameters
    assert [found for found in signature if found in parameters] == parameters
    for found, parameter in signature.items():
        positional = (
            found in ("route", "transcript", "decision", "query") and parameter.default is inspect.Parameter.empty
        )
        assert parameter.kind is (
            inspect.Parameter.POSITIONAL_OR_KEYWORD if positional else inspect.Parameter.KEYWORD_ONLY
        ), found


def test_values_of_the_api_cannot_be_changed(tmp_path: Path) -> None:
    from dataclasses import FrozenInstanceError

    decision = ralf.record_decision("tide", "One", root=tmp_path)
    with pytest.raises(FrozenInstanceError):
        decision.decision = "Two"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        ralf.get_context("tide", root=tmp_path).goal = "x"  # type: ignore[misc]


def test_a_path_may_be_text_or_a_path_object(tmp_path: Path) -> None:
    storekit.write_session(tmp_path / "s.jsonl", 500)
    assert len(ralf.checkpoint("one", str(tmp_path / "s.jsonl"), root=str(tmp_path)).checkpoints) == 1
    assert len(ralf.checkpoint("two", tmp_path / "s.jsonl", root=tmp_path).checkpoints) == 1


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


def test_a_context_of_one_process_is_json_under_the_names_of_the_api(tmp_path: Path) -> None:
    ralf.record_decision("tide", "One", root=tmp_path)
    found = json.loads(storekit.process("context", "show", "tide", "--json", cwd=tmp_path).out)
    context = ralf.get_context("tide", root=tmp_path)
    for name, value in found.items():
        assert hasattr(context, name), name
        if isinstance(value, (str, int)):
            assert getattr(context, name) == value


def test_former_names_of_documented_functions_still_work() -> None:
    from ralf_integrations import inbox

    assert inbox.told is inbox.rendered
