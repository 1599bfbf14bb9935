"""What a session's commands say of its repository: commits, branch, push, pull request, what is staged and changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ralf.facts.checks import PIPES, shows_status
from ralf.facts.commands import joined, placed, simple_commands
from ralf.model.entries import GitFact
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex

_SUBJECT, _LONGEST_PATH = 160, 1_024  # characters

_COMMIT = regex(r"(?m)^\[([^\[\]\n]{1,200}) ([0-9a-f]{7,40})\] ([^\n]*)$")

_CHANGED = regex(r"(?m)^ \d+ files? changed")

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
        inside = bool(self.base) and path.startswith((f"{self.base}/", f"{self.base}\\"))
        return path[len(self.base) + 1 :] if inside else path

    def has(self, folder: str) -> bool:
        """Whether a folder lies in the project's repository; one that is not known does not, if a project is."""
        places = {folder, *(folder[:at] for at, letter in enumerate(folder) if letter in "/\\")}
        return not self.base or (self.base in places and not places & self.others)


# ---- calls of git and gh ----


@dataclass
class _Call:
    """A call without git's own options: what follows the program's name, where it ran, and whether its exit status says
    that it passed.
    """

    program: str
    words: tuple[str, ...]
    folder: str
    passed: bool
    first: bool
    pipe: Sequence[str]

    @property
    def verb(self) -> str:
        return self.words[0]

    @property
    def options(self) -> set[str]:
        return {word for word in self.words if word.startswith("-")}

    @property
    def operands(self) -> list[str]:
        return [word for word in self.words[1:] if not word.startswith("-")]


def _calls(command: str, cwd: str, repository: Repository, *, passed: bool) -> Iterator[_Call]:
    """The calls in the project's repository, in order; what makes another repository is noted."""
    simple = simple_commands(command)
    for place, (one, where) in enumerate(placed(command, cwd)):
        words = list(one.words)
        if words[:1] not in (["git"], ["gh"]):
            continue
        while len(words) > 2 and words[1].startswith("-"):
            if words[1].startswith(("--git-dir", "--work-tree")):
                where = "?"
            elif words[1] == "-C":
                where = joined(where, words[2])
            del words[1 : 3 if words[1] in ("-C", "-c") else 2]
        if words[1:2] in (["init"], ["clone"]):
            _note(repository, words[1:], where)
        elif len(words) > 1 and repository.has(where):
            pipe = simple[place + 1].words if one.then in PIPES and place + 1 < len(simple) else ()
            is_first = all(before.words[:1] == ("cd",) for before in simple[:place])
            is_ok = passed and shows_status(command, simple, place)
            yield _Call(words[0], tuple(words[1:]), where, is_ok, is_first, pipe)


def _note(repository: Repository, words: Sequence[str], where: str) -> None:
    operands = [word for word in words[1:] if not word.startswith("-")]
    named = operands[-1] if operands[words[0] == "clone" :] else ""
    if words[0] == "clone" and operands and not named:
        named = operands[0].rstrip("/").rpartition("/")[2].removesuffix(".git")
    made = joined(where, named)
    if made != repository.base:
        repository.others.add(made)


def git_facts(command: str, output: str, cwd: str, repository: Repository, *, passed: bool) -> list[GitFact]:
    """What a command and its output say of the project's repository, in order.

    passed  its exit status is 0. What a call did counts if that says so for it; else what the output shows
    """
    if "git" not in command and "gh " not in command:
        return []
    calls = list(_calls(command, cwd, repository, passed=passed))
    found = [fact for call in calls if call.program == "gh" for fact in _requested(call, output)]
    calls = [call for call in calls if call.program == "git"]
    verbs = {call.verb for call in calls}
    printed = _COMMIT.findall(output) if verbs & _COMMITTING else []
    last = max((at for at, call in enumerate(calls) if call.verb in _COMMITTING), default=-1)
    for at, call in enumerate(calls):
        if call.passed or (printed and at <= last):
            found.extend(_called(call, repository))
        if printed and at == last:
            found.extend(_committed(printed, [call for call in calls if call.verb == "commit"]))
        elif not printed and call.verb == "commit" and not {"--dry-run", "-h"} & call.options:
            if call.passed or _CHANGED.search(output):
                found.append(GitFact(_kind(call), "", _subject(_message(call.words))))
        elif not printed and call.verb in _COMMITTING and passed and not _UNMOVED.search(output):
            found.append(GitFact("moved"))
        elif call.verb == "push":
            found.extend(_pushed(call, output))
        elif call.verb == "status" and not call.operands:
            found.extend(_status(call, output, repository))
        elif call.first and _shows_head(call) and (tip := _LISTED.match(output)):
            found.append(GitFact("tip", tip[1], _subject(tip[2])))
    if verbs & {"checkout", "switch", "reset"}:
        found.extend(GitFact("branch", name) for name in _SWITCHED.findall(output)[-1:])
        if _DETACHED.search(output):
            found.append(GitFact("branch", "HEAD"))
        found.extend(GitFact("tip", digest, _subject(subject)) for digest, subject in _HEAD_IS.findall(output)[-1:])
    found.extend(GitFact("tip", digest) for digest in _FORWARDED.findall(output)[-1:] if verbs & {"pull", "merge"})
    if is_merging(verbs, output):
        found.append(GitFact("merging", _in_progress(verbs, output)))
    return found


def merges(command: str, output: str) -> bool:
    """Whether a command that failed has left a merge in progress: that is a state, and no failure."""
    verbs = {one.words[1] for one in simple_commands(command) if one.words[:1] == ("git",) and len(one.words) > 1}
    return is_merging(verbs, output)


def is_merging(verbs: set[str], output: str) -> bool:
    """Whether what some calls of git printed says that a merge, a rebase and the like is in progress."""
    return bool(verbs & (_COMMITTING | {"status"})) and _CONFLICT.search(output) is not None


def _in_progress(verbs: set[str], output: str) -> str:
    if found := _IN_PROGRESS.search(output):
        return found[1] or {"rebas": "rebase"}.get(found[2], found[2])
    return next((verb for verb in ("rebase", "cherry-pick", "revert", "am") if verb in verbs), "merge")


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
    for flag, value in pairwise(words):
        if flag == "--message" or (flag.startswith("-") and not flag.startswith("--") and flag.endswith("m")):
            return "" if value.startswith("$(") else value.strip().partition("\n")[0]
    return ""


def _requested(call: _Call, output: str) -> Iterator[GitFact]:
    """What was done to a pull request."""
    verb = call.words[1] if call.words[0] == "pr" and len(call.words) > 1 else ""
    if verb not in _DONE or {"-R", "--repo", "--auto"} & call.options:
        return
    shown = _ADDRESS.findall(output)
    named = [number for word in call.words[2:] for number in (_ADDRESS.findall(word) or [word]) if number.isdecimal()]
    number = (shown[-1:] if verb == "create" else named or shown[-1:]) or [""]
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
    verb, options, operands = call.verb, call.options, call.operands
    paths = [repository.relative(word, call.folder) for word in operands if len(word) <= _LONGEST_PATH]
    if verb == "add" or verb in ("rm", "mv"):
        if {"-A", "--all", "-u", "-Av"} & options or {".", ":/", "*"} & {*paths, *operands}:
            yield GitFact("add-all")
        else:
            yield from (GitFact("add", path) for path in paths)
    elif verb == "commit" and any(map(_takes_all, options)):
        yield GitFact("add-all")
    elif verb == "stash":
        did = next(iter(call.words[1:2]), "-")
        if did[0] == "-" or did in ("push", "save", "pop", "apply"):
            yield GitFact("unstashed" if did in ("pop", "apply") else "stashed")
    elif verb == "reset" and "--hard" in options:
        yield GitFact("undone")
    if verb == "reset" and (back := next(filter(None, map(_BACK.fullmatch, operands)), None)):
        yield GitFact("dropped", str(len(back[2]) if back[2] else int(back[1] or 1)))
    elif verb in ("switch", "checkout") and {"-b", "-B", "-c", "-C"} & options and operands:
        yield GitFact("branch", operands[0])
    elif verb == "restore" and not {"--staged", "-S", "-p", "--patch"} & options:
        is_other = any(option.startswith(("--source", "-s")) for option in options)
        yield from () if is_other else (GitFact("undone", _all(path)) for path in paths)
    elif verb == "checkout" and "--" in options and not {"--theirs", "--ours", "-p", "--patch"} & options:
        place = call.words.index("--")
        named = [repository.relative(word, call.folder) for word in call.words[place + 1 :]]
        is_other = bool(set(call.words[1:place]) - {"HEAD"})
        yield from () if is_other else (GitFact("undone", _all(path)) for path in named)


def _all(path: str) -> str:
    return "" if path == "." else path


def _takes_all(option: str) -> bool:
    return option == "--all" or (not option.startswith("--") and "a" in option and len(option) < 5)


def _pushed(call: _Call, output: str) -> Iterator[GitFact]:
    """That a branch was pushed: by the exit status or by what git printed; with the new tip and the branch."""
    if {"-n", "--dry-run", "--delete", "-d", "--tags"} & call.options or _REJECTED.search(output):
        return
    shown = [found for found in _PUSHED.findall(output) if not found[2].endswith(f"/{found[1]}")]  # else it was fetched
    if shown:
        yield GitFact("push", shown[-1][0], shown[-1][1])
    elif call.passed:
        yield GitFact("push")


def _status(call: _Call, output: str, repository: Repository) -> Iterator[GitFact]:
    """What `git status` shows: the branch, and all that is not committed; nothing of it where its output was cut."""
    options = call.options
    is_short = any(o.startswith(("--short", "--porcelain")) or (o[1:2] != "-" and "s" in o) for o in options)
    names_branch = not is_short or any(o.startswith("--branch") or (o[1:2] != "-" and "b" in o) for o in options)
    if names_branch and (branch := _ON_BRANCH.search(output)) and branch[1] not in ("No", "HEAD"):
        yield GitFact("branch", branch[1])
    is_part = (
        call.pipe
        or "truncated" in output
        or any(o.startswith(("-u", "--untracked", "--porcelain=v2")) for o in options)
    )
    if is_part or not (is_short or "nothing to commit" in output or _HEADING.search(output)):
        return
    yield GitFact("clean")
    folder = repository.base if "--porcelain" in options else call.folder  # porcelain names paths from the top
    for path in _shown(output, is_short=is_short):
        if len(path) <= _LONGEST_PATH:
            yield GitFact("changed", repository.relative(path, folder) + "/" * path.endswith("/"))


def _shown(output: str, *, is_short: bool) -> Iterator[str]:
    if is_short:
        yield from (_path(match[1]) for match in _SHORT.finditer(output))
        return
    headings = [*_HEADING.finditer(output)]
    ends = [*(match.start() for match in headings), len(output)][1:]
    for heading, end in zip(headings, ends, strict=True):
        pattern = _UNTRACKED if heading[1] == "Untracked files" else _LONG
        yield from (_path(match[1]) for match in pattern.finditer(output[heading.end() : end]))


def _path(shown: str) -> str:
    """A path as git shows it: of a renamed file the new one, without quotation marks."""
    return shown.rpartition(" -> ")[2].strip().strip('"')


def _shows_head(call: _Call) -> bool:
    """Whether a call of git lists the newest commits of what is checked out, one a line, newest first."""
    rest = [word for word in call.words[1:] if not (word.lstrip("-").isdecimal() or word == "-n")]
    is_whole = not call.pipe or call.pipe[0] in ("head", "cat")
    return call.verb == "log" and "--oneline" in rest and set(rest) <= _LISTS and is_whole


def _subject(text: str) -> str:
    return trimmed(one_line(text), _SUBJECT)
