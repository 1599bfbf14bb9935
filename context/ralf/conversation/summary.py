"""Sums up what a conversation is cut by: the cut part becomes a checkpoint of a route, and the route's brief leads."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ralf import project as projects
from ralf.brief.views import render
from ralf.checkpointing.flow import CheckpointReport, checkpoint
from ralf.checkpointing.section import Summarizer
from ralf.conversation.messages import Count, Message, checked, cost, is_system
from ralf.conversation.truncation import Pins, Truncation, truncate
from ralf.errors import RalfError, TranscriptChanged, UsageError
from ralf.finding.reader import get_context
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.redact.redactor import Redactor
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
    count: Count | None = None,
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
    counted = count if count is not None else tokens.count
    if not isinstance(budget, int) or budget < 0:
        raise UsageError(ascii(budget)[:80], "a budget is a whole number of tokens, 0 or more")
    checked(messages)
    size = sum(cost(message, counted) for message in messages)
    if size <= budget:
        return Summary(tuple(messages), Truncation(tuple(messages), tokens=size))
    pinned = pins if callable(pins) else {id(messages[index]) for index in pins if 0 <= index < len(messages)}
    own = [message for message in messages if not is_summary(message)]

    def is_pinned(message: Message) -> bool:
        return pinned(message) if callable(pinned) else id(message) in pinned

    share = int(budget * SHARE)
    room = int(share * BRIEF)
    cut = truncate(own, share - room, pins=is_pinned, count=counted)
    report, warning = None, ""
    if gone := sorted({*cut.cut, *cut.shortened}):
        try:
            report = _checkpoint(projects.find(root), route, [own[index] for index in gone], summarizer)
        except UsageError:
            raise
        except (RalfError, OSError) as error:
            warning = str(error)
    brief = _brief(route, room, root) if report is not None else None
    kept = list(cut.messages)
    if brief is not None and cut.tokens + cost(brief, counted) <= budget:
        kept.insert(sum(1 for _ in _system_prompt(kept)), brief)
    return Summary(tuple(kept), cut, report, warning)


def _system_prompt(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages of the system prompt that lead a conversation."""
    for place, message in enumerate(messages):
        if not is_system(message):
            return messages[:place]
    return messages


def is_summary(message: Message) -> bool:
    """Whether a message is ours, a brief or a summary, and nothing else."""
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str) or not content.startswith(cleaning.OWN_OUTPUT):
        return False
    return not cleaning.outside(content).strip()


def _brief(route: str, room: int, root: str | os.PathLike[str] | None) -> Message | None:
    text = render(get_context(route, root=root), max(0, room - _SURROUNDING), section="brief")
    return {"role": "user", "content": text} if text else None


def _checkpoint(
    project: Project, route: str, cut: Sequence[Message], summarizer: Summarizer | str | None
) -> CheckpointReport:
    """A checkpoint of messages.

    A conversation that is handed over whole each time begins with the same message: it is one session, of which what
    was taken stays taken. One whose beginning has changed since is another.
    """
    for named in (cut[:1], cut):
        with transcript_of(project, cut, named) as path:
            try:
                return checkpoint(route, path, root=project.root, summarizer=summarizer, reason="compaction")
            except TranscriptChanged:
                if named is cut:
                    raise
    raise AssertionError("unreachable")


@contextmanager
def transcript_of(project: Project, messages: Sequence[Message], named: Sequence[Message]) -> Iterator[Path]:
    """Messages as the transcript of a session, redacted, in a folder of this user's, and only as long as it takes.

    named  the messages by which the session is called
    """
    redactor = redactor_for(project)
    lines = [_line(message, redactor) for message in messages]
    name = hashlib.sha256(b"".join(lines[: len(named)])).hexdigest()[:16]
    with tempfile.TemporaryDirectory(prefix="ralf-conversation-") as folder:
        path = Path(folder, f"conversation-{name}.jsonl")
        path.write_bytes(b"".join(lines))
        yield path


def _line(message: Message, redactor: Redactor) -> bytes:
    """A message, redacted, as a line of a transcript; of one that JSON cannot hold only that there was one."""
    try:
        plain = json.loads(json.dumps(dict(message), ensure_ascii=False, default=str))
        text = json.dumps(redactor.tree(plain), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps({"role": str(message.get("role")), "content": "[a message that is no JSON]"})
    return text.encode("utf-8", "surrogatepass") + b"\n"
