"""The commands and functions with which the proposal reads, keeps and makes contexts, all of them calls of ralf's own.

Its modules are `context_reader`, `context_manager`, `context_checkpoint` and `context_summarizer`: each names what it
has from here. `project` is everywhere a folder, or a name in the tree; None: the project that is meant.

Exit status: 0 · 1 a damaged file · 2 wrong usage, a refused name · 3 no such route, nothing to make a checkpoint of.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ralf
from ralf import config, environment, routing
from ralf.document.tree import to_tree
from ralf.errors import RalfError, RouteNotFound, UsageError
from ralf.model import BODY
from ralf.project import Project
from ralf.route.load import load_state
from ralf.text.cleaning import clean, fenced, one_line, shown
from ralf_integrations.blackbox5.checkpointing import Checkpointing, complain, named_project, put

Named = str | os.PathLike[str] | None


# ---- context_reader ----


class ContextReader:
    """Reads the routes of a project: its folder, or its name in the tree; None: the one that is meant."""

    def __init__(self, project: Named = "blackbox5") -> None:
        self._root = named_project(project).root

    def list_routes(self) -> list[str]:
        """The names of all routes, the one with the newest checkpoint first."""
        return [summary.route for summary in ralf.list_routes(root=self._root)]

    def get_context(self, route: str, max_history: int = 3) -> dict[str, Any] | None:
        """What a route's file holds, as its front matter has it, and `history`: its newest sections, as Markdown; of
        the newest `max_history` checkpoints alone.

        None where there is no such route. UsageError for a refused name; Damaged.
        """
        try:
            context = ralf.get_context(route, root=self._root)
        except RouteNotFound:
            return None
        kept = max(0, max_history)
        tree = {"decisions": [], "active_work": {}, "checkpoint_history": [], **to_tree(context)}
        tree = {key: value for key, value in tree.items() if not key.startswith("#")}
        newest = replace(context, body=replace(context.body, sections=context.body.sections[:kept]))
        newest_entries = tree["checkpoint_history"][-kept:] if kept else []
        return tree | {"checkpoint_history": newest_entries, "history": newest.history}

    def get_summary(self, route: str) -> str:
        """A route in a few lines; one that is not there in one. Raises as `get_context`."""
        tree = self.get_context(route)
        if tree is None:
            return f"No context found for route: {route}"
        header, work = tree.get("context_checkpoint", {}), tree["active_work"]
        lines = [
            f"Route: {header.get('route') or route}",
            f"Agent: {header.get('agent_type') or 'unknown'}",
            f"Checkpoints: {header.get('checkpoint_count', 0)}",
            f"Total Tokens: {header.get('total_tokens_consumed', 0):,}",
            "",
            "## Active Work",
            f"Task: {work.get('current_task') or 'None'}",
            f"Phase: {work.get('current_phase') or 'unknown'}",
            f"Status: {work.get('work_status') or 'unknown'}",
        ]
        if work.get("attempts"):
            lines.append(f"Attempts: {work['attempts']}; last outcome: {work.get('outcome') or 'unknown'}")
        if active := [one for one in tree["decisions"] if one.get("status", "active") == "active"]:
            told = (f"- {one.get('id', '')}: {one.get('decision', '')}" for one in active[-3:])
            lines += ["", "## Recent Decisions", *told]
        return "\n".join(lines)


def list_routes() -> list[str]:
    """`ContextReader.list_routes` of the project that is meant."""
    return ContextReader(None).list_routes()


def get_context(route: str, max_history: int = 3) -> dict[str, Any] | None:
    """`ContextReader.get_context` of the project that is meant."""
    return ContextReader(None).get_context(route, max_history)


def get_summary(route: str) -> str:
    """`ContextReader.get_summary` of the project that is meant."""
    return ContextReader(None).get_summary(route)


def reader(args: Sequence[str] | None = None) -> int:
    """`context_reader.py list|read --route R`. SystemExit (2) where it is called wrongly."""
    parser = _parser("context_reader.py", "Read routes, on demand.")
    parser.add_argument("command", choices=["list", "read"])
    parser.add_argument("--route", metavar="R")
    given = parser.parse_args(args)
    if given.command == "read" and not given.route:
        parser.error("--route required")

    def work(project: Project) -> None:
        if given.command == "read":
            put(ralf.get_context(given.route, root=project.root).render(section="brief"))
        elif routes := "".join(f"  - {one.route}\n" for one in ralf.list_routes(root=project.root)):
            text = routes if _is_read_by_a_person() else fenced(shown(routes), short=True)
            put(f"Available contexts:\n{text}".rstrip())
        else:
            put("No contexts.")

    return _told(work, given)


# ---- context_manager ----


def create_checkpoint(
    route: str, tokens: int | None = None, *, transcript: Named = None, run_dir: Named = None, project: Named = None
) -> str | None:
    """Make a checkpoint of a route: the id of the newest one made, `cp-003`; None where nothing was new.

    tokens      taken and not used: tokens are counted where the checkpoint is made
    transcript  the session log; None: this project's newest session, else the run's folder
    run_dir     the run's folder; None: the one that the environment names

    Raises TranscriptNotFound, UsageError (a refused name), and what `ralf.checkpoint` raises.
    """
    source, folder = (Path(path) if path is not None else None for path in (transcript, run_dir))
    report = Checkpointing(folder, route, source, named_project(project).root).make()
    return report.checkpoints[-1].checkpoint_id if report.checkpoints else None


def load(route: str, *, project: Named = None) -> dict[str, Any] | None:
    """All that a route's file holds, as `ContextReader.get_context` gives it; None where there is no such route."""
    return ContextReader(project).get_context(route, max_history=sys.maxsize)


def save(route: str, context: Mapping[str, Any], *, project: Named = None) -> Path:
    """Make what was changed in a loaded context part of the route: its file, which shows it.

    A key that is left out stays as it is. What others have changed since it was loaded stays, too; a decision taken out
    is dropped, an unknown key is kept; what is new is an agent's. The header's counts and revision and
    `checkpoint_history` are ralf's own, and `history` is made by checkpoints: UsageError where that differs, for a tree
    that is no context, for a refused name, for a route of which something is foreign. Without the route it is made.
    Raises Busy, Damaged, OSError.
    """
    from ralf.route import corrections

    before = load(route, project=project)
    if "history" in context and context["history"] != (before or {}).get("history", ""):
        raise UsageError(route, "`history` is made by checkpoints: it is not saved", f"ralf edit {route}")
    fields = {key: value for key, value in context.items() if key not in ("history", "checkpoint_history", BODY)}
    return corrections.change(route, fields, root=named_project(project).root)


# ---- context_checkpoint ----


def checkpoint(args: Sequence[str] | None = None) -> int:
    """`context_checkpoint.py init|check|create --route R`. SystemExit (2) where it is called wrongly.

    `init` says where a route's file will be: nothing is written before there is something to say. `check` says whether
    a checkpoint is due. `create` makes one, of this project's newest session, else of the run's folder.
    """
    parser = _parser("context_checkpoint.py", "Checkpoints of a route.")
    parser.add_argument("command", choices=["init", "check", "create"])
    parser.add_argument("--route", required=True, metavar="R")
    parser.add_argument("--agent-type", metavar="T", help="not used: the configuration, or the run, says it")
    parser.add_argument("--tokens", type=int, metavar="N", help="tokens that the session has used so far")
    parser.add_argument("--thoughts", type=Path, metavar="FILE", help="a document of the run: its folder is the run's")
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="the run's folder")
    parser.add_argument("--transcript", type=Path, metavar="FILE", help="the session log")
    given = parser.parse_args(args)

    def work(_: Project) -> None:
        run_dir = given.run_dir or (given.thoughts.parent if given.thoughts is not None else None)
        root = named_project(given.project).root if given.project else None
        checkpoints = Checkpointing(run_dir, given.route, given.transcript, root)
        project = checkpoints.project()
        path = project.route_file(routing.check_new(project, given.route))
        if given.command == "init":
            print(f"Initialized context for: {given.route}: {path} is made by its first checkpoint")
        elif given.command == "create":
            made = ", ".join(entry.checkpoint_id for entry in checkpoints.make().checkpoints)
            print(f"Created checkpoint: {made} in {path}" if made else f"Nothing new since the last checkpoint: {path}")
        elif given.tokens is None:
            raise UsageError("check", "--tokens required", "check --route R --tokens N")
        else:
            found = load_state(project, given.route)
            counted = found.context.total_tokens_consumed if found is not None else 0
            # A count below what the route has already is another session's: all of it is new.
            new = given.tokens - counted if given.tokens >= counted else given.tokens
            print(f"Should checkpoint: {new >= config.of(project).segment_limit}")

    return _told(work, given)


# ---- context_summarizer ----


def summarize(transcript: str | os.PathLike[str], *, project: Named = None) -> str:
    """What checkpoints of a session would say, as Markdown: of each segment a section, and its decisions; "" for an
    empty one. Offline, without a model and without its secrets; writes nothing.

    transcript  a session log or a run's folder; a string of several lines: what an agent wrote, itself

    Raises TranscriptNotFound, DamagedTranscript.
    """
    from ralf.checkpointing.due import cut
    from ralf.checkpointing.section import Extractive, Segment
    from ralf.facts import noted
    from ralf.facts.facts import facts_of
    from ralf.redact import redactor_for
    from ralf.talk.recording import record
    from ralf.text import tokens
    from ralf.transcripts.events import START, Event
    from ralf.transcripts.reader import open_transcript

    at = named_project(project)
    events: Iterable[Event]
    session = base = ""
    if isinstance(transcript, str) and "\n" in transcript:
        events = [Event("assistant", clean(transcript), START, START)]
    else:
        source = open_transcript(Path(transcript), root=at.root)
        events, session, base = source.events(), source.session, source.cwd
    redactor = redactor_for(at)
    sections = []
    for piece in cut(events, config.of(at).segment_limit, tokens.count):
        if any(event.text.strip() for event in piece.events):
            kept, _ = redactor.events(piece.events)
            entries, decided = record(kept, base, session), noted.decisions(kept, session, "")
            segment = Segment(session, kept, facts_of(entries), piece.tokens, noted=decided, entries=entries)
            summary = Extractive().summarize(segment)
            whys = (f" ({one_line(one.rationale)})" if one.rationale else "" for one in summary.decisions)
            told = [f"- {one_line(one.decision)}{why}" for one, why in zip(summary.decisions, whys, strict=True)]
            lines = (f"### {summary.title}", "", summary.text, *(("", "Decisions:", "", *told) if told else ()), "")
            sections.append(redactor.text("\n".join(lines)))
    return "\n".join(sections)


def summarizer(args: Sequence[str] | None = None) -> int:
    """`context_summarizer.py FILE`. SystemExit (2) where it is called wrongly."""
    parser = _parser("context_summarizer.py", "Sum a session up; writes nothing.")
    parser.add_argument("transcript", type=Path, metavar="FILE", help="a session log, or a run's folder")
    given = parser.parse_args(args)

    def work(project: Project) -> None:
        text = summarize(given.transcript, project=project.root)
        put(text if _is_read_by_a_person() else fenced(shown(text)))

    return _told(work, given)


def _is_read_by_a_person() -> bool:
    return sys.stdout.isatty() and not environment.is_agent()


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--project", metavar="P", help="a folder, or a name; default: the project that is meant")
    return parser


def _told(work: Callable[[Project], None], given: argparse.Namespace) -> int:
    """The exit status of a command; what goes wrong is said."""
    try:
        work(named_project(given.project))
    except (RalfError, OSError) as error:
        return complain(error, given.project)
    return 0
