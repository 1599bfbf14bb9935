"""Follows git through a session: branch, commits and uncommitted files, as its commands and their output tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ralf.facts.commands import Simple, simple_commands
from ralf.model import WorkingTree
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex

_COMMIT = regex(r"(?m)^\[([^\[\]\n]{1,200}) ([0-9a-f]{7,40})\] ([^\n]*)$")

_COMMITS = regex(r"\bgit\b[^\n]{0,200}?\b(?:commit|merge|cherry-pick|revert|am|rebase|pull)\b")

_SUBJECT, _LONGEST_MESSAGE = 160, 1_000  # characters of a commit's subject in the work, and as a fact

_MOST_PATHS, _MOST_COMMITS = 60, 20

_LONGEST_BRANCH, _LONGEST_PATH = 255, 1_024  # characters: the work never folds, so nothing in it is longer


def commits(command: str, output: str) -> list[tuple[str, str]]:
    """(hash, message) of the commits that a command made, as git reported them."""
    made = _COMMIT.finditer(output) if _COMMITS.search(command) else ()
    return [(match[2], trimmed(match[3].strip(), _LONGEST_MESSAGE)) for match in made]


# ---- what git prints ----

_ON_BRANCH = regex(r"(?m)^(?:On branch|## )[ ]?([^\s.]+(?:\.[^\s.]+)*)")

_SWITCHED = regex(r"(?m)^(?:Switched to (?:a new |and reset )?branch|Already on) '([^'\n]{1,200})'")

_HEAD_IS = regex(r"(?m)^HEAD is now at ([0-9a-f]{7,40}) ?([^\n]*)$")

_FORWARDED = regex(r"(?m)^Updating [0-9a-f]{7,40}\.\.([0-9a-f]{7,40})\nFast-forward")

_LONG = regex(r"(?m)^\t(?:(?:both |)(modified|added|deleted)|new file|deleted|renamed|copied|typechange):\s+([^\n]+)$")

_SHORT = regex(r"(?m)^(?:[ MADRCUT?]{2}) (?! )([^\n]+)$")

_HEADING = regex(r"(?m)^(Changes to be committed|Changes not staged for commit|Untracked files|Unmerged paths):")

_UNTRACKED = regex(r"(?m)^\t(?!\w[\w ]{0,20}:\s)([^\n]+)$")

_CLEAN = "nothing to commit, working tree clean"

_ALL = "."

_STASHES = ((), ("push",), ("save",), ("-u",), ("-m",))

_MOVES_HEAD = frozenset(("merge", "pull", "rebase", "cherry-pick", "revert", "reset", "am", "commit"))

_UP_TO_DATE = regex(r"(?i)\balready up[ -]to[ -]date\b|\bis up to date\b")

_PUSHED = regex(r"(?m)^ [ +] ?[0-9a-f]{7,40}\.{2,3}([0-9a-f]{7,40})[ ]{1,40}(\S{1,200}) -> ")

_LISTED = regex(r"([0-9a-f]{7,40}) (?:\([^()\n]{1,300}\) )?([^\n]*)")

_LISTS = frozenset(("--oneline", "--decorate", "--no-decorate"))

_MERGED = regex(r"(?m)^Merge made by the ")

_HASH = regex(r"[0-9a-f]{7,40}(?: |$)")

_CREATED = regex(r"https?://\S{1,200}/pull/(\d{1,9})\b")

_DOCUMENT = regex(r"\.(?:md|mdx|rst|txt|adoc)$")

_PIPED = frozenset(("head", "tail", "grep", "rg", "wc", "awk", "sed", "cut"))


class Git:
    """The working tree, command by command."""

    def __init__(self, known: WorkingTree) -> None:
        self._known = known
        self._branch, self._commit = known.branch, known.commit
        self._uncommitted = dict.fromkeys(known.uncommitted)
        self._commits = dict.fromkeys(known.commits)
        self._staged = dict.fromkeys(known.staged)
        self._pushed, self._request = known.pushed, known.pull_request
        self._untested = dict.fromkeys(known.untested)

    @property
    def tree(self) -> WorkingTree:
        """What is known by now."""
        return replace(
            self._known,
            branch=self._branch,
            commit=self._commit,
            uncommitted=tuple(self._uncommitted)[-_MOST_PATHS:],
            staged=tuple(self._staged)[-_MOST_PATHS:],
            commits=tuple(self._commits)[-_MOST_COMMITS:],
            pushed=self._pushed,
            pull_request=self._request,
            untested=tuple(self._untested)[-_MOST_PATHS:],
        )

    def stands_on(self, branch: str) -> None:
        """The client says which branch is checked out."""
        branch = trimmed(branch, _LONGEST_BRANCH)
        if branch and branch != "HEAD" and branch != self._branch:
            self._branch, self._commit, self._request = branch, "", ""
            self._commits = {}

    def changed(self, path: str) -> None:
        """A file was changed: a path of the project, relative to it."""
        if 0 < len(path) <= _LONGEST_PATH and not path.startswith(("/", "~", "..", ".git/")) and path[1:2] != ":":
            for paths in (self._uncommitted, self._untested):
                paths.pop(path, None)
                if paths is self._uncommitted or not _DOCUMENT.search(path):
                    paths[path] = None

    def tested(self) -> None:
        """A run of tests came to its end, whatever it said."""
        self._untested.clear()

    def ran(self, command: str, output: str, relative: Callable[[str], str]) -> None:
        """A command passed; `relative` makes a path that it names relative to the project."""
        if "git" not in command and "gh " not in command:
            return
        simple = simple_commands(command)
        for words in (one.words for one in simple if one.words[:2] == ("gh", "pr")):
            self._asked_for(words[2:], output)
        calls = [one for one in simple if one.words[:1] == ("git",) and "-C" not in one.words[1:2]]
        for call in calls:
            self._called(call.words[1:], relative)
        verbs = {call.words[1] for call in calls if len(call.words) > 1}
        if verbs & _MOVES_HEAD and not _UP_TO_DATE.search(output):
            self._commit, self._pushed = "", False  # unless the output says more
        if "rebase" in verbs:
            self._commits = dict.fromkeys(_HASH.sub("", commit, count=1) for commit in self._commits)
        made = _COMMIT.findall(output) if _COMMITS.search(command) else []
        for where, digest, subject in made:
            self._committed(where, digest, subject, amended="--amend" in command)
        if _MERGED.search(output):
            self._merged(calls, made)
        if "push" in verbs:
            self._pushed = True
            self._tip(next((tip for tip, branch in _PUSHED.findall(output) if branch == self._branch), ""))
        if calls and simple[0] == calls[0] and _shows_head(calls[0].words) and (tip := _LISTED.match(output)):
            self._tip(*tip.groups())
        if switched := _SWITCHED.findall(output):
            self.stands_on(switched[-1])
        if head := _HEAD_IS.findall(output):
            self._commit = _named(*head[-1])
        elif forwarded := _FORWARDED.findall(output):
            self._commit = forwarded[-1]
        if any(call.words[1:2] == ("status",) for call in calls) or _HEADING.search(output):
            self._status(command, simple, output, relative)

    def _asked_for(self, words: tuple[str, ...], output: str) -> None:
        """A pull request was made of this branch, or its branch checked out: one that was only looked at may be any."""
        verb, rest = (words[0], words[1:]) if words else ("", ())
        if verb == "create" and (made := _CREATED.findall(output)):
            self._request = made[-1]
        elif verb == "checkout":
            self._request = next((word for word in rest if word.isdecimal() and len(word) < 10), self._request)

    def _called(self, words: tuple[str, ...], relative: Callable[[str], str]) -> None:
        """What a call of git does to the working tree by itself."""
        verb, rest = (words[0], words[1:]) if words else ("", ())
        paths = [relative(word) for word in rest if not word.startswith("-") and len(word) <= _LONGEST_PATH]
        if verb == "add":
            takes_all = bool({"-A", "--all", "-u", ".", ":/", "-Av", "*"} & set(rest))
            self._staged.update(dict.fromkeys([_ALL] if takes_all else paths))
        elif verb == "commit" and any(_takes_all(word) for word in rest):
            self._staged[_ALL] = None
        elif verb in ("rm", "mv"):
            self._staged.update(dict.fromkeys(paths))
        elif (verb == "stash" and rest[:1] in _STASHES) or (verb == "reset" and "--hard" in rest):
            self._uncommitted.clear()
        elif verb == "restore" or (verb == "checkout" and "--" in rest):
            for path in paths:
                self._uncommitted.pop(path, None)

    def _committed(self, where: str, digest: str, subject: str, *, amended: bool) -> None:
        branch = where.replace("(root-commit)", "").strip()
        if branch != "detached HEAD" and " " not in branch:
            self._branch = branch
        self._commit = _named(digest, subject)
        if amended and self._commits:
            self._commits.popitem()
        self._commits[self._commit] = None
        if _ALL in self._staged or not self._staged:
            self._uncommitted.clear()
        else:
            staged = {path.rstrip("/") for path in self._staged}
            gone = [path for path in self._uncommitted if path in staged or not staged.isdisjoint(_folders(path))]
            for path in gone:
                del self._uncommitted[path]
        self._staged = {}

    def _tip(self, digest: str, subject: str = "") -> None:
        """Git has printed the commit at which the branch stands."""
        if digest and not self._commit.startswith(digest):
            self._commit = _named(digest, subject)

    def _merged(self, calls: Sequence[Simple], made: Sequence[object]) -> None:
        """A merge went through of which git has told no hash: what was merged."""
        for words in (call.words[2:] for call in calls if call.words[1:2] == ("merge",)):
            merged = [word for word in words if not word.startswith("-")]
            if merged and not made:
                self._commits[trimmed(f"merge of {merged[0]}", _SUBJECT)] = None

    def _status(self, command: str, simple: list[Simple], output: str, relative: Callable[[str], str]) -> None:
        """What `git status` shows: all that is uncommitted, or, where its output was cut, a part."""
        is_short = any(word in command for word in (" -s", "--short", "--porcelain", " -b"))
        branch = _ON_BRANCH.search(output)
        if branch:
            name = branch[1].partition("...")[0]
            if name not in ("No", "HEAD"):
                self.stands_on(name)
        lines = (path for path in self._shown(output, relative, is_short=is_short) if len(path) <= _LONGEST_PATH)
        shown = [_path(path) for path in lines]
        found = dict.fromkeys(relative(path) + "/" * path.endswith("/") for path in shown)
        is_part = any(one.words[:1] and one.words[0] in _PIPED for one in simple) or "--" in command.split()
        is_whole = not is_part and (is_short or branch is not None or _CLEAN in output)
        if is_whole:
            kept = [path for path in self._uncommitted if path in found or _within(path, found)]
            self._uncommitted = dict.fromkeys([*(path for path in found if not path.endswith("/")), *kept])
        else:
            self._uncommitted.update({path: None for path in found if not path.endswith("/")})

    def _shown(self, output: str, relative: Callable[[str], str], *, is_short: bool) -> Iterator[str]:
        if is_short:
            yield from (match[1] for match in _SHORT.finditer(output))
            return
        headings = [*_HEADING.finditer(output)]
        ends = [*(match.start() for match in headings), len(output)][1:]
        for heading, end in zip(headings, ends, strict=True):
            part = output[heading.end() : end]
            paths = [match[2] for match in _LONG.finditer(part)]
            if heading[1] == "Untracked files":
                paths = [match[1] for match in _UNTRACKED.finditer(part)]
            if heading[1] == "Changes to be committed":
                self._staged.update(
                    dict.fromkeys(relative(_path(path)) for path in paths if len(path) <= _LONGEST_PATH)
                )
            yield from paths


def _named(digest: str, subject: str) -> str:
    return trimmed(f"{digest} {one_line(subject)}".strip(), _SUBJECT)


def _shows_head(words: Sequence[str]) -> bool:
    """Whether a call of git lists the newest commits of what is checked out, one a line."""
    rest = [word for word in words[2:] if not (word.lstrip("-").isdecimal() or word == "-n")]
    return tuple(words[1:2]) == ("log",) and "--oneline" in rest and set(rest) <= _LISTS


def _takes_all(word: str) -> bool:
    return word == "--all" or (word.startswith("-") and not word.startswith("--") and "a" in word and len(word) < 5)


def _path(shown: str) -> str:
    """A path as git shows it: of a renamed file the new one, without quotation marks."""
    return shown.rpartition(" -> ")[2].strip().strip('"')


def _within(path: str, folders: dict[str, None]) -> bool:
    """Whether a path lies in one of the untracked folders, which git shows instead of their files."""
    return any(f"{folder}/" in folders for folder in _folders(path))


def _folders(path: str) -> Iterator[str]:
    """The folders in which a path lies: `a` and `a/b` of `a/b/c`."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
