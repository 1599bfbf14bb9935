"""Forty pairs of similar requests share no route, and thirty wordings of "continue" with an id find its route."""

from __future__ import annotations

import pytest

from promises.conftest import user as user
from promises.test_routes import killed, words_of
from promises.user import User

pytestmark = pytest.mark.ci

THINGS = (
    *(("login page", "logout page"), ("mail queue", "map tiles"), ("CSV files", "TSV files"), ("import", "export")),
    *(("user service", "order service"), ("table users", "table orders"), ("menu bar", "tool bar"), ("v1", "v2")),
)
REQUESTS = (
    *("Add tests for the {}", "rewrite the {} so that it survives a restart", "Schreibe Tests für: {}"),
    *("fix the crash in the {} of photos", "Añade pruebas para {}"),
)
WISHES = (
    *("Continue with {}", "Please continue working on {}", "Keep going with {}", "Continue {}", "{}"),
    *("Resume task {}", "Pick up {} where we left off", "Finish {}", "let's get back to {}", "{}, please"),
    *("Weiter mit {}", "Mach bitte mit {} weiter", "Reprends {}", "On continue {} là où on s'est arrêtés"),
    *("Sigue con {}", "Continúa {} por favor", "Continua com {}", "Riprendi {}", "Ga verder met {}", "Kontynuuj {}"),
    *("Продолжай {}", "Продовжуй роботу над {}", "{} ile devam et", "继续 {}", "请接着做{}", "{}を続けて"),
    *("{}을 계속해 줘", "استمر في {}", "{} जारी रखें", "Tiếp tục {}"),
)


def test_of_forty_pairs_of_similar_requests_none_share_a_route_or_a_brief(user: User) -> None:
    pairs = [(request.format(one), request.format(other)) for request in REQUESTS for one, other in THINGS]
    assert len(pairs) == 40
    mixed = []
    for first, second in pairs:
        before, after = user.session(), user.session()
        before.starts(first, killed=True, settle=False)
        handed = after.handed("UserPromptSubmit", prompt=second, killed=True, settle=False)
        if handed or before.route == after.route:
            mixed.append(second)
    assert mixed == []


def test_thirty_wordings_of_continue_with_an_id_in_many_languages_all_mean_the_task_of_that_id(user: User) -> None:
    wanted, _ = killed(user, "TASK-041: Store the levels"), killed(user, "TASK-042: Serve the levels")
    assert len(WISHES) == 30
    wrong = {}
    for wish in WISHES:
        session = user.session()
        handed = session.handed("UserPromptSubmit", prompt=wish.format("TASK-041"), killed=True, settle=False)
        if session.route != wanted.route or words_of("TASK-041: Store the levels") not in handed:
            wrong[wish] = session.route
    assert wrong == {}


def test_a_session_never_leaves_its_route_by_itself(user: User) -> None:
    killed(user, "TASK-041: Store the levels")
    session = user.session()
    session.begins("Draw new icons for the harbours")
    session.edits("src/icons.py")
    session.hook("PostToolBatch")
    route = session.route
    agent = {"CLAUDE_CODE_SESSION_ID": session.id, "CLAUDECODE": "1"}
    user.git("checkout", "-q", "-b", "tide-table")
    for prompt in ("Continue with TASK-041", "continue", "Task TASK-041: do it now", "tide-table"):
        session.handed("UserPromptSubmit", prompt=prompt)
        session.says(prompt)
        user.does("show", "task-041-store-the-levels", env=agent)
        session.hook("PostToolBatch")
        assert session.route == route, prompt
