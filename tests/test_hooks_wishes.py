"""What a prompt asks for: a route by its exact name or id, or to go on; and what merely looks or sounds like it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from contexts import quick
from ralf_integrations.hooks.prompt_intent import GO_ON, Wish, is_request, read

pytestmark = pytest.mark.ci

ROUTES = (
    "TASK-001",
    "TASK-002",
    "api-refactoring",
    "default",
    "docs",
    "fix-the-login-form",
    "add-tests",
    "auth",
    "v1.2",
)
IDS = {"#41": {"api-refactoring"}, "proj-7": {"docs"}, "proj-8": {"docs", "auth"}}


def asked(prompt: str) -> Wish:
    return read(prompt, ROUTES, lambda: IDS)


@pytest.mark.parametrize(
    ("prompt", "route"),
    [
        ("Go on with TASK-001, please", "TASK-001"),
        ("task-002", "TASK-002"),
        ("what is left of `auth`?", "auth"),
        ("auth", "auth"),
        ("auth.", "auth"),
        ("carry on with API-Refactoring", "api-refactoring"),
        ("release v1.2.", "v1.2"),
        ("继续TASK-001", "TASK-001"),
        ("TASK-001を続けて", "TASK-001"),
        ("TASK-001을 계속해 줘", "TASK-001"),
        ("Task TASK-001: do it as in TASK-002", "TASK-001"),
        ("Continue with issue #41", "api-refactoring"),
        ("Weiter mit proj-7", "docs"),
        ("PROJ-7 and `docs`", "docs"),
    ],
)
def test_a_route_is_known_by_its_exact_name_or_id_in_any_case(prompt: str, route: str) -> None:
    assert (asked(prompt).kind, asked(prompt).route) == ("named", route)


@pytest.mark.parametrize(
    "prompt",
    [
        "use the default value here",
        "fix the docs",
        "resume auth",
        "continue with the docs",
        'the "auth" module',
        "please add tests for the parser",
        "open src/api-refactoring/main.py",
        "look at TASK-003",
        "compare TASK-001 with TASK-002",
        "compare TASK-001 with #41",
        "the authentication is broken",
        "see https://example.org/TASK-001/x",
        "run it with --TASK-001",
        "api-refactorng: what is next?",
        "please fix the login form now",
        "look at TASK-0010 and at XTASK-001, TASK-001-b, TASK-001_b and TASK-001é",
        "TASK-009: do it as in TASK-001",
        "Task TASK-009: do it as in TASK-001",
        "what of PROJ-8?",
        "PROJ-77, PROJ-7b, XPROJ-7, #411, x#41",
        "",
    ],
)
def test_words_that_are_like_a_name_or_name_several_name_none(prompt: str) -> None:
    assert asked(prompt).kind == ""


@pytest.mark.parametrize("prompt", [*sorted(GO_ON), "Continue.", "  GO ON!  ", "Weiter…"])
def test_a_prompt_that_is_nothing_but_a_word_for_go_on_asks_for_it(prompt: str) -> None:
    assert asked(prompt) == Wish("continue")
    assert not is_request(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "continue please, and run the tests first",
        "continue the loop after the error",
        "Please carry on with the tide table",
        "go on holiday",
        "weiter, aber nimm Port 8081",
        "continue-on-error must be false in the workflow",
        "hi",
    ],
)
def test_a_prompt_that_says_more_is_a_request_as_any_other(prompt: str) -> None:
    assert asked(prompt).kind == ""
    assert is_request(prompt)


@pytest.mark.parametrize(
    ("prompt", "route", "other"),
    [
        ("--load-context", "", ""),
        ("--load-context api-refactoring and go on", "api-refactoring", ""),
        ("first read it: --load-context=TASK-001.", "TASK-001", ""),
        ("--load-context fix the bug", "", ""),
        ("--load-context=unknown", "", "unknown"),
        ("--load-context TASK-009", "", "TASK-009"),
        ("--load-context ../../etc", "", ""),
    ],
)
def test_load_context_anywhere_names_a_route_or_means_the_own_one(prompt: str, route: str, other: str) -> None:
    wish = read(prompt, ROUTES)
    assert (wish.kind, wish.route, wish.other) == ("load", route, other)
    assert read(prompt.replace("--load", "x--load"), ROUTES).kind != "load"


@quick
@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=30), max_size=8))
def test_any_prompt_gets_an_answer_and_only_routes_that_there_are(prompt: str, routes: list[str]) -> None:
    for text in (prompt, f"continue {prompt}", f"--load-context {prompt}"):
        wish = read(text, routes)
        assert wish.route in (*routes, "")
