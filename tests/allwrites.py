"""Every kind of write that a project's store knows, one after the other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import hookkit
import ralf
from ralf import routing
from ralf.config import local_config
from ralf.errors import RalfError
from ralf.maintenance import ownership
from ralf.maintenance.forget import forget
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf.route import archive
from ralf.route.taking_back import revert
from ralf_integrations import inbox
from ralf_integrations.blackbox5 import context_budget, installing
from ralf_integrations.client import CLIENTS
from ralf_integrations.clients import installation
from ralf_integrations.hooks import error_log
from ralf_integrations.orchestrator import hand_over
from storekit import grow, journal_file, route_file, write_session

ROUTE = "tide"
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolBatch", "PreCompact", "Stop", "SessionEnd")


def everything(root: Path) -> list[str]:
    """Write in every way; what was refused. A later call goes on with what is there."""
    root.mkdir(parents=True, exist_ok=True)
    rig = hookkit.rig(root)
    project = rig.project
    session = root.parent / "session.jsonl"
    turn = write_session(session, 4_000)
    refused = []
    for call in _calls(rig, project, session, turn):
        try:
            call()
        except (RalfError, OSError) as error:
            refused.append(f"{error}")
    return refused


def _calls(rig: hookkit.Rig, project: Project, session: Path, turn: int) -> Iterator[Callable[[], object]]:
    root = rig.root
    yield lambda: ownership.switch(project, on=True)
    yield lambda: ralf.record_decision(ROUTE, "Use centimetres", root=root)
    yield lambda: ralf.checkpoint(ROUTE, session, root=root)
    yield lambda: _edit(root)
    yield lambda: grow(session, 3_000, turn)
    yield lambda: ralf.checkpoint(ROUTE, session, root=root)
    yield lambda: routing.use(project, ROUTE, session="s-1")
    yield lambda: routing.name(project, "Carry the tide table over", session="s-2", redact=str)
    yield lambda: inbox.send(project, "s-1", "Look at the gauge", sender="t")
    yield lambda: inbox.take(project, "s-1", 1_000)
    yield lambda: ralf.search("centimetres", root=root)
    yield lambda: ralf.get_context(ROUTE, root=root, query="gauge")
    yield lambda: _orchestrate(root)
    yield lambda: error_log.add(project, "here", ValueError("something"))
    yield lambda: context_budget.write_state(root / "runs" / "run-1" / "context.json", {"max_tokens": 9}, {})
    yield lambda: local_config.set_local(project, "summarizer", "claude")
    for part in (installation.of_agents_md(project), *_client(project), installing.script_part(project)):
        yield lambda part=part: _install(project, part)  # type: ignore[misc]
    yield lambda: rig.grow(2_000)
    for event in EVENTS:
        yield lambda event=event: rig.hook(event)  # type: ignore[misc]
    yield lambda: archive.archive(project, ROUTE)
    yield lambda: revert(ROUTE, "cp-001", root=root)
    yield lambda: _damaged(root)
    yield lambda: repair(root=root)
    yield lambda: forget(ROUTE, text="row 7", root=root)
    yield lambda: verify(root=root)
    yield lambda: ralf.record_decision(ROUTE, "Go on", root=root)


def _client(project: Project) -> list[installation.Part]:
    return [installation.of_client(project, CLIENTS["claude-code"], shared=False)]


def _install(project: Project, part: installation.Part) -> None:
    change = installation.plan(project, part)
    if change is not None:
        installation.apply(project, change)


def _edit(root: Path) -> None:
    path = route_file(root, ROUTE)
    _save(path, path.read_bytes().replace(b"Use centimetres", b"Use metres"))


def _orchestrate(root: Path) -> None:
    hand_over("pm", b'{"queue": ["release the reader"], "goal": "Have it in use"}', root=root)


def _damaged(root: Path) -> None:
    ralf.record_decision("worn", "Use centimetres", root=root)
    path = journal_file(root, "worn")
    _save(path, path.read_bytes() + b"no record\n")


def _save(path: Path, content: bytes) -> None:
    """As a careful editor does: into a file of its own, with the mode of the old one."""
    saved = path.with_name("saved")
    saved.write_bytes(content)
    shutil.copymode(path, saved)
    saved.replace(path)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """This process, and those that it starts, with a umask."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
