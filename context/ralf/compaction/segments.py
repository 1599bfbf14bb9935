"""Divides a conversation at the tasks that it completes: what is done can be compacted, what is at hand stays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from ralf.checkpointing.completion import Completion
from ralf.conversation.messages import Message, as_chat, calls, groups, is_system
from ralf.conversation.summary import is_summary
from ralf.conversation.truncation import Pins, pinned
from ralf.facts import todos
from ralf.model.entries import Item
from ralf.text.frozen import dataclass
from ralf.transcripts.chat import events_of
from ralf.transcripts.events import Event

Completed = Collection[int] | Callable[[Message], bool]
"""The messages with which a task is complete: their indices, or what says so of each."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The messages of a conversation by their indices, each in one place.

    completed  those of each completed task, oldest first
    current    those of the task at hand
    kept       system prompts, pinned messages, and summaries that stand for what was compacted before
    summaries  those of these that are not pinned
    """

    completed: tuple[tuple[int, ...], ...]
    current: tuple[int, ...]
    kept: tuple[int, ...]
    summaries: tuple[int, ...]


def segments_of(messages: Sequence[Message], completed: Completed | None = None, pins: Pins = ()) -> Segments:
    """Divide a conversation. None: a task is complete where the agent promises it (`<promise>COMPLETE</promise>`), its
    call of `ralf task done` was answered, or the person goes on after a turn that left no item of its to-do list open.

    A segment ends behind the results of the calls that were open then, and behind what the agent still says of it; it
    does not end where the person has asked for something by then. A message that is pinned stays with the results of
    its calls. UsageError for a pin that is no index.
    """
    events = [*events_of(map(as_chat, messages))]
    asked = {event.start.line for event in events if event.kind == "user"}
    together = groups(messages)
    stay = set(pinned(messages, pins))
    stay = {index for group in together if not stay.isdisjoint(group) for index in group}
    summaries = [index for index, message in enumerate(messages) if is_summary(message) and index not in stay]
    kept = stay | {*summaries, *(index for index, message in enumerate(messages) if is_system(message))}
    ends_of = {group[0]: group[-1] + 1 for group in together}
    reaches = [*accumulate((ends_of.get(index, 0) for index in range(len(messages))), max)]
    marked = _complete(events, asked) if completed is None else pinned(messages, completed)
    ended = ((index, _end(messages, index, reaches)) for index in marked)
    ends = {end for index, end in ended if asked.isdisjoint(range(index + 1, end))}
    borders = pairwise([0, *sorted(ends), len(messages)])
    parts = [tuple(index for index in range(start, end) if index not in kept) for start, end in borders]
    return Segments(tuple(filter(None, parts[:-1])), parts[-1], tuple(sorted(kept)), tuple(summaries))


def _end(messages: Sequence[Message], index: int, reaches: Sequence[int]) -> int:
    """The index before which the segment ends that a message completes; `reaches`: where what began by then ends."""
    end = next(end for end in range(index + 1, len(reaches) + 1) if reaches[end - 1] == end)
    while end < len(messages) and messages[end].get("role") == "assistant" and not calls(messages[end]):
        end += 1
    return end


def _complete(events: Iterable[Event], asked: Collection[int]) -> Iterator[int]:
    """The numbers of the messages that complete a task, by the record."""
    completion, listing = Completion(), dict[str, Event]()
    items: tuple[Item, ...] = ()
    for event in events:
        number = event.start.line
        if completion.by(event) and not (event.kind == "result" and (number in asked or _says_error(event.text))):
            yield number
        if event.kind == "call" and todos.is_todo_tool(event.tool):
            listing[event.call_id] = event
        elif event.kind == "result" and event.call_id in listing:
            items = todos.after(items, listing.pop(event.call_id), event) or items
        elif event.kind == "user" and number and items and all(item.status == "completed" for item in items):
            yield number - 1
            items = ()


def _says_error(output: str) -> bool:
    """Whether a command of ralf's failed: not every interface says so of a result."""
    return any(line.startswith("error: ") for line in output.split("\n"))
