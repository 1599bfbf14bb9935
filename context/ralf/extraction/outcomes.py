"""Reads what commands answered: the line that names an error, commits, test results."""

from __future__ import annotations

import re

# Plain names of trouble; `_STRONG` are the shapes in which programs report it.
_STRONG = re.compile(
    r"\b(?:error|fatal|panic|exception|failure)\b\s*+(?:\[\w+\]\s*+)?[:(]|\b\w+(?:Error|Exception)\b\s*(?::|$)"
    r"|^E {2,}\S|^--- FAIL|^CONFLICT\b|^FAILED\b|: (?:command )?not found\b"
    r"|: No such file|: Permission denied"
    r"|^\s*[x✗✘✕] \S|^thread '.{1,200}' panicked",
    re.I,
)
_WEAK = re.compile(
    r"\b(?:error|fail(?:s|ed|ure|ing)?|fatal|panic(?:ked)?|exception|undefined|cannot|can't"
    r"|could not|couldn't|not found|no such|denied|rejected|conflict|unable|invalid|missing|refused|unknown"
    r"|unexpected|no matches"
    r"|timed out|timeout|killed|expected)\b",
    re.I,
)
_PLACE = re.compile(r"^\S+:\d+(?::\d+)?:\s+\S")
_AMISS = re.compile(r"\b(?:want|wanted|got|should|must|needs?|not|never used|unused|deprecated)\b|\(\w+\)$", re.I)
_HARMLESS = re.compile(
    r"\b(?:0|no) (?:errors?|failures?|failed)\b|\berrors?: 0\b|^\$ |^\[[\w-]+\] \$|^Traceback \(|^exit code:? \d+$"
    r"|^=== (?:RUN|PAUSE|CONT)"
    r"|^(?:Process )?exit(?:ed)?(?: with)? (?:code|status)|^--- PASS|^\s*File \"|\bno test files\b",
    re.I,
)


def error_line(output: str) -> str:
    """The first line of a failed command's output that names an error; "" where none does."""
    weak = place = ""
    for number, line in enumerate(output.splitlines()):
        line = line.strip()
        if number > 4000:
            break
        if not line or len(line) > 4000 or _HARMLESS.search(line):
            continue
        at_place = _PLACE.match(line)
        if _STRONG.search(line) or (at_place and (_WEAK.search(line) or _AMISS.search(line))):
            return line
        if not weak and _WEAK.search(line):
            weak = line
        if not place and at_place:
            place = line
    return weak or place


_COMMIT = re.compile(r"(?m)^\[[^\[\]\n]{1,200} ([0-9a-f]{7,40})\] ([^\n]*)$")
_COMMITS = re.compile(r"\bgit\b[^\n]{0,200}?\b(?:commit|merge|cherry-pick|revert|am|rebase|pull)\b")


def commits(command: str, output: str) -> list[tuple[str, str]]:
    """(hash, message) of the commits that a command made, as git reported them."""
    if not _COMMITS.search(command):
        return []
    return [(match[1], match[2].strip()) for match in _COMMIT.finditer(output)]


_TESTING = re.compile(
    r"test|spec|jest|mocha|cargo|\bgo\b|\bnpm\b|yarn|pnpm|\bbun\b|deno|\bmake\b|mise|\btox\b|nox|gradle|mvn"
    r"|check|\bci\b|python",
    re.I,
)
_READING = re.compile(r"^\s*(?:cat|grep|rg|git|gh|less|ls|find|echo|curl)\b")
_SUMMARY = re.compile(
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
        if len(line) < 600:
            match = _SUMMARY.search(line.rstrip())
            if match is not None and match.lastgroup is not None:
                found.setdefault(match.lastgroup, []).append(" ".join(match[match.lastgroup].split()))
    if "unittest" in found and not any(line.startswith("Ran") for line in found["unittest"]):
        del found["unittest"]
    if "gofail" in found:
        found.pop("go", None)
    if not found:
        return ""
    kind = "gofail" if "gofail" in found else next(reversed(found))
    lines = found[kind]
    if kind == "cargo":
        return next((line for line in lines if "FAILED" in line), lines[-1])
    return "; ".join(list(dict.fromkeys(lines))[-4:] if kind in _ALL_LINES else lines[-1:])


_SAYS_FAILED = re.compile(r"\b[1-9]\d* (?:failed|failing|failures?|errors?|fail)\b|\bFAIL(?:ED|URES)?\b|# fail [1-9]")


def says_failed(result: str) -> bool:
    """Whether a test result says that a test failed."""
    return _SAYS_FAILED.search(result) is not None
