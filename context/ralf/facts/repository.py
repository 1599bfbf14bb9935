"""What a session's commands say of its repository: commits, branch, push, pull request, what is staged and changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ralf.facts.checks import PIPES, shows_status
from ralf.facts.commands import git_words, joined, placed, simple_commands
from ralf.model.entries import GitFact
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex

_SUBJECT = 160  # characters

_COMMIT = regex(r"(?m)^\[([^\[\]\n]{1,200}) ([0-9a-f]{7,40})\] ([^\n]*)$")

_CHANGED = regex(r"(?m)^ (?:\d+ files? changed|(?:create|delete) mode \d{6} |rename \S)")

_SWITCHED = regex(r"(?m)^(?:Switched to (?:a new |and reset )?branch|Already on) '([^'\n]{1,200})'")

_HEAD_IS = regex(r"(?m)^HEAD is now at ([0-9a-f]{7,40}) ?([^\n]*)$")

_DETACHED = regex(r"(?m)^(?:Note: switching to '|You are in 'detached HEAD' state)")

_FORWARDED = regex(r"(?m)^Updating [0-9a-f]{7,40}\.\.([0-9a-f]{7,40})\nFast-forward")

_PUSHED = regex(
    r"(?m)^ (?:[ +] ?[0-9a-f]{7,40}\.{2,3}([0-9a-f]{7,40})[ ]{1,40}|\* \[new (?:branch|reference)\][ ]{1,40})"
    r"(\S{1,200}) -> (\S+)"
)

_REJECTED = regex(r"(?m)^ ! \[|^error: failed to push")

_LISTED = regex(r"([0-9a-f]{7,40}) (?:\([^()\n]{1,300}\) )?([^\n]*)")

_ADDRESS = regex(r"https?://\S{1,200}/pull/(\d{1,9})\b")

_CONFLICT = regex(r"(?m)^(?:CONFLICT |Automatic merge failed|You have unmerged paths|All conflicts fixed but you are)")

_HEADING = regex(r"(?m)^(Changes to be committed|Changes not staged for commit|Untracked files|Unmerged paths):")

_LONG = regex(
    r"(?m)^\t(?:(?:both |)(?:modified|added|deleted)|new file|deleted|renamed|copied|typechange):\s+([^\n]+)$"
)

_UNTRACKED = regex(r"(?m)^\t(?!\w[\w ]{0,20}:\s)([^\n]+)$")

_SHORT = regex(r"(?m)^(?!  )[ MADRCUT?]{2} (?! )([^\n]+)$")

_ON_BRANCH = regex(r"(?m)^(?:On branch|##) (\S+?)(?:\.\.\.\S+)?(?: \[.*)?$")

_EARLIER = regex(r"(?:HEAD|@)[~^].*|[0-9a-f]{7,40}")

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
        """A path that is named in a folder, relative to the project if it lies there, on one line: a name may hold
        breaks, and no text of a log may become a line of its own.
        """
        path = " ".join(joined(folder, path.strip()).splitlines())
        if path == self.base:
            return "."
        return path[len(self.base) + 1 :] if self.base and path.startswith(f"{self.base}/") else path

    def has(self, folder: str) -> bool:
        """Whether a folder lies in the project's repository; one that is not known does not, if a project is."""
        places = {folder, *(folder[:at] for at, letter in enumerate(folder) if letter in "/\\")}
        return not self.base or (self.base in places and not places & self.others)

    def note(self, operands: Sequence[str], where: str) -> None:
        """Note the repository that `git init` or `git clone` makes."""
        name = operands[-1] if operands else ""
        folder = name.rpartition("/")[2].removesuffix(".git") if ":" in name else name
        self.others |= {joined(where, folder)} - {self.base}


# ---- calls of git and gh ----


@dataclass(frozen=True)
class _Call:
    """A call of git without its own options.

    verb    what git is to do; of a call of gh with "gh " before it
    words   what follows the verb; `options` and `operands` among it
    folder  where it ran
    passed  whether it passed by its exit status, None where that is hidden
    first   nothing but `cd` ran before it; `pipe`: the words of the command that read its output
    """

    verb: str
    words: tuple[str, ...]
    options: set[str]
    operands: list[str]
    folder: str
    passed: bool | None
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
            repository.note(operands, where)
        elif repository.has(where):
            yield _Call(
                verb,
                tuple(words[1:]),
                {word for word in words[1:] if word.startswith("-")},
                operands,
                where,
                passed and (shows_status(command, simple, place) or None),
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
    committing = [call for call in calls if call.verb in _COMMITTING]
    printed = [*_printed(committing, output)]
    found: list[GitFact] = []
    for call in calls:
        if not printed or call not in committing:
            found += _shown(call, output, repository)
        elif call is committing[-1]:
            found += printed
    for among, kind, pattern in _HEADS:
        if verbs & among and (shown := [*pattern.finditer(output)]):
            found.append(GitFact(kind, *map(_subject, shown[-1].groups() or ["HEAD"])))
    if verbs & (_COMMITTING | {"status"}) and _CONFLICT.search(output):
        found.append(GitFact("merging", "merge or rebase"))
    return found


_MOVES = frozenset(("checkout", "switch", "reset"))

_HEADS = (
    (_MOVES, "branch", _SWITCHED),
    (_MOVES, "branch", _DETACHED),
    (_MOVES, "tip", _HEAD_IS),
    (frozenset(("pull", "merge")), "tip", _FORWARDED),
)
"""What calls print of what is checked out after them."""


def _printed(calls: Sequence[_Call], output: str) -> Iterator[GitFact]:
    """The commits that calls which make some printed."""
    own = [call for call in calls if call.verb == "commit"]
    kind = "applied" if not own else "amended" if "--amend" in own[-1].options else "commit"
    for where, digest, subject in _COMMIT.findall(output) if calls else ():
        branch = where.replace("(root-commit)", "").strip()
        if " " not in branch:
            yield GitFact("branch", branch)
        yield GitFact(kind, digest, _subject(subject))


def _shown(call: _Call, output: str, repository: Repository) -> Iterator[GitFact]:
    """What a call did, by its exit status, or by what it printed."""
    options, named = call.options, (repository.relative(one, call.folder) for one in call.operands)
    match call.verb:
        case "commit" if "--dry-run" in options:
            return
        case "commit" if call.passed or _CHANGED.search(output):
            yield GitFact("amended" if "--amend" in options else "commit")
        case "commit" if call.passed is None:
            yield GitFact("hidden")
        case verb if verb in _COMMITTING and call.passed:
            yield GitFact("moved")
        case "push" if not {"-n", "--dry-run", "--delete", "-d", "--tags"} & options:
            pushed = [one for one in _PUSHED.findall(output) if not one[2].endswith(f"/{one[1]}")]  # else fetched
            if not _REJECTED.search(output) and (pushed or call.passed):
                yield GitFact("push", *(pushed[-1][:2] if pushed else ()))
        case "status" if not call.operands:
            yield from _status(call, output, repository)
        case "log" if call.first and _shows_head(call) and (tip := _LISTED.match(output)):
            yield GitFact("tip", tip[1], _subject(tip[2]))
        case "gh pr":
            yield from _requested(call, output)
        case "stash" if call.passed and call.words[:1] in _STASHES:
            yield GitFact("undone")
        case "reset" if call.passed and "--hard" in options:
            yield GitFact("undone")
        case "reset" if call.passed and any(map(_EARLIER.fullmatch, call.operands)):
            yield GitFact("dropped")
        case "restore" if call.passed and not options:
            yield from (GitFact("undone", "" if path == "." else path) for path in named)
        case "checkout" if call.passed and call.words[:1] == ("--",):
            yield from (GitFact("undone", "" if path == "." else path) for path in named)


_STASHES = ((), ("push",), ("save",), ("-u",))


def _requested(call: _Call, output: str) -> Iterator[GitFact]:
    """What was done to a pull request."""
    verb = next(iter(call.words), "")
    if verb not in _DONE or {"-R", "--repo", "--auto"} & call.options:
        return
    shown = _ADDRESS.findall(output)[-1:]
    number = ([] if verb == "create" else [word for word in call.operands if word.isdecimal()]) or shown or [""]
    if number[0] if verb == "create" else call.passed:
        yield GitFact("request", number[0][:10], _DONE[verb])


_DONE = {
    "create": "created",
    "merge": "merged",
    "close": "closed",
    "comment": "commented",
    "review": "reviewed",
    "ready": "marked as ready",
}


def _status(call: _Call, output: str, repository: Repository) -> Iterator[GitFact]:
    """What `git status` shows: the branch, and all that is not committed; nothing of it where its output was cut."""
    is_short = bool(call.options & _SHORT_FORMS)
    branch = _ON_BRANCH.search(output) if not is_short or "-sb" in call.options else None
    if branch and branch[1] not in ("No", "HEAD"):
        yield GitFact("branch", branch[1])
    is_part = call.pipe or call.options - _SHORT_FORMS - {"-b", "--branch"} or "truncated" in output
    if is_part or not (is_short or "nothing to commit" in output or _HEADING.search(output)):
        return
    yield GitFact("clean")
    listed = _SHORT.findall(output) if is_short else []
    parts = [] if is_short else _HEADING.split(output)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        listed += (_UNTRACKED if heading == "Untracked files" else _LONG).findall(text)
    folder = repository.base if "--porcelain" in call.options else call.folder  # porcelain names paths from the top
    for path in (_unquoted(one.rpartition(" -> ")[2].strip()) for one in listed):  # of a renamed file the new one
        yield GitFact("changed", repository.relative(path, folder) + "/" * path.endswith("/"))


_SHORT_FORMS = frozenset(("-s", "--short", "-sb", "--porcelain"))


def _unquoted(name: str) -> str:
    """A name as it is, of which git quotes what is not ASCII, byte by byte."""
    if not name.startswith('"'):
        return name
    plain = _OCTAL.sub(lambda match: chr(int(match[1], 8)), name.strip('"'))
    return plain.encode("latin-1", "replace").decode(errors="replace")


_OCTAL = regex(r"\\([0-3][0-7]{2})")


def _shows_head(call: _Call) -> bool:
    """Whether a call of git lists the newest commits of what is checked out, one a line, newest first."""
    rest = {word for word in call.words if not (word.lstrip("-").isdecimal() or word == "-n")}
    return "--oneline" in rest and rest <= _LISTS and (not call.pipe or call.pipe[0] in ("head", "cat"))


def _subject(text: str) -> str:
    return trimmed(one_line(text), _SUBJECT)
