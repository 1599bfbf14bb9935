"""Errors and test results: the lines in which a command's output names them."""

from __future__ import annotations

import re

from ralf.text.cleaning import one_line
from ralf.text.patterns import regex

# ---- what commands answered ----

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
    for match in filter(None, (_SUMMARY.search(line.rstrip()) for line in output.splitlines() if len(line) < 600)):
        runner = str(match.lastgroup)
        found.setdefault(runner, []).append(one_line(match[runner]))
    if not any(line.startswith("Ran") for line in found.get("unittest", ())):
        found.pop("unittest", None)
    runner = "gofail" if "gofail" in found else next(reversed(found), "")
    lines = found.get(runner, [])
    if runner == "cargo":
        lines = [line for line in lines if "FAILED" in line][:1] or lines
    return "; ".join([*dict.fromkeys(lines)][-4:] if runner in _ALL_LINES else lines[-1:])


_SAYS_FAILED = regex(r"\b[1-9]\d* (?:failed|failing|failures?|errors?|fail)\b|\bFAIL(?:ED|URES)?\b|# fail [1-9]")


def says_failed(result: str) -> bool:
    """Whether a test result says that a test failed."""
    return _SAYS_FAILED.search(result) is not None


# ---- errors ----

NAMED = 120
"""Characters of a command that name it beside an error or a test result."""

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
