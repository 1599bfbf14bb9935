"""`ralf doctor`, `ralf gc`, `ralf forget` and `ralf trust`: the installation and the store as a whole."""

from __future__ import annotations

import shlex
import sys
from itertools import chain, groupby

import click

from ralf import routing
from ralf.agent import forget_run
from ralf.maintenance import ownership, repair as repairs, trust as trusting, verify as verifying
from ralf.maintenance.evidence import drop_evidence
from ralf.maintenance.forget import Forgotten, forget as forget_text, forget_route
from ralf.maintenance.purge import NOT_REACHED
from ralf.memory.model import check_agent
from ralf.memory.writing import load, tidy
from ralf.text.cleaning import clean, revealed
from ralf_cli.command import command, given, is_json, project, root
from ralf_cli.options import Misused, is_label, meant, route_argument
from ralf_cli.output import answer, complain, emit_json, fields_of, given_text, say, so_many, table, typed, warn
from ralf_cli.person import check_no_agent, check_person
from ralf_integrations.doctor import examine

_NOTES = 20  # notes that are printed: dropped evidence is a note per checkpoint


@command()
@route_argument()
@click.option("--store", is_flag=True, help="Check only the store: all records, files and blobs, or those of ROUTE.")
@click.option("--repair", is_flag=True, help="Repair a damaged store and report each repair.")
@click.pass_context
def doctor(ctx: click.Context, route: str | None, store: bool, repair: bool) -> None:
    """Check the installation and suggest fixes. With --store, --repair or ROUTE, check the store instead.

    Without --repair, `ralf doctor` changes nothing. It never executes code from the repository. A repair uses the
    journal: ralf saves unreadable lines in a .damaged file next to the journal, and the journal records the loss.

    \b
    Exit status: 0, even with warnings · 1 problem found · 4 damage remains
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
    """Verify, and with `repair` repair, the store or a route; exit status 4 if damage is left. Leftovers of a crash are
    not damage.
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
                hint = f"ralf doctor --repair would {finding.repair}" if finding.repair else "repair it by hand"
                complain(f"{finding.path}: {finding.what}", hint)
        for note in notes[:_NOTES]:
            say(f"note: {note}")
        if len(notes) > _NOTES:
            say(f"{len(notes) - _NOTES:,} more notes: --json")
        counts = ((len(report.routes), "route"), (report.records, "record"), (report.blobs, "blob"))
        damaged = sum(finding.damage for finding in report.findings)
        looked = ", ".join(so_many(count, noun) for count, noun in counts)
        click.echo(f"{looked}: {f'{damaged:,} damaged' if damaged else 'no damage'}")
    if report.damaged:
        ctx.exit(4)


@command("dry_run")
@click.option(
    "--evidence-older-than", "age", metavar="AGE", help="Drop evidence of segments older than AGE, e.g. 90d, 4w."
)
@click.option("--memory", metavar="AGENT", help="Drop low-value items from a memory, e.g. main.")
def gc(age: str | None, memory: str | None) -> None:
    """Drop old evidence: the transcript text behind checkpoints. Nothing else deletes evidence by age. With --memory,
    drop items with low confidence and few uses, except items from a person; `ralf memory edit --to` restores them.

    ralf lists the evidence and the checkpoints that lose their text in `ralf show`, then asks for confirmation. The
    newest checkpoint of each route keeps its evidence. Only a person at a terminal can drop evidence; --json and
    --dry-run only list it.
    """
    if memory is not None and age is None:
        _tidy(memory)
        return
    if age is None or memory is not None:
        raise click.UsageError("name one: --evidence-older-than AGE or --memory AGENT")
    report = drop_evidence(age, root=root())
    if is_json():
        emit_json(fields_of(report, freed=report.freed))
        return
    if report.just_put:
        say(f"{report.just_put} more were stored in the last ten minutes: not yet dropped")
    if not report.dropped:
        click.echo(f"nothing to drop; {report.kept:,} stay")
        return
    freed = f"{report.freed:,} bytes of evidence"
    rows = [(one.route or "-", ", ".join(one.checkpoints) or "-", one.time or "-", one.size) for one in report.dropped]
    table(("ROUTE", "CHECKPOINT", "TIME", "BYTES"), rows, right=(3,))
    of = sum(len(one.checkpoints) for one in report.dropped)
    say(f"`ralf show` will no longer show the text of {so_many(of, 'checkpoint')}: only session, lines and hash")
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
        raise click.UsageError("--memory takes no --dry-run")
    whose = project(), check_agent(agent)
    before, made = load(*whose), tidy(*whose)
    warn(made.warnings)
    gone = len(before.items) - len(made.items)
    what = f"{gone:,} fewer; to undo it: ralf memory edit --to r{before.revision}" if gone else "nothing to drop"
    answer({"agent": agent, "items": len(made.items), "dropped": gone}, f"{agent}: {len(made.items):,} items, {what}")


@command("dry_run", "yes")
@route_argument()
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--text", metavar="TEXT", help="Erase this text everywhere; - reads standard input.")
@click.option("--run", metavar="RUN", help="Delete a run: its records, states and output.")
@click.pass_context
def forget(ctx: click.Context, route: str | None, id_: str | None, text: str | None, run: str | None) -> None:
    """Erase a decision or checkpoint (ID) of ROUTE, or any text (--text), from the entire store. Without ID and
    --text, erase all of ROUTE, which is then required.

    ralf erases the text from records, evidence, files, caches and the index, and reads them back to verify. This cannot
    be undone. The search ignores differences in case, white space, Markdown, NFC or NFD, JSON escapes, percent encoding
    and HTML entities. ralf cannot change git history, backups and client transcripts. Pipe secrets in: `--text -`.

    \b
    Examples:
      ralf forget DEC-003
      ralf forget TASK-001 cp-002 --dry-run
      ralf forget TASK-001 --text - --yes < secret.txt
      ralf forget TASK-001 --yes
      ralf forget --run survey

    \b
    Exit status: 0, even if the text was not found · 1 not writable; ralf lists the remaining copies ·
    4 damaged data; nothing is erased
    """
    if run is not None:
        if route is not None or text is not None or given("dry_run"):
            raise click.UsageError("--run takes no ROUTE, --text and --dry-run")
        _forget_run(run)
        return
    if route is None and text is None:
        raise Misused("name the ROUTE or a --text", "ralf forget ROUTE [ID]")
    if route is None or (id_ is None and text is None and is_label(route)):
        route, id_ = meant(), route
    if id_ is not None and text is not None:
        raise click.UsageError("ID and --text exclude each other")
    if text == "-":
        text = given_text(text).strip("\n")
    if not given("dry_run"):
        check_no_agent(route, "nothing was forgotten", f"ralf forget {route}")
        if not given("yes"):
            looked = _forget(route, id_, text, dry_run=True)
            if not looked.touched:
                answer(looked, *_lines(looked))
                return
            for line in _lines(looked):
                say(line)
            what = f"the whole route {looked.route}" if looked.whole else ", ".join(looked.ids) or "this text"
            again = shlex.join(["ralf", "forget", route, *([id_] if id_ else ["--text", "-"] if text else []), "--yes"])
            _confirm(f"Forget {what}", "nothing was forgotten", again)
    done = _forget(route, id_, text, dry_run=bool(given("dry_run")))
    answer(done, *_lines(done))
    if done.done and done.files and project().git.shares():
        say("shared/ is in git: commit it; the text is still in git's history")
    if done.left:
        complain(f"{done.route}: the text remains in {', '.join(done.left)}", "erase it there by hand")
        ctx.exit(1)


def _forget_run(run: str) -> None:
    check_no_agent(run, "nothing was deleted", f"ralf forget --run {run}")
    if not given("yes"):
        _confirm(f"Delete all of {run}", "nothing was deleted", shlex.join(["ralf", "forget", "--run", run, "--yes"]))
    gone = forget_run(run, root=root())
    answer({"run": run, "deleted": gone}, f"{run}: deleted, {gone:,} records and blobs")


def _confirm(question: str, refused: str, again: str) -> None:
    """Ask on a terminal; UsageError where nobody says yes.

    again  the command that does it without asking
    """
    if not sys.stdin.isatty():
        raise Misused(f"{refused}: this cannot be undone, and needs --yes without a terminal", again)
    if not click.confirm(f"{question}? This cannot be undone", err=True):
        raise click.UsageError(refused)


def _forget(route: str, id_: str | None, text: str | None, *, dry_run: bool) -> Forgotten:
    if id_ is None and text is None:
        return forget_route(route, dry_run=dry_run, root=root())
    return forget_text(route, id_, text=text, dry_run=dry_run, root=root())


def _lines(found: Forgotten) -> list[str]:
    unreached = [] if found.whole else [f"  not searched: {', '.join(NOT_REACHED)}"]
    if not found.touched:
        return [f"{found.route}: nothing to forget: the text was not found", *unreached]
    what = "the whole route" if found.whole else ", ".join(found.ids) or "a text"
    records = ", ".join(f"{count} of {route}" for route, count in sorted(found.records.items()))
    touched = (("records", records), ("files", ", ".join(found.files)), ("evidence", found.blobs))
    lines = [f"  {name}: {value}" for name, value in touched if value]
    return [f"{found.route}: {'forgot' if found.done else 'would forget'} {what}", *lines, *unreached]


# ---- content from elsewhere ----


@command()
@route_argument("name")
def trust(name: str | None) -> None:
    """Show the foreign content in the store, and accept it: content from a repository, archive or copy, content that
    other clones share (`ralf init --share`), and a config.local.yaml with commands that you have not allowed.

    ROUTE can also be a task, an agent's memory, or a person who shares content. Until you accept the content, hooks do
    not pass it to agents, and agents cannot claim its tasks. Only a person at a terminal can accept content.
    """
    here = project()
    streams = {} if name else ownership.find_theirs(here)
    counts = {stream: len(digests) for stream, digests in streams.items()}
    found = trusting.everything(here, name or "")
    if name and not found and not trusting.is_known(here, name):
        found = trusting.everything(here, routing.existing(here, name))
    if is_json():
        foreign = [{"kind": one.kind, "name": one.name, "text": one.text} for one in found]
        emit_json({"streams": counts, "foreign": foreign})
        return
    if not found and not streams:
        shares = name is not None and trusting.shares(here, name)
        what = "shares nothing new" if shares else "no content from elsewhere"
        click.echo(f"{name or here.folder}: {what}")
        return
    displayed = _show_streams(counts)
    for one in found:
        click.echo(f"{one.kind} {one.name}: not written by your ralf:")
        _show(one.text)
    command = " ".join(filter(None, ["ralf trust", name]))
    check_person(here.folder, "nothing was accepted", command, answers=True)
    if streams and click.confirm("Did your own ralf write these records? They will count as yours", err=True):
        if displayed != streams:
            raise trusting.changed(here.folder)
        ownership.adopt(here, streams)
        click.echo(f"{here.folder}: accepted as yours")
        known = {(one.kind, one.name, one.text) for one in found}
        found = [one for one in trusting.everything(here) if (one.kind, one.name, one.text) in known]
    for kind, group in groupby(found, key=lambda one: one.kind):
        these = list(group)
        names = f"{kind} {these[0].name}" if len(these) == 1 else f"these {len(these):,} ({kind})"
        if click.confirm(f"Did you read {names}, and {these[0].asks}?", err=True):
            for one in these:
                for line in (f"{one.name}: accepted", *(one.accept() or ())):
                    click.echo(line)


def _show_streams(streams: dict[str, int]) -> ownership.Theirs:
    """Show all records of streams that are not this user's; return their digests."""
    digests = {}
    if streams:
        told = f"{so_many(sum(streams.values()), 'record')} in {so_many(len(streams), 'stream')}"
        click.echo(f"{told} that your ralf did not write here:")
    for stream, count in streams.items():
        click.echo(f"{stream}: {count:,}")
        records = [*ownership.records_of(project(), stream)]
        for text in chain.from_iterable(ownership.texts_of(project(), record) for record in records):
            _show(text)
        digests[stream] = tuple(map(ownership.digest, records))
    return digests


def _show(text: str) -> None:
    for line in text.splitlines():
        click.echo(f"  {revealed(line)}")
