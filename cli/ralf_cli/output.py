"""What the commands print: data on stdout, as text, as a table on a terminal, or as JSON; everything else on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from io import StringIO
from typing import TYPE_CHECKING, Any

import click

from ralf import environment
from ralf_cli.tables import aligned, as_json, bounded, cell
from ralf_cli.terminal import typed

if TYPE_CHECKING:
    from ralf.checkpointing.flow import CheckpointReport
    from ralf.model import RouteContext


def emit_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    click.echo(as_json(value))


def is_read_by_an_agent() -> bool:
    """Whether what is printed is read in the shell of a client or a loop, and not at a terminal."""
    return environment.is_agent() and not sys.stdout.isatty()


@contextmanager
def handed_over() -> Iterator[None]:
    """What is printed within goes to stdout in a fence where an agent reads, the part that was printed before an error,
    too; as it is for a person and a script. Within another such block: as that says.
    """
    if not is_read_by_an_agent() or isinstance(sys.stdout, StringIO):
        yield
        return
    from ralf.text.cleaning import fenced, shown

    held = StringIO()
    try:
        with redirect_stdout(held):
            yield
    finally:
        click.echo(fenced(shown(held.getvalue())), nl=False)


@contextmanager
def given_back(root: str | None, *words: str) -> Iterator[None]:
    """Print on stderr the words that a block could not record, where the journal lies on servers: whoever has typed
    them into a pipe has them nowhere else.
    """
    from ralf import project
    from ralf.errors import RalfError
    from ralf.text.cleaning import shown
    from ralf_integrations.stores import choosing

    try:
        yield
    except RalfError:
        text = "\n".join(filter(None, words))
        if text and choosing.names_servers(project.find(root)):
            click.echo(f"not recorded: {shown(text)}", err=True)
        raise


def say(text: str) -> None:
    """Print something that is not data, as one line."""
    click.echo(bounded(typed(text)), err=True)


def warn(warnings: Iterable[str]) -> None:
    """Say what is wrong and stops nothing, a line each."""
    for warning in warnings:
        say(f"warning: {warning}")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> None:
    """Print rows: aligned columns in a pipe, a table on a terminal. `right`: columns that are aligned right."""
    if sys.stdout.isatty():
        _rich_table(headings, rows, right)
    else:
        click.echo(aligned(headings, rows, right))


def _rich_table(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        made.add_column(heading, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell(value)) for value in row))  # Text: brackets in a route's words are no markup
    Console().print(made)


def context_as_json(context: RouteContext) -> dict[str, Any]:
    """A route's context under the names of the Python API."""
    from ralf.document.tree import to_tree

    return {
        "route": context.route,
        "revision": context.revision,
        "agent_type": context.agent_type,
        "created": context.created,
        "last_checkpoint": context.last_checkpoint,
        "checkpoint_count": context.checkpoint_count,
        "total_tokens_consumed": context.total_tokens_consumed,
        "goal": context.goal,
        "goal_origin": context.goal_origin,
        "began_as": context.began_as,
        "handover": to_tree(context.handover) or None,
        "decisions": [to_tree(decision) for decision in context.decisions],
        "pinned": [to_tree(pin) for pin in context.pinned],
        "active_work": to_tree(context.active_work),
        "facts": to_tree(context.facts),
        "checkpoints": [to_tree(checkpoint) for checkpoint in context.checkpoints],
        "history": context.history,
        "folded": to_tree(context.folded),
        "since": context.since,
        "foreign": context.foreign,
        "foreign_notes": list(context.foreign_notes),
        "warnings": list(context.warnings),
    }


def report_as_json(report: CheckpointReport) -> dict[str, Any]:
    """A checkpoint's report under the names of the Python API."""
    from ralf.document.tree import to_tree

    return {
        "route": report.route,
        "revision": report.revision,
        "checkpoints": [to_tree(entry) for entry in report.checkpoints],
        "reason": report.reason,
        "summarizer": report.summarizer,
        "tokens_read": report.tokens_read,
        "tokens_stored": report.tokens_stored,
        "ratio": round(report.ratio, 2),
        "path": report.path,
        "blank": report.blank,
        "run": to_tree(report.run) if report.run is not None else None,
        "skipped": report.skipped,
        "warnings": report.warnings,
        "damage": report.damage,
        "refinements": [fields_of(refinement) for refinement in report.refinements],
    }


def _nothing(report: CheckpointReport) -> str:
    """Return why nothing was written."""
    if not report.blank:
        return "nothing new"
    counts = ", ".join(f"{count} {what}" for what, count in sorted(report.skipped.items()))
    return f"no message and no call in the transcript yet (left out: {counts or 'nothing'})"


def emit_report(report: CheckpointReport) -> None:
    """Print what a checkpoint came to."""
    warn(report.warnings)
    if report.run is not None:
        _emit_run(report)
    if not report.checkpoints:
        click.echo(f"{report.route}: {_nothing(report)}")
        _emit_refinements(report)
        return
    for entry in report.checkpoints:
        title = entry.summary_ref.partition(": ")[2]
        click.echo(
            f"{report.route}: {entry.checkpoint_id} ({entry.reason}), {entry.tokens:,} tokens: {title}".rstrip(": ")
        )
    share = f" ({report.ratio:.0f}:1)" if report.ratio >= 1 else ""
    click.echo(f"{report.tokens_read:,} tokens became {report.tokens_stored:,}{share}")
    _emit_refinements(report)
    click.echo(str(report.path))


def _emit_run(report: CheckpointReport) -> None:
    """Print which attempt a run was, how it ended, and which of its documents hold nothing."""
    from ralf.facts.progress import describe_run

    run, empty = report.run, report.skipped.get("empty document", 0)
    if run is not None:
        click.echo(f"{report.route}: {describe_run(run)}")
    if empty:
        click.echo(f"{empty} document{'s' if empty > 1 else ''} of it: nothing was written")


def _emit_refinements(report: CheckpointReport) -> None:
    for made in report.refinements:
        took = price(made.input_tokens + made.output_tokens, made.cost_usd, estimated=made.estimated)
        if made.failure:
            say(f"warning: {made.route}: {made.summarizer} handed nothing over: {made.failure} ({took})")
        else:
            click.echo(f"{made.text} (by {made.summarizer}; {took})")


def price(tokens: int, usd: float | None, *, estimated: bool = False) -> str:
    """Tokens and, where it is known, money."""
    told = f"about {tokens:,} tokens (estimate)" if estimated else f"{tokens:,} tokens"
    return told if usd is None else f"{told}, ${usd:.4f}"


def fields_of(value: Any) -> dict[str, Any]:
    """A dataclass as a dict."""
    return asdict(value)
