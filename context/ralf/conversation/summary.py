"""Sums up what a conversation is cut by: the cut part becomes a checkpoint of a route, and the route's brief leads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from ralf import project as projects
from ralf.brief.views import render
from ralf.checkpointing.flow import CheckpointReport, checkpoint
from ralf.checkpointing.section import Summarizer
from ralf.conversation.messages import Count, Message, cost, is_system
from ralf.conversation.transcript import Conversation
from ralf.conversation.truncation import Pins, Truncation, pinned, truncate
from ralf.errors import RalfError, TranscriptChanged, UsageError
from ralf.finding.reader import get_context
from ralf.project import Project
from ralf.text import cleaning, tokens
from ralf.text.frozen import dataclass

SHARE = 0.6
"""Of the budget that is filled when a conversation has to be cut, so that not every turn cuts it."""

BRIEF = 0.25
"""Of that, for the brief."""

_SURROUNDING = 40  # tokens of the message around a brief


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation whose older part is a checkpoint.

    messages    those that stay, with the route's brief as a user's message behind the system prompt
    truncation  what was cut
    report      of the checkpoint, with what a model cost (`refinements`); None where nothing was cut, or it failed
    warning     why there is no summary although messages were cut, "" for nothing
    """

    messages: tuple[Message, ...]
    truncation: Truncation
    report: CheckpointReport | None = None
    warning: str = ""


def summarize(
    messages: Sequence[Message],
    budget: int,
    route: str,
    *,
    pins: Pins = (),
    root: str | os.PathLike[str] | None = None,
    summarizer: Summarizer | str | None = None,
    count: Count = tokens.count,
) -> Summary:
    """A conversation that fits into `budget` tokens, with a summary of what it was cut by.

    route       the route whose checkpoint the cut messages become, by the flow of every checkpoint: redacted first, and
                what was taken before is not taken again
    summarizer  as in `ralf.checkpoint`: a model is called once for each checkpoint, and its cost recorded
    pins, count see `truncate`

    A conversation that fits is returned as it is. Else it is cut to `SHARE` of the budget, and one message with the
    brief of the route, which stands for all that was ever cut, comes behind the system prompt; the next call replaces
    it. Never over budget. Where the checkpoint fails the messages are cut all the same, and `warning` says why.
    UsageError for a refused route or budget.
    """
    whole = truncate(messages, budget, pins=pins, count=count)
    if not whole.cut and not whole.shortened:
        return Summary(whole.messages, whole)
    stay = set(pinned(messages, pins))
    places = [index for index, message in enumerate(messages) if index in stay or not is_summary(message)]
    own = [messages[index] for index in places]
    share = int(budget * SHARE)
    room = int(share * BRIEF)
    cut = truncate(own, share - room, pins=[n for n, index in enumerate(places) if index in stay], count=count)
    report, warning = None, ""
    if gone := sorted({*cut.cut, *cut.shortened}):
        try:
            report = _checkpoint(projects.find(root), route, [own[index] for index in gone], summarizer)
        except UsageError:
            raise
        except (RalfError, OSError) as error:
            warning = str(error)
    kept = list(cut.messages)
    if report is not None:
        text = render(get_context(route, root=root), max(0, room - _SURROUNDING), section="brief")
        brief = {"role": "user", "content": text}
        if text and cut.tokens + cost(brief, count) <= budget:
            kept.insert(next((place for place, one in enumerate(kept) if not is_system(one)), len(kept)), brief)
    return Summary(tuple(kept), cut, report, warning)


def is_summary(message: Message) -> bool:
    """Whether a message is ours, a brief or a summary, and nothing else."""
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str) or not content.startswith(cleaning.OWN_OUTPUT):
        return False
    return not cleaning.outside(content).strip()


def _checkpoint(
    project: Project, route: str, cut: Sequence[Message], summarizer: Summarizer | str | None
) -> CheckpointReport:
    """A checkpoint of messages.

    A conversation that is handed over whole each time begins with the same message: it is one session, of which what
    was taken stays taken. One whose beginning has changed since is another.
    """
    same, other = (Conversation(cut, named, project.root) for named in (1, len(cut)))
    with suppress(TranscriptChanged):
        return checkpoint(route, same, root=project.root, summarizer=summarizer, reason="compaction")
    return checkpoint(route, other, root=project.root, summarizer=summarizer, reason="compaction")
