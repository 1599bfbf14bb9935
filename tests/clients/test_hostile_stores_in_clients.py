"""The real `claude` and `codex` opened in projects whose store came from an attacker: what their model is sent.

Each word that only the attacker has written has the form of `planted.WORD`; the whole request is searched for it, not
its messages alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from offline import World, bash, said, typed, why_not
from scenario import CHOICE, NEXT, command, model, script
from tests.faults import planted
from tests.faults.planted import commit_all, context_of, git, write

from examples import each_second

pytestmark = [pytest.mark.release(seconds=40), pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

both = pytest.mark.parametrize("client", each_second(["claude-code", "codex"]))

BRANCH = "tide-table"
ROUTES = (BRANCH, "default")
OWN_RULE = "Never drop the gauge columns of the harbour"
FILLED = ("CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000",)
COMPACTING = "model_auto_compact_token_limit = 180000"


def attacked(folder: Path) -> Path:
    """The attacker's repository: a store with everything that a store can hold, for the branch and for `default`."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", BRANCH)
    write(folder / "src" / "tides.py", "import csv\n", 0o644)
    for route in ROUTES:
        planted.put_route(folder, route)
        planted.put_inbox(folder, route)
    planted.put_journal(folder, "default")  # to the other one the person adds a rule, which no strange journal takes
    planted.put_hook_state(folder, "0b1c2d3e-0000-4000-8000-000000000009", "/tmp/run/foreign.jsonl")
    planted.put_blob(folder, "zqxblob of the release")
    write(context_of(folder) / "config.yaml", planted.CONFIG)
    return folder


def opened(world: World, client: str, prompt: str, *, opts_in: bool) -> list[str]:
    """Have a client work in the project until its context is compacted, and once more; the requests of its model.

    opts_in  whether the person opts the project in before; else the client's hooks call `ralf` there all the same
    """
    before = len(world.requests())
    install = f"ralf init --client {client} --yes >/tmp/run/init.txt 2>&1"
    if not opts_in:  # as hooks do that the user has installed for all projects, or of which a repository brings its own
        entries = ".claude/settings.local.json" if client == "claude-code" else ".codex/hooks.json"
        install = f"mkdir -p /tmp/run/other {entries.partition('/')[0]} && (cd /tmp/run/other && {install})"
        install += f" && cp /tmp/run/other/{entries} {entries}"
    steps = [
        bash("cat src/tides.py", text=CHOICE, filled=60_000),
        bash("echo two", text=f"Step two. {NEXT}", filled=190_000),
        bash("echo three", text="Step three.", filled=20_000),
        said("Finished.", filled=21_000),
    ]
    commands = f"{install} && {command(client, prompt)} && {command(client, 'Go on with it. What is to do next?')}"
    done = world.run(
        commands, script(client, steps, "SUMMARY-OF-THE-CLIENT"), env=FILLED, toml=COMPACTING, **model(client)
    )
    told = (world.folder / "init.txt").read_text() if (world.folder / "init.txt").exists() else ""
    assert done.status == 0, done.err + done.out + told
    assert not planted.WORD.search(told)
    sent = world.requests()[before:]
    assert "compact" in {request["kind"] for request in sent}
    return [json.dumps(request["body"], ensure_ascii=False) for request in sent]


def keep_a_rule(world: World, route: str = BRANCH) -> None:
    """The person writes a rule of their own down, in a shell of theirs, after they took out of git what they must, and
    deleted the route's journal: nothing is recorded in one of somebody else's.
    """
    git(world.project, "rm", "-r", "-q", "--cached", "--ignore-unmatch", ".autonomous")
    (context_of(world.project) / "journal" / "routes" / f"{route}.jsonl").unlink(missing_ok=True)
    done = world.run(typed(f"ralf decide {route} '{OWN_RULE}' --rule --origin user"))
    assert done.status == 0, done.err + done.out


def assert_theirs_alone(sent: list[str]) -> None:
    """The person's own words are handed over, and none of the attacker's."""
    assert any(OWN_RULE in text for text in sent)
    assert_nothing_planted(sent)


def assert_nothing_planted(sent: list[str]) -> None:
    assert len(sent) >= 5
    found = {word for text in sent for word in planted.WORD.findall(text)}
    assert not found


@both
def test_a_clone_hands_the_model_nothing_out_of_its_store(world: World, client: str) -> None:
    """Settings, journals, caches, notices and route files named like the branch and `default`; before the person opts
    in, and after."""
    evil = attacked(world.folder / "evil")
    commit_all(evil)
    git(world.folder, "clone", "-q", str(evil), str(world.project))
    assert_nothing_planted(opened(world, client, f"Look at {BRANCH}, please.", opts_in=False))
    opened(world, client, "Please say hi.", opts_in=True)
    keep_a_rule(world)
    assert_theirs_alone(opened(world, client, f"Go on with {BRANCH} and default, please.", opts_in=True))
