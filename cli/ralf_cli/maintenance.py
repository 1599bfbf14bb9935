"""`ralf doctor`, `ralf forget` and `ralf gc`: the installation and the store as a whole."""

from __future__ import annotations

import sys

import click

from ralf.agent import forget_run
from ralf.maintenance import repair as repairs, verify as verifying
from ralf.maintenance.evidence import drop_evidence
from ralf.maintenance.forget import Forgotten, forget as forget_text, forget_route
from ralf.maintenance.purge import NOT_REACHED
from ralf.memory.model import check_agent
from ralf.memory.writing import load, tidy
from ralf.text.cleaning import clean
from ralf_cli.command import command, given, is_json, project, root
from ralf_cli.options import Misused, is_label, meant, route_argument
from ralf_cli.output import answer, complain, emit_json, fields_of, given_text, say, table, typed, warn
from ralf_cli.person import check_no_agent, check_person
from ralf_cli.tables import so_many
from ralf_integrations.doctor import examine

_NOTES = 20  # that are printed: old evidence that was dropped is a note a checkpoint


@command()
@route_argument()
@click.option("--store", is_flag=True, help="Only the store: every record, file and blob, or those of ROUTE.")
@click.option("--repair", is_flag=True, help="Repair the damage of the store and report each repair.")
@click.pass_context
def doctor(ctx: click.Context, route: str | None, store: bool, repair: bool) -> None:
    """Check the installation from end to end and suggest fixes; with --store or --repair the whole store.

    Without --repair it changes nothing, and it never executes code from the repository. A repair works from the
    journal: what cannot be read is kept beside it, in a file that ends with .damaged, and the journal records the loss.

    \b
    Exit status: 0, even with warnings · 1 there is a problem · 4 damaged data (left)
    """
    if store or repair or route is not None:
        _check_store(ctx, route, repair=repair)
        return
    colours = {"ok": "green", "warning": "magenta", "problem": "red"}
    found = []
    for check in examine(project()):
        found.append(check)
        if not is_json():
            click.secho(f"{check.state:<8} ", fg=colours[check.state], nl=False)
            click.echo(clean(f"{check.name:<12} {check.what}"))
            if check.hint:
                click.echo(clean(f"{'':<22}→ {typed(check.hint)}"))
    if is_json():
        emit_json([check._asdict() for check in found])
    if any(check.state == "problem" for check in found):
        ctx.exit(1)


def _check_store(ctx: click.Context, route: str | None, *, repair: bool) -> None:
    """Verify the records, files and evidence of a route or of all, and repair what can be; exit status 4 where damage
    is left. Leftovers of a crash are no damage.
    """
    mended = repairs.repair(route, root=root()) if repair else None
    report = mended.after if mended is not None else verifying.verify(route, root=root())
    if is_json():
        emit_json(fields_of(mended or report, damaged=report.damaged))
    else:
        for done in mended.done if mended is not None else ():
            click.echo(f"{done.path}: {done.what}")
        notes = [f"{finding.path}: {finding.what}" for finding in report.findings if not finding.damage]
        for finding in report.findings:
            if finding.damage:
                hint = f"ralf doctor --repair would {finding.repair}" if finding.repair else "mend it by hand"
                complain(f"{finding.path}: {finding.what}", hint)
        for note in notes[:_NOTES]:
            say(f"note: {note}")
        if len(notes) > _NOTES:
            say(f"{len(notes) - _NOTES:,} more notes: --json")
        counts = ((len(report.routes), "route"), (report.records, "record"), (report.blobs, "blob"))
        damaged = sum(finding.damage for finding in report.findings)
        looked = ", ".join(so_many(count, noun) for count, noun in counts)
        click.echo(f"{looked}: {f'{damaged:,} damaged' if damaged else 'all whole'}")
    if report.damaged:
        ctx.exit(4)


@command("dry_run")
@click.option("--evidence-older-than", "age", metavar="AGE", help="Of segments that ended before, e.g. 90d, 4w.")
@click.option("--memory", metavar="AGENT", help="Items of a memory (main) that proved of no use.")
def gc(age: str | None, memory: str | None) -> None:
    """Drop old evidence: the transcript text behind checkpoints. Nothing else ever drops any. With --memory: items
    of little confidence and use; what a person said stays, and `ralf memory edit --to` brings them back.

    Lists it, says what `ralf show` loses, and asks. The newest checkpoint of each route keeps its evidence. Only a
    person can drop it, on a terminal; --json and --dry-run only list it.
    """
    if memory is not None and age is None:
        _tidy(memory)
        return
    if age is None or memory is not None:
        raise click.UsageError("say what is dropped: --evidence-older-than AGE or --memory AGENT")
    report = drop_evidence(age, root=root())
    if is_json():
        emit_json(fields_of(report, freed=report.freed))
        return
    if report.just_put:
        say(f"{report.just_put} more were put within the last ten minutes: later")
    if not report.dropped:
        click.echo(f"nothing to drop; {report.kept:,} stay")
        return
    freed = f"{report.freed:,} bytes of evidence"
    rows = [(one.route or "-", ", ".join(one.checkpoints) or "-", one.time or "-", one.size) for one in report.dropped]
    table(("ROUTE", "CHECKPOINT", "TIME", "BYTES"), rows, right=(3,))
    of = sum(len(one.checkpoints) for one in report.dropped)
    say(f"of {so_many(of, 'checkpoint')} `ralf show` will show no words any more: only session, lines and hash")
    if given("dry_run"):
        click.echo(f"would drop {freed}; {report.kept:,} stay")
        return
    check_person(project().folder, "nothing was dropped", f"ralf gc --evidence-older-than {age}", answers=True)
    if not click.confirm(f"Drop {freed}? This cannot be undone", err=True):
        raise click.UsageError("nothing was dropped")
    report = drop_evidence(age, remove=True, root=root())
    click.echo(f"dropped {report.freed:,} bytes of evidence; {report.kept:,} stay")


def _tidy(agent: str) -> None:
    if given("dry_run"):
        raise click.UsageError("--memory stands alone")
    whose = project(), check_agent(agent)
    before, made = load(*whose), tidy(*whose)
    warn(made.warnings)
    gone = len(before.items) - len(made.items)
    what = f"{gone:,} fewer; to undo it: ralf memory edit --to r{before.revision}" if gone else "nothing to drop"
    answer({"agent": agent, "items": len(made.items), "dropped": gone}, f"{agent}: {len(made.items):,} items, {what}")


@command("dry_run", "yes")
@route_argument()
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--text", metavar="TEXT", help="Erase this text wherever it appears; - reads it from stdin.")
@click.option("--run", metavar="RUN", help="Delete all that is kept of a run instead: records, states, output.")
@click.pass_context
def forget(ctx: click.Context, route: str | None, id_: str | None, text: str | None, run: str | None) -> None:
    """Erase the text of ROUTE's decision or checkpoint ID, or any text, from the entire store; without either, all
    of ROUTE, which then has to be named.

    Erases it from records, evidence, files, caches and the index, and reads them back to verify. This cannot be undone.
    The text is found regardless of case, white space, Markdown, NFC or NFD, JSON escapes, percent encoding and HTML
    entities. It cannot reach git history, backups or the client's transcripts. Pipe secrets in with `--text -`.

    \b
    Examples:
      ralf forget DEC-003
      ralf forget TASK-001 cp-002 --dry-run
      ralf forget TASK-001 --text - --yes < secret.txt
      ralf forget TASK-001 --yes
      ralf forget --run survey

    \b
    Exit status: 0, even if nothing held the words · 1 unwritable; some copies remain (they are listed) ·
    4 damaged data (nothing is erased)
    """
    if run is not None:
        if route is not None or text is not None or given("dry_run"):
            raise click.UsageError("--run stands alone")
        _forget_run(run)
        return
    if route is None and text is None:
        raise Misused("name what is to be forgotten", "ralf forget ROUTE [ID]")
    if route is None or (id_ is None and text is None and is_label(route)):
        route, id_ = meant(), route
    if id_ is not None and text is not None:
        raise click.UsageError("ID and --text: which of them?")
    if text == "-":
        text = given_text(text).strip("\n")
    if not given("dry_run"):
        check_no_agent(route, "nothing was forgotten", f"ralf forget {route}")
        if not given("yes"):
            looked = _forget(route, id_, text, dry_run=True)
            if not looked.touched:
                answer(looked, *_told(looked))
                return
            for line in _told(looked):
                say(line)
            what = f"the whole route {looked.route}" if looked.whole else ", ".join(looked.ids) or "this text"
            _confirm(f"Forget {what}", "nothing was forgotten")
    done = _forget(route, id_, text, dry_run=bool(given("dry_run")))
    answer(done, *_told(done))
    if done.done and done.files and project().git.shares():
        say("shared/ is in git: commit it; git history still has what it had")
    if done.left:
        complain(f"{done.route}: the words still stand in {', '.join(done.left)}", "purge these by hand")
        ctx.exit(1)


def _forget_run(run: str) -> None:
    check_no_agent(run, "nothing was deleted", f"ralf forget --run {run}")
    if not given("yes"):
        _confirm(f"Delete all of {run}", "nothing was deleted")
    gone = forget_run(run, root=root())
    answer({"run": run, "deleted": gone}, f"{run}: deleted, {gone:,} records and blobs")


def _confirm(question: str, refused: str) -> None:
    """Ask on a terminal; UsageError where nobody says yes."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"{refused}: this cannot be undone, so say --yes")
    if not click.confirm(f"{question}? This cannot be undone", err=True):
        raise click.UsageError(refused)


def _forget(route: str, id_: str | None, text: str | None, *, dry_run: bool) -> Forgotten:
    if id_ is None and text is None:
        return forget_route(route, dry_run=dry_run, root=root())
    return forget_text(route, id_, text=text, dry_run=dry_run, root=root())


def _told(found: Forgotten) -> list[str]:
    unreached = [] if found.whole else [f"  not looked for: {', '.join(NOT_REACHED)}"]
    if not found.touched:
        return [f"{found.route}: nothing to forget: the words stand nowhere", *unreached]
    what = "the whole route" if found.whole else ", ".join(found.ids) or "a text"
    records = ", ".join(f"{count} of {route}" for route, count in sorted(found.records.items()))
    touched = (("records", records), ("files", ", ".join(found.files)), ("evidence", found.blobs))
    lines = [f"  {name}: {value}" for name, value in touched if value]
    return [f"{found.route}: {'forgot' if found.done else 'would forget'} {what}", *lines, *unreached]
