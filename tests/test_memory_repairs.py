"""What repaired a command, by the calls of a session: what was done between a run with an error and one without."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ralf.memory.repairs import repairs
from ralf.transcripts.events import EvidenceLine

REFUSED = "Error: connect ECONNREFUSED 127.0.0.1:6379"

Step = tuple[str, str, bool]


def ran(command: str, output: str = "ok", *, failed: bool = False) -> Step:
    return command, output, failed


def edited(path: str) -> Step:
    return f"edit {path}", "", False


def lines(steps: Sequence[Step]) -> list[EvidenceLine]:
    found: list[EvidenceLine] = []
    for command, output, failed in steps:
        number = len(found) + 1
        if command.startswith("edit "):
            text = f"/srv/{command.removeprefix('edit ')}\na\nb"
            found += [EvidenceLine(number, number, "call", "Edit", text)]
            found += [EvidenceLine(number + 1, number + 1, "result", "Edit", "updated")]
            continue
        said = f"Exit code 1\n{output}" if failed else output
        found += [EvidenceLine(number, number, "call", "Bash", f"{command}\nsays what it does")]
        found += [EvidenceLine(number + 1, number + 1, "result", "Bash", said)]
    return found


def told(*steps: Step, paths: Sequence[str] = (), first: int = 0) -> list[tuple[str, str, str]]:
    return [(one.command, one.error, one.resolution) for one in repairs(lines(steps), first, (), paths)]


FAILED, UP, PASSED = ran("npm test", REFUSED, failed=True), ran("docker compose up -d redis"), ran("npm test")
OTHER = ran("npm test", "AssertionError: assert 3 == 4", failed=True)


@pytest.mark.parametrize(
    "steps",
    [
        (FAILED, ran("docker compose ps"), UP, PASSED),
        (FAILED, UP, OTHER, edited("src/queue.ts"), PASSED),
        (FAILED, ran("npm ci"), FAILED, UP, PASSED),
        (FAILED, edited("src/queue.ts"), UP, edited("src/queue.test.ts"), PASSED),
    ],
    ids=["the last command", "then another error", "an attempt before it", "edits beside it"],
)
def test_the_last_command_after_which_the_error_was_over_repaired_it(steps: tuple[Step, ...]) -> None:
    assert told(*steps) == [("npm test", REFUSED, "docker compose up -d redis")]


@pytest.mark.parametrize(
    "path", [".env", "setup.cfg", "config/redis.yml", "app/settings/local.py", ".cargo/config.toml"]
)
def test_an_edit_of_a_configuration_repairs(path: str) -> None:
    found = told(ran("npm test", REFUSED, failed=True), edited(path), ran("npm test"), paths=[path])
    assert found == [("npm test", REFUSED, f"edit {path}")]


@pytest.mark.parametrize("path", ["src/queue.ts", "app/models/user.rb", "README.md", "internal/store/store.go"])
def test_an_edit_of_sources_or_documents_alone_is_no_repair(path: str) -> None:
    assert told(ran("npm test", REFUSED, failed=True), edited(path), ran("npm test"), paths=[path]) == []


LINTED = ran("mise run lint", "cmd/a.go:12:3: unused variable\n[lint] ERROR task failed", failed=True)
GC = "git config gc.auto; echo ---"


@pytest.mark.parametrize(
    "steps",
    [
        *((FAILED, ran(word), PASSED) for word in ("ls -la", "git status", "docker compose logs redis", "sleep 5")),
        *((FAILED, ran(word), PASSED) for word in ("curl -sf localhost:6379", "node --version", "git add -A")),
        (FAILED, ran("ls -l | awk '{print $6}' | sort"), PASSED),
        (ran("npm test", "CONFLICT (content): Merge conflict in a.py", failed=True), ran("npm ci"), PASSED),
        (OTHER, edited("src/a.ts"), ran("npm run lint"), PASSED),
        (FAILED, ran("docker compose up -d redis", "no such service", failed=True), PASSED),
        (ran(GC, "---", failed=True), ran("docker compose up -d"), ran(GC, "0")),
        (LINTED, ran("go mod tidy"), edited("cmd/a.go"), ran("mise run lint")),
    ],
)
def test_what_looks_waits_records_prints_or_fails_and_a_defect_of_the_code_teach_nothing(
    steps: tuple[Step, ...],
) -> None:
    assert told(*steps) == []


def test_what_was_over_before_the_segment_is_another_ones() -> None:
    steps = (ran("npm test", REFUSED, failed=True), ran("docker compose up -d redis"), ran("npm test"))
    assert told(*steps, first=0) == told(*steps, first=4) != []
    assert told(*steps, first=5) == []


def test_git_repairs_where_it_fetches_files() -> None:
    steps = (
        ran("make", "fatal error: mesh.h: No such file", failed=True),
        ran("git submodule update --init"),
        ran("make"),
    )
    assert [resolution for *_, resolution in told(*steps)] == ["git submodule update --init"]


def test_results_of_calls_that_were_made_at_once_count_for_none_of_them() -> None:
    """They may come in the order in which the calls ended."""
    calls = [EvidenceLine(n, n, "call", "Bash", text) for n, text in ((1, "npm test"), (2, "npm run lint"))]
    results = [
        EvidenceLine(3, 3, "result", "Bash", f"Exit code 1\n{REFUSED}"),
        EvidenceLine(4, 4, "result", "Bash", "ok"),
    ]
    more = lines((ran("docker compose up -d redis"), ran("npm test")))
    assert list(repairs([*calls, *results, *more], 0, (), ())) == []


def test_what_follows_a_call_without_an_output_counts_for_nobody() -> None:
    """The call may have printed nothing, or work on, and its output come later."""
    late = [
        EvidenceLine(1, 1, "call", "Bash", "long job"),
        EvidenceLine(2, 2, "call", "Bash", "npm test"),
        EvidenceLine(3, 3, "result", "Bash", "ok"),
        EvidenceLine(4, 4, "call", "Bash", "mkdir x"),
        EvidenceLine(5, 5, "result", "Bash", f"Exit code 1\n{REFUSED}"),
    ]
    rest = lines([ran("docker compose up -d redis"), ran("mkdir x")])
    assert list(repairs([*late, *rest], 0, (), ())) == []
