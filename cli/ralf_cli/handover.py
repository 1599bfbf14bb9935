"""`ralf handover`: what a session, or the user, leaves to whoever goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ralf import routing
from ralf.document.tree import to_tree
from ralf.route.handing_over import hand_over
from ralf_cli.command import command, project, root
from ralf_cli.options import called_now, with_new, with_route
from ralf_cli.output import answer, check_shown, given_back, given_text, text_of, warn
from ralf_cli.person import author


@command()
@with_route
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@with_new
def handover(route: str, file: Path | None, is_new: bool) -> None:
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
    """
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    text = text_of(file) if file is not None else given_text("-" if is_piped else "")
    with given_back(text):
        routing.check_typed(project(), route, is_new=is_new)
        made = hand_over(route, text, author=author(), root=root())
    warn(made.warnings)
    answer(
        {
            "handover": to_tree(made.handover),
            "added": [to_tree(entry) for entry in made.added],
            "ended": list(made.ended),
            "buried": made.buried,
            "text": str(made),
        },
        str(made).replace(made.route, called_now(route), 1),
    )
    check_shown(made.damage)
