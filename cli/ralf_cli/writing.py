"""`ralf decide`, `ralf handover` and `ralf edit`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click

import ralf
from ralf import environment, routing
from ralf.errors import RalfError
from ralf.route import corrections
from ralf.route.corrections import pin as pinned
from ralf.route.load import load_state
from ralf.text.cleaning import is_valid
from ralf_cli.command import command, is_json, project, root
from ralf_cli.options import called_now, meant, named_or_meant, with_new, with_route, with_words
from ralf_cli.output import answer, check_shown, complain, echoed, fields_of, given_back, given_text, say, text_of, warn
from ralf_cli.person import author, check_person


@command()
@with_words("[ROUTE] TEXT")
@click.option("--because", metavar="WHY", default="", help="Reason for the decision.")
@click.option(
    "--instead-of", metavar="OPTION", multiple=True, help='Rejected option, as "option: why not" (repeatable).'
)
@click.option("--supersedes", metavar="ID", help="Decision that TEXT replaces, e.g. DEC-003.")
@click.option("--rule", is_flag=True, help="Record a standing rule; every brief quotes it verbatim.")
@click.option("--pin", metavar="LINE", help="Line or id of a message to show in every brief, instead of TEXT.")
@click.option(
    "--origin",
    type=click.Choice(["user", "agent"]),
    help="Author of the decision. Default: user at a terminal, otherwise agent.",
)
@with_new
def decide(
    words: tuple[str, ...],
    because: str,
    instead_of: tuple[str, ...],
    supersedes: str | None,
    rule: bool,
    pin: str | None,
    origin: str | None,
    is_new: bool,
) -> None:
    """Record the decision TEXT in ROUTE with its reason and rejected options. With --pin, pin a message from the user
    instead: every brief then shows the message.

    To remove a pin, use `ralf undo` or edit the route file.

    \b
    Examples:
      ralf decide "Use SQLite in WAL mode" --because "one file, many readers"
      ralf decide TASK-001 "Use FastAPI" --instead-of "Flask: no async" --supersedes DEC-002
      ralf decide TASK-001 "Never push to main" --rule
      ralf decide TASK-001 --pin 212
    """
    route, text = _route_and_text(words, is_pin=pin is not None)
    if origin == "user":
        check_person(called_now(route), "nothing was recorded as yours", "ralf decide")
    with given_back(text, because, *instead_of):
        if pin is None:
            routing.check_order(project(), route, text, "ralf decide")
        routing.check_typed(project(), route, is_new=is_new)
        if pin is not None:
            made = pinned(route, pin, origin=origin or author(), root=root())
            answer(made, f"{called_now(route)}: pinned line {made.line}: {echoed(made.words)}")
            return
        is_made = routing.known(project(), route) is None
        decision = ralf.record_decision(
            route,
            text,
            rationale=because,
            alternatives=instead_of,
            supersedes=supersedes,
            kind="rule" if rule else "decision",
            pinned=rule,
            origin=origin or author(),
            root=root(),
            warn=lambda warning: say(f"warning: {warning}"),
        )
    answer(decision, f"{called_now(route)}: {decision.id}: {echoed(decision.decision)}")
    if is_made:
        say(f"note: {route} is a new route")
    state = load_state(*routing.find(route, root()))
    check_shown(next(iter(state.context.warnings), "") if state is not None else "")


def _route_and_text(words: tuple[str, ...], *, is_pin: bool) -> tuple[str, str]:
    """The route and the text of `[ROUTE] TEXT`; of `[ROUTE]` where a pin takes the place of the text."""
    most = 1 if is_pin else 2
    if len(words) > most:
        raise click.UsageError(f"Got unexpected extra argument ({words[most]})", click.get_current_context())
    if len(words) == most:
        return named_or_meant(words[0]), "" if is_pin else words[1]
    if not is_pin and (not words or (is_valid(words[0]) and routing.known(project(), words[0]) is not None)):
        raise click.UsageError("Missing argument 'TEXT'.", click.get_current_context())
    return meant(), "".join(words)


@command()
@with_route
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@with_new
def handover(route: str, file: Path | None, is_new: bool) -> None:
    """Record a hand-over for the next agent on ROUTE, in Markdown from FILE or standard input.

    The brief begins with the hand-over until newer work supersedes it. ralf reads these sections: "## Now" (current
    state), "## Why", "## Next" (ordered steps), "## Open" (unanswered or unchecked points), "## Decided" (one bullet
    per decision, with "why:" and "not:" on the lines below), "## Avoid" (failed approaches), "## Facts", and "##
    Lasting" (offered to the memory for later tasks). Items in Open, Decided, Avoid and Facts remain active until a
    hand-over closes them with "- OPEN-001: why" under "## Ended". ralf marks names, such as paths and numbers, that
    appear nowhere in the record of the session.

    ralf records a hand-over as yours if you run the command at a terminal, outside an agent's shell, without
    redirecting its output. Quote 'EOF' to prevent the shell from expanding backticks.

    \b
    Examples:
      ralf handover TASK-001 <<'EOF'
      ## Now
      The parser is done, its test `test_fence` fails.
      ## Next
      - Fix `test_fence`
      EOF
      ralf handover TASK-001 notes.md
    """
    from ralf.route.handing_over import hand_over

    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    text = text_of(file) if file is not None else given_text("-" if is_piped else "")
    with given_back(text):
        routing.check_typed(project(), route, is_new=is_new)
        made = hand_over(route, text, author=author(), root=root())
    warn(made.warnings)
    answer(fields_of(made, text=str(made)), str(made).replace(made.route, called_now(route), 1))
    check_shown(made.damage)


@command()
@with_route
@click.pass_context
def edit(ctx: click.Context, route: str) -> None:
    """Open the route file of ROUTE in $VISUAL or $EDITOR, and merge your changes when the editor exits.

    You can also edit the file directly at any time; the next write merges your changes. If you delete a decision, ralf
    drops it. ralf never overwrites an invalid file.
    """
    from ralf.route import history
    from ralf_cli.history import emit_words

    again = f"ralf edit {route}"
    path = project().route_file(routing.existing(project(), route))
    check_person(route, "no editor was started", f"{again}; or change the file itself: {path}")
    opened = corrections.take_in(route, root=root())
    if opened.damage:
        say(f"warning: {opened.damage}")  # before the editor shows the file
    _run_editor(opened.path, again)
    done = corrections.take_in(opened.route, root=root())
    if done.damage:
        anew = f"ralf doctor {opened.route} --repair"
        complain(done.damage, f"{again}; or have it written anew from the journal: {anew}")
        ctx.exit(4)
    warn(done.warnings)
    changed = history.diff(done.route, f"r{opened.revision}", f"r{done.revision}", root=root())
    outcome = f"recorded, revision {done.revision}" if changed.changes else "nothing changed"
    if not is_json():
        emit_words(changed.words)
    answer(fields_of(done, words=changed.words, changes=changed.changes), f"{done.route}: {outcome}")


def _run_editor(path: Path, again: str) -> None:
    """Run the person's editor on a file and wait for it. RalfError if it fails; `again`: the command to repeat it."""
    editor = environment.editor()
    try:
        status = subprocess.call([*shlex.split(editor), str(path)])
    except (OSError, ValueError) as error:
        what = f"the editor cannot be started: {getattr(error, 'strerror', None) or error}"
        raise RalfError(editor, what, "name another: export EDITOR=nano") from None
    if status:
        raise RalfError(editor, f"ended with status {status}; what it saved stays in {path}", again)
