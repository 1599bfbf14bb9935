"""The function with which the proposal sums a session up: `summarize`. Offline, without a model; writes nothing.

    import context_summarizer                                     # installed by dropins, or linked
    python context_summarizer.py FILE

Exit status: 0 · 1 a damaged file · 2 wrong usage · 3 no such file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

if __package__ != "ralf_integrations.blackbox5":  # run, or linked to: nobody has said where our packages are
    _house = Path(__file__).resolve().parents[2]
    sys.path += [str(_house), str(_house.parent / "context")]
    from ralf_integrations.blackbox5 import anypython

    anypython.enter(__file__, running=__name__ == "__main__")


from ralf import config
from ralf.checkpointing.due import Piece, cut
from ralf.checkpointing.section import Extractive, Segment
from ralf.errors import RalfError
from ralf.facts import noted
from ralf.facts.facts import facts_of
from ralf.model import Decision
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.talk.recording import record
from ralf.text import tokens
from ralf.text.cleaning import clean, fenced, one_line, shown
from ralf.transcripts.events import START, Event
from ralf.transcripts.reader import open_transcript
from ralf_integrations.blackbox5 import checkpointing
from ralf_integrations.blackbox5.checkpointing import complain, put

__all__ = ["main", "summarize"]


def summarize(transcript: str | os.PathLike[str], *, project: str | os.PathLike[str] | None = None) -> str:
    """What checkpoints of a session would say, as Markdown: of each segment a section, and its decisions; "" for an
    empty one. Without its secrets.

    transcript  a session log or a run's folder; a string of several lines: what an agent wrote, itself
    project     a folder, or a name in the tree; None: the project that is meant

    Raises TranscriptNotFound, DamagedTranscript.
    """
    where = checkpointing.named_project(project)
    events: Iterable[Event]
    session = base = ""
    if isinstance(transcript, str) and "\n" in transcript:
        events = [Event("assistant", clean(transcript), START, START)]
    else:
        source = open_transcript(Path(transcript), root=where.root)
        events, session, base = source.events(), source.session, source.cwd
    return "\n".join(_sections(where, cut(events, config.of(where).segment_limit, tokens.count), session, base))


def _sections(project: Project, pieces: Iterable[Piece], session: str, base: str) -> Iterator[str]:
    for piece in pieces:
        if not any(event.text.strip() for event in piece.events):
            continue
        events, _ = redactor_for(project).events(piece.events)
        entries = record(events, base, session)
        decided = noted.decisions(events, session, "")
        summary = Extractive().summarize(
            Segment(session, events, facts_of(entries), piece.tokens, noted=decided, entries=entries)
        )
        lines = [f"### {summary.title}", "", summary.text, ""]
        if summary.decisions:
            lines += ["Decisions:", "", *map(_told, summary.decisions), ""]
        yield redactor_for(project).text("\n".join(lines))


def _told(decision: Decision) -> str:
    because = f" ({one_line(decision.rationale)})" if decision.rationale else ""
    return f"- {one_line(decision.decision)}{because}"


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; its exit status. SystemExit (2) where it is called wrongly."""
    parser = argparse.ArgumentParser(prog="context_summarizer.py", description="Sum a session up; writes nothing.")
    parser.add_argument("transcript", type=Path, metavar="FILE", help="a session log, or a run's folder")
    parser.add_argument("--project", metavar="P", help="a folder, or a name; default: the project that is meant")
    given = parser.parse_args(args)
    try:
        text = summarize(given.transcript, project=given.project)
    except (RalfError, OSError) as error:
        return complain(error, given.project)
    put(text if sys.stdout.isatty() else fenced(shown(text)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
