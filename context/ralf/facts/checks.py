"""Which commands are checks (tests, linters, type checkers, builds), which run which again, and how a command ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ralf.facts.commands import Simple, program_of, simple_commands
from ralf.model.entries import Outcome
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

# ---- which commands are checks ----

_ALWAYS = frozenset(
    "pytest py.test tox nox jest vitest mocha ava tap ctest rspec phpunit phpstan psalm eslint stylelint tsc flake8"
    " pylint mypy pyright basedpyright pyre ty golangci-lint staticcheck shellcheck yamllint markdownlint clippy"
    " pre-commit make gmake ninja rubocop ktlint detekt swiftlint xcodebuild biome oxlint lint-imports bats hlint"
    " ansible-lint hadolint luacheck busted just task invoke unittest compileall doctest".split()
)
"""Programs that check whatever they are given."""

_BY_VERB = {
    "go": "test build vet install",
    "cargo": "test build check clippy fmt nextest bench doc",
    "npm": "test t run ci",
    **dict.fromkeys(("pnpm", "yarn", "bun"), "test t run build lint typecheck check"),
    "deno": "test check lint",
    **dict.fromkeys(("mvn", "mvnw"), "test verify package compile install"),
    **dict.fromkeys(("gradle", "gradlew"), "test check build assemble compileJava"),
    "dotnet": "test build format",
    **dict.fromkeys(("swift", "zig", "bazel"), "test build"),
    "mix": "test compile credo dialyzer format",
    "rake": "test spec",
    **dict.fromkeys(("rails", "lein", "composer"), "test"),
    "cmake": "--build",
    **dict.fromkeys(("meson", "sbt"), "test compile"),
    "ruff": "check format",
    "black": "--check",
    "isort": "--check --check-only -c",
    "prettier": "--check -c",
    "terraform": "validate plan",
    "docker": "build",
    **dict.fromkeys(("flutter", "dart"), "test analyze build"),
    "mise": "run",
    "hatch": "test run",
    "pip": "check",
}
"""Programs that check by one of these verbs or options."""

_WRAPPED = regex(
    r"(?:(?:[^\0]*/)?(?:"
    r"(?:sudo|time|command|env|nice|npx|bunx|pnpx|xvfb-run|winpty|stdbuf|nohup|exec)\0(?:(?:-|[^\0]*=)[^\0]*\0)*+"
    r"|timeout\0(?:-[^\0]*\0)*+[^\0]*\0"
    r"|(?:(?:uv|poetry|pipenv|pdm|rye|hatch)\0run|(?:mise|bundle)\0exec)\0"
    r"(?:--(?:with|python|project|directory)\0[^\0]*\0|-[^\0]*\0)*+"
    r"))*+"
)
"""What a command begins with that only runs another one, each word with a zero byte behind it."""

_TARGETS = frozenset("make gmake ninja just task invoke rake pre-commit".split())
"""Programs whose words name what they run, as those behind `run` do; the words of others are paths."""

_FILTERS = frozenset(
    "-k -m -t -run --run --test --filter --grep -g --tests --testNamePattern -only --only --lf --last-failed --deselect"
    " --ignore -p --package -pl".split()
)
"""Options that choose what is checked. Their values are part of a check's key as paths are."""

_RUNS_NOTHING = frozenset("--version -V --help -h --collect-only --co --dry-run --list --listTests --fixtures".split())

_NUMBER = regex(r"[\d.]+[smhx]?")

_LONGEST_KEY = 300  # characters


def covers(key: str, other: str) -> bool:
    """Whether a run of one check says what one of another did: it is the same, or the same program over everything."""
    return key == other or (is_whole(key) and is_same_program(key, other))


def is_whole(key: str) -> bool:
    """Whether a check runs over everything, without paths and filters."""
    return not _split(key)[1]


def is_same_program(key: str, other: str) -> bool:
    """Whether two checks differ at most in what they run over."""
    return _split(key)[0] == _split(other)[0]


_TESTS = frozenset(
    "pytest py.test tox nox jest vitest mocha ava tap ctest rspec phpunit bats busted unittest nextest".split()
)


def is_test(key: str) -> bool:
    """Whether a check runs tests: its program is a runner of tests, or it has the verb."""
    words = key.split()[:3]
    return not _TESTS.isdisjoint(words) or not {"test", "spec"}.isdisjoint(words[1:])


def _split(key: str) -> tuple[list[str], list[str]]:
    """The program of a key, and what it runs over: paths, and a filter."""
    words = key.split(" ")
    if words[0] in _TARGETS or words[1:2] == ["run"]:
        return words, []
    count = 2 if words[1:2] and words[1] in _BY_VERB.get(words[0], "").split() else 1
    return words[:count], words[count:]


def checks_in(simple: Sequence[Simple], more: frozenset[str] = frozenset()) -> dict[int, str]:
    """The checks of a command: by the place of each its program with its paths and filters, equal for two runs of the
    same check; `more`: programs that a project calls checks, too.
    """
    keys = ((place, _key(unwrapped(one.words), more)) for place, one in enumerate(simple))
    return {place: trimmed(one_line(key), _LONGEST_KEY) for place, key in keys if key}


def _key(words: Sequence[str], more: frozenset[str]) -> str:
    """The key of a simple command that is a check, "" for any other."""
    if not words or _RUNS_NOTHING & set(words):
        return ""
    name, rest = program_of(words), list(words[1:])
    if name.startswith("python") and rest[:1] == ["-m"] and len(rest) > 1:
        name, rest = rest[1], rest[2:]
    verb = next((word for word in rest if word in _BY_VERB.get(name, "").split()), "")
    if not verb and (name in _BY_VERB or (name not in _ALWAYS and more.isdisjoint((name, words[0])))):
        return ""
    if verb:
        rest.remove(verb)
    program = [name, verb] if verb and not verb.startswith("-") else [name]
    if name in _TARGETS and "-n" in rest:
        return ""
    return " ".join([*program, *dict.fromkeys(filter(None, map(_chosen, rest)))])


def _chosen(word: str) -> str:
    """What a word of a check says of what is checked, "" for nothing."""
    if word.startswith("-"):
        return word.replace("=", " ", 1) if word.partition("=")[0] in _FILTERS else ""
    is_all = word in (".", "./...", "...") or _NUMBER.fullmatch(word)
    return "" if is_all else word.removeprefix("./").rstrip("/")


def unwrapped(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command without programs that only run another one."""
    match = _WRAPPED.match("".join(f"{word}\0" for word in words))
    return tuple(words[match.group().count("\0") :]) if match else tuple(words)


# ---- how a command ended ----


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended, the lines that say it, and the keys of the checks that it says it of."""

    outcome: Outcome
    lines: tuple[str, ...]
    checks: tuple[str, ...] = ()


def ending(command: str, output: str, *, failed: bool, status: int | None, checks: Mapping[int, str]) -> Ending:
    """How a command ended that ran.

    A check ended by its exit status where the command's is its own; by what it printed where a pipe, `||` or `;` hides
    it. Where another command of a chain may have failed in its place, nothing is said of the check.

    failed, status  what the client says
    """
    simple = simple_commands(command)
    own = tuple(key for place, key in checks.items() if shows_status(command, simple, place))
    if checks and not own:
        return _by_output(output, simple, checks)
    if failed or status:
        lines = failing_lines(output)
        is_certain = any(map(_says_failure, _lines_of(output))) or not _others(simple, checks)
        return Ending("failed", lines, own if is_certain else ())
    ended = [at + 1 for at, one in enumerate(simple[:-1]) if one.then in (";", "\n", "&")]
    if not own and not shows_status(command, simple, ended[-1] if ended else 0):
        return Ending("not shown", _line(output))
    return Ending("ok", _line(output, _success(output) if checks else ""), own)


def _by_output(output: str, simple: Sequence[Simple], checks: Mapping[int, str]) -> Ending:
    """How checks ended whose exit status is hidden: the runner's own summary decides, else any mark of failure."""
    keys, last = tuple(checks.values()), max(checks)
    result = _success(output)
    marks = _says_failure if result or _others(simple, checks) else is_failing
    if any(map(marks, _lines_of(output))) or says_failed(result):
        return Ending("failed by output", failing_lines(output), keys)
    if not result or _may_lack_failures(simple, last):
        return Ending("not shown", _line(output), keys)
    led = (key for place, key in checks.items() if all(one.then == "&&" for one in simple[place:last]))
    return Ending("passed by output", _line(output, result), tuple(led))


PIPES = ("|", "|&")


def shows_status(command: str, simple: Sequence[Simple], place: int) -> bool:
    """Whether the exit status 0 of a command line says that the simple command at a place has passed."""
    joins = ("&&", *(PIPES if "pipefail" in command else ()))
    if not simple:
        return "|" not in command  # its quotes do not close
    return simple[-1].then != "&" and all(one.then in joins for one in simple[place:-1])


def _others(simple: Sequence[Simple], checks: Mapping[int, str]) -> bool:
    """Whether a command that is no check may be the one of a line that failed."""
    places = {*checks} | {at + 1 for at, one in enumerate(simple) if one.then in PIPES}
    rest = [one.words for place, one in enumerate(simple) if place not in places]
    return any(words and words[0] not in _HARDLY_FAIL for words in rest)


_HARDLY_FAIL = frozenset("cd echo printf export set source . true pwd date".split())


_SHOW_ALL = frozenset(("tail", "tee", "cat"))


def _may_lack_failures(simple: Sequence[Simple], place: int) -> bool:
    """Whether what a check was piped through may have kept its failures from the output."""
    piped = (at for at in range(place, len(simple)) if simple[at].then not in PIPES)
    rest = (one.words for one in simple[place + 1 : next(piped, len(simple)) + 1])
    return any(program_of(words) not in _SHOW_ALL and "fail" not in " ".join(words).lower() for words in rest)


def _success(output: str) -> str:
    """What a runner or linter says of itself, "" where it says nothing."""
    return test_result(output) or next(filter(_PASSES.search, reversed(_lines_of(output))), "")


_PASSES = regex(
    r"^\s*(?:\[[\w:-]+\] )?(?:0 issues\.?$|All checks passed!|Success: no issues found|Found 0 errors|0 errors, )"
)
"""What linters and type checkers say that found nothing."""


def _lines_of(output: str) -> list[str]:
    return output.splitlines()[:_MOST_READ]


def _line(output: str, text: str = "") -> tuple[str, ...]:
    """A line of an output as it is kept; the last one where none is given."""
    shown = text or next((line for line in reversed(output.splitlines()) if line.strip()), "")
    return (trimmed(one_line(shown), _LONGEST),) if shown else ()


# ---- what it said of itself ----

_SUMMARY = regex(
    r"(?<!=)=++ (?=[^=\n]*+(?<= )=+$)"
    r"(?P<pytest>(?=[^=\n]*\b(?:passed|failed|errors?|skipped|no tests ran)\b)[^=\n]* in [\d.:]+[^=\n]*?) =+$"
    r"|^(?P<quiet>\d+ (?:passed|failed|skipped|errors?)\b[^\n]{0,200} in [\d.]+s.*)$"
    r"|^(?P<cargo>test result: .*)$"
    r"|^\s*(?P<jest>Tests:?\s+\d+ (?:passed|failed|skipped|todo|total).*)$"
    r"|^\s*(?P<mocha>\d+ (?:passing|failing)\b.*)$"
    r"|^(?P<unittest>Ran \d+ tests? in .*|FAILED \((?:failures|errors)=.*\))$"
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


def test_result(output: str) -> str:
    """What a test run said of itself in its last summary, in its own words; "" where there is none."""
    found: dict[str, list[str]] = {}
    for match in filter(None, (_SUMMARY.search(line.rstrip()) for line in output.splitlines() if len(line) < 600)):
        runner = str(match.lastgroup)
        found.setdefault(runner, []).append(one_line(match[runner]))
    runner = "gofail" if "gofail" in found else next(reversed(found), "")
    return "; ".join([*dict.fromkeys(found.get(runner, ()))][-4 if runner in _ALL_LINES else -1 :])


_SAYS_FAILED = regex(r"\b[1-9]\d* (?:failed|failing|failures?|errors?|fail)\b|\bFAIL(?:ED|URES)?\b|# fail [1-9]")


def says_failed(result: str) -> bool:
    """Whether a test result says that a test failed."""
    return _SAYS_FAILED.search(result) is not None


# ---- lines that say what failed ----

_MOST_READ, _MOST_LINES = 4_000, 8  # lines of an output; failing lines

_ONLY_A_PLACE, _NOTHING = 3, 4  # ranks of a line that names a place and nothing that is amiss there, and of any other

_SHORTEST, _LONGEST, _LONGEST_LINE = 6, 170, 4_000  # characters of a line that says what failed, that is read

_STRONG = (
    r"^\s*not ok\b|\bFAIL(?:ED|URES?)?\b|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|make(?:\[\d+\])?: \*\*\*"
    r"|\bpanic: |\bfail\s(?:0|(?:\d{1,3}[hms]){1,3})\shttps?://"  # the last: `gh pr checks`
)

_NAMED = (
    r"\berror(?:\[\w+\]| TS\d+)?:|^E {1,}\S|\bpanic(?:ked)?\b|\b\w+(?:Error|Exception)\b(?=:(?!:)|$)|--- FAIL"
    r"|^(?:vet: )?[\w@./\\-]{1,200}\.go:\d{1,6}:\d{1,6}: "  # the compiler, vet and linters of Go have no word for it
)

_SAYS_FAILURE, _ERROR = regex(_STRONG), regex(_NAMED)

_FAILS = regex(rf"{_STRONG}|{_NAMED}|Traceback|^\s*[\u2717\u2718\u2715\u00d7] ")
"""Marks by which runners, compilers and linters say that something failed."""

_AMISS = regex(
    r"\b(?:fail(?:s|ed|ure)?|want(?:ed)?|expected|undefined|cannot|not found|invalid|missing|unexpected)\b", re.I
)
"""Words with which compilers and runners say at a place what is amiss."""

_FRAME = regex(r"^(?:={3,}|-{3,}|_{3,}) .*(?:={3}|-{3}|_{3})$")

_PASSED = regex(
    r"\b0 (?:failed|failing|failures?|errors?)\b|errors?: 0\b|\bPASSED\b"
    r"|^\s*(?:=== (?:RUN|PAUSE|CONT|NAME)|--- (?:PASS|SKIP)|ok\b)|\.\.\. ok$|^\s*[\u2713\u2714\u221a] "
)
"""Lines that name what passed, in which names of tests may look like errors."""

_PLACE = regex(r"(?:^|[\s(\"'])[\w@./\\+-]{1,200}\.\w{1,8}(?::\d{1,6}|\(\d{1,6}|\", line \d{1,6})")


def is_failing(line: str, marks: re.Pattern[str] = _FAILS) -> bool:
    """Whether a line of an output is a runner's mark of failure."""
    return len(line) < _LONGEST_LINE and marks.search(line) is not None and not _PASSED.search(line)


def _says_failure(line: str) -> bool:
    """Whether a line is a mark that no log of a test that passed prints."""
    return is_failing(line, _SAYS_FAILURE)


def failing_lines(output: str) -> tuple[str, ...]:
    """At most eight lines of an output that say what failed, in its order; the last line where none does."""
    lines = [one_line(line) for line in _lines_of(output) if line.strip() and len(line) < _LONGEST_LINE]
    chosen = most_telling(dict.fromkeys(line for line in lines if _rank(line) < _NOTHING), _MOST_LINES)
    return tuple(trimmed(line, _LONGEST) for line in chosen or lines[-1:])


def most_telling(lines: Iterable[str], most: int) -> list[str]:
    """The lines that say most of what failed, in their order: those with an error and its place, then errors, then
    other marks of failure; places alone only where there is nothing else.
    """
    ranked = [(_rank(line), number, line) for number, line in enumerate(lines)]
    most_rank = _ONLY_A_PLACE - 1 if any(rank < _ONLY_A_PLACE for rank, *_ in ranked) else _NOTHING
    best = sorted(one for one in ranked if one[0] <= most_rank)[:most]
    return [line for _, _, line in sorted(best, key=lambda one: one[1])]


def _rank(line: str) -> int:
    """How much a line says of a failure, 0 most."""
    if len(line) < _SHORTEST or _FRAME.search(line):
        return _NOTHING
    has_place = _PLACE.search(line) is not None
    if is_failing(line):
        return 2 - has_place - (_ERROR.search(line) is not None)
    return _NOTHING if not has_place else 1 if _AMISS.search(line) else _ONLY_A_PLACE
