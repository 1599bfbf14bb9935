"""What a completed segment comes to: the kinds of items that are always kept, taken by rules, in the source's words.

Kept: decisions with their reasons, paths, status transitions and delegations, errors with what resolved them,
configuration changes, and commitments to others; besides outcomes, and one line for each approach that failed. Left
out, and found by search: reasoning, the output of tools, failed attempts, and what was done more than once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from ralf.compaction import phrases
from ralf.facts.facts import extract
from ralf.model import Decision
from ralf.summarize import Segment
from ralf.summarize.extractive import Extractive
from ralf.text import tokens
from ralf.text.cleaning import one_line, shown, trimmed
from ralf.text.frozen import dataclass
from ralf.text.sentences import sentences
from ralf.transcripts.events import Event

SHARE = 0.06
"""Of a segment's tokens, for what was asked and said besides the items that are always kept."""

_LONGEST = 300  # characters of an item
_REASON = 200  # of a reason
_VALUE = 80  # of a setting's value
_TITLE, _COMMAND = 70, 100
_TELLING = 20  # of a sentence that says what came of the work
_TESTS = 3  # runs of tests that are told, the last ones
_MOST = 40  # items of a kind; the newest are kept


@dataclass(frozen=True, slots=True)
class Digest:
    """The items of a segment, each one line, oldest first, each once.

    title                   what it was about
    decisions_made          choices and rules, with their reasons
    files_modified          paths and what was done to them
    blockers_encountered    what held the work up, and errors that nothing has resolved
    delegations             what was given to others
    outcomes                commits, test results, and what the agent said last
    status_transitions      tasks and to-dos that changed their status
    errors_resolved         errors, and what was done before their command passed
    configuration_changes   settings, commands that set them, and files that hold them
    commitments             what was promised to others, with the time
    failed_attempts         "tried X, failed because Y"
    exchanges               what was asked and concluded besides, as lines of Markdown, within `SHARE` of the segment
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
    extracted = extract(events, session=session)
    facts, work = extracted.facts, extracted.work
    summary = Extractive().summarize(Segment(session, events, facts, tokens_read, active_work=work))
    decisions = [one for one in summary.decisions if one.status != "dropped"]
    said = [
        (event, one.text) for event in events if event.kind in ("user", "assistant") for one in sentences(event.text)
    ]
    said = [(event, text) for event, text in said if "<promise>" not in text]
    by_agent = [text for event, text in said if event.kind == "assistant"]
    commands = [(f"`{trimmed(one_line(one.command), _COMMAND)}` failed: {one.error}", one) for one in facts.errors]
    blockers = [text for text in by_agent if phrases.BLOCKS.search(text)]
    commitments = [(event, text) for event, text in said if phrases.COMMITS_TO.search(text)]
    elsewhere = {*blockers, *(text for _, text in commitments)}
    chosen = [one for one in decisions if one.kind != "failed-approach" and one_line(one.decision) not in elsewhere]
    tried = _items(_tried(one) for one in decisions if one.kind == "failed-approach")
    listed = {*tried, *elsewhere, *(one_line(one.decision) for one in chosen)}
    last = next((text for text in reversed(by_agent) if len(text) >= _TELLING and text not in listed), "")
    found = Digest(
        title=trimmed(one_line(summary.title), _TITLE),
        decisions_made=_items(map(_decided, chosen)),
        files_modified=_items(f"{fact.path} ({did})" for fact in facts.paths if (did := _done_to(fact.did))),
        blockers_encountered=_items([*blockers, *(text for text, one in commands if not one.fixed_by)]),
        delegations=_items([*_delegated(events), *filter(phrases.DELEGATES.search, by_agent)]),
        outcomes=_items(
            [
                *(f"committed {one.commit}: {one.message}" for one in facts.commits),
                *(f"`{trimmed(one_line(one.command), _COMMAND)}`: {one.result}" for one in facts.tests[-_TESTS:]),
                last,
            ]
        ),
        status_transitions=_items(
            [
                *filter(phrases.MOVES_ON.search, by_agent),
                *_task_commands(events),
                *(f"{todo.content}: {todo.status}" for todo in work.todos if todo.status != "pending"),
            ]
        ),
        errors_resolved=_items(f"{text}; fixed by: {one.fixed_by}" for text, one in commands if one.fixed_by),
        configuration_changes=_items([*_settings(events), *filter(phrases.is_setting, by_agent)]),
        commitments=_items(_when(event, text) for event, text in commitments),
        failed_attempts=tried,
    )
    told = {item for items in found.tree().values() for item in items}
    return replace(found, exchanges=tuple(_within(summary.text.split("\n"), int(SHARE * tokens_read), told)))


def _within(lines: Sequence[str], budget: int, told: Container[str]) -> Iterator[str]:
    """The lines that fit into so many tokens, in their order, without those that are told elsewhere."""
    for line in lines:
        budget -= tokens.estimate(line) + 1
        if budget < 0:
            return
        if line.lstrip("-> ") not in told and "<promise>" not in line:
            yield shown(line)


def _items(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts as items: each on one line, not too long, once, and no more than `_MOST`."""
    found = dict.fromkeys(trimmed(shown(one_line(text)), _LONGEST) for text in texts)
    found.pop("", None)
    return tuple(found)[-_MOST:]


def _decided(decision: Decision) -> str:
    reason = trimmed(one_line(decision.rationale), _REASON)
    text = one_line(decision.decision)
    said = text if not reason or reason in text else f"{trimmed(text, _LONGEST - len(reason) - 12)} (because {reason})"
    return f"{said} [{decision.status}]" if decision.status in ("superseded", "reversed") else said


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
