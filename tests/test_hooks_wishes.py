"""What a prompt asks for: a route by its name, or to go on; and what merely sounds like it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from clocks import within
from contexts import quick
from ralf_integrations.hooks.prompt_intent import Wish, is_request, read

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


@pytest.mark.parametrize(
    ("prompt", "route"),
    [
        ("Go on with TASK-001, please", "TASK-001"),
        ("task-002", "TASK-002"),
        ("what is left of `auth`?", "auth"),
        ("resume auth", "auth"),
        ("auth", "auth"),
        ("continue with the docs", "docs"),
        ("load route docs and tell me what is missing", "docs"),
        ("carry on with the api refactoring", "api-refactoring"),
        ("api-refactorng: what is next?", "api-refactoring"),
        ("please fix the login form now", "fix-the-login-form"),
        ("release v1.2.", "v1.2"),
    ],
)
def test_a_route_is_known_by_its_name_or_by_words_that_are_clearly_it(prompt: str, route: str) -> None:
    assert (read(prompt, ROUTES).kind, read(prompt, ROUTES).route) == ("named", route)


@pytest.mark.parametrize(
    "prompt",
    [
        "use the default value here",
        "fix the docs",
        "please add tests for the parser",
        "open src/api-refactoring/main.py",
        "look at TASK-003",
        "compare TASK-001 with TASK-002",
        "the authentication is broken",
        "see https://example.org/TASK-001/x",
        "run it with --TASK-001",
        "",
    ],
)
def test_words_that_only_sound_like_a_route_are_none(prompt: str) -> None:
    assert read(prompt, ROUTES).kind == ""


def test_of_two_names_that_are_as_close_none_is_taken() -> None:
    assert read("api-refactoring-old-x", ("api-refactoring-old-a", "api-refactoring-old-b")).kind == ""
    assert read("api-refactoring-old-x", ("api-refactoring-old-a", "unlike")).route == "api-refactoring-old-a"


@pytest.mark.parametrize(
    "prompt",
    [
        "continue",
        "Continue.",
        "please resume",
        "carry on",
        "go on where we left off",
        "continue with step 7",
        "Keep going!",
        "ok, continue",
        "resume the previous session",
        "where were we?",
        "Can you pick up where you left off?",
        "proceed",
        "I want you to continue where we left off",
        "continue from the last checkpoint please",
        "continue please, and run the tests first",
        "Let's continue. Run the tests first, then commit what is whole.",
        "continue but use port 8081",
        *("weiter", "mach bitte weiter", "weiter, aber nimm Port 8081", "Mach da weiter, wo wir aufgehört haben"),
        *("continúa por favor", "on reprend", "vas-y", "continua", "ga verder", "kontynuuj", "fortsätt", "devam et"),
        *("продолжай", "继续", "请继续", "続けてください", "계속", "استمر"),
    ],
)
def test_the_wish_to_go_on_is_understood(prompt: str) -> None:
    assert read(prompt, ROUTES) == Wish("continue")


@pytest.mark.parametrize(
    ("prompt", "about"),
    [
        ("Please carry on with the tide table", "the tide table"),
        ("continue working on the gauge importer, and be quick", "the gauge importer"),
        ("Resume work on the importer", "the importer"),
        ("weiter mit der Gezeitentafel", "der Gezeitentafel"),
    ],
)
def test_a_wish_to_go_on_says_with_what(prompt: str, about: str) -> None:
    assert read(prompt, ROUTES) == Wish("continue", about=about)


@pytest.mark.parametrize(
    "prompt",
    [
        *("hi", "Hello there!", "Guten Morgen", "ok", "¿qué tal?", "你好", "What's next?", "let's go", "hajde dalje"),
        *("continue", "/compact keep it", "ralf context show TASK-1", "ralf status", "--load-context=TASK-009"),
    ],
)
def test_what_names_no_subject_is_no_request(prompt: str) -> None:
    assert not is_request(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        *("fix login", "add tests", "src/x.py", "explain how tides work", "修正登录表单的错误并运行测试"),
        *("zeig mir die Gezeitentafel", "ralf context grows too fast", "ralf should say why", "what about port 8081?"),
    ],
)
def test_what_says_what_it_is_about_is_a_request_however_short(prompt: str) -> None:
    assert is_request(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "continue the loop after the error",
        "resume the upload when the network fails",
        "go on holiday",
        "continue; rm -rf x",
        "Please continue the loop after the error. " * 4,
        "The loop must continue",
        "proceed to the checkout page",
        "continue-on-error must be false in the workflow",
        "Resume parser crashes on page two",
        "Weiter-Button fehlt auf der zweiten Seite",
        "add a continue statement",
        "keep going fast in the tests",
    ],
)
def test_an_order_that_begins_with_the_same_word_is_no_wish_to_go_on(prompt: str) -> None:
    assert read(prompt, ROUTES).kind == ""


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


def test_a_long_prompt_beside_a_thousand_routes_takes_no_time() -> None:
    routes = [f"part-{n}-of-{'abcdefgh'[n % 8]}-table" for n in range(1_000)]
    routes += [
        f"{'abcdefgh'[n % 8] * 3}-{'xyz'[n % 3]}-{n:x}table".translate({48 + d: 103 + d for d in range(10)})
        for n in range(999)
    ]
    prompts = ("some words of a table reader abc " * 9_000, "x" * 900_000, "please " * 90_000, "- " * 90_000)
    within(3, lambda: [read(prompt, routes) for prompt in prompts])
