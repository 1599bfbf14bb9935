"""What a command is for: whether it tests, lints or builds, and whether it does so for the project or for one file."""

from __future__ import annotations

from ralf.facts.commands import only_looks, simple_commands
from ralf.text.patterns import regex

_LONGEST = 200  # characters of a command that is worth typing again

_WRAPPERS = frozenset(
    "sudo time nice env exec command npx pnpx bunx uv uvx poetry pipenv pdm hatch rye run bundle python python3 py"
    " dotenv xvfb-run".split()
)
"""Words that may stand before the program."""

_RUNNERS = frozenset(
    "npm yarn pnpm bun deno cargo go make gmake just task mise mix gradle gradlew mvn mvnw dotnet swift rake bazel"
    " composer ninja meson sbt zig stack cabal turbo nx rails docker".split()
)
"""Programs whose next words say what they do."""

_PROGRAMS = {
    "test": "pytest py.test jest vitest mocha rspec phpunit tox nox ctest unittest ava karma cypress playwright behave",
    "lint": "ruff flake8 pylint mypy pyright eslint prettier black isort clippy golangci-lint shellcheck lint-imports"
    " stylelint rubocop biome ktlint checkstyle bandit pre-commit",
    "build": "tsc cmake webpack rollup esbuild",
}

_BY_PROGRAM = {name: purpose for purpose, names in _PROGRAMS.items() for name in names.split()}

_SUBCOMMANDS = (
    ("test", regex(r"(?:unit|integration|e2e|all)?[-:_]?tests?(?:[-:_]\w{1,40})?|check|verify")),
    ("lint", regex(r"lint(?:[-:_]\w{1,40})?|fmt|format(?:[-:_]\w{1,40})?|clippy|vet|type-?check|types")),
    ("build", regex(r"build(?:[-:_]\w{1,40})?|compile|package|assemble|bundle")),
)

_OF_ONE_FILE = regex(r"\.[A-Za-z]\w{0,4}(?:::.*|:\d+)?$|::")

_DEEP = 2  # slashes in the name of a folder that is a part of the project only

_MOVES = regex(r"(?:cd|pushd|export|source|\.|set|unset|alias)\b")

_SELECTS = frozenset(
    ("-k", "-t", "-run", "--run", "-m", "--grep", "-g", "--filter", "--testNamePattern", "--lf", "--ff")
)

_NOT_PLAIN = regex(r"\|\||[;`…]|&\s*$|(?<!&)&(?!&|>)|<<|\$\(")


_VIEWED = regex(
    r"(?<=\S) ?\| ?(?:head|tail|grep|rg|cat|less|sort|tee|wc)\b(?:[^|&;\"']|\"[^\"]{0,200}\"|'[^']{0,200}'){0,200}+\Z"
)


def comparable(command: str) -> str:
    """One form for commands that differ only in spaces, in where their errors are sent, and in how much of their output
    is shown.
    """
    shown, plain = "", " ".join(command.replace(" 2>&1", "").split())
    while shown != plain:
        shown, plain = plain, _VIEWED.sub("", plain)
    return plain


def program_of(command: str) -> str:
    """The program that a command runs in the end, without what wraps it; "" where there is none."""
    words = _words(command)
    return words[0] if words else ""


def purpose_of(command: str) -> str:
    """`test`, `lint` or `build`, where a command's last part is that; "" for any other."""
    return _purpose(_words(command))[0]


def standing_commands(command: str) -> list[str]:
    """The parts of a command line that may be typed again in another task, each as its own command.

    Such a part tests, lints or builds the project and not one file of it, and the exit status of the line is that of
    its parts: what only shortens its output is left off.
    """
    plain = comparable(command)
    if not plain or "\n" in command.strip() or "|" in plain or _NOT_PLAIN.search(plain):
        return []
    parts = [part.strip() for part in plain.split("&&")]
    if any(_MOVES.match(part) for part in parts):
        parts = [plain]  # what follows depends on it
    return [part for part in dict.fromkeys(parts) if _is_standing(part)]


def _is_standing(command: str) -> bool:
    if len(command) > _LONGEST or only_looks(command):
        return False
    words = _words(command)
    purpose, after = _purpose(words)
    rest = words[after:]
    named = [word for word in rest if not word.startswith("-")]
    if not purpose or any(_OF_ONE_FILE.search(word) or word.strip("./").count("/") >= _DEEP for word in named):
        return False
    return not _SELECTS & {word.partition("=")[0] for word in rest}


def _words(command: str) -> list[str]:
    """The words of a command's last simple command, without what wraps the program."""
    simple = [one for one in simple_commands(command) if one.words]
    words = list(simple[-1].words) if simple else []
    while len(words) > 1 and (words[0].rpartition("/")[2] in _WRAPPERS or words[0].startswith("-") or _is_set(words)):
        words.pop(0)
    if words:
        words[0] = words[0].rpartition("/")[2]
    return words


def _is_set(words: list[str]) -> bool:
    """Whether the first word is a number for `nice`, or a variable for `env`."""
    return words[0].isdigit() or ("=" in words[0] and words[0].partition("=")[0].isidentifier())


def _purpose(words: list[str]) -> tuple[str, int]:
    """What it is for, and how many words say so."""
    if not words:
        return "", 0
    if words[0] in _BY_PROGRAM:
        return _BY_PROGRAM[words[0]], 1
    if words[0] in ("make", "gmake", "ninja") and not [word for word in words[1:] if not word.startswith("-")]:
        return "build", len(words)
    if words[0] in _RUNNERS:
        for place, word in enumerate(words[1:4], 1):
            for purpose, pattern in _SUBCOMMANDS:
                if pattern.fullmatch(word):
                    return purpose, place + 1
    return "", 0
