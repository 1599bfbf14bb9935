"""Calls and their results as steps: what was edited, run, asked and delegated, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.facts import todos
from ralf.facts.checks import Ending, checks_in, ending
from ralf.facts.commands import (
    OLD_KEYS,
    changed,
    command_text,
    did_by,
    is_shell,
    named_in,
    only_looks,
    patched,
    simple_commands,
    touched,
)
from ralf.facts.repository import Repository, git_facts, merges
from ralf.model.entries import Item, Mark, Step, StepKind
from ralf.text.cleaning import one_line, trimmed, without_middle
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

_LONGEST_OBJECT, _ADDED, _OUTPUT, _REPORT = 4_000, 420, 300, 1_200  # characters that a step keeps

_SEEN_LAST = 2_000  # of its output, as long as no other has ended

_MOST_FILES, _MOST_COMMENTS, _SHORTEST_COMMENT, _LONGEST_COMMENT = 60, 6, 40, 200

_STOPS = ("killshell", "killbash", "taskstop")

_ASKED = (("git",), ("gh",), ("glab",))  # what they list is an answer, and no content of a file

_ASKS = frozenset({"askuserquestion", "requestuserinput"})

_PLANS = frozenset({"exitplanmode"})

_AGENTS = frozenset({"task", "agent", "spawnagent"})

_NEW_KEYS = ("new_string", "new_str", "newText", "content", "contents")

_PROSE = regex(r"(?i)\.(?:md|mdx|markdown|rst|txt|adoc|org)$")

_OF_TESTS = regex(r"(?i)(?:^|[/\\_.-])(?:tests?|specs?|__tests__)(?:[/\\_.-]|$)")

_COMMENT = regex(r"(?:#(?![!\[])|//+|/\*+|--(?= )|;;+|\*(?= )|\"{3})[ \t]*(\S.*)")


class Steps:
    """Turns the calls and results of one session into steps, event by event.

    base     the project's folder: paths below it are relative to it
    pending  steps that have no result yet, of what came before; `items`: the to-do list by then
    checks   programs that the project calls checks, too
    """

    def __init__(
        self,
        base: str,
        *,
        pending: Iterable[Step] = (),
        items: Sequence[Item] = (),
        checks: frozenset[str] = frozenset(),
    ) -> None:
        self._repository = Repository(base)
        self._pending = {step.id: step for step in pending}
        self._calls: dict[str, Event] = {}
        self._checks = checks
        self.items = tuple(items)

    @property
    def pending(self) -> tuple[Step, ...]:
        """The steps that have no result yet, oldest first."""
        return tuple(self._pending.values())

    def take(self, event: Event) -> Iterator[Step | Mark]:
        """What a call, a result or an event about a task of the background adds to the log."""
        if event.kind == "call":
            self._calls[event.call_id] = event
            self._pending[event.call_id] = self._begun(event)
        elif event.kind == "result":
            step, call = self._pending.pop(event.call_id, None), self._calls.pop(event.call_id, None)
            if step is not None:
                yield from self._ended(step, call, event)
        elif event.kind == "other":
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
        return Step(
            id=call.call_id,
            at=call.timestamp,
            line=call.start.line + 1,
            kind=kind,
            tool=call.tool,
            object=without_middle(command or _object(kind, call, paths), _LONGEST_OBJECT - 500, 500)[0],
            folder="" if call.cwd in ("", base) else relative(call.cwd, ""),
            files=self._named(call, paths),
            added=_added(call.input, call.text),
            comments=() if _PROSE.search(named) or _OF_TESTS.search(named) else _comments(call.input, call.text),
            uncommented=_comments(call.input, call.text, gone=True),
            agent=call.agent,
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

    def _ended(self, step: Step, call: Event | None, result: Event) -> Iterator[Step | Mark]:
        step = replace(step, at=result.timestamp or step.at)
        if todos.is_todo_tool(step.tool):
            if call is not None and not step.agent:
                yield from self._listed(call, result)
            return
        if result.form == "refused":
            yield replace(
                step,
                outcome="refused",
                files=(),
                added="",
                comments=(),
                uncommented=(),
                output=_head(result.text, _OUTPUT),
            )
        elif step.kind == "command" and not result.refused:
            yield self._ran(step, call, result)
        elif result.failed or result.refused:
            lines = tuple(line for line in [one_line(result.text)] if line)
            kept = tuple(trimmed(line, _OUTPUT) for line in lines)
            yield replace(
                step,
                outcome="failed",
                status=result.exit_status,
                lines=kept,
                files=(),
                added="",
                comments=(),
                uncommented=(),
            )
        else:
            files = tuple((path, "created" if result.created and did == "edited" else did) for path, did in step.files)
            output = ""
            if step.kind == "agent":
                output = result.text[-_REPORT:] if len(result.text) > _REPORT else result.text
            elif step.kind == "other":
                output = _head(result.text, _SEEN_LAST)
            yield replace(step, outcome="ok", files=files, output=output.strip())
        if result.task and not result.agent:
            text = step.object if step.kind == "command" else f"{step.tool}: {step.object}"
            yield Mark("started", step.at, step.line, result.task, trimmed(one_line(text), _OUTPUT))
        elif step.tool.lower().replace("_", "") in _STOPS and not result.failed and call is not None:
            for key in ("shell_id", "task_id", "bash_id"):
                if call.input.get(key):
                    yield Mark("finished", step.at, step.line, str(call.input[key]))

    def _ran(self, step: Step, call: Event | None, result: Event) -> Step:
        command, output = step.object, result.text
        if result.task:
            return replace(step, outcome="running")
        cwd = (call.cwd if call is not None else "") or self._repository.base
        simple = simple_commands(command)
        checks = checks_in(simple, self._checks)
        is_read = step.looks and not checks and not any(one.words[:1] in _ASKED for one in simple)
        end = ending(command, output, failed=result.failed, status=result.exit_status, checks=checks)
        if end.outcome == "failed" and merges(command, output):
            end = Ending("ok", end.lines)
        passed = not result.failed and not result.exit_status
        return replace(
            step,
            outcome=end.outcome,
            status=result.exit_status,
            checks=tuple(dict.fromkeys(end.checks)),
            lines=end.lines,
            files=self._touched(command, cwd) if end.outcome != "failed" else (),
            git=tuple(git_facts(command, output, cwd, self._repository, passed=passed)),
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
    flat = tool.lower().replace("_", "").replace("-", "")
    if flat in _ASKS:
        return "question", False
    if flat in _PLANS:
        return "plan", False
    if flat in _AGENTS:
        return "agent", False
    did = did_by(tool, arguments)
    if did in ("created", "edited", "deleted") or flat == "applypatch":
        return "edit", False
    looks = did == "read" or any(word in flat for word in ("grep", "glob", "search", "list", "find", "fetch", "read"))
    return ("look", True) if looks else ("other", False)


def _object(kind: str, call: Event, paths: Sequence[str]) -> str:
    """What a call is about, in its own words."""
    given = call.input
    if kind == "agent":
        return str(given.get("description") or given.get("message") or given.get("prompt") or "")
    if kind == "plan":
        return str(given.get("plan") or call.text)
    if kind == "question":
        asked = given.get("questions")
        return "\n".join(_question(one) for one in asked if isinstance(one, Mapping)) if isinstance(asked, list) else ""
    pattern = given.get("pattern", given.get("query"))
    if isinstance(pattern, str) and paths and kind == "look":
        return f"{pattern} in {paths[0]}"
    if paths:
        return paths[0]
    keys = ("pattern", "query", "url", "path", "title", "subject", "name", "id", "description")
    return next((str(given[key]) for key in keys if isinstance(given.get(key), str)), one_line(call.text)[:_OUTPUT])


def _question(asked: Mapping[str, Any]) -> str:
    options = asked.get("options")
    labels = (
        [str(one.get("label") or "") for one in options if isinstance(one, Mapping)]
        if isinstance(options, list)
        else []
    )
    text = str(asked.get("question") or "")
    return f"{text} ({' / '.join(filter(None, labels))})" if any(labels) else text


def _texts(arguments: Mapping[str, Any], text: str) -> Iterator[tuple[str, str]]:
    """(old, new) text of each change that an edit's arguments or patch make."""
    edits = arguments.get("edits")
    for given in [arguments, *(edits if isinstance(edits, list) else [])]:
        if isinstance(given, Mapping):
            old = next((value for key in OLD_KEYS if isinstance(value := given.get(key), str)), "")
            new = next((value for key in _NEW_KEYS if isinstance(value := given.get(key), str)), "")
            if new:
                yield old, new
    if "*** Begin Patch" in text:
        lines = text.splitlines()
        yield (
            "\n".join(line[1:] for line in lines if line.startswith("-")),
            "\n".join(line[1:] for line in lines if line.startswith("+")),
        )


def _changed_lines(arguments: Mapping[str, Any], text: str) -> Iterator[tuple[list[str], list[str]]]:
    """(old, new) lines of each change, without those that both begin and both end with."""
    for old, new in _texts(arguments, text):
        before, after = old.splitlines(), new.splitlines()
        start = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
        start = min(len(before), len(after)) if start is None else start
        before, after = before[start:], after[start:]
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        yield before, after


def _added(arguments: Mapping[str, Any], text: str) -> str:
    """The first lines that an edit adds, as they stand."""
    kept: list[str] = []
    size = 0
    for line in (line for _, after in _changed_lines(arguments, text) for line in after if line.strip()):
        size += len(line) + 1
        if size > _ADDED:
            kept.append("\u2026")
            break
        kept.append(line)
    return "\n".join(kept)


def _comments(arguments: Mapping[str, Any], text: str, *, gone: bool = False) -> tuple[str, ...]:
    """The comments that an edit adds, or those that are `gone` after it, neighbouring lines as one."""
    found, lines = list[str](), list[str]()
    is_open = False
    known: set[str] = set()
    for before, after in _changed_lines(arguments, text):
        stay, come = (after, before) if gone else (before, after)
        known.update(line.strip() for line in stay)
        lines.extend(come)
    for line in map(str.strip, lines):
        match = None if line in known else _COMMENT.match(line)
        if match is None:
            is_open = False
            continue
        words = match[1].rstrip('*/" \t').strip()
        if is_open and found:
            found[-1] += f" {words}"
        elif words:
            found.append(words)
        is_open = True
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
