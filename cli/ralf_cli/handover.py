"""`ralf handover`: what a session, or the user, leaves to whoever goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ralf_cli.command import command
from ralf_cli.options import called_now, with_json, with_new, with_root, with_route

_MOST = 200_000  # bytes that are read


@command(short_help="Hand over to whoever goes on with a route.")
@with_route
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@with_new
@with_root
@with_json
@click.pass_context
def handover(ctx: click.Context, route: str, file: Path | None, is_new: bool, root: str | None, as_json: bool) -> None:
    """Hand over to whoever goes on with ROUTE, in Markdown on standard input or in FILE.

    It is shown as you write it, first in the brief until newer work makes it old. These parts are read: "## Now" (how
    it stands), "## Why", "## Next" (in order), "## Open" (what nobody answered or checked), "## Decided" (a bullet
    each, then "why:" and "not:" on lines of their own), "## Avoid" (what failed), "## Facts", "## Lasting" (what helps
    in any later task: an offer to the memory). What is open, decided, to be avoided or a fact stays until somebody ends
    it: "- OPEN-001: why" below "## Ended". Names that stand nowhere in the record are named in the answer, and marked.

    What you type at a terminal, outside of an agent's shell, is recorded as yours, unless its output goes into a pipe
    or a file. A quoted 'EOF' keeps the shell from reading what stands in backticks.

    \b
    Examples:
      ralf handover TASK-001 <<'EOF'
      ## Now
      The parser is done, its test `test_fence` fails.
      ## Next
      - Mend `test_fence`
      EOF
      ralf handover TASK-001 notes.md

    \b
    Exit status: 0 · 1 unwritable, disk full · 2 nothing said, invalid name, or nearly an existing one (--new) ·
    3 no such file · 4 damaged route file (the hand-over is in the journal), damaged journal · 5 busy
    """
    from ralf import project as projects, routing
    from ralf.document.tree import to_tree
    from ralf.route.handing_over import hand_over
    from ralf_cli.output import emit_json, given_back, warn
    from ralf_cli.person import author
    from ralf_cli.terminal import complain

    text = _said(route, file)
    with given_back(root, text):
        routing.check_typed(projects.find(root), route, is_new=is_new)
        made = hand_over(route, text, author=author(), root=root)
    warn(made.warnings)
    if as_json:
        added = [to_tree(entry) for entry in made.added]
        emit_json(
            {
                "handover": to_tree(made.handover),
                "added": added,
                "ended": list(made.ended),
                "buried": made.buried,
                "text": str(made),
            }
        )
    else:
        click.echo(str(made).replace(made.route, called_now(root, route), 1))
    if made.damage:
        complain(made.damage, "what was handed over is in the journal; mend the file: the next write shows it")
        ctx.exit(4)


def _said(route: str, file: Path | None) -> str:
    """What stands in the file, or on standard input; nothing where that is a terminal, or closed."""
    from ralf.errors import NotFound, UsageError
    from ralf.storage.files import open_regular

    if file is not None:
        try:
            with open_regular(file, follow=True) as stream:
                text = stream.read(_MOST + 1)
        except FileNotFoundError:
            raise NotFound(file, "no such file", f"ralf handover {route} <<'EOF'") from None
    elif sys.stdin is None or sys.stdin.isatty():
        return ""
    else:
        text = sys.stdin.buffer.read(_MOST + 1)
    if len(text) > _MOST:
        hint = f"say only what the next one cannot find out: ralf handover {route} <<'EOF'"
        raise UsageError(route, f"the hand-over has more than {_MOST:,} bytes: nothing was recorded", hint)
    return text.decode("utf-8", "replace")
