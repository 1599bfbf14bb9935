"""Whether the next session of a real client goes on with the right work: the bytes that its model is sent say it.

    PYTHONPATH=tests:tests/clients python -m continuing                      all scenarios, every client
    PYTHONPATH=tests:tests/clients python -m continuing --only "after a clear"

RALF_TEST_CLIENTS names the folder of the clients.

In each, work on a tide table is killed in the middle; other things happen; then somebody asks, in a session of its own.
What that session is sent must hold what was decided, and no word of any other work; and it must be on the right route.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import offline
import scenario
from offline import World, bash, said

import ralf
from ralf.transcripts.reader import open_transcript

REQUEST = "Move the tide table from CSV to SQLite in ten steps. Never write to deploy/prod.env."
ROUTE = "move-the-tide-table-from-csv-to-sqlite"
CHOICE = "Use SQLite instead of Postgres, because one file needs no server."
OTHER = "Paint the shed of the harbour office green"
OTHER_ROUTE = "paint-the-shed-of-the-harbour-office"
OTHER_CHOICE = "Use linseed oil instead of acrylic, because the wood has to breathe."


@dataclass(frozen=True)
class Asked:
    """What the last session of a scenario is to be sent, and to be on.

    sent   words that its first request holds; `unsent` words that it does not
    route  the route that has its checkpoint, "" for none
    """

    sent: tuple[str, ...] = (CHOICE, "deploy/prod.env")
    unsent: tuple[str, ...] = (OTHER_CHOICE,)
    route: str = ROUTE


Steps = Sequence[Callable[["Stage"], object]]


class Stage:
    """A project, opted in, and a client in it."""

    def __init__(self, world: World, client: str) -> None:
        self.world, self.client = world, client
        subprocess.run(["git", "init", "-q", "-b", "main", str(world.project)], check=True)  # noqa: S607
        scenario.install(world, client)

    def asks(self, prompt: str, *, work: bool = True, where: str = "", options: str = "") -> str:
        """Have a session answer a prompt to its end; what its first request held."""
        before = len(self.world.asked())
        steps = [bash("echo carried on", text="I carry on."), said("Done for now.")] if work else [said("Hello!")]
        command = f"{self._there(where)}{scenario.command(self.client, prompt)} {options}"
        ran = self.world.run(command, scenario.script(self.client, steps), **scenario.model(self.client))
        assert ran.status == 0, ran.err
        return self.world.asked()[before]

    def is_killed(self, prompt: str, choice: str, *, where: str = "", options: str = "") -> None:
        """Have a session decide something, and kill it in the middle of the next command."""
        (self.world.folder / "at-it").unlink(missing_ok=True)
        steps = [bash("ls", text=choice), bash("touch /tmp/run/at-it; sleep 20", text="Step 2 of 10: carry it over.")]
        commands = f"""
{self._there(where)}
{scenario.command(self.client, prompt)} {options} &
i=0; while [ ! -e /tmp/run/at-it ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done
sleep 1
kill -9 $!
sleep 0.5
"""
        self.world.run(commands, scenario.script(self.client, steps), **scenario.model(self.client))

    def asks_beside(self, live: str, choice: str, prompt: str) -> str:
        """Have a session answer a prompt while another one is in the middle of a command; its first request."""
        (self.world.folder / "at-it").unlink(missing_ok=True)
        before = len(self.world.asked())
        steps = [
            bash("ls", text=choice),
            bash("touch /tmp/run/at-it; sleep 15", text="Step 2 of 10."),
            *(bash("echo carried on", text="I carry on."), said("Done for now.")),
        ]
        commands = f"""
{scenario.command(self.client, live)} &
i=0; while [ ! -e /tmp/run/at-it ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done
sleep 1
{scenario.command(self.client, prompt)}
kill -9 $!
"""
        self.world.run(commands, scenario.script(self.client, steps), **scenario.model(self.client))
        return next(text for text in self.world.asked()[before:] if live not in text)

    def asks_after_clear(self, first: str, choice: str, prompt: str) -> str:
        """Have a person work on the terminal, clear the window, and ask; what that request held."""
        steps = [bash("ls", text=choice), said("Step 2 of 10 is next."), said("I carry on.")]
        tui = "SETTINGS=/tmp/run/proj/.claude/settings.local.json python3 /tmp/kit/tui.py"
        typed = " ".join(f"'{words}'" for words in (first, "sleep:3", "/clear", prompt, "sleep:2", "/exit"))
        self.world.run(f"{tui} {typed}", scenario.script(self.client, steps), **scenario.model(self.client))
        return self.world.asked()[-1]

    def routes_of_last(self) -> list[str]:
        """The routes that have a checkpoint of the session that was begun last."""
        session = open_transcript(self.world.transcripts()[-1]).session
        names = [one.route for one in ralf.list_routes(root=self.world.project)]
        contexts = [ralf.get_context(name, root=self.world.project) for name in names]
        sessions = {one.route: [entry.session for entry in one.checkpoint_history] for one in contexts}
        return [route for route, those in sessions.items() if session in those]

    def _there(self, where: str) -> str:
        return f"mkdir -p {where} && cd {where}\n" if where else ""


def tides(stage: Stage, **where: str) -> None:
    stage.is_killed(REQUEST, CHOICE, **where)


def shed(stage: Stage) -> None:
    stage.asks(OTHER)


def shed_is_killed(stage: Stage) -> None:
    stage.is_killed(OTHER, OTHER_CHOICE)


def asks(prompt: str, **options: Any) -> Callable[[Stage], str]:
    return lambda stage: stage.asks(prompt, **options)


def a_worktree(stage: Stage) -> None:
    git = ["git", "-C", str(stage.world.project), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "begin"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "--detach", str(stage.world.project / "beside")], check=True)


GREETING, WORKS_NOT = asks("hi", work=False), {"work": False}
SCENARIOS: dict[str, tuple[Steps, Asked]] = {
    "killed": ((tides, asks("continue")), Asked()),
    "greetings around it": ((GREETING, tides, GREETING, asks("continue")), Asked()),
    "in other words: the line, for the agent to understand": (
        (tides, shed, asks("Please carry on with the tide table")),
        Asked((f"Context available for {ROUTE}", "ralf show"), (CHOICE, OTHER_CHOICE), ""),
    ),
    "its name, in German": ((tides, shed_is_killed, asks(f"Mach bitte mit {ROUTE} weiter")), Asked()),
    "in Chinese": ((tides, asks("继续")), Asked()),
    "in a language that nobody here reads": (
        (tides, asks("hajde dalje", **WORKS_NOT), asks("continue")),
        Asked(),
    ),
    "a greeting gets the line and no brief": (
        (tides, asks("Guten Morgen", **WORKS_NOT)),
        Asked((f"Context available for {ROUTE}",), (CHOICE,), ""),
    ),
    "from a folder below": ((tides, asks("continue", where="src/deep")), Asked()),
    "killed in a folder below": ((partial(tides, where="src/deep"), asks("continue", where="docs")), Asked()),
    "from a worktree of its own": (
        (tides, a_worktree, asks("continue", where="beside")),
        Asked((), (CHOICE, OTHER_CHOICE, ROUTE), ""),
    ),
    "an unrelated prompt": ((tides, asks(OTHER)), Asked((), (CHOICE,), OTHER_ROUTE)),
    "one of two: the line names both": (
        (shed_is_killed, tides, asks("continue")),
        Asked((f"Context available for {ROUTE}", OTHER_ROUTE), (CHOICE, OTHER_CHOICE), ""),
    ),
    "beside a live session": (
        (tides, lambda stage: stage.asks_beside(OTHER, OTHER_CHOICE, "continue")),
        Asked(unsent=(OTHER_CHOICE, OTHER_ROUTE)),
    ),
    "after a clear": ((lambda stage: stage.asks_after_clear(REQUEST, CHOICE, "continue"),), Asked()),
}
"""By name, what happens, and how the last session of it has to go on."""

CLIENTS = ("claude-code", "codex", "gemini", "opencode")
NOT_HERE = {(client, "after a clear") for client in CLIENTS[1:]}  # only their terminals do


def wrong(world: World, client: str, name: str) -> list[str]:
    """What is wrong with a scenario, in words; [] for nothing."""
    steps, asked = SCENARIOS[name]
    stage = Stage(world, client)
    for step in steps[:-1]:
        step(stage)
    sent = str(steps[-1](stage))
    found = [f"lost: {words!r}" for words in asked.sent if words not in sent]
    found += [f"foreign: {words!r}" for words in asked.unsent if words in sent]
    offline.waited(lambda: asked.route in stage.routes_of_last(), 5 if asked.route else 0)
    routes = stage.routes_of_last()
    is_right = routes == [asked.route] if asked.route else ROUTE not in routes
    return found if is_right else [*found, f"its routes: {routes}, not {asked.route or 'another'!r}"]


def main() -> int:
    """Run scenarios; 1 where one of them went wrong."""
    parser = argparse.ArgumentParser(prog="python -m continuing")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS))
    parser.add_argument("--client", action="append", choices=CLIENTS)
    given = parser.parse_args()
    failed = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        environment = offline.installed(Path(scratch) / "venv")
        for client in given.client or CLIENTS:
            for name in given.only or SCENARIOS:
                if (client, name) in NOT_HERE:
                    continue
                began, count = time.monotonic(), count + 1
                found = wrong(World(Path(scratch) / f"{client}-{count}" / "run", environment), client, name)
                failed += bool(found)
                print(f"{client}: {name}: {'; '.join(found) or 'right'} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{count} scenarios, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
