"""What the loop says to a fresh agent, before what `ralf.tasks.refresh` tells it."""

from __future__ import annotations

from ralf import config
from ralf.tasks.model import Task
from ralf.text.cleaning import fenced

_LABEL = "from ralf loop, which started you: what holds for every task"

_STANDING = """\
- Nobody answers questions here. Your claim is in the variable RALF_LEASE, which the commands of ralf read.
- Record what you decide, and why: `ralf decide {route} "WHAT" --because "WHY" --origin agent`
- When you are told that your context window is nearly full, hand over and end without `ralf task done`; a fresh agent
  goes on with the same task: `ralf handover {route} <<'EOF'`, Markdown with "## Now" and "## Next", `EOF`
- End when you hold no task and can claim no other one. Ending while you hold one, without `ralf task done`,
  `ralf task fail` or a hand-over, counts as a failed attempt, and the task is given to another agent.
"""


def standing(task: Task, command: str = config.NAME) -> str:
    """What is asked of every agent, in our fence: nobody takes it for a person's request, or for a rule.

    command  what is typed in place of `ralf`
    """
    return fenced(config.typed(_STANDING.format(route=task.context_route), command), label=_LABEL)
