"""Where the work stands by the record: a fold of a session's entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from ralf.facts.checks import PIPES, covers, is_same_program, unwrapped
from ralf.facts.commands import git_words, simple_commands
from ralf.model.entries import Entry, GitFact, Item, Mark, Message, Step
from ralf.text.cleaning import one_line

_COUNTED = ("", "queued", "command", "program", "answer", "plan", "refused")

_KILLED = (130, 137, 143)  # statuses of what a signal ended: they say nothing of what a check checks


@dataclass
class Run:
    """The newest run of a check.

    key            see `ralf.facts.checks.checks_in`; of a chain that failed, those of all its checks
    edited         files that were edited after it
    passed_in_part when a later run passed over other paths or with another filter; "" for never
    failing        of a run that failed: those of its checks that have not passed since
    """

    key: str
    step: Step
    edited: dict[str, None] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    passed_in_part: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether it failed, by its status or by its output."""
        return self.step.has_failed

    def is_over(self, name: str, later: Step) -> bool:
        """Whether a later run takes the place of this one; one that passed in part is noted.

        One that passed is over when a later run covers it. One that failed is over when each of its checks has passed,
        or a run of all of them has failed.
        """
        if not self.has_failed:
            return any(covers(key, name) for key in later.checks)
        left = {one for one in self.failing if not any(covers(key, one) for key in later.checks)}
        if later.has_passed:
            self.failing = left
            is_part = any(is_same_program(key, one) for one in left for key in later.checks)
            self.passed_in_part = later.at if is_part else self.passed_in_part
        return not left and later.outcome != "not shown"


@dataclass(eq=False)
class Commit:
    """A commit, and when it was seen.

    is_own   a call of the agent's made it
    """

    hash: str
    subject: str
    at: str
    is_own: bool
    agent: str = ""


@dataclass
class State:
    """What the record shows at its end.

    commits   those seen on what is checked out, oldest first: the newest is what it was last seen at
    branch    the branch, "" where none is named; `is_detached`: no branch is checked out
    pushed    when it was last pushed, "" for never; `is_pushed`: the agent has committed nothing since
    request   number of the branch's pull request that was opened
    listed    what the newest whole `git status` calls changed, and has not been committed since; `status_at`: its time
    edited    path → what was done to it: by the agent since that, or since its last commit
    merging   "merge or rebase", if one is in progress
    runs      the newest run of each check, oldest first
    items     the to-do list, and when it was last changed
    running   tasks in the background without an end: id → (time, what)
    refused   refused calls that were not made since, with the number of messages before them
    failed    commands that failed and were not repeated with success, by the last of each line: with the number of
              messages before them
    """

    branch: str = ""
    is_detached: bool = False
    pushed: str = ""
    is_pushed: bool = False
    request: str = ""
    listed: list[str] = field(default_factory=list)
    status_at: str = ""
    edited: dict[str, str] = field(default_factory=dict)
    merging: str = ""
    runs: dict[str, Run] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    items_at: str = ""
    running: dict[str, tuple[str, str]] = field(default_factory=dict)
    refused: dict[str, tuple[Step, int]] = field(default_factory=dict)
    failed: dict[str, tuple[Step, int]] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    messages: int = 0
    last: str = ""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> State:
        """The state after some entries, of which none was taken back."""
        state = cls()
        for entry in entries:
            state.take(entry)
        return state

    @property
    def is_under_git(self) -> bool:
        """Whether the record shows a repository: a branch, a commit, a status."""
        return bool(self.branch or self.commits or self.status_at or self.pushed)

    def take(self, entry: Entry) -> None:
        """Go on by one entry."""
        self.last = entry.at or self.last
        match entry:
            case Step() if entry.outcome not in ("", "running"):
                self._step(entry)
            case Mark():
                self._mark(entry)
            case Message() if entry.form in _COUNTED:
                self.messages += 1

    def _mark(self, mark: Mark) -> None:
        match mark.kind:
            case "todos":
                self.items, self.items_at = mark.items, mark.at
            case "branch":
                self._checked_out(mark.value)
            case "started":
                self.running[mark.value] = (mark.at, mark.text)
            case "finished":
                self.running.pop(mark.value, None)
            case "requested":
                self.request = one_line(mark.value.rpartition("/")[2])

    def _step(self, step: Step) -> None:
        self.refused = {id_: known for id_, known in self.refused.items() if not _repeats(step, known[0])}
        if step.outcome == "refused" and not step.looks:
            self.refused[step.id] = (step, self.messages)
        if step.outcome == "refused":
            return
        for path, did in step.files:  # before what the same command checked and committed
            self._changed(path, did, step)
        for fact in step.git:
            self._git(fact, step)
        if step.checks:
            self._checked(step)
        elif step.kind == "command" and not step.looks:
            ran = simple_parts(step.object)
            for part in ran:
                self.failed.pop(part, None)
            if step.outcome == "failed":
                self.failed[ran[-1]] = (step, self.messages)

    # ---- checks ----

    def _checked(self, step: Step) -> None:
        if step.status in _KILLED:
            return
        has_failed = step.has_failed
        keys = [" && ".join(step.checks)] if has_failed else list(step.checks)
        self.runs = {name: run for name, run in self.runs.items() if not run.is_over(name, step)}
        for key in keys:  # where its status is not shown, a failure stands
            self.runs.setdefault(key, Run(key, step, failing=set(step.checks if has_failed else ())))

    # ---- files and commits ----

    def _changed(self, path: str, did: str, step: Step) -> None:
        is_folder = did == "deleted" and step.kind == "command" and "." not in path.rpartition("/")[2]
        if is_folder or path.startswith(("/", "~", "..", ".git/")) or path[1:2] == ":":
            return  # whether git has what was in a folder is not known
        before = self.edited.pop(path, "")
        if (before, did) != ("created", "deleted"):
            self.edited[path] = "created" if before == "created" else did
        self.listed = [one for one in self.listed if one != path]
        for run in self.runs.values():
            run.edited[path] = None

    def _checked_out(self, branch: str) -> None:
        self.is_detached = branch == "HEAD"
        if branch not in ("HEAD", "", self.branch):
            if self.branch:
                self.commits, self.pushed, self.is_pushed, self.request = [], "", False, ""
            self.branch = branch

    def _git(self, fact: GitFact, step: Step) -> None:
        match fact.kind:
            case "branch":
                self._checked_out(fact.value)
            case "commit" | "amended" | "applied":
                self._committed(fact, step)
            case "tip":
                self._tip(fact, step)
            case "moved":
                self.merging = ""
            case "dropped":
                self.commits = []
            case "push" if not self.branch or fact.subject in ("", "HEAD", self.branch):
                self.pushed, self.is_pushed = step.at, True
                if fact.value:
                    self._tip(fact, step)
            case "request" if fact.subject in ("created", "merged", "closed"):
                self.request = fact.value if fact.subject == "created" else ""
            case "merging":
                self.merging = fact.value
            case "undone" | "stashed" | "hidden":
                self._take_off(fact.value)
            case "clean":
                self.listed = [each.value for each in step.git if each.kind == "changed"]
                self.status_at, self.edited, self.merging = step.at, {}, ""

    def _take_off(self, place: str) -> None:
        """Take off the files in a place, "" for all."""
        self.listed = [one for one in self.listed if not _is_within(one, place)]
        self.edited = {one: did for one, did in self.edited.items() if not _is_within(one, place)}

    def _committed(self, fact: GitFact, step: Step) -> None:
        """A commit was made: what was edited before it is not told any more, whether or not it is in it."""
        if fact.kind == "amended":
            del self.commits[-1:]
        self.commits.append(Commit(fact.value, fact.subject, step.at, is_own=True, agent=step.agent))
        self.is_pushed, self.merging = False, ""
        if fact.kind != "applied":
            self._take_off("")

    def _tip(self, fact: GitFact, step: Step) -> None:
        """The newest commit of what is checked out was printed; of a push without its subject."""
        subject = fact.subject if fact.kind == "tip" else ""
        at = next((n for n, one in enumerate(self.commits) if _is_same(one.hash, fact.value)), None)
        newest = self.commits[-1] if self.commits else None
        if at is not None:
            self.commits[at].subject = self.commits[at].subject or subject
            del self.commits[at + 1 :]
        elif newest is not None and newest.is_own and (subject == newest.subject or not newest.hash):
            newest.hash, newest.subject = fact.value, subject or newest.subject  # rebased, or its hash was not printed
        else:
            self.commits.append(Commit(fact.value, subject, step.at, is_own=False))


def _repeats(step: Step, refused: Step) -> bool:
    """Whether a call is one that was refused before: by its command, its title, or its file."""
    if refused.kind == "command":
        return step.kind == "command" and set(simple_parts(refused.object)) <= set(simple_parts(step.object))
    if refused.kind in ("question", "plan"):
        return refused.kind == step.kind
    is_same = (refused.tool, refused.object) == (step.tool, step.object)
    return is_same or refused.object in dict(step.files) or (step.kind, step.object) == ("edit", refused.object)


@lru_cache(maxsize=512)  # what was refused is compared with each later call
def simple_parts(command: str) -> tuple[str, ...]:
    """The commands of a command line, equal for two that differ only in `cd`, `git -C`, switches, redirections and what
    follows a pipe.
    """
    kept, is_piped = [], False
    for one in simple_commands(command):
        words = unwrapped(one.words)
        if words[:1] == ("git",):
            words = ("git", *git_words(words[1:])[0])
        if not is_piped and words and words[0] != "cd":
            kept.append(" ".join(word for word in words if not word.startswith("-")))
        is_piped = one.then in PIPES
    return tuple(kept) or (one_line(command),)


def _is_same(hash_: str, other: str) -> bool:
    return bool(hash_ and other) and (hash_.startswith(other) or other.startswith(hash_))


def _is_within(path: str, place: str) -> bool:
    """Whether a path is a place, or lies in it."""
    return not place or f"{path}/".startswith(f"{place}/")
