"""`ralf checkpoint`: checkpoint the new content of a session's log."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

import ralf
from ralf import environment, routing
from ralf.checkpointing.flow import CheckpointReport
from ralf.checkpointing.progress import watch as follow_transcript
from ralf.config.local_config import MODELS
from ralf.errors import DamagedTranscript, TranscriptNotFound, UsageError
from ralf.facts.progress import describe_run
from ralf.route import offsets
from ralf.transcripts.reader import is_own_log, newest_logs, open_transcript
from ralf_cli.command import command, handed_over, is_json, project, root
from ralf_cli.options import with_route
from ralf_cli.output import check_shown, emit_json, fields_of, price, progress_of, say, so_many, warn

_SESSIONS = 5_000  # of Codex, of all projects, searched for this project's newest


@command(is_fenced=False)
@with_route
@click.option("--transcript", metavar="PATH", help="Session log or run folder. Default: the newest session.")
@click.option("--summarizer", metavar="NAME", help="extractive, or a model: claude, codex, llm, command.")
@click.option("--keep", metavar="TEXT", multiple=True, help="Hint about content to keep (repeatable).")
@click.option(
    "--as", "read_as", type=click.Choice(["text"]), help="Read it as a plain document; nothing in it is your message."
)
@click.option("--again", is_flag=True, help="Also read a session of another route, from its start.")
@click.option("--restart", is_flag=True, help="Read a replaced transcript from its start.")
@click.option("--watch", is_flag=True, help="Follow the transcript and write each checkpoint when it is due.")
@click.option(
    "--every", type=click.IntRange(min=1), metavar="N", help="With --watch: number of tokens between checkpoints."
)
@click.option("--once", is_flag=True, help="With --watch: check once, then exit.")
def checkpoint(
    route: str,
    transcript: str | None,
    read_as: str | None,
    again: bool,
    watch: bool,
    every: int | None,
    once: bool,
    **how: Any,
) -> None:
    """Checkpoint new transcript content: write a checkpoint to ROUTE for each new segment.

    Without new content, ralf writes nothing. Without --again, ralf rejects a session that belongs to another route.
    ROUTE becomes the session's route unless the session already has one. A model costs tokens and runs only if you name
    it here or in config.local.yaml; if the model fails, ralf keeps the built-in checkpoint.

    \b
    Examples:
      ralf checkpoint TASK-001
      ralf checkpoint TASK-001 --transcript session.jsonl
      ralf checkpoint TASK-001 --summarizer claude --keep "the migration plan"
      ralf checkpoint TASK-001 --watch --every 30000
    """
    if not watch and (once or every is not None):
        raise click.UsageError("--every and --once require --watch")
    if watch and any(how.values()):
        raise click.UsageError("--watch takes none of --summarizer, --keep, --restart")
    path = _transcript(route, transcript)
    as_text = read_as == "text"
    reports: Iterable[CheckpointReport]
    if watch:
        if not is_json() and not once:
            say(f"watching {path}; stop with Ctrl-C")
        reports = follow_transcript(
            route, path, root=root(), every=every, once=once, as_text=as_text, again=again, idle=say
        )
    else:
        reports = [_made(route, path, as_text=as_text, again=again, **how)]
    damage = ""
    for report in reports:
        if is_json():
            sizes = {"tokens_read": report.tokens_read, "tokens_stored": report.tokens_stored}
            emit_json(fields_of(report, **sizes, ratio=round(report.ratio, 2)))
        else:
            with handed_over():
                _emit(report)
        damage = report.damage or damage
    check_shown(damage)


def _made(route: str, path: Path, *, as_text: bool, again: bool, **how: Any) -> CheckpointReport:
    here = project()
    route = routing.check_new(here, route)
    try:
        source = open_transcript(path, root=here.root, as_text=as_text)
    except DamagedTranscript as error:
        error.hint = error.hint.replace(" ROUTE ", f" {route} ")
        raise
    begin = offsets.begin_of(here, route, source, again=again)
    if how["summarizer"] in MODELS and sys.stderr.isatty():
        say(f"asking {how['summarizer']}; this may take a while")
    with progress_of(path.name) as progress:
        report = ralf.checkpoint(route, source, root=root(), begin=begin, progress=progress, **how)
    if report.checkpoints:
        offsets.keep(here, report.route, source)
    return report


def _transcript(route: str, named: str | None) -> Path:
    """The log to read. UsageError if an agent names a file that no client of the user wrote: it would speak as them."""
    if named is None:
        found = newest_logs(project(), most=_SESSIONS)
        if not found:
            is_file = Path(route).is_file()
            words = f"ROUTE --transcript {shlex.quote(route)}" if is_file else f"{route} --transcript FILE"
            raise TranscriptNotFound(
                project().root, "no client has a session of this project", f"ralf checkpoint {words}"
            )
        return found[0]
    path = Path(named)
    if environment.is_agent() and not path.is_dir() and not is_own_log(path):
        what = "not read: an agent runs this, and the file is not a session log of this user's clients"
        raise UsageError(path, what, "a person can name it in a terminal of their own")
    return path


def _emit(report: CheckpointReport) -> None:
    warn(report.warnings)
    if report.run is not None:
        click.echo(f"{report.route}: {describe_run(report.run)}")
        if empty := report.skipped.get("empty document", 0):
            click.echo(f"{so_many(empty, 'document')} empty")
    for entry in report.checkpoints:
        title = entry.summary_ref.partition(": ")[2]
        click.echo(
            f"{report.route}: {entry.checkpoint_id} ({entry.reason}), {entry.tokens:,} tokens: {title}".rstrip(": ")
        )
    if report.checkpoints:
        share = f" ({report.ratio:.0f}:1)" if report.ratio >= 1 else ""
        click.echo(f"{report.tokens_read:,} tokens became {report.tokens_stored:,}{share}")
    elif report.blank:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(report.skipped.items()))
        click.echo(f"{report.route}: no message and no call in the transcript yet (skipped: {counts or 'nothing'})")
    else:
        click.echo(f"{report.route}: nothing new")
    for made in report.refinements:
        took = price(made.input_tokens + made.output_tokens, made.cost_usd, is_estimated=made.estimated)
        if made.failure:
            say(f"warning: {made.route}: {made.summarizer} wrote no hand-over: {made.failure} ({took})")
        else:
            click.echo(f"{made.text} (by {made.summarizer}; {took})")
    if report.checkpoints:
        click.echo(str(report.path))
