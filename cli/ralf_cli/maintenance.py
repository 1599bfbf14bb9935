"""`ralf forget`, `ralf gc`, and the check of the store: the store as a whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ralf_cli.command import command, taking
from ralf_cli.options import Misused, complete_route, is_label, meant, with_json, with_root
from ralf_cli.tables import so_many

if TYPE_CHECKING:
    from ralf.maintenance.forget import Forgotten
    from ralf.maintenance.verify import VerifyReport

_NOTES = 20  # that are printed: old evidence that was dropped is a note a checkpoint


def check_store(route: str | None, root: str | None, *, repair: bool, as_json: bool) -> bool:
    """Verify the records, files and evidence of a route or of all, and repair what can be; whether damage is left.

    Leftovers of a crash are no damage. A repair works from the journal, and never removes the only copy of anything:
    what cannot be read is kept beside it, in a file that ends with .damaged.
    """
    from ralf.maintenance import repair as repairs, verify as verifying
    from ralf_cli.output import emit_json, fields_of

    if repair:
        mended = repairs.repair(route, root=root)
        report = mended.after
        if as_json:
            emit_json(fields_of(mended) | {"damaged": report.damaged})
        else:
            for done in mended.done:
                click.echo(f"{done.path}: {done.what}")
            _emit(report)
    else:
        report = verifying.verify(route, root=root)
        if as_json:
            emit_json(fields_of(report) | {"damaged": report.damaged})
        else:
            _emit(report)
    return report.damaged > 0 if isinstance(report.damaged, int) else bool(report.damaged)


def _emit(report: VerifyReport) -> None:
    from ralf_cli.output import say
    from ralf_cli.terminal import complain

    notes = [finding for finding in report.findings if not finding.damage]
    for finding in report.findings:
        if finding.damage:
            hint = f"ralf doctor --repair would {finding.repair}" if finding.repair else "mend it by hand"
            complain(f"{finding.path}: {finding.what}", hint)
    for finding in notes[:_NOTES]:
        say(f"note: {finding.path}: {finding.what}")
    if len(notes) > _NOTES:
        say(f"{len(notes) - _NOTES:,} more notes: --json")
    damaged = sum(finding.damage for finding in report.findings)
    looked = ", ".join(
        so_many(count, noun)
        for count, noun in (
            (len(report.routes), "route"),
            (report.records, "record"),
            (report.blobs, "blob"),
        )
    )
    click.echo(f"{looked}: {f'{damaged:,} damaged' if damaged else 'all whole'}")


@command(short_help="Drop old transcript text, or useless items of a memory.")
@click.option("--evidence-older-than", "age", metavar="AGE", help="Of segments that ended before, e.g. 90d, 4w.")
@click.option("--memory", metavar="AGENT", help="Items of a memory (main) that proved of no use.")
@taking("dry_run")
@with_root
@with_json
def gc(age: str | None, memory: str | None, dry_run: bool, root: str | None, as_json: bool) -> None:
    """Drop old evidence: the transcript text behind checkpoints. Nothing else ever drops any. With --memory: items
    whose confidence is at most 0.3 and that were used at most three times; preferences, relationships and what a
    person said stay, and `ralf memory edit --to` brings them back.

    Lists it, says what `ralf show` loses, and asks. Decisions, facts, checkpoints and journals stay complete, and the
    newest checkpoint of each route keeps its evidence. Evidence that no record refers to goes, too. Only a person can
    drop it, on a terminal; --json and --dry-run only list it.

    \b
    Examples:
      ralf gc --evidence-older-than 90d
      ralf gc --evidence-older-than 4w --dry-run
      ralf gc --memory main

    \b
    Exit status: 0, even if there was nothing to drop · 1 unwritable · 2 no age, not on a terminal, not confirmed ·
    4 damaged journal (nothing is dropped)
    """
    if memory is not None:
        if age is not None or dry_run:
            raise click.UsageError("--memory stands alone")
        _tidy(memory, root)
        return
    if age is None:
        raise click.UsageError("say what is dropped: --evidence-older-than AGE or --memory AGENT")
    from ralf import project as projects
    from ralf.maintenance.evidence import drop_evidence
    from ralf_cli.output import emit_json, fields_of, say, table
    from ralf_cli.person import check_person

    report = drop_evidence(age, root=root)
    if as_json:
        emit_json(fields_of(report) | {"freed": report.freed})
        return
    if report.just_put:
        say(f"{report.just_put} more were put within the last ten minutes: later")
    freed, left = f"{report.freed:,} bytes of evidence", f"{report.kept:,} stay"
    if not report.dropped:
        click.echo(f"nothing to drop; {left}")
        return
    rows = [(one.route or "-", ", ".join(one.checkpoints) or "-", one.time or "-", one.size) for one in report.dropped]
    table(("ROUTE", "CHECKPOINT", "TIME", "BYTES"), rows, right=(3,))
    of = sum(len(one.checkpoints) for one in report.dropped)
    say(f"of {so_many(of, 'checkpoint')} `ralf show` will show no words any more: only session, lines and hash")
    if dry_run:
        click.echo(f"would drop {freed}; {left}")
        return
    command = f"ralf gc --evidence-older-than {age}"
    check_person(projects.find(root).folder, "nothing was dropped", command, answers=True)
    if not click.confirm(f"Drop {freed}? This cannot be undone", err=True):
        raise click.UsageError("nothing was dropped")
    report = drop_evidence(age, remove=True, root=root)
    click.echo(f"dropped {report.freed:,} bytes of evidence; {report.kept:,} stay")


def _tidy(agent: str, root: str | None) -> None:
    """Drop of a memory what proved of no use."""
    from ralf import project as projects
    from ralf.memory.model import check_agent
    from ralf.memory.writing import load, tidy

    whose = projects.find(root), check_agent(agent)
    before, made = load(*whose), tidy(*whose)
    from ralf_cli.output import warn

    warn(made.warnings)
    gone = len(before.items) - len(made.items)
    what = f"{gone:,} fewer; to undo it: ralf memory edit --to r{before.revision}" if gone else "nothing to drop"
    click.echo(f"{agent}: {len(made.items):,} items, {what}")


@command(short_help="Erase text from the entire store.")
@click.argument("route", required=False, metavar="[ROUTE]", shell_complete=complete_route)
@click.argument("id", required=False)
@click.option("--text", metavar="TEXT", help="Erase this text wherever it appears; - reads it from stdin.")
@click.option("--run", metavar="RUN", help="Delete all that is kept of a run instead: records, states, output.")
@taking("dry_run")
@taking("yes")
@with_root
@with_json
@click.pass_context
def forget(
    ctx: click.Context,
    route: str | None,
    id: str | None,  # noqa: A002
    text: str | None,
    run: str | None,
    dry_run: bool,
    yes: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Erase the text of ROUTE's decision or checkpoint ID, or any text, from the entire store; without either, all
    of ROUTE, which then has to be named.

    Erases it from the records of every route, evidence, files, caches and the search index, and
    reads them back to verify. This cannot be undone. The text is found regardless of case, white space, Markdown,
    NFC or NFD, JSON escapes, percent encoding and HTML entities, but not in base64, hexadecimal, double encoding or
    other spellings. It cannot reach git history, backups or the client's transcripts; if the text appears again in
    a transcript it is recorded again unless `redact_patterns` in config.yaml excludes it. Pipe secrets in with
    `--text -` to keep them out of your shell history.

    \b
    Examples:
      ralf forget DEC-003
      ralf forget TASK-001 cp-002 --dry-run
      ralf forget TASK-001 --text - --yes < secret.txt
      ralf forget TASK-001 --yes
      ralf forget --run survey

    \b
    Exit status: 0, even if nothing held the words · 1 unwritable; some copies remain (they are listed) ·
    2 invalid name, text too short, not confirmed, an agent runs it · 3 no such route or item ·
    4 damaged data (nothing is erased) · 5 busy
    """
    from ralf_cli.output import emit_json, fields_of, say
    from ralf_cli.person import check_no_agent
    from ralf_cli.terminal import complain

    if run is not None:
        if route is not None or text is not None or dry_run:
            raise click.UsageError("--run stands alone")
        _forget_run(run, root, yes=yes, as_json=as_json)
        return
    if route is None and text is None:
        raise Misused(ctx, "name what is to be forgotten", "ralf forget ROUTE [ID]")
    if route is None or (id is None and text is None and is_label(ctx, route)):
        route, id = meant(ctx), route  # noqa: A001
    if id is not None and text is not None:
        raise click.UsageError("ID and --text: which of them?")
    if text == "-":
        text = sys.stdin.read().strip("\n")
    if not dry_run:
        check_no_agent(route, "nothing was forgotten", f"ralf forget {route}")
    if not dry_run and not yes:
        looked = _forget(route, id, text, dry_run=True, root=root)
        if looked.touched:
            _confirm(looked)
    done = _forget(route, id, text, dry_run=dry_run, root=root)
    if as_json:
        emit_json(fields_of(done))
    else:
        for line in _told(done):
            click.echo(line)
    if done.done and done.files and _is_shared(root):
        say("shared/ is in git: commit it; git history still has what it had")
    if done.left:
        complain(f"{done.route}: the words still stand in {', '.join(done.left)}", "purge these by hand")
        ctx.exit(1)


def _forget_run(run: str, root: str | None, *, yes: bool, as_json: bool) -> None:
    """Delete all that is kept of a run, once a person has said so."""
    from ralf.agent import forget_run
    from ralf_cli.output import emit_json
    from ralf_cli.person import check_no_agent

    check_no_agent(run, "nothing was deleted", f"ralf forget --run {run}")
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("nothing was deleted: this cannot be undone, so say --yes")
        if not click.confirm(f"Delete all of {run}? This cannot be undone", err=True):
            raise click.UsageError("nothing was deleted")
    gone = forget_run(run, root=root)
    if as_json:
        emit_json({"run": run, "deleted": gone})
    else:
        click.echo(f"{run}: deleted, {gone:,} records and blobs")


def _forget(route: str, id: str | None, text: str | None, *, dry_run: bool, root: str | None) -> Forgotten:  # noqa: A002
    if id is None and text is None:
        from ralf.maintenance.forget import forget_route

        return forget_route(route, dry_run=dry_run, root=root)
    from ralf.maintenance.forget import forget

    return forget(route, id, text=text, dry_run=dry_run, root=root)


def _confirm(looked: Forgotten) -> None:
    """Ask on a terminal; anywhere else nothing is purged that `--yes` does not say."""
    from ralf_cli.output import say

    for line in _told(looked):
        say(line)
    what = f"the whole route {looked.route}" if looked.whole else ", ".join(looked.ids) or "this text"
    if not sys.stdin.isatty():
        raise click.UsageError("nothing was forgotten: this cannot be undone, so say --yes")
    if not click.confirm(f"Forget {what}? This cannot be undone", err=True):
        raise click.UsageError("nothing was forgotten")


def _told(found: Forgotten) -> list[str]:
    """What was touched, or would be, in words, and what is not reached."""
    from ralf.maintenance.purge import NOT_REACHED

    unreached = [] if found.whole else [f"  not looked for: {', '.join(NOT_REACHED)}"]
    if not found.touched:
        return [f"{found.route}: nothing to forget: the words stand nowhere", *unreached]
    what = "the whole route" if found.whole else ", ".join(found.ids) or "a text"
    records = ", ".join(f"{count} of {route}" for route, count in sorted(found.records.items()))
    lines = [f"{found.route}: {'forgot' if found.done else 'would forget'} {what}"]
    if records:
        lines.append(f"  records: {records}")
    if found.files:
        lines.append(f"  files: {', '.join(found.files)}")
    if found.blobs:
        lines.append(f"  evidence: {found.blobs}")
    return [*lines, *unreached]


def _is_shared(root: str | None) -> bool:
    """Whether git sees what this clone shares."""
    from ralf import project as projects
    from ralf.storage.files import content_of

    try:
        return b"!shared/" in content_of(projects.find(root).folder / ".gitignore")
    except OSError:
        return False
