"""What a completed segment comes to: the kinds of items that are always kept, in the source's words.

Kept: decisions and failed approaches that the agent recorded, what a person chose or approved, paths, status
transitions and delegations, errors with what resolved them, configuration changes, commitments to others, outcomes, and
the agent's closing text. Left out, and found by search: reasoning, the output of tools, and what was done more than
once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ralf.checkpointing.section import Extractive, Segment
from ralf.compaction import phrases
from ralf.facts.facts import facts_of
from ralf.facts.state import State
from ralf.model import Decision
from ralf.talk.recording import record
from ralf.talk.turns import thread
from ralf.text import tokens
from ralf.text.cleaning import one_line, shown, trimmed, without_middle
from ralf.text.frozen import dataclass, fields, replace
from ralf.text.sentences import sentences
from ralf.transcripts.events import Event

SHARE = 0.06
"""Of a segment's tokens, for what was asked and said besides the items that are always kept."""

_LONGEST = 300  # characters of an item
_REASON = 200  # of a reason
_VALUE = 80  # of a setting's value
_TITLE, _COMMAND = 70, 100
_CLOSING = (3_600, 2_400)  # characters of the head and the end of the closing text
_TESTS = 3  # runs of tests that are told, the last ones
_MOST = 40  # items of a kind; the newest are kept


@dataclass(frozen=True, slots=True)
class Digest:
    """The items of a segment, each one line, oldest first, each once.

    title                   what it was about
    decisions_made          choices and rules that were recorded, with their reasons
    files_modified          paths and what was done to them
    blockers_encountered    what held the work up, and errors that nothing has resolved
    delegations             what was given to others
    outcomes                commits and test results
    status_transitions      tasks and to-dos that changed their status
    errors_resolved         errors, and what was done before their command passed
    configuration_changes   settings, commands that set them, and files that hold them
    commitments             what was promised to others, with the time
    failed_attempts         "tried X, failed because Y", as the agent recorded them
    exchanges               what was asked and said besides, as lines of Markdown, within `SHARE` of the segment
    closing                 what the agent said last, line by line
    """

    title: str = ""
    decisions_made: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    blockers_encountered: tuple[str, ...] = ()
    delegations: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    status_transitions: tuple[str, ...] = ()
    errors_resolved: tuple[str, ...] = ()
    configuration_changes: tuple[str, ...] = ()
    commitments: tuple[str, ...] = ()
    failed_attempts: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()

    def tree(self) -> dict[str, list[str]]:
        """The items by kind, without empty ones and the title."""
        kinds = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "title"}
        return {name: list(items) for name, items in kinds.items() if items}

    def render(self, sources: str) -> str:
        """The summary as Markdown; `sources`: where the whole of it is."""
        lines = [f"## Completed: {self.title or 'a task'}"]
        lines += [f"{head}: {', '.join(items)}" for head, items in self._paths() if items]
        for name, head in _HEADS.items():
            if items := getattr(self, name):
                lines += [f"{head}:", *(f"- {item}" for item in items)]
        lines += ["Asked and said:", *self.exchanges] if self.exchanges else []
        lines += ["Said last:", *(f"> {line}".rstrip() for line in self.closing)] if self.closing else []
        return "\n".join([*lines, f"Sources: {sources}"])

    def _paths(self) -> Iterator[tuple[str, list[str]]]:
        for word in ("created", "edited", "deleted"):
            head = {"created": "Created", "edited": "Modified", "deleted": "Deleted"}[word]
            yield head, [one.removesuffix(f" ({word})") for one in self.files_modified if one.endswith(f" ({word})")]


_HEADS = {
    "outcomes": "Outcomes",
    "decisions_made": "Key decisions",
    "failed_attempts": "Failed approaches",
    "errors_resolved": "Errors resolved",
    "blockers_encountered": "Blockers",
    "status_transitions": "Status",
    "delegations": "Delegated",
    "configuration_changes": "Configuration",
    "commitments": "Commitments",
}


def digest_of(events: Sequence[Event], session: str, tokens_read: int) -> Digest:
    """The items of redacted events; the same events give the same items, whatever the time and place."""
    entries = thread(record(events, "", session)).entries
    facts, items = facts_of(entries), State.of(entries).items
    summary = Extractive().summarize(Segment(session, events, facts, tokens_read, entries=entries))
    said = [
        (event, one.text) for event in events if event.kind in ("user", "assistant") for one in sentences(event.text)
    ]
    said = [(event, text) for event, text in said if "<promise>" not in text]
    by_agent = [text for event, text in said if event.kind == "assistant"]
    commands = [(f"`{trimmed(one_line(one.command), _COMMAND)}` failed: {one.error}", one) for one in facts.errors]
    commitments = [(event, text) for event, text in said if phrases.COMMITS_TO.search(text)]
    recorded = list(_recorded(events))
    closing = tuple(_closing(events))
    found = Digest(
        title=trimmed(one_line(summary.title).strip('"'), _TITLE),
        decisions_made=_items(
            _decided(one) for one in (*summary.decisions, *recorded) if one.kind != "failed-approach"
        ),
        files_modified=_items(f"{fact.path} ({did})" for fact in facts.paths if (did := _done_to(fact.did))),
        blockers_encountered=_items(
            [*filter(phrases.BLOCKS.search, by_agent), *(text for text, one in commands if not one.fixed_by)]
        ),
        delegations=_items([*_delegated(events), *filter(phrases.DELEGATES.search, by_agent)]),
        outcomes=_items(
            [
                *(f"committed {one.commit}: {one.message}" for one in facts.commits),
                *(f"`{trimmed(one_line(one.command), _COMMAND)}`: {one.result}" for one in facts.tests[-_TESTS:]),
            ]
        ),
        status_transitions=_items(
            [
                *filter(phrases.MOVES_ON.search, by_agent),
                *_task_commands(events),
                *(f"{item.text}: {item.status}" for item in items if item.status != "pending"),
            ]
        ),
        errors_resolved=_items(f"{text}; {one.fixed_by}" for text, one in commands if one.fixed_by),
        configuration_changes=_items([*_settings(events), *filter(phrases.is_setting, by_agent)]),
        commitments=_items(_when(event, text) for event, text in commitments),
        failed_attempts=_items(_tried(one) for one in recorded if one.kind == "failed-approach"),
        closing=closing,
    )
    told = {item.strip() for items in found.tree().values() for item in items}
    room = int(SHARE * tokens_read) - sum(tokens.estimate(line) + 1 for line in closing)
    return replace(found, exchanges=tuple(_within(summary.text.split("\n"), room, told)))


def _closing(events: Sequence[Event]) -> Iterator[str]:
    """The lines of the agent's last text, without its promise; of a very long one the middle is left out."""
    last = next((event.text for event in reversed(events) if event.kind == "assistant" and event.text.strip()), "")
    kept = "\n".join(line for line in last.strip().split("\n") if "<promise>" not in line).strip()
    if kept:
        yield from map(shown, without_middle(kept, *_CLOSING)[0].split("\n"))


def _recorded(events: Sequence[Event]) -> Iterator[Decision]:
    """The decisions, rules and failed approaches that the agent recorded by ralf's tool or its command."""
    failed = {event.call_id for event in events if event.kind == "result" and event.failed}
    for event in events:
        if event.kind != "call" or event.call_id in failed:
            continue
        if event.tool.rpartition("__")[2] == "record_decision":
            text, reason = _first(event.input, "decision", raw=True), _first(event.input, "rationale", raw=True)
            if text:
                yield Decision(decision=text, rationale=reason, kind=_first(event.input, "kind") or "decision")
        for found in phrases.DECIDES.finditer(_first(event.input, "command", "cmd", raw=True)):
            yield Decision(decision=(found["double"] or found["single"]).strip(), rationale=_because(found["rest"]))


def _because(options: str) -> str:
    """The reason among the options of a command that records a decision."""
    found = phrases.BECAUSE.search(options)
    return (found["double"] or found["single"]).strip() if found else ""


def _within(lines: Sequence[str], budget: int, told: Container[str]) -> Iterator[str]:
    """The lines that fit into so many tokens, in their order, without those that are told elsewhere."""
    for line in lines:
        text = line.lstrip("- >\u2192\u00b7").rstrip()
        if not text or text in told or "<promise>" in text:
            continue
        budget -= tokens.estimate(line) + 1
        if budget < 0:
            return
        yield shown(line)


def _items(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts as items: each on one line, not too long, once, and no more than `_MOST`."""
    found = dict.fromkeys(trimmed(shown(one_line(text)), _LONGEST) for text in texts)
    found.pop("", None)
    return tuple(found)[-_MOST:]


def _decided(decision: Decision) -> str:
    reason = trimmed(one_line(decision.rationale), _REASON)
    text = one_line(decision.decision)
    return text if not reason or reason in text else f"{trimmed(text, _LONGEST - len(reason) - 12)} (because {reason})"


def _tried(decision: Decision) -> str:
    text, reason = one_line(decision.decision), trimmed(one_line(decision.rationale), _REASON)
    text = text if phrases.TRIED.match(text) else f"tried {text}"
    return f"{text}, failed because {reason}" if reason and reason not in text else text


def _done_to(did: Sequence[str]) -> str:
    return next((word for word in ("deleted", "created", "edited") if word in did), "")


def _when(event: Event, text: str) -> str:
    return f"{text} ({event.timestamp})" if event.timestamp else text


# ---- what was given to others, and what was set ----


def _delegated(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if event.kind != "call" or event.tool.rpartition("__")[2].casefold() not in phrases.DELEGATING:
            continue
        to = _first(event.input, "subagent_type", "agent", "agent_type", "to", "assignee")
        what = _first(event.input, "description", "summary", "task", "title", "prompt", "message")
        if what:
            yield f"to {to or 'a sub-agent'}: {what}"


def _task_commands(events: Sequence[Event]) -> Iterator[str]:
    failed = {event.call_id for event in events if event.kind == "result" and event.failed}
    for event in events:
        if event.kind == "call" and event.call_id not in failed:
            yield from (found[0].strip() for found in phrases.TASK_COMMAND.finditer(event.text))


def _settings(events: Sequence[Event]) -> Iterator[str]:
    """What edits of configuration files changed, where it is one line, and commands that set something."""
    failed = {event.call_id for event in events if event.kind == "result" and event.failed}
    for event in events:
        if event.kind != "call" or event.call_id in failed:
            continue
        path, old, new = (
            _first(event.input, *keys)
            for keys in (("file_path", "path"), ("old_string", "old_str"), ("new_string", "new_str"))
        )
        if path and phrases.is_config(path) and old and new and max(len(old), len(new)) <= _VALUE:
            yield f"{path}: {one_line(old)} → {one_line(new)}"
        yield from (
            found[0].strip("; &|\n")
            for found in phrases.CONFIGURES.finditer(_first(event.input, "command", "cmd", raw=True))
        )


def _first(given: Mapping[str, Any], *keys: str, raw: bool = False) -> str:
    """The first text under one of some keys; its first line only, unless `raw`."""
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value if raw else value.strip() if "\n" not in value.strip() else value.strip().split("\n")[0]
    return ""
