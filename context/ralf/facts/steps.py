"""Calls and their results as steps: what was edited, run, asked and delegated, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from ralf.facts import todos
from ralf.facts.checks import Ending, checks_in, ending
from ralf.facts.commands import (
    OLD_KEYS,
    changed,
    command_text,
    did_by,
    flat,
    is_shell,
    named_in,
    only_looks,
    patched,
    simple_commands,
    touched,
)
from ralf.facts.repository import Repository, git_facts
from ralf.model.entries import Item, Mark, Step, StepKind
from ralf.text.cleaning import one_line, trimmed, without_middle
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

_LONGEST_OBJECT, _ADDED, _OUTPUT, _REPORT = 4_000, 420, 300, 1_200  # characters that a step keeps

_SEEN_LAST = 2_000  # of its output, as long as no other has ended

_MOST_FILES, _MOST_COMMENTS, _SHORTEST_COMMENT, _LONGEST_COMMENT = 60, 6, 40, 200

_STOPS = ("killshell", "killbash", "taskstop")

_ASKED = (("git",), ("gh",), ("glab",))  # what they list is an answer, and no content of a file

_KINDS: dict[str, StepKind] = {
    **dict.fromkeys(("askuserquestion", "requestuserinput"), "question"),
    "exitplanmode": "plan",
    **dict.fromkeys(("task", "agent", "spawnagent"), "agent"),
    "applypatch": "edit",
}
"""Kinds of steps by the tool's name."""

_SEARCHES = regex(r"grep|glob|search|list|find|fetch|read")

_UNDONE: dict[str, Any] = {"files": (), "added": "", "comments": (), "uncommented": ()}
"""What a call did not do that was refused or failed."""

_NEW_KEYS = ("new_string", "new_str", "newText", "content", "contents")

_PROSE = regex(r"(?i)\.(?:md|mdx|markdown|rst|txt|adoc|org)$")

_OF_TESTS = regex(r"(?i)(?:^|[/\\_.-])(?:tests?|specs?|__tests__)(?:[/\\_.-]|$)")

_DIRECTIVE = r"(?:nolint|noqa|eslint-|pylint:|ruff:|mypy:|type:|go:|@ts-|prettier-|pragma|region|endregion)"

_COMMENT = regex(rf"(?:#(?![!\[])|//+|/\*+|--(?= )|;;+|\*(?= )|\"{{3}})[ \t]*(?!{_DIRECTIVE})(\S.*)")


class Steps:
    """Turns the calls and results of one session into steps, event by event.

    base     the project's folder: paths below it are relative to it
    items    the to-do list before them
    checks   programs that the project calls checks, too
    """

    def __init__(
        self,
        base: str,
        *,
        items: Sequence[Item] = (),
        checks: frozenset[str] = frozenset(),
    ) -> None:
        self._repository = Repository(base)
        self._calls: dict[str, Event] = {}
        self._results: dict[str, Event] = {}
        self._checks = checks
        self.items = tuple(items)

    @property
    def pending(self) -> tuple[Step, ...]:
        """The steps that have no result yet, oldest first."""
        return tuple(map(self._begun, self._calls.values()))

    def take(self, event: Event) -> Iterator[Step | Mark]:
        """What a call, a result or an event about a task of the background adds to the log."""
        match event.kind:
            case "call" if result := self._results.pop(event.call_id, None):
                yield from self._ended(event, result)
            case "call":
                self._calls[event.call_id] = event
            case "result" if call := self._calls.pop(event.call_id, None):
                yield from self._ended(call, event)
            case "result" if event.call_id:  # calls that ran at once stand in some logs after their results
                self._results[event.call_id] = event
            case "other":
                if event.task:
                    yield Mark("finished", event.timestamp, event.start.line + 1, event.task)
                if event.tool:  # the client gives its own list
                    yield from self._listed(event, event)

    # ---- a call ----

    def _begun(self, call: Event) -> Step:
        command = command_text(call.input) if is_shell(call.tool) else ""
        kind, looks = _kind(call.tool, command, call.input)
        named = named_in(call.input)
        relative, base = self._repository.relative, self._repository.base
        paths = [relative(named, call.cwd)] if named else []
        gone, added = changed_lines(call.input, call.text)
        return Step(
            id=call.call_id,
            at=call.timestamp,
            line=call.start.line + 1,
            kind=kind,
            tool=one_line(call.tool),
            object=without_middle(command or _object(kind, call, paths), _LONGEST_OBJECT - 500, 500)[0],
            folder="" if call.cwd in ("", base) else relative(call.cwd, ""),
            files=self._named(call, paths),
            added=_added(added),
            comments=() if _PROSE.search(named) or _OF_TESTS.search(named) else _comments(added),
            uncommented=_comments(gone),
            agent=one_line(call.agent),
            looks=looks,
        )

    def _named(self, call: Event, paths: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """The files that a call of a file tool changes if it succeeds."""
        did = did_by(call.tool, call.input)
        relative = self._repository.relative
        found = [(relative(path, call.cwd), done) for path, done in (*patched(call.text), *changed(call.input))]
        if did in ("created", "edited", "deleted"):
            found += [(path, did) for path in paths]
        return _joined(found)

    # ---- its result ----

    def _ended(self, call: Event, result: Event) -> Iterator[Step | Mark]:
        if result.form == "cancelled":
            return
        step = replace(self._begun(call), at=result.timestamp or call.timestamp)
        if todos.is_todo_tool(step.tool):
            yield from () if step.agent else self._listed(call, result)
            return
        yield self._with_result(step, call, result)
        if result.task and not result.agent:
            text = step.object if step.kind == "command" else f"{step.tool}: {step.object}"
            yield Mark("started", step.at, step.line, result.task, trimmed(one_line(text), _OUTPUT))
        elif flat(step.tool) in _STOPS and not result.failed:
            stopped = filter(None, (call.input.get(key) for key in ("shell_id", "task_id", "bash_id")))
            yield from (Mark("finished", step.at, step.line, str(task)) for task in stopped)

    def _with_result(self, step: Step, call: Event, result: Event) -> Step:
        if result.form == "refused":
            return replace(step, outcome="refused", output=_head(result.text, _OUTPUT), **_UNDONE)
        if step.kind == "command" and not result.refused:
            return self._ran(step, call, result)
        if result.failed or result.refused:
            lines = tuple(trimmed(line, _OUTPUT) for line in [one_line(result.text)] if line)
            return replace(step, outcome="failed", status=result.exit_status, lines=lines, **_UNDONE)
        files = tuple((path, "created" if result.created and did == "edited" else did) for path, did in step.files)
        kept = {"agent": result.text[-_REPORT:], "other": _head(result.text, _SEEN_LAST)}
        if isinstance(call.input.get("content"), str) and not result.created:  # what the file had before is not known
            step = replace(step, comments=())
        return replace(step, outcome="ok", files=files, output=kept.get(step.kind, "").strip())

    def _ran(self, step: Step, call: Event, result: Event) -> Step:
        command, output = step.object, result.text
        if result.task:
            return replace(step, outcome="running")
        cwd = call.cwd or self._repository.base
        simple = simple_commands(command)
        checks = checks_in(simple, self._checks)
        is_read = step.looks and not checks and not any(one.words[:1] in _ASKED for one in simple)
        end = ending(command, output, failed=result.failed, status=result.exit_status, checks=checks)
        passed = not result.failed and not result.exit_status
        git = tuple(git_facts(command, output, cwd, self._repository, passed=passed))
        if end.outcome == "failed" and any(fact.kind == "merging" for fact in git):  # that is a state, and no failure
            end = Ending("ok", end.lines)
        return replace(
            step,
            outcome=end.outcome,
            status=result.exit_status,
            checks=tuple(dict.fromkeys(end.checks)),
            lines=end.lines,
            files=self._touched(command, cwd) if end.outcome != "failed" else (),
            git=git,
            output="" if is_read else _head(output, _SEEN_LAST),
        )

    def _touched(self, command: str, cwd: str) -> tuple[tuple[str, str], ...]:
        """The files that a command that passed has changed, as far as its words say so for certain."""
        found = (*patched(command), *touched(command, cwd))
        return _joined((self._repository.relative(path, cwd), done) for path, done in found)

    def _listed(self, call: Event, result: Event) -> Iterator[Mark]:
        items = todos.after(self.items, call, result)
        if items is not None and items != self.items:
            self.items = items
            yield Mark("todos", result.timestamp, result.start.line + 1, items=items)


def _kind(tool: str, command: str, arguments: Mapping[str, Any]) -> tuple[StepKind, bool]:
    """What kind of step a call is, and whether it only looks."""
    if command:
        return "command", only_looks(command)
    name, did = flat(tool), did_by(tool, arguments)
    if name in _KINDS or did in ("created", "edited", "deleted"):
        return _KINDS.get(name, "edit"), False
    return ("look", True) if did == "read" or _SEARCHES.search(name) else ("other", False)


def _object(kind: str, call: Event, paths: Sequence[str]) -> str:
    """What a call is about, in its own words."""
    given = call.input
    match kind:
        case "agent":
            return str(given.get("description") or given.get("message") or given.get("prompt") or "")
        case "plan":
            return str(given.get("plan") or call.text)
        case "question":
            return "\n".join(map(_question, _mappings(given.get("questions"))))
        case "look" if paths and isinstance(pattern := given.get("pattern", given.get("query")), str):
            return f"{pattern} in {paths[0]}"
    keys = ("pattern", "query", "url", "path", "title", "subject", "name", "id", "description")
    named = (str(given[key]) for key in keys if isinstance(given.get(key), str))
    return paths[0] if paths else next(named, one_line(call.text)[:_OUTPUT])


def _question(asked: Mapping[str, Any]) -> str:
    labels = [label for one in _mappings(asked.get("options")) if (label := str(one.get("label") or ""))]
    return str(asked.get("question") or "") + (f" ({' / '.join(labels)})" if labels else "")


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def changed_lines(arguments: Mapping[str, Any], text: str) -> tuple[list[str], list[str]]:
    """The lines that an edit takes out, and those that it puts in; "" in place of what both have."""
    given = [arguments, *_mappings(arguments.get("edits"))]
    old, new = ([str(one[key]) for one in given for key in keys if key in one] for keys in (OLD_KEYS, _NEW_KEYS))
    if "*** Begin Patch" in text:
        old, new = ([line[1:] for line in text.splitlines() if line.startswith(sign)] for sign in "-+")
    before, after = ([line for part in parts for line in part.splitlines()] for parts in (old, new))
    known, kept = set(before), set(after)
    return [line if line not in kept else "" for line in before], [line if line not in known else "" for line in after]


def _added(lines: Sequence[str]) -> str:
    """The first lines that an edit adds, as they stand."""
    lines = [line for line in lines if line.strip()]
    whole = sum(size <= _ADDED for size in accumulate(len(line) + 1 for line in lines))
    return "\n".join([*lines[:whole], *(["\u2026"] if whole < len(lines) else [])])


def _comments(lines: Iterable[str]) -> tuple[str, ...]:
    """The comments among the lines that an edit adds or takes out, neighbouring lines as one."""
    found, is_open = list[str](), False
    for line in lines:
        match = _COMMENT.match(line.strip())
        words = match[1].rstrip('*/" \t').strip() if match else ""
        if words and is_open:
            found[-1] += f" {words}"
        elif words:
            found.append(words)
        is_open = match is not None and (is_open or bool(words))
    return tuple(trimmed(one, _LONGEST_COMMENT) for one in found if len(one) >= _SHORTEST_COMMENT)[:_MOST_COMMENTS]


def _joined(found: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Each file once: what is added, changed and deleted in one step is edited; deleted only what nothing adds."""
    done: dict[str, str] = {}
    for path, did in found:
        before = done.pop(path, did)
        done[path] = did if before == did else "created" if before == "created" and did == "edited" else "edited"
    return tuple(done.items())[:_MOST_FILES]


def answered(step: Step) -> Step:
    """A step behind which another has ended: it keeps the head of its output."""
    return replace(step, output=_head(step.output, _OUTPUT)) if step.kind != "agent" else step


def _head(text: str, most: int) -> str:
    return trimmed(text.strip(), most)
