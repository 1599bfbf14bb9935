"""Errors and test results: the lines in which a command's output names them, and what fixed an error later."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from ralf.model import ErrorFact
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex

_Key = TypeVar("_Key")

_Value = TypeVar("_Value")

# ---- what commands answered ----

# Plain names of trouble; `_STRONG` are the shapes in which programs report it.
_STRONG = regex(
    r"\b(?:error|fatal|panic|exception|failure)\b\s*+(?:\[\w+\]\s*+)?[:(]|\b\w+(?:Error|Exception)\b\s*(?::|$)"
    r"|^E {2,}\S|^--- FAIL|^CONFLICT\b|^FAILED\b|: (?:command )?not found\b"
    r"|: No such file|: Permission denied"
    r"|^\s*[x✗✘✕] \S|^thread '.{1,200}' panicked",
    re.I,
)

_WEAK = regex(
    r"\b(?:error|fail(?:s|ed|ure|ing)?|fatal|panic(?:ked)?|exception|undefined|cannot|can't"
    r"|could not|couldn't|not found|no such|denied|rejected|conflict|unable|invalid|missing|refused|unknown"
    r"|unexpected|no matches"
    r"|timed out|timeout|killed|expected)\b",
    re.I,
)

_PLACE = regex(r"^\S+:\d+(?::\d+)?:\s+\S")

_AMISS = regex(r"\b(?:want|wanted|got|should|must|needs?|not|never used|unused|deprecated)\b|\(\w+\)$", re.I)

_HARMLESS = regex(
    r"\b(?:0|no) (?:errors?|failures?|failed)\b|\berrors?: 0\b|^\$ |^\[[\w-]+\] \$|^Traceback \(|^exit code:? \d+$"
    r"|^=== (?:RUN|PAUSE|CONT)"
    r"|^(?:Process )?exit(?:ed)?(?: with)? (?:code|status)|^--- PASS|^\s*File \"|\bno test files\b",
    re.I,
)


_MOST_LINES, _LONGEST_LINE = 4_001, 4_000  # lines of an output, and characters of one, that are read


def error_line(output: str) -> str:
    """The first line of a failed command's output that names an error; "" where none does."""
    weak = place = ""
    for line in map(str.strip, output.splitlines()[:_MOST_LINES]):
        if not line or len(line) > _LONGEST_LINE or _HARMLESS.search(line):
            continue
        at_place = _PLACE.match(line)
        if _STRONG.search(line) or (at_place and (_WEAK.search(line) or _AMISS.search(line))):
            return line
        weak = weak or (line if _WEAK.search(line) else "")
        place = place or (line if at_place else "")
    return weak or place


def named_errors(text: str, most: int) -> tuple[str, ...]:
    """The first lines of a text that name an error in the shape in which programs report it, or a test that failed."""
    lines = (line.strip() for line in text.splitlines()[:_MOST_LINES] if len(line) <= _LONGEST_LINE)
    named = (one for one in lines if (_STRONG.search(one) or says_failed(one)) and not _HARMLESS.search(one))
    return tuple(islice(named, most))


def telling_errors(text: str, most: int) -> tuple[str, ...]:
    """The first lines of a text that say what went wrong: those with the place of it, then those that only name it."""
    lines = [line.strip() for line in text.splitlines()[:_MOST_LINES] if len(line) <= _LONGEST_LINE]
    lines = [line for line in lines if not _HARMLESS.search(line)]
    placed = [line for line in lines if _PLACE.match(line) and (_STRONG.search(line) or _WEAK.search(line))]
    named = [line for line in lines if _STRONG.search(line) or says_failed(line)]
    return tuple(dict.fromkeys([*placed, *named]))[:most]


_TESTING = regex(
    r"test|spec|jest|mocha|cargo|\bgo\b|\bnpm\b|yarn|pnpm|\bbun\b|deno|\bmake\b|mise|\btox\b|nox|gradle|mvn"
    r"|check|\bci\b|python",
    re.I,
)

_READING = regex(r"^\s*(?:cat|grep|rg|git|gh|less|ls|find|echo|curl)\b")

_SUMMARY = regex(
    r"(?<!=)=++ (?=[^=\n]*+(?<= )=+$)"
    r"(?P<pytest>(?=[^=\n]*\b(?:passed|failed|errors?|skipped|no tests ran)\b)[^=\n]* in [\d.:]+[^=\n]*?) =+$"
    r"|^(?P<quiet>\d+ (?:passed|failed|skipped|errors?)\b[^\n]{0,200} in [\d.]+s.*)$"
    r"|^(?P<cargo>test result: .*)$"
    r"|^\s*(?P<jest>Tests:?\s+\d+ (?:passed|failed|skipped|todo|total).*)$"
    r"|^\s*(?P<mocha>\d+ (?:passing|failing)\b.*)$"
    r"|^(?P<unittest>Ran \d+ tests? in .*|FAILED \((?:failures|errors)=.*\)|OK(?: \(skipped=\d+\))?)$"
    r"|^(?P<rspec>\d+ (?:examples?|runs|tests), .*)$"
    r"|^(?P<phpunit>OK \(\d+ tests?, .*\)|Tests: \d+, Assertions: .*)$"
    r"|^(?:\[\w+\] )?(?P<maven>Tests run: .*)$"
    r"|^(?P<gradle>\d+ tests? completed, .*)$"
    r"|^(?P<ctest>\d+% tests passed, .*)$"
    r"|^(?P<dotnet>(?:Passed|Failed)! {1,4}- .*)$"
    r"|^# (?P<node>(?:tests|pass|fail) \d+)$"
    r"|^\s*(?P<bun>\d+ (?:pass|fail))$"
    r"|^(?:ok|FAILED) \| (?P<deno>\d+ passed.*)$"
    r"|^(?P<gofail>--- FAIL: .*|FAIL\t.*)$"
    r"|^(?P<go>ok  \t.*)$",
)

_ALL_LINES = frozenset({"unittest", "mocha", "node", "bun", "gofail"})  # runners whose summary takes several lines


def test_result(command: str, output: str) -> str:
    """What a test run said of itself in its last summary, in its own words; "" where there is none."""
    if not _TESTING.search(command) or _READING.match(command):
        return ""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        match = _SUMMARY.search(line.rstrip()) if len(line) < 600 else None
        if match is not None and match.lastgroup is not None:
            found.setdefault(match.lastgroup, []).append(one_line(match[match.lastgroup]))
    if not any(line.startswith("Ran") for line in found.get("unittest", ())):
        found.pop("unittest", None)
    if not found:
        return ""
    kind = "gofail" if "gofail" in found else next(reversed(found))
    lines = found[kind]
    if kind == "cargo":
        return next((line for line in lines if "FAILED" in line), lines[-1])
    return "; ".join(list(dict.fromkeys(lines))[-4:] if kind in _ALL_LINES else lines[-1:])


_SAYS_FAILED = regex(r"\b[1-9]\d* (?:failed|failing|failures?|errors?|fail)\b|\bFAIL(?:ED|URES)?\b|# fail [1-9]")


def says_failed(result: str) -> bool:
    """Whether a test result says that a test failed."""
    return _SAYS_FAILED.search(result) is not None


# ---- errors ----

NAMED = 120
"""Characters of a command that name it beside an error or a test result."""

_LONG_ERROR = 300

_FIXES = 3  # files that are named as the fix, the last that were changed


@dataclass(slots=True)
class _Since:
    """The errors of a command that failed, and what was changed and what passed since."""

    errors: list[ErrorFact] = field(default_factory=list)
    changed: dict[str, None] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)


class Troubles:
    """The errors of a stretch; `unsolved` are those known before that nothing has fixed yet."""

    def __init__(self, unsolved: Iterable[ErrorFact]) -> None:
        self.errors: dict[tuple[str, str], ErrorFact] = {}
        self._failing: dict[str, _Since] = {}
        for error in unsolved:
            if not error.fixed_by:
                self._failing.setdefault(comparable(error.command), _Since()).errors.append(error)

    def failed(self, line: str, command: str, time: str) -> None:
        """A command or tool failed with this line of error; "" where none was found."""
        if not line:
            return
        line = trimmed(line, _LONG_ERROR)
        error = ErrorFact(line, command, "", time)
        self._put(error)
        before = self._failing.get(comparable(command), _Since()).errors
        self._failing[comparable(command)] = _Since(
            [e for e in before if (e.error, e.command) != (line, command)] + [error]
        )

    def changed(self, path: str) -> None:
        """A file was changed."""
        for since in self._failing.values():
            put_last(since.changed, path, None)

    def passed(self, command: str, time: str) -> None:
        """A command passed: the errors of the same command, alone or at its beginning, are fixed.

        An error of git also when git did the same another way, or committed what had been in conflict.
        """
        same, named = comparable(command), comparable(trimmed(command, NAMED))
        verbs = frozenset(_GIT_VERB.findall(command))
        for failing in [
            name
            for name in self._failing
            if name == named or same.startswith(name + " && ") or _done_by(frozenset(_GIT_VERB.findall(name)), verbs)
        ]:
            since = self._failing.pop(failing)
            fix = _fix(since) if failing == named or same.startswith(failing) else f"ran {_first_line(command)}"
            for error in since.errors:
                self._put(replace(error, fixed_by=fix, last=time))
        for since in self._failing.values():
            since.ran.append(command)

    def _put(self, error: ErrorFact) -> None:
        put_last(self.errors, (error.error, error.command), error)


_VIEWER = regex(r" ?(?:head|tail|grep|rg|cat|less|sort|tee|wc)\b[^&;]{0,200}$")


def comparable(command: str) -> str:
    """One form for commands that differ only in spaces, in where their errors are sent, and in how much of their output
    is shown.
    """
    stages = " ".join(command.replace(" 2>&1", "").split()).split("|")
    while len(stages) > 1:
        start, quotes = len(stages) - 1, _quotes(stages[-1])
        while start > 1 and any(count % 2 for count in quotes):  # this bar stands within quotation marks
            start -= 1
            quotes = tuple(map(sum, zip(quotes, _quotes(stages[start]), strict=True)))
        if not stages[start - 1].strip() or not _VIEWER.match("|".join(stages[start:])):
            break
        del stages[start:]
    return "|".join(stages).strip()


def _quotes(text: str) -> tuple[int, ...]:
    return text.count('"'), text.count("'")


_LOOKS = regex(
    r"(?:cd [^\s&;]{1,300} ?(?:&&|;) ?)?"
    r"(?:ls|cat|grep|rg|head|tail|find|echo|pwd|which|wc|stat|file|sed -n"
    r"|git (?:-C \S{1,300} )?(?:status|log|diff|show|branch|blame|reflog|cat-file|ls-files|rev-parse)"
    r"|gh (?:pr|issue|run|repo) (?:view|list|diff|checks))\b"
)


def looks(command: str) -> bool:
    """Whether a command begins with a program that only looks around: a fast guess at what
    `ralf.facts.commands.only_looks` finds out.
    """
    return _LOOKS.match(command) is not None


def _fix(since: _Since) -> str:
    if since.changed:
        return "edited " + ", ".join(list(since.changed)[-_FIXES:])
    ran = next((command for command in reversed(since.ran) if not looks(command)), "")
    return f"ran {_first_line(ran)}" if ran else "passed when run again"


def _first_line(command: str) -> str:
    return trimmed(command.split("\n")[0], 160)


_GIT_VERB = regex(r"\bgit (?:-C \S{1,300} )?([a-z][a-z-]*)")

_CONFLICTING = frozenset(("merge", "pull", "rebase", "cherry-pick", "revert", "stash", "am"))


def _done_by(failed: frozenset[str], passed: frozenset[str]) -> bool:
    """Whether what some verbs of git failed to do was done by others."""
    changing = failed - {"add", "fetch", "status", "log", "diff", "show", "checkout"}
    return bool(changing & passed) or bool(changing & _CONFLICTING and passed & {"commit", "push"})


def put_last(found: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Set an entry; it becomes the newest, which stands at the end."""
    found.pop(key, None)
    found[key] = value
