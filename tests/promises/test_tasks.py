"""Tasks: files that a person edits and moves, each done once, by whoever has claimed it."""

from __future__ import annotations

import re
import time

import pytest

from kit import command
from promises.user import TASKS, User

pytestmark = pytest.mark.ci


def agent(name: str, **more: str) -> dict[str, str]:
    """The environment of an agent of this name."""
    return {"RALF_AGENT": name, **more}


def test_a_task_is_one_markdown_file_whose_words_a_person_changes(user: User) -> None:
    id_ = user.adds("Store the levels")
    user.edit(
        user.task_file(id_), "# Store the levels", "# Store the levels in SQLite\n\nKeep the harbour's own units."
    )
    assert user.task(id_)["task"]["title"] == "Store the levels in SQLite"
    user.does("task", "done", "one table", "--task", id_)
    assert user.task_file(id_).parent.name == "completed"
    assert "Keep the harbour's own units." in user.task_file(id_).read_text()


def test_the_status_counts_open_tasks_and_names_a_task_file_with_marks_of_a_conflict(user: User) -> None:
    assert "tasks" not in user.does("status").out
    first = user.adds("Store the levels")
    user.adds("Draw the levels", "--after", first)
    [line] = [one for one in user.does("status").lines if one.startswith("tasks")]
    assert "2 open" in line and "1 ready" in line and "ralf task list" in line
    user.edit(user.task_file(first), "# Store", "<<<<<<< HEAD\n# Store\n=======\n# Keep\n>>>>>>> theirs\n# Store")
    for verb, status in (("status", 4), ("doctor", 1)):
        ran = user.ralf(verb)
        assert ran.status == status and first in ran.out + ran.err, ran


def test_no_task_is_named_for_another_whose_random_id_begins_alike(user: User) -> None:
    user.adds("Store the levels", "--id", "TASK-v0fk")
    assert "TASK-v0fk" not in user.ralf("task", "show", "TASK-7k3q").err
    assert "TASK-v0fk" in user.ralf("task", "show", "TASK-v0fl").err


@pytest.mark.parametrize(("folder", "said"), [("completed", "completed"), ("cancelled", "cancelled")])
def test_a_person_closes_a_task_by_moving_its_file(user: User, folder: str, said: str) -> None:
    id_ = user.adds("Store the levels")
    (user.project / TASKS / folder).mkdir(exist_ok=True)
    user.task_file(id_).rename(user.project / TASKS / folder / f"{id_}.md")
    assert user.status_of(id_) == said
    user.adds("Draw the levels")
    assert user.task_file(id_).parent.name == folder


def test_a_person_opens_a_task_again_by_moving_its_file(user: User) -> None:
    id_ = user.adds("Store the levels")
    user.does("task", "done", "one table", "--task", id_)
    user.task_file(id_).rename(user.project / TASKS / "active" / f"{id_}.md")
    assert user.status_of(id_) == "pending"
    assert user.does("task", "claim", "--json").json()["task"]["id"] == id_


def test_of_sixteen_agents_that_claim_one_task_at_once_one_gets_it_and_the_others_hear_who(user: User) -> None:
    id_ = user.adds("Store the levels")
    agents = [user.start("task", "claim", id_, env=agent(f"agent-{number}")) for number in range(16)]
    ended = [(one.communicate(timeout=command.HANGS)[1].decode(), one.returncode) for one in agents]
    assert sorted(code or 0 for _, code in ended) == [0] + [5] * 15, ended
    holder = user.task(id_)["claim"]["by"]
    assert all(f"error: {id_}: " in err and holder in err for err, code in ended if code)


def test_a_claimed_task_is_refused_to_others_with_its_holder_and_is_done_by_its_holder_alone(user: User) -> None:
    id_ = user.adds("Store the levels")
    user.does("task", "claim", id_, env=agent("first"))
    user.ralf("task", "claim", id_, env=agent("second")).complains(5, id_, "first")
    user.ralf("task", "done", "mine now", "--task", id_, env=agent("second")).complains(5, id_, "first")
    assert user.status_of(id_) == "pending"
    user.does("task", "done", "one table", "--task", id_, env=agent("first"))
    assert user.status_of(id_) == "completed"


def test_the_claim_of_an_agent_that_fell_silent_is_free_and_its_lease_completes_nothing(user: User) -> None:
    id_ = user.adds("Store the levels")
    lease = user.does("task", "claim", id_, "--lease", "1s", "--json", env=agent("first")).json()["lease"]
    end = time.monotonic() + command.HANGS
    while (ran := user.ralf("task", "claim", id_, env=agent("second"))).status == 5:
        assert time.monotonic() < end
        time.sleep(0.25)
    assert ran.status == 0, ran
    user.ralf("task", "done", "late", env=agent("first", RALF_LEASE=lease)).complains(5, id_, "second")
    assert user.status_of(id_) == "pending"


def test_a_task_waits_for_those_that_it_comes_after(user: User) -> None:
    first = user.adds("Fix the parser", "--priority", "1")
    then = user.adds("Publish the release", "--after", "Fix the parser", "--priority", "10")
    user.ralf("task", "claim", then).complains(3, then, first)
    assert user.does("task", "claim", "--json").json()["task"]["id"] == first
    user.does("task", "done", "fixed", "--task", first)
    assert user.does("task", "claim", "--json").json()["task"]["id"] == then


def test_a_task_that_waits_cannot_be_completed_unasked(user: User) -> None:
    first = user.adds("Fix the parser")
    then = user.adds("Publish the release", "--after", "Fix the parser")
    ran = user.ralf("task", "done", "released", "--task", then)
    assert user.status_of(then) == "pending"
    ran.complains(5, then, first)


def test_a_task_is_done_only_if_its_command_passes(user: User) -> None:
    user.has_typed("init", "--verify-commands", "--yes")
    id_ = user.adds("Store the levels", "--verify", "test -f levels.db")
    user.does("task", "claim", id_)
    user.ralf("task", "done", "stored", "--task", id_).complains(1, id_)
    assert user.status_of(id_) == "pending"
    (user.project / "levels.db").touch()
    user.does("task", "done", "stored", "--task", id_)
    said = user.task(id_)
    assert (said["task"]["status"], said["evidence"]["state"]) == ("completed", "verified")


def test_no_command_of_a_task_runs_before_a_person_has_allowed_it(user: User) -> None:
    ran = user.project / "ran"
    id_ = user.adds("Store the levels", "--verify", f"touch {ran}")
    user.does("task", "done", "stored", "--task", id_)
    assert not ran.exists()
    assert user.task(id_)["evidence"]["state"] != "verified"


def test_a_command_that_an_edit_of_the_file_brought_runs_only_after_it_was_accepted(user: User) -> None:
    user.has_typed("init", "--verify-commands", "--yes")
    ran, ids = user.project / "ran", [user.adds("Store the levels", "--verify", "true") for _ in range(2)]
    for id_ in ids:
        path = user.task_file(id_)
        path.write_text(path.read_text().replace('verify: "true"', f'verify: "touch {ran}"'))
        assert "not run" in user.does("task", "show", id_).out
    user.does("task", "claim", ids[0])
    user.does("task", "done", "stored", "--task", ids[0])
    assert not ran.exists()
    assert f"ralf task edit {ids[0]} --verify" in user.task(ids[0])["evidence"]["output"]
    user.does("task", "edit", ids[1], "--verify", f"touch {ran}")
    user.does("task", "done", "stored", "--task", ids[1])
    assert ran.exists()
    assert user.task(ids[1])["evidence"]["state"] == "verified"


def test_a_task_that_is_split_hands_no_command_of_an_edit_to_its_parts(user: User) -> None:
    user.has_typed("init", "--verify-commands", "--yes")
    ran, id_ = user.project / "ran", user.adds("Store the levels", "--verify", "true")
    user.edit(user.task_file(id_), 'verify: "true"', f'verify: "touch {ran}"')
    parts = user.does("task", "edit", id_, "--into", "Read", "--into", "Write", "--json").json()
    user.does("task", "done", "read", "--task", parts[0]["task"]["id"])
    user.does("task", "done", "written", "--task", parts[1]["task"]["id"])
    assert not ran.exists()


def test_a_completion_that_was_killed_anywhere_is_whole_or_did_not_happen_and_its_agent_completes_it(
    user: User,
) -> None:
    ids = [f"TASK-{number}" for number in range(7)]
    for id_ in ids:
        user.adds("Store a table", "--id", id_)
    done = ("task", "done", "stored", "--task")
    counted = user.start(*done, ids[0], fault=(0, 0))
    counted.communicate(timeout=command.HANGS)
    calls: int = counted.calls  # type: ignore[union-attr]
    assert calls > 6
    for number, id_ in enumerate(ids[1:]):
        user.does("task", "claim", id_)
        user.ralf(*done, id_, fault=(1 + number * calls // 6, -9))
        assert user.ralf("task", "claim", id_, env=agent("other")).status != 0
        user.does(*done, id_)
        assert (user.status_of(id_), user.task_file(id_).parent.name) == ("completed", "completed")


def test_a_task_of_an_agent_whose_client_names_no_session_is_not_the_users(user: User) -> None:
    ours, theirs = user.adds("Store the levels"), user.does("task", "add", "Draw the levels", env={"CLAUDECODE": "1"})
    assert not user.task(ours)["task"]["created_by"].startswith("agent@")
    assert user.task(theirs.out.split()[0])["task"]["created_by"].startswith("agent@")


@pytest.mark.parametrize("broken", ["priority: 11", "priority: ["])
def test_a_task_whose_file_was_broken_for_a_while_stays_its_persons(user: User, broken: str) -> None:
    id_ = user.adds("Write the guide")
    path = user.task_file(id_)
    text = path.read_text()
    path.write_text(re.sub(r"(?m)^priority: .*", broken, text))
    time.sleep(1.2)  # a file that has just been saved is looked at again
    assert user.ralf("task", "list").err
    path.write_text(re.sub(r"(?m)^priority: .*", "priority: high", text))
    assert "foreign" not in user.does("task", "list").out
    assert "Write the guide" in user.does("task", "claim").out
