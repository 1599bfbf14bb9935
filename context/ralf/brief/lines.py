"""Says in words what the record shows: times, files, checks, steps, the state, and what a turn did."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from ralf.brief.quoting import clock, indented
from ralf.facts.checks import failing_lines, is_failing, most_telling
from ralf.facts.commands import simple_commands
from ralf.facts.state import Run, State
from ralf.model import GitNow
from ralf.model.entries import Item, Mark, Message, Said, Step
from ralf.storage.git_files import Status
from ralf.talk.cutting import cut
from ralf.talk.turns import Turn, course, refused_last
from ralf.text import tokens
from ralf.text.cleaning import one_line, shown, trimmed
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

_COMMAND = 120  # characters of a command, a call's object

_FILES, _FEW = 12, 6

_CHANGES_FOLDER = regex(r"\A\s*cd [^&|;\n]+&&\s*")


def files(paths: Sequence[str], most: int = _FILES) -> str:
    """Paths with a folder that several of them share said once: `src/a/: x.py, y.py; tests/z.py`."""
    folders: dict[str, list[str]] = {}
    for path in paths[:most]:
        folder, _, name = one_line(path).rpartition("/")
        folders.setdefault(folder, []).append(name)
    parts = []
    for folder, names in folders.items():
        if folder and len(names) > 1:
            parts.append(f"{folder}/: {', '.join(names)}")
        else:
            parts.extend(posixpath.join(folder, name) for name in names)
    more = len(paths) - most
    return "; ".join(parts) + (f" and {more} more" if more > 0 else "")


def changed(found: Iterable[tuple[str, str]], most: int = _FEW) -> list[str]:
    """Files by what was done to them, each once."""
    groups: dict[str, dict[str, None]] = {}
    for path, did in found:
        groups.setdefault(did, {})[path] = None
    return [f"{did} {files(list(paths), most)}" for did, paths in groups.items()]


def command(text: str, most: int = _COMMAND) -> str:
    """A command in backticks, its first line alone if it has several."""
    first, _, rest = text.strip().partition("\n")
    short = trimmed(first, most).replace("`", "'")
    more = " \u2026" if rest.strip() and not short.endswith("\u2026") else ""
    return f"`{short}{more}`"


def outcome(step: Step) -> str:
    """How a call ended."""
    if step.outcome == "failed":
        if step.status in (130, 137, 143):
            return f"stopped by a signal (exit {step.status})"
        return f"FAILED (exit {step.status})" if step.status else "FAILED"
    words = {
        "": "no result seen",
        "ok": "ok",
        "refused": "refused",
        "running": "running in the background",
        "failed by output": "FAILED (by its output)",
        "passed by output": "passed by its output",
        "not shown": "exit status not shown" + (f", its last line: {step.lines[0]}" if step.lines else ""),
    }
    return words.get(step.outcome, step.outcome)


def call(step: Step) -> str:
    """A call in few words: the tool, and what it was about."""
    if step.kind == "command":
        return f"{step.tool} {command(step.object)}"
    return f"{step.tool} {trimmed(one_line(step.object), _COMMAND)}".strip()


def _by(agent: str) -> str:
    return " (subagent)" if agent else ""


# ---- the state ----


def check(run: Run, day: str, *, lines: int) -> str:
    """A check and its newest result, with so many of the lines that say it; `day`: the one that goes without saying."""
    step = run.step
    last = (
        f": {step.lines[0]}"
        if len(step.checks) == 1 and step.lines and step.outcome in ("ok", "passed by output")
        else ""
    )
    ran = command(_typed(step))
    text = f"- check {ran} {clock(step.at, day)}: {outcome(step)}{last}{_by(step.agent)}"
    if run.passed_in_part:
        text += f"; a later run over other paths or with another filter was ok ({clock(run.passed_in_part, day)})"
    if run.edited:
        text += f"; edited after it: {files(list(run.edited)[::-1], 3)}"
    shown = most_telling(step.lines, lines) if run.has_failed else []
    return "\n".join([text, *(f"    {line}" for line in shown)])


def _typed(step: Step) -> str:
    """The command of a step, without the folder that it goes to first."""
    return _CHANGES_FOLDER.sub("", step.object)


def passing(runs: Sequence[Run], day: str) -> str:
    """The checks that did not fail, in one line."""
    words = {"ok": "passed", "passed by output": "passed by output"}
    groups: dict[str, list[str]] = {}
    for run in runs:
        after = " (edited after it)" if run.edited else ""
        # The key of one of several checks leaves out what does not tell it from others: no command that anybody ran.
        ran = command(_typed(run.step), 60) if len(run.step.checks) == 1 else one_line(run.key)
        groups.setdefault(words.get(run.step.outcome, outcome(run.step)), []).append(
            f"{ran} {clock(run.step.at, day)}{after}"
        )
    return "\n".join(f"- {word}: {', '.join(each)}" for word, each in groups.items())


def branch_and_commit(state: State, git: GitNow | None = None) -> str:
    """Branch and newest commit; "" where the record has neither, or nothing that differs from what git says now."""
    day, newest = state.last[:10], state.commits[-1] if state.commits else None
    if git is not None and not (state.request or state.pushed or state.merging):
        is_same_branch = ("" if state.is_detached else state.branch) in ("", git.branch)
        if is_same_branch and (newest is None or newest.hash[:7] == git.head):
            return ""
    branch = f"detached HEAD (before: {state.branch})" if state.is_detached else f"branch {state.branch}"
    branch = branch if git is None else f"when the record ended: {branch}"
    parts = [branch if state.branch else "", f"PR #{state.request}" if state.request else ""]
    if newest is not None:
        name = " ".join(filter(None, (newest.hash, newest.subject and f'"{newest.subject}"'))) or "by the agent"
        parts.append(f"newest commit seen {name} ({clock(newest.at, day)}){_by(newest.agent)}")
    if state.pushed:
        is_before = newest is not None and newest.is_own and not state.is_pushed
        parts.append(f"last push {clock(state.pushed, day)}" + (", before that commit" if is_before else ""))
    when = "is" if git is None else "was then"
    parts.append(f"a {state.merging} {when} in progress" if state.merging else "")
    return _item_of(parts)


def _item_of(parts: Iterable[str]) -> str:
    """A bullet of some parts, "" where none says anything."""
    found = "; ".join(filter(None, parts))
    return f"- {found}" if found else ""


NOW_TOKENS = 80
"""What `now` takes at most; set aside from a budget before anything else of a brief."""


def now(status: Status) -> str:
    """What git says at this moment: branch, newest commit, files that are not committed."""
    where = f"branch {trimmed(one_line(status.branch), 60)}" if status.branch else "no branch"
    head = f'at {status.head} "{trimmed(one_line(status.subject), 70)}"' if status.head else "no commit yet"
    count = len(status.files)
    for most in (8, 4, 2, 1):
        paths = files([one_line(path) for path in status.files], most)
        left = f"not committed: {paths}" if count else "nothing to commit"
        text = shown(f"Now, by git: {where} {head}; {left}")  # names in a repository may be anybody's
        if tokens.count(text) < NOW_TOKENS and len(text) < NOW_TOKENS * 4:
            return text
    return f"Now, by git: {count} file{'s' * (count != 1)} not committed"


def edited(state: State, most: int, git: GitNow | None = None) -> str:
    """Files that are not committed, by `git status`, or as far as the agent edited them; "" for none, and where all of
    them stand in what git says now.
    """
    parts, paths = [], [*state.listed, *state.edited]
    if git is not None and all(git.lists(path) and posixpath.basename(path) in git.text for path in paths):
        return ""
    if state.listed:
        time = clock(state.status_at, state.last[:10])
        parts.append(f"git status at {time}: not committed: {files(state.listed, most)}")
    if state.edited:
        is_since = any(commit.is_own for commit in state.commits)
        head = "by the agent since its last commit" if is_since else "by the agent, not committed by it"
        head = "after it" if state.listed else head if state.is_under_git else "by the agent"
        parts.append(f"edited {head}: {files(list(state.edited)[::-1], most)}")
    if git is not None and (unlisted := [path for path in paths if not git.lists(path)]):
        is_all, kept = len(unlisted) == len(paths), "among git's uncommitted files now"
        parts.append(f"none of them is {kept}" if is_all else f"not {kept}: {files(unlisted, most)}")
    return _item_of(parts)


def todos(state: State, since: int = 0) -> tuple[str, ...]:
    """The to-do list: how far it is; with what comes next; with all that is open; and with what is done. Of one that is
    done, only that.

    since  messages of the person since it was changed
    """
    items = state.items
    if not items:
        return ()
    at = clock(state.items_at, state.last[:10])
    current, rest, done = (
        [f"\n    {label}: {_item(item)}" for item in items if item.status == status]
        for status, label in (("in_progress", "in progress"), ("pending", "open"), ("completed", "done"))
    )
    if len(done) == len(items):
        return (f"- to-do list: all {len(items)} done ({at})",)
    later = f", {since} messages before the end" if since > _MOST_SINCE_LIST else ""
    head = "".join([f"- to-do list ({at}{later}): {len(done)} of {len(items)} done", *current])
    brief = [*rest[:3], *([f"\n    open: {len(rest) - 3} more"] if len(rest) > 3 else [])]
    return head, head + "".join(brief), head + "".join(rest), head + "".join([*rest, *done])


def _item(item: Item) -> str:
    return f"#{item.id} {item.text}" if item.id else item.text


_MOST_SINCE_LIST = 2  # messages


def upcoming(state: State, since_list: int = 0, git: GitNow | None = None) -> str:
    """What comes next as far as the record shows it, in one line; "" for nothing. The state below has the details.

    since_list  messages of the person since the to-do list was changed: one that is behind them says nothing of now
    git         what git says now: a file that it does not list is not counted
    """
    parts: list[str] = []
    failing = [run for run in state.runs.values() if run.has_failed and not run.passed_in_part]
    if failing:
        newest = failing[-1]
        what = f"{len(failing)} checks failed (the newest " if len(failing) > 1 else "a check failed ("
        parts.append(f"{what}{clock(newest.step.at, state.last[:10])}{', edited after it' if newest.edited else ''})")
    open_ = [item for item in state.items if item.status != "completed"]
    if open_ and since_list <= _MOST_SINCE_LIST:
        first = next((item for item in open_ if item.status == "in_progress"), open_[0])
        more = f" and {len(open_) - 1} more open" if len(open_) > 1 else ""
        parts.append(f"to-do {trimmed(_item(first), 60)}{more}")
    run = next(reversed(state.runs.values()), None)
    if run is not None and run.edited and not run.has_failed:
        parts.append(f"edited after the last check: {files(list(run.edited), 3)}")
    listed, edited = ([one for one in paths if git is None or git.lists(one)] for paths in (state.listed, state.edited))
    if listed:
        later = f", {len(edited)} edited after it" if edited else ""
        parts.append(f"{_counted(len(listed))} not committed by git status{later}")
    elif edited and state.is_under_git:
        parts.append(f"{_counted(len(edited))} not committed by the agent")
    if state.commits and state.commits[-1].is_own and state.pushed and not state.is_pushed:
        parts.append("the newest commit not pushed")
    return _item_of(parts)


def _counted(count: int) -> str:
    return f"{count} file{'s' * (count > 1)}"


# ---- what was done ----


def did(turn: Turn, most: int = _FEW) -> str:
    """What was done in a turn, in one line: files, commits, pushes and the newest runs of two checks as they came, then
    what was refused or interrupted.
    """
    parts = list(_did(turn, most))
    return f"did: {'; '.join(parts)}" if parts else ""


def _did(turn: Turn, most: int) -> Iterator[str]:
    newest = {" && ".join(step.checks): step.id for step in turn.steps if step.checks and step.outcome != "refused"}
    shown = {id_: key for key, id_ in [*newest.items()][-2:]}
    files: list[tuple[str, str]] = []
    for step in turn.steps:
        files += step.files
        told = [f"{command(shown[step.id], 60)}: {outcome(step)}"] if step.id in shown else []
        if told := [*told, *git([step])]:
            yield from [*changed(files, most), *told]
            files.clear()
    yield from changed(files, most)
    for step in turn.steps:
        if step.outcome == "refused" and turn.message is not None:
            yield f"refused: {call(step)}"
    for entry in turn.entries:
        if isinstance(entry, Mark) and entry.kind == "interrupted":
            yield "interrupted by the person"
        elif isinstance(entry, Mark) and entry.kind == "stopped":
            yield f"stopped by the service: {trimmed(one_line(entry.value), 120)}"


def git(steps: Iterable[Step]) -> Iterator[str]:
    """Commits, pushes and pull requests of some steps."""
    for step in steps:
        for fact in step.git:
            if fact.kind in ("commit", "amended", "applied"):
                word = "amended" if fact.kind == "amended" else "committed"
                subject = f'"{fact.subject}"' if fact.subject else ""
                yield " ".join(filter(None, (word, fact.value, subject))) + _by(step.agent)
            elif fact.kind == "push":
                yield "force-pushed" if _is_forced(step.object) else "pushed"
            elif fact.kind == "request":
                yield f"pull request {fact.value and f'#{fact.value} '}{fact.subject}"


def _is_forced(text: str) -> bool:
    """Whether a command line pushes with force."""
    pushes = (one.words for one in simple_commands(text) if "push" in one.words)
    return any(word == "-f" or word.startswith("--force") for words in pushes for word in words)


def own_command(message: Message, lines: int = 3) -> str:
    """A command that the person ran, with the lines of its output that say what failed."""
    text = f"the person ran {command(message.text)}"
    shown = [one for one in failing_lines(message.output) if is_failing(one)][:lines] if message.output else []
    if not shown and message.output:
        shown = [trimmed(one_line(message.output.splitlines()[-1]), 170)]
    return "\n".join([text, *(f"    {line}" for line in shown)])


# ---- where the answer to the last message stands ----

_ASKED, _ADDED, _OUTPUT, _ERROR = 600, 420, 300, 240  # characters


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the answer stands.

    word    not_begun, in_progress, waiting, interrupted, stopped or answered
    text    it in words
    wrote   the added lines of the last edit, or the head of the last result; "" for none
    seen    that result, as far as it is kept
    """

    word: str
    text: str
    wrote: str = ""
    seen: str = ""


def standing(turn: Turn) -> Standing:
    """Where the answer to the message of a turn stands; the first rule that applies."""
    entries = course(turn)
    steps = [step for step in turn.steps if not step.agent]
    lists = [entry for entry in turn.entries if isinstance(entry, Mark) and entry.kind == "todos"]
    count = _calls(len(steps) + len(lists))
    newest, last = entries[-1] if entries else None, steps[-1] if steps else None
    mark = newest.kind if isinstance(newest, Mark) else ""
    if turn.unread:
        return Standing("not_begun", "Not begun: it was still waiting in the client's queue.")
    if isinstance(newest, Mark) and mark == "stopped":
        done = f"{count} had been made for it" if steps else "nothing was done for it before"
        return Standing("stopped", f"Stopped by the service: {trimmed(one_line(newest.value), _ERROR)}; {done}.")
    if not turn.texts and not turn.steps and not turn.has("interrupted"):
        return Standing("not_begun", "Not begun: after it nothing was said or done.")
    if isinstance(newest, Mark) and mark == "interrupted":
        why = f" ({trimmed(one_line(newest.value), 60)})" if newest.value not in ("", mark) else ""
        step = refused_last(turn)
        last_one = f"; the last one was refused: {call(step)}" if step is not None else ""
        return Standing("interrupted", f"Interrupted by the person after {count}{why}{last_one}.")
    if last is not None and not last.outcome and last.kind in ("question", "plan"):
        return Standing("waiting", f"It waits for the person: {indented(cut(last.object, _ASKED))}")
    if last is not None and not last.outcome:
        return Standing("in_progress", f"Being worked on: {count}; the last one has no result yet: {call(last)}")
    if mark == "ended":
        if isinstance(next((entry for entry in reversed(entries) if not isinstance(entry, Mark)), None), Said):
            return Standing("answered", "Answered: the agent's turn is ended; its words are below.")
        return Standing("answered", f"The agent's turn is ended after {count}, without closing words.")
    is_listed_last = isinstance(newest, Said) and any(one.line > newest.line for one in lists)
    if isinstance(newest, Said) and not is_listed_last:
        after = f", after {count}" if steps or lists else ""
        words = f"The agent spoke last (below){after}; the record has no mark that its turn had ended."
        return Standing("answered", words)
    text = f"Being worked on: {count} so far, no closing words yet."
    if last is None or is_listed_last:
        return Standing("in_progress", text)
    seen = "" if last.added or last.checks else _result(last.output)
    return Standing("in_progress", f"{text} Last call: {call(last)} ({outcome(last)})", _wrote(last), seen)


def _calls(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def _wrote(step: Step) -> str:
    """What the last call wrote, or the head of what it printed; of a check its result, if the state has not that."""
    if step.added:
        return f"added: {indented(trimmed(step.added, _ADDED), '    ')}"
    if step.checks:
        return "" if step.outcome in ("failed", "failed by output") else _result("\n".join(step.lines))
    return _result(trimmed(step.output, _OUTPUT))


def _result(text: str) -> str:
    return f"result: {indented(text, '    ')}" if text else ""
