"""Where the work stands by the record: a fold of a session's entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ralf.facts.checks import covers, has_filter, unwrapped
from ralf.facts.commands import simple_commands
from ralf.model.entries import Entry, GitFact, Item, Mark, Message, Step
from ralf.text.cleaning import one_line

_FAILS = ("failed", "failed by output")

_COUNTED = ("", "queued", "command", "program", "answer", "plan", "refused")

_KILLED = (130, 137, 143)  # statuses of what a signal ended: they say nothing of what a check checks


@dataclass
class Run:
    """The newest run of a check.

    key            see `ralf.facts.checks.Check.key`; of a chain that failed, those of all its checks
    edited         files that were edited after it
    failing        of a run that failed: those of its checks that have not passed since
    passed_in_part when a later run passed of a part of it, or with another filter; "" for never
    before         failing lines of the run before it
    """

    key: str
    step: Step
    edited: dict[str, None] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    passed_in_part: str = ""
    before: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether it failed, by its status or by its output."""
        return self.step.outcome in _FAILS


@dataclass
class Commit:
    """A commit, and when it was seen.

    branch   that was checked out then
    is_own   a call of the agent's made it; `by_others`: none did
    """

    hash: str
    subject: str
    at: str
    branch: str
    is_own: bool
    by_others: bool = False
    agent: str = ""


@dataclass
class State:
    """What the record shows at its end.

    branch    the branch, "" where none is named; `is_detached`: no branch is checked out
    pushed    when it was last pushed, "" for never; `is_pushed`: the agent has committed nothing since
    request   number of the branch's pull request, and whether it was merged or closed
    listed    what the newest whole `git status` calls changed, and has not been committed since; `status_at`: its time
    edited    path → what was done to it: by the agent since that, or since its last commit
    has_left  something was edited before its last commit, and is not in it
    merging   merge, rebase and the like, if one is in progress
    runs      the newest run of each check, oldest first
    items     the to-do list, and when it was last changed
    running   tasks in the background without an end: id → (time, what)
    refused   refused calls that were not made since, with the number of messages before them
    failed    commands that failed and were not repeated with success, with the number of messages before them
    """

    branch: str = ""
    is_detached: bool = False
    pushed: str = ""
    is_pushed: bool = False
    request: str = ""
    listed: list[str] = field(default_factory=list)
    status_at: str = ""
    edited: dict[str, str] = field(default_factory=dict)
    has_left: bool = False
    merging: str = ""
    runs: dict[str, Run] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    items_at: str = ""
    running: dict[str, tuple[str, str]] = field(default_factory=dict)
    refused: dict[str, tuple[Step, int]] = field(default_factory=dict)
    failed: dict[str, tuple[Step, int]] = field(default_factory=dict)
    messages: int = 0
    last: str = ""
    _commits: list[Commit] = field(default_factory=list)
    _has_moved: bool = False  # git made or took in commits that it did not print
    _staged: set[str] = field(default_factory=set)
    _stages_all: bool = False
    _stashed: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> State:
        """The state after some entries, of which none was taken back."""
        state = cls()
        for entry in entries:
            state.take(entry)
        return state

    @property
    def commits(self) -> list[Commit]:
        """Commits that were seen on what is checked out, oldest first: the newest is what it was last seen at."""
        return [one for one in self._commits if one.branch == self._here or "" in (one.branch, self._here)]

    @property
    def is_under_git(self) -> bool:
        """Whether the record shows a repository: a branch, a commit, a status."""
        return bool(self.branch or self._commits or self.status_at or self.is_detached or self.pushed)

    @property
    def _here(self) -> str:
        return "HEAD" if self.is_detached else self.branch

    def take(self, entry: Entry) -> None:
        """Go on by one entry."""
        self.last = entry.at or self.last
        if isinstance(entry, Step):
            self._step(entry)
        elif isinstance(entry, Mark):
            self._mark(entry)
        elif isinstance(entry, Message) and entry.form in _COUNTED:
            self.messages += 1

    def _mark(self, mark: Mark) -> None:
        if mark.kind == "todos":
            self.items, self.items_at = mark.items, mark.at
        elif mark.kind == "branch":
            self._checked_out(mark.value)
        elif mark.kind == "started":
            self.running[mark.value] = (mark.at, mark.text)
        elif mark.kind == "finished":
            self.running.pop(mark.value, None)
        elif mark.kind == "requested":
            self.request = mark.value.rpartition("/")[2]

    def _step(self, step: Step) -> None:
        if step.outcome in ("", "running"):
            return
        self._repeated(step)
        if step.outcome == "refused":
            if not step.looks:
                self.refused[step.id] = (step, self.messages)
            return
        for path, did in step.files:  # before what the same command checked and committed
            self._changed(path, did, step)
        for fact in step.git:
            self._git(fact, step)
        if step.checks:
            self._checked(step)
        elif step.kind == "command" and not step.looks:
            ran = simple_parts(step.object)
            done = [key for key, (failed, _) in self.failed.items() if simple_parts(failed.object)[-1] in ran]
            for key in done:
                del self.failed[key]
            if step.outcome == "failed":
                self.failed[step.id] = (step, self.messages)

    def _repeated(self, step: Step) -> None:
        """Drop refused calls of which this one is the same: by its command, its title, or its file."""
        files = {path for path, _ in step.files} | ({step.object} if step.kind == "edit" else set())
        ran = set(simple_parts(step.object)) if step.kind == "command" else set()
        for id_, (refused, _) in list(self.refused.items()):
            if refused.kind == "command":
                is_same = set(simple_parts(refused.object)) <= ran
            elif refused.kind in ("question", "plan"):
                is_same = refused.kind == step.kind
            else:
                is_same = (refused.tool, refused.object) == (step.tool, step.object) or refused.object in files
            if is_same:
                del self.refused[id_]

    # ---- checks ----

    def _checked(self, step: Step) -> None:
        if step.status in _KILLED:
            return
        has_failed, has_passed = step.outcome in _FAILS, step.outcome in ("ok", "passed by output")
        keys = [" && ".join(step.checks)] if has_failed else list(step.checks)
        before = self.runs.get(keys[0])
        for name, run in list(self.runs.items()):
            if not run.has_failed:
                is_over = any(_replaces(key, name) for key in step.checks)
            elif has_passed:
                run.failing = {one for one in run.failing if not any(covers(key, one) for key in step.checks)}
                is_over = not run.failing
                if any(covers(one, key, filtered=False) for one in run.failing for key in step.checks):
                    run.passed_in_part = step.at
            else:
                is_over = has_failed and all(any(covers(key, one) for key in step.checks) for one in run.failing)
            if is_over:
                del self.runs[name]
        lines = before.step.lines if before is not None and before.has_failed else ()
        for key in keys:
            gone = tuple(line for line in lines if line not in step.lines) if has_failed else ()
            if key not in self.runs:  # where its status is not shown, a failure stands
                self.runs[key] = Run(key, step, failing=set(step.checks) if has_failed else set(), before=gone)

    # ---- files and commits ----

    def _changed(self, path: str, did: str, step: Step) -> None:
        name = path.rpartition("/")[2]
        if path.startswith(("/", "~", "..", ".git/")) or path[1:2] == ":":
            return
        if did == "deleted" and step.kind == "command" and "." not in name:  # a folder: whether git has it is not known
            return
        before = self.edited.pop(path, "")
        if (before, did) != ("created", "deleted"):
            self.edited[path] = "created" if before == "created" else did
        self.listed = [one for one in self.listed if one != path]
        for run in self.runs.values():
            run.edited[path] = None

    def _checked_out(self, branch: str) -> None:
        self.is_detached = branch == "HEAD"
        if branch not in ("HEAD", self.branch):
            if self.branch:
                self.pushed, self.is_pushed, self.request = "", False, ""
            self.branch = branch or self.branch

    def _git(self, fact: GitFact, step: Step) -> None:
        if fact.kind == "branch":
            self._checked_out(fact.value)
        elif fact.kind in ("commit", "amended", "applied"):
            if fact.kind == "amended" and self.commits:
                self._drop(self.commits[-1:])
            self._commits.append(Commit(fact.value, fact.subject, step.at, self._here, is_own=True, agent=step.agent))
            self.is_pushed, self.merging, self._has_moved = False, "", False
            if fact.kind != "applied":
                self._committed()
        elif fact.kind == "tip":
            self._tip(fact, step)
        elif fact.kind == "moved":
            self._has_moved, self.merging = True, ""
        elif fact.kind == "dropped":
            self._drop(self.commits[-int(fact.value) :])
        elif fact.kind == "push":
            self._was_pushed(fact, step)
        elif fact.kind == "request":
            self._requested(fact)
        elif fact.kind == "merging":
            self.merging = fact.value
        else:
            self._files(fact, step)

    def _files(self, fact: GitFact, step: Step) -> None:
        """What git says of the files of the working tree."""
        if fact.kind == "add":
            self._staged.add(fact.value.rstrip("/"))
        elif fact.kind == "add-all":
            self._stages_all = True
        elif fact.kind == "stashed":
            self._stashed.append({**dict.fromkeys(self.listed, "edited"), **self.edited})
            self._take_off(None)
        elif fact.kind == "unstashed" and self._stashed:
            self.edited = {**self._stashed.pop(), **self.edited}
        elif fact.kind == "undone":
            self._take_off({fact.value} if fact.value else None)
        elif fact.kind == "clean":
            self.listed = [each.value for each in step.git if each.kind == "changed"]
            self.status_at, self.edited, self.has_left, self.merging = step.at, {}, False, ""

    def _take_off(self, places: set[str] | None) -> None:
        """Take off the files in some places, or all."""
        self.listed = [] if places is None else [one for one in self.listed if not _is_within(one.rstrip("/"), places)]
        kept = {} if places is None else {one: did for one, did in self.edited.items() if not _is_within(one, places)}
        self.edited = kept

    def _committed(self) -> None:
        """Take off what a commit took in."""
        self._take_off(None if self._stages_all or not self._staged else self._staged)
        self.has_left = bool(self.edited)
        self._staged, self._stages_all = set(), False

    def _tip(self, fact: GitFact, step: Step) -> None:
        """The newest commit of what is checked out was printed."""
        known = self.commits
        at = next((n for n, one in enumerate(known) if _is_same(one.hash, fact.value)), None)
        newest = known[-1] if known else None
        if at is not None:
            known[at].subject = known[at].subject or fact.subject
            self._drop(known[at + 1 :])
        elif newest is not None and newest.is_own and _is_renewed(newest, fact):
            newest.hash, newest.subject = fact.value, fact.subject or newest.subject
        else:
            is_own = any(one.is_own and _is_same(one.hash, fact.value) for one in self._commits)
            by_others = not is_own and not self._has_moved
            self._commits.append(Commit(fact.value, fact.subject, step.at, self._here, is_own, by_others))
        self._has_moved = False

    def _drop(self, commits: list[Commit]) -> None:
        self._commits = [one for one in self._commits if not any(one is other for other in commits)]

    def _was_pushed(self, fact: GitFact, step: Step) -> None:
        if fact.subject not in ("", "HEAD", self.branch) and self.branch:
            return  # another branch
        self.pushed, self.is_pushed = step.at, True
        if fact.value:
            self._tip(GitFact("tip", fact.value), step)

    def _requested(self, fact: GitFact) -> None:
        number = self.request.partition(" ")[0]
        if fact.subject in ("created", "checked out"):
            self.request = fact.value
        elif fact.subject in ("merged", "closed") and number and fact.value in ("", number):
            self.request = f"{number} ({fact.subject})"


def _replaces(key: str, other: str) -> bool:
    """Whether a run of a check takes the place of one that passed; one with a filter also of those with others."""
    return covers(key, other) or (has_filter(other) and covers(key, other, filtered=False))


def simple_parts(command: str) -> tuple[str, ...]:
    """The commands of a command line, equal for two that differ only in `cd`, `git -C`, switches, redirections and what
    follows a pipe.
    """
    kept, is_piped = [], False
    for one in simple_commands(command):
        words = list(unwrapped(one.words))
        if not is_piped and words and words[0] != "cd":
            while words[0] == "git" and len(words) > 3 and words[1] in ("-C", "-c"):
                del words[1:3]
            kept.append(" ".join(word for word in words if not word.startswith("-")))
        is_piped = one.then in ("|", "|&")
    return tuple(kept) or (one_line(command),)


def _is_same(hash_: str, other: str) -> bool:
    return bool(hash_ and other) and (hash_.startswith(other) or other.startswith(hash_))


def _is_renewed(commit: Commit, tip: GitFact) -> bool:
    """Whether a tip is the agent's newest commit, rebased, or made without its hash being printed."""
    is_same = bool(commit.subject) and commit.subject == tip.subject
    return is_same or (not commit.hash and "" in (commit.subject, tip.subject))


def _is_within(path: str, places: set[str]) -> bool:
    """Whether a path is one of some places, or lies in one."""
    names = path.split("/")
    return any("/".join(names[:number]) in places for number in range(1, len(names) + 1))
