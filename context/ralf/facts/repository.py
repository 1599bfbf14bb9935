"""What a session's commands say of its repository: commits, branch, push, pull request, what is staged and changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ralf.facts.checks import PIPES, shows_status
from ralf.facts.commands import git_words, joined, placed, simple_commands
from ralf.model.entries import GitFact
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex

_SUBJECT, _LONGEST_PATH = 160, 1_024  # characters

_COMMIT = regex(r"(?m)^\[([^\[\]\n]{1,200}) ([0-9a-f]{7,40})\] ([^\n]*)$")

_CHANGED = regex(r"(?m)^ (?:\d+ files? changed|(?:create|delete) mode \d{6} |rename \S)")

_NO_REPOSITORY = regex(r"(?m)^fatal: not a git repository")

_SWITCHED = regex(r"(?m)^(?:Switched to (?:a new |and reset )?branch|Already on) '([^'\n]{1,200})'")

_HEAD_IS = regex(r"(?m)^HEAD is now at ([0-9a-f]{7,40}) ?([^\n]*)$")

_DETACHED = regex(r"(?m)^(?:Note: switching to '|You are in 'detached HEAD' state)")

_FORWARDED = regex(r"(?m)^Updating [0-9a-f]{7,40}\.\.([0-9a-f]{7,40})\nFast-forward")

_UNMOVED = regex(r"(?m)^(?:Already up to date|Current branch \S+ is up to date)")

_PUSHED = regex(
    r"(?m)^ (?:[ +] ?[0-9a-f]{7,40}\.{2,3}([0-9a-f]{7,40})[ ]{1,40}|\* \[new (?:branch|reference)\][ ]{1,40})"
    r"(\S{1,200}) -> (\S+)"
)

_REJECTED = regex(r"(?m)^ ! \[|^error: failed to push")

_LISTED = regex(r"([0-9a-f]{7,40}) (?:\([^()\n]{1,300}\) )?([^\n]*)")

_ADDRESS = regex(r"https?://\S{1,200}/pull/(\d{1,9})\b")

_CONFLICT = regex(r"(?m)^(?:CONFLICT |Automatic merge failed|You have unmerged paths|All conflicts fixed but you are)")

_IN_PROGRESS = regex(r"(?m)^(?:interactive )?(rebase) in progress|You are currently (rebas|cherry-pick|revert)ing")

_HEADING = regex(r"(?m)^(Changes to be committed|Changes not staged for commit|Untracked files|Unmerged paths):")

_LONG = regex(
    r"(?m)^\t(?:(?:both |)(?:modified|added|deleted)|new file|deleted|renamed|copied|typechange):\s+([^\n]+)$"
)

_UNTRACKED = regex(r"(?m)^\t(?!\w[\w ]{0,20}:\s)([^\n]+)$")

_SHORT = regex(r"(?m)^(?!  )[ MADRCUT?]{2} (?! )([^\n]+)$")

_ON_BRANCH = regex(r"(?m)^(?:On branch|##) (\S+?)(?:\.\.\.\S+)?(?: \[.*)?$")

_BACK = regex(r"(?:HEAD|@)(?:~(\d{0,2})|(\^{1,9}))")

_LISTS = frozenset(("--oneline", "--decorate", "--no-decorate"))

_COMMITTING = frozenset(("commit", "merge", "cherry-pick", "revert", "am", "rebase", "pull"))

# ---- places ----


@dataclass
class Repository:
    """The project's folder, and the folders in it that a session made repositories of their own."""

    base: str
    others: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.base = self.base.rstrip("/\\") if len(self.base) > 1 else self.base

    def relative(self, path: str, folder: str) -> str:
        """A path that is named in a folder, relative to the project if it lies there."""
        path = joined(folder, path.strip())
        if path == self.base:
            return "."
        if path[1:2] != ":":
            return path[len(self.base) + 1 :] if self.base and path.startswith(f"{self.base}/") else path
        path, base = path.replace("\\", "/"), self.base.replace("\\", "/")  # git names paths so on Windows, too
        return path[len(base) + 1 :] if base and path.casefold().startswith(f"{base.casefold()}/") else path

    def named(self, words: Iterable[str], folder: str) -> Iterator[str]:
        """The paths that words of a call name in a folder; "" for all of the project."""
        for word in words:
            if len(word) <= _LONGEST_PATH:
                path = self.relative(word, folder)
                yield "" if path == "." else path

    def has(self, folder: str) -> bool:
        """Whether a folder lies in the project's repository; one that is not known does not, if a project is."""
        places = {folder, *(folder[:at] for at, letter in enumerate(folder) if letter in "/\\")}
        return not self.base or (self.base in places and not places & self.others)

    def note(self, verb: str, operands: Sequence[str], where: str) -> None:
        """Note the repository that `git init` or `git clone` makes."""
        address = [one.rstrip("/").rpartition("/")[2].removesuffix(".git") for one in operands[:1] if verb == "clone"]
        named = [*address, *operands[len(address) :]]
        self.others |= {joined(where, named[-1] if named else "")} - {self.base}


# ---- calls of git and gh ----


@dataclass(frozen=True)
class _Call:
    """A call of git without its own options.

    verb    what git is to do; of a call of gh with "gh " before it
    words   what follows the verb; `options` and `operands` among it
    folder  where it ran
    passed  the exit status says that it passed
    first   nothing but `cd` ran before it; `pipe`: the words of the command that read its output
    """

    verb: str
    words: tuple[str, ...]
    options: set[str]
    operands: list[str]
    folder: str
    passed: bool
    first: bool
    pipe: Sequence[str]


def _calls(command: str, cwd: str, repository: Repository, *, passed: bool) -> Iterator[_Call]:
    """The calls in the project's repository, in order; what makes another repository is noted."""
    simple = simple_commands(command)
    for place, (one, where) in enumerate(placed(command, cwd)):
        program = one.words[:1]
        words, where = git_words(one.words[1:], where)
        if program not in (("git",), ("gh",)) or not words:
            continue
        verb = words[0] if program == ("git",) else f"gh {words[0]}"
        operands = [word for word in words[1:] if not word.startswith("-")]
        if verb in ("init", "clone"):
            repository.note(verb, operands, where)
        elif repository.has(where):
            yield _Call(
                verb,
                tuple(words[1:]),
                {word for word in words[1:] if word.startswith("-")},
                operands,
                where,
                passed and shows_status(command, simple, place),
                all(before.words[:1] == ("cd",) for before in simple[:place]),
                simple[place + 1].words if one.then in PIPES and place + 1 < len(simple) else (),
            )


def git_facts(command: str, output: str, cwd: str, repository: Repository, *, passed: bool) -> list[GitFact]:
    """What a command and its output say of the project's repository, in order.

    passed  its exit status is 0. What a call did counts if that says so for it; else what the output shows
    """
    if "git" not in command and "gh " not in command:
        return []
    calls = [*_calls(command, cwd, repository, passed=passed)]
    verbs = {call.verb for call in calls}
    printed = _COMMIT.findall(output) if verbs & _COMMITTING else []
    last = max((at for at, call in enumerate(calls) if printed and call.verb in _COMMITTING), default=-1)
    found: list[GitFact] = []
    for at, call in enumerate(calls):
        if call.passed or at <= last:
            found += _called(call, repository)
        if at == last:
            found += _committed(printed, [call for call in calls if call.verb == "commit"])
        elif not printed or call.verb not in _COMMITTING:
            found += _shown(call, output, repository, passed=passed)
    for among, kind, pattern in _HEADS:
        if verbs & among and (shown := [*pattern.finditer(output)]):
            found.append(GitFact(kind, *map(_subject, shown[-1].groups() or ["HEAD"])))
    if calls and _NO_REPOSITORY.search(output):
        found.append(GitFact("absent"))
    if verbs & (_COMMITTING | {"status"}) and _CONFLICT.search(output):
        found.append(GitFact("merging", _in_progress(verbs, output)))
    return found


_MOVES = frozenset(("checkout", "switch", "reset"))

_HEADS = (
    (_MOVES, "branch", _SWITCHED),
    (_MOVES, "branch", _DETACHED),
    (_MOVES, "tip", _HEAD_IS),
    (frozenset(("pull", "merge")), "tip", _FORWARDED),
)
"""What calls print of what is checked out after them."""


def _in_progress(verbs: set[str], output: str) -> str:
    if found := _IN_PROGRESS.search(output):
        return found[1] or {"rebas": "rebase"}.get(found[2], found[2])
    return next((verb for verb in ("rebase", "cherry-pick", "revert", "am") if verb in verbs), "merge")


def _shown(call: _Call, output: str, repository: Repository, *, passed: bool) -> Iterator[GitFact]:
    """What a call printed; `passed`: the exit status of the whole command is 0."""
    match call.verb:
        case "commit":
            if not {"--dry-run", "-h"} & call.options:
                has_committed = call.passed or _CHANGED.search(output)
                yield GitFact(_kind(call) if has_committed else "tried", "", _subject(_message(call.words)))
        case verb if verb in _COMMITTING and passed and not _UNMOVED.search(output):
            yield GitFact("moved")
        case "push" if not {"-n", "--dry-run", "--delete", "-d", "--tags"} & call.options:
            pushed = [
                one for one in _PUSHED.findall(output) if not one[2].endswith(f"/{one[1]}")
            ]  # else it was fetched
            if not _REJECTED.search(output) and (pushed or call.passed):
                yield GitFact("push", *(pushed[-1][:2] if pushed else ()))
        case "status" if not call.operands:
            yield from _status(call, output, repository)
        case "log" if call.first and _shows_head(call) and (tip := _LISTED.match(output)):
            yield GitFact("tip", tip[1], _subject(tip[2]))
        case "gh pr":
            yield from _requested(call, output)


def _committed(printed: Sequence[tuple[str, str, str]], calls: Sequence[_Call]) -> Iterator[GitFact]:
    """The commits that git printed; `calls`: those of `git commit` among what made them."""
    for where, digest, subject in printed:
        branch = where.replace("(root-commit)", "").strip()
        if " " not in branch:
            yield GitFact("branch", branch)
        yield GitFact(_kind(calls[-1]) if calls else "applied", digest, _subject(subject))


def _kind(call: _Call) -> str:
    return "amended" if "--amend" in call.options else "commit"


def _message(words: Sequence[str]) -> str:
    """The first line of a message that a call of `git commit` is given."""
    given = (value for flag, value in pairwise(words) if flag == "--message" or _GIVES_MESSAGE.fullmatch(flag))
    message = next(given, "")
    return "" if message.startswith("$(") else message.strip().partition("\n")[0]


_GIVES_MESSAGE = regex(r"-[^-]*m")


def _requested(call: _Call, output: str) -> Iterator[GitFact]:
    """What was done to a pull request."""
    verb = next(iter(call.words), "")
    if verb not in _DONE or {"-R", "--repo", "--auto"} & call.options:
        return
    shown = _ADDRESS.findall(output)[-1:]
    named = [number for word in call.words[1:] for number in (_ADDRESS.findall(word) or [word]) if number.isdecimal()]
    number = (shown if verb == "create" else named or shown) or [""]
    if number[0] if verb == "create" else call.passed:
        yield GitFact("request", number[0][:10], _DONE[verb])


_DONE = {
    "create": "created",
    "checkout": "checked out",
    "merge": "merged",
    "close": "closed",
    "comment": "commented",
    "review": "reviewed",
    "ready": "marked as ready",
}


def _called(call: _Call, repository: Repository) -> Iterator[GitFact]:
    """What a call that passed does to the working tree by itself."""
    options, paths = call.options, [*repository.named(call.operands, call.folder)]
    match call.verb:
        case "add" | "rm" | "mv":
            is_all = {"-A", "--all", "-u", "-Av"} & options or {"", ":/", "*"} & {*paths, *call.operands}
            yield from [GitFact("add-all")] if is_all else (GitFact("add", path) for path in paths)
        case "commit" if any(map(_TAKES_ALL.fullmatch, options)):
            yield GitFact("add-all")
        case "stash":
            did = next((word for word in call.words[:1] if word[0] != "-"), "push")
            yield from (GitFact(kind) for kind in _STASHES.get(did, ()))
        case "reset":
            yield from [GitFact("undone")] if "--hard" in options else ()
            for back in [*filter(None, map(_BACK.fullmatch, call.operands))][:1]:
                yield GitFact("dropped", str(len(back[2] or "") or int(back[1] or 1)))
        case "switch" | "checkout" if {"-b", "-B", "-c", "-C"} & options and call.operands:
            yield GitFact("branch", call.operands[0])
        case "restore" if not any(map(_NOT_UNDONE.match, options)):
            yield from (GitFact("undone", path) for path in paths)
        case "checkout" if "--" in call.words and not any(map(_NOT_UNDONE.match, options)):
            place = call.words.index("--")
            if not set(call.words[:place]) - {"HEAD"}:
                yield from (GitFact("undone", path) for path in repository.named(call.words[place + 1 :], call.folder))


_TAKES_ALL = regex(r"--all|-(?!-)(?=.{0,3}$).*a.*")

_STASHES = {
    **dict.fromkeys(("push", "save"), ("stashed",)),
    **dict.fromkeys(("pop", "apply"), ("unstashed",)),
}

_NOT_UNDONE = regex(r"(?:--staged|-S|-p|--patch|--theirs|--ours)$|--source|-s")
"""Options with which files get other content than that of the newest commit, or the tree stays as it is."""


def _status(call: _Call, output: str, repository: Repository) -> Iterator[GitFact]:
    """What `git status` shows: the branch, and all that is not committed; nothing of it where its output was cut."""
    given = "".join(f" {option}" for option in call.options)
    is_short = _IS_SHORT.search(given) is not None
    branch = _ON_BRANCH.search(output) if not is_short or _WITH_BRANCH.search(given) else None
    if branch and branch[1] not in ("No", "HEAD"):
        yield GitFact("branch", branch[1])
    is_part = call.pipe or "truncated" in output or _OF_A_PART.search(given)
    if is_part or not (is_short or "nothing to commit" in output or _HEADING.search(output)):
        return
    yield GitFact("clean")
    listed = _SHORT.findall(output) if is_short else []
    parts = [] if is_short else _HEADING.split(output)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        listed += (_UNTRACKED if heading == "Untracked files" else _LONG).findall(text)
    folder = repository.base if "--porcelain" in call.options else call.folder  # porcelain names paths from the top
    for path in (_unquoted(one.rpartition(" -> ")[2].strip()) for one in listed):  # of a renamed file the new one
        if len(path) <= _LONGEST_PATH:
            yield GitFact("changed", repository.relative(path, folder) + "/" * path.endswith("/"))


def _unquoted(name: str) -> str:
    """A name as it is, of which git quotes what is not ASCII, byte by byte."""
    if not name.startswith('"'):
        return name
    plain = _OCTAL.sub(lambda match: chr(int(match[1], 8)), name.strip('"'))
    try:
        return plain.encode("latin-1").decode()
    except UnicodeError:
        return plain


_OCTAL = regex(r"\\([0-3][0-7]{2})")

_IS_SHORT = regex(r" (?:--short|--porcelain|-\w*s)")

_WITH_BRANCH = regex(r" (?:--branch|-\w*b)")

_OF_A_PART = regex(r" (?:-u|--untracked|--porcelain=v2)")


def _shows_head(call: _Call) -> bool:
    """Whether a call of git lists the newest commits of what is checked out, one a line, newest first."""
    rest = {word for word in call.words if not (word.lstrip("-").isdecimal() or word == "-n")}
    return "--oneline" in rest and rest <= _LISTS and (not call.pipe or call.pipe[0] in ("head", "cat"))


def _subject(text: str) -> str:
    return trimmed(one_line(text), _SUBJECT)
