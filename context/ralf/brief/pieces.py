"""Makes the pieces of a brief from the record: the last message, the state, what was done since, the talk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ralf.brief import lines, order, quoting
from ralf.brief.filling import Piece
from ralf.brief.recorded import Recorded
from ralf.facts.checks import most_telling
from ralf.facts.state import State
from ralf.model import GitNow
from ralf.model.entries import Item, Mark, Message, Said, Step
from ralf.model.handover import Carried
from ralf.talk import cutting
from ralf.talk.answers import AFTER, about, is_short
from ralf.talk.turns import Talk, Turn, course, refused_last
from ralf.text.cleaning import one_line, trimmed

_ANNOUNCEMENT = 90  # characters up to which a text right before a call only announces it

_MOST_COMMENTS = 12


_ENDS, _ON_THE_WAY = "\u2192", "\u00b7"

NEXT, LAST, STATE, SINCE, TALK, BACK, CODE = range(2, 9)  # sections, in their order

_HEADS = {
    NEXT: "### Next, by the record",
    LAST: "### The last message, and where its answer stands",
    STATE: "### State, by the record",
    SINCE: "### Since that message, in order",
    TALK: f"### The talk before it, oldest first ({_ENDS} the agent's closing words, {_ON_THE_WAY} others)",
    BACK: "### Taken back by rewinding",
    CODE: "### Written into the code",
}

_FORMS = {
    "queued": "while the agent worked",
    "refused": "with a refusal",
    "program": "sent by a program",
    "plan": "a plan that was approved",
}


@dataclass
class View:
    """What a brief is made of.

    talk, state  of the session that leads
    title        of the task, "" where none is known
    route        its name, "" for none
    warnings     what the reader should know first
    recorded     what people, agents and models have on record; `handed`: what they handed over
    command      how `ralf` is typed
    git          what git says at this moment, its text in at most `lines.NOW_TOKENS` tokens; None: it was not asked
    asked        how much a piece has of what is asked for; None: nothing is
    """

    talk: Talk
    state: State
    title: str = ""
    route: str = ""
    sessions: int = 1
    warnings: Sequence[str] = ()
    recorded: Recorded = field(default_factory=Recorded)
    handed: Carried = field(default_factory=Carried)
    command: str = "ralf"
    git: GitNow | None = None
    asked: Callable[[Piece], float] | None = None


@dataclass
class Composer:
    """Makes the pieces of one brief.

    last    the turn of the last message; `before`: those of the talk before it, oldest first
    log     keys of what was done since, newest first; `late`: keys of what is shown whole last of all
    calls   all steps, by id; `preceding`: the turn before one, by the `id` of that one
    """

    view: View
    pieces: dict[str, Piece] = field(default_factory=dict)
    last: Turn | None = None
    before: list[Turn] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    late: set[str] = field(default_factory=set)
    calls: dict[str, Step] = field(default_factory=dict)
    preceding: dict[int, Turn] = field(default_factory=dict)

    def add(self, key: str, place: Sequence[float], *levels: str) -> None:
        """Add a piece, unless it shows nothing; the first number of its place is its section."""
        if kept := [level.replace("<!--", "<\\!--") for level in levels if level]:
            section = int(place[0])
            self.pieces[key] = Piece(tuple(place), kept, [(str(section), _HEADS[section])])

    def add_each(self, kind: str, place: Sequence[float], texts: Iterable[str | Sequence[str]]) -> None:
        """Add pieces, numbered behind a place, each at one length or at several."""
        for number, levels in enumerate(texts):
            self.add(f"{kind}-{number}", (*place, number), *([levels] if isinstance(levels, str) else levels))

    def compose(self, *, talk_too: bool = True) -> None:
        """Make all pieces; `talk_too`: those behind what was done since the last message, as well."""
        talk = self.view.talk
        self.last = talk.last
        self.before = [turn for turn in talk.turns if turn.message is not None and turn is not self.last]
        self.calls = {step.id: step for turn in talk.turns for step in turn.steps}
        self.preceding = {id(turn): before for before, turn in pairwise(talk.turns)}
        answers = self._answers()
        self._state()
        if self.last is not None and self.last.message is not None:
            self._last(self.last, self.last.message, answers.get(id(self.last), ""))
        self._since(self.last or (talk.turns[-1] if talk.turns else Turn(None)))
        if not talk_too:
            return
        following = [*self.before[1:], *([self.last] if self.last is not None else [])]
        for number, (turn, after) in enumerate(zip(self.before, following, strict=False)):
            if turn.message is not None:
                self._turn(number, turn, turn.message, answers, after)
        self.add_each("back", (BACK,), (_taken_back(message, files) for message, files in talk.taken_back[-3:]))
        self._comments()

    def _answers(self) -> dict[int, str]:
        """What the message of each turn answers."""
        found: dict[int, str] = {}
        items: tuple[Item, ...] = ()
        for turn in self.view.talk.turns:
            if turn.message is not None:
                found[id(turn)] = about(turn.message, turn.before, self._refused(turn.message), items)
            for entry in turn.entries:
                if isinstance(entry, Mark) and entry.kind == "todos":
                    items = entry.items
        return found

    # ---- the last message ----

    def _last(self, turn: Turn, message: Message, answers: str) -> None:
        now = lines.standing(turn)
        unread = [entry for entry in turn.entries if isinstance(entry, Mark) and entry.kind == "unread"]
        for mark in unread[-1:]:
            when = f" of {quoting.clock(mark.at, message.at[:10])}" if mark.at else ""
            text = f"- A later record{when} (line {mark.line}) was too large to be read: it may be a newer message."
            self.add("unread", (LAST, -1), text)
        words = _words(message)
        is_pasted = cutting.is_pasted(words)
        texts = cutting.messages(words, order.LAST_PASTED if is_pasted else order.LAST)
        follows = f"after {answers}" if message.form == "refused" and answers else self._follows(turn)
        head = " ".join(filter(None, (self._head(turn, message, ""), follows and f"({follows})")))
        self.add("last", (LAST, 0), *("\n".join(filter(None, (head, quoting.quotation(text)))) for text in texts))
        if is_pasted:
            self.late.add("last")
        if turn.before and (is_short(message) or now.word == "not_begun"):
            texts = cutting.cuts(turn.before[-1], order.BEFORE)
            quoted = [f"- the agent's text before it:\n{quoting.quotation(text)}" for text in texts]
            self.add("before", (LAST, 2), *quoted)
        is_shown = message.form == "refused" or (answers.startswith(AFTER) and "before" in self.pieces)
        if answers and not is_shown:
            self.add("about", (LAST, 1), f"- it answers: {quoting.indented(answers)}")
        self.add("status", (LAST, 3), f"- {now.text}")
        wrote = (now.wrote, now.seen) if self.view.handed.last is not None and now.seen != now.wrote else (now.wrote,)
        self.add("wrote", (LAST, 4), *(f"    {text}" for text in wrote if text))
        self.add_each("aside", (LAST, 5), (f"- {_aside(aside)}" for aside in turn.asides))

    def _head(self, turn: Turn, message: Message, day: str) -> str:
        """When and how a message came."""
        form = "" if message.form == "refused" and self._refused(message) else _FORMS.get(message.form, message.form)
        sent = f"sent {turn.sent} times" if turn.sent > 1 else ""
        end = "answer interrupted" if turn is not self.last and _is_interrupted(turn) else ""
        how = ", ".join(filter(None, (form, sent, end)))
        return " ".join(filter(None, (message.at and quoting.clock(message.at, day), how and f"({how})")))

    def _refused(self, message: Message) -> str:
        """The call that a message refused, in few words."""
        if message.form != "refused":
            return ""
        step = self.calls.get(message.call)
        return lines.call(step) if step is not None else trimmed(one_line(message.about), 120)

    def _follows(self, turn: Turn) -> str:
        """What a message follows directly: a call that was refused without words, or an interruption."""
        before = self.preceding.get(id(turn))
        if before is None or turn.message is None or turn.message.form == "refused":
            return ""
        if (step := refused_last(before)) is not None:
            return f"after refusing {lines.call(step)}"
        return "after interrupting" if _is_interrupted(before) else ""

    # ---- the state ----

    def _state(self) -> None:
        state, git = self.view.state, self.view.git
        day = state.last[:10]
        messages = [turn.message for turn in self.view.talk.turns if turn.message is not None]
        since_list = sum(message.at > state.items_at for message in messages)
        self.add("next", (NEXT, 0), lines.upcoming(state, since_list, git))
        self.add("commit", (STATE, 0), lines.branch_and_commit(state, git))
        self.add("edited", (STATE, 1), *(lines.edited(state, most, git) for most in (4, 12, 40)))
        runs = list(state.runs.values())[::-1]
        passing, failing = ([run for run in runs if run.has_failed is failed] for failed in (False, True))
        checks = ([lines.check(run, day, lines=most) for most in (0, 2, 4, 8)] for run in failing)
        self.add_each("fails", (STATE, 2), checks)
        self.add("passes-0", (STATE, 3, 0), *(lines.check(run, day, lines=0) for run in passing[:1]))
        self.add("passes-1", (STATE, 3, 1), lines.passing(passing[1:6], day))
        self.add("todos", (STATE, 4), *lines.todos(state, since_list))
        running = (f"{lines.command(what)} ({quoting.clock(at, day)})" for at, what in [*state.running.values()][::-1])
        self.add_each("running", (STATE, 5), (f"- in the background, no end seen: {one}" for one in running))
        refused = [step for step, when in state.refused.values() if state.messages - when <= 6][:-4:-1]
        calls = (f"({quoting.clock(one.at, day)}), this call not made since: {lines.call(one)}" for one in refused)
        self.add_each("refused", (STATE, 6), (f"- refused by the person {call}" for call in calls))
        newest = [step for step, when in state.failed.values() if state.messages - when <= 2][-4:]
        for number, step in enumerate([step for step, _ in state.failed.values()][::-1]):
            end = ": ".join([f"{lines.command(step.object)} {lines.outcome(step)}", *step.lines[:1]])
            kind = "failed" if step in newest else "hint-failed"  # older ones come last of all
            self.add(f"{kind}-{number}", (STATE, 7, number), f"- failed, not repeated with success: {end}")
        earlier = [commit for commit in state.commits[:-1] if commit.is_own][-4:]
        words = [f'{commit.hash} "{trimmed(commit.subject, 70)}"' for commit in earlier[::-1]]
        self.add("commits", (STATE, 8), f"- earlier commits: {'; '.join(words)}" if words else "")

    # ---- what was done since the last message ----

    def _since(self, turn: Turn) -> None:
        closing = turn.closing
        newest = {step.checks: step.id for step in turn.steps if step.checks}
        pending = next((step for step in reversed(turn.steps) if not step.agent), None)  # the status has it
        looks = sum(map(_only_looked, turn.steps))
        entries = _each_file_once(
            entry
            for entry in turn.entries
            if (isinstance(entry, Said) and entry is not closing)
            or (
                isinstance(entry, Step)
                and (entry is not pending or entry.outcome)
                and (newest[entry.checks] == entry.id if entry.checks else not _only_looked(entry))
            )
        )
        announcing = {id(one) for one, after in pairwise(turn.entries) if isinstance(after, Step)}
        for number, entry in enumerate(entries):
            if isinstance(entry, Said):
                texts = [f"- said: {quoting.indented(text)}" for text in cutting.cuts(entry.text, order.LOG)]
                kind = "hint-since" if len(entry.text) <= _ANNOUNCEMENT and id(entry) in announcing else "since"
                self.add(f"{kind}-{number}", (SINCE, number), *texts)
            else:
                self.add(f"since-{number}", (SINCE, number), self._step(entry))
            if f"since-{number}" in self.pieces:  # the state has a check that failed
                has_more = isinstance(entry, Said) or not entry.checks or not entry.has_failed
                self.log.insert(0 if has_more else len(self.log), f"since-{number}")
        if looks:
            self.add("looks", (SINCE, len(entries)), f"- ({looks} call{'s' * (looks > 1)} only looked)")
        if closing is not None:
            place = next((n for n, entry in enumerate(entries) if entry.line > closing.line), len(entries) + 1)
            texts = [f"- said last:\n{quoting.quotation(text)}" for text in cutting.cuts(closing.text, order.LAST_TEXT)]
            self.add("closing", (SINCE, place - 0.5), *texts)

    def _step(self, step: Step) -> str:
        """One step of the log, "" for one that says nothing."""
        who = " (subagent)" if step.agent else ""
        end = lines.outcome(step)
        if step.outcome == "refused":
            return f"- refused: {lines.call(step)}{who}"
        if step.files and step.outcome == "ok" and not step.git:
            return f"- {'; '.join(lines.changed(step.files))}{who}"
        if step.kind == "command":
            if told := list(lines.git([step])):
                return f"- {'; '.join(told)}"
            if step.outcome == "ok" and not step.checks:
                return f"- ran {lines.command(step.object)}{who}"
            is_told = step.checks or step.outcome == "not shown"  # the state has the lines of a check
            shown = [] if is_told else most_telling(step.lines, 3)
            return "\n".join([f"- {lines.command(step.object)}: {end}{who}", *(f"    {line}" for line in shown)])
        if step.kind == "agent":
            report = f": {quoting.indented(cutting.cut_end(step.output, 200, 400))}" if step.output else ""
            return f"- subagent {quoting.quoted(step.object, 120)}: {end}{report}"
        if step.kind in ("question", "plan"):
            return f"- {step.kind}: {quoting.indented(cutting.cut(step.object, 240))} ({end})"
        return "" if step.kind == "edit" and step.outcome == "ok" else f"- {lines.call(step)}: {end}{who}"

    # ---- the talk before it ----

    def _turn(self, number: int, turn: Turn, message: Message, found: dict[int, str], following: Turn) -> None:
        answers = found.get(id(turn), "")
        day = message.at[:10]
        words = _words(message)
        is_pasted = cutting.is_pasted(words)
        texts = cutting.messages(words, order.PASTED if is_pasted else order.MESSAGE)
        head = f"- {self._head(turn, message, day)}".rstrip()
        behind = f" [{quoting.indented(answers)}]" if answers else ""
        quoted = [f'{head} "{quoting.indented(text)}"' for text in texts]
        bare = 1 if answers.startswith(AFTER) else 0  # what came right before is left out of the shortest form
        self.add(f"turn-{number}", (TALK, number, 0), *quoted[:bare], *(one + behind for one in quoted[bare:]))
        if piece := self.pieces.get(f"turn-{number}"):
            piece.heads = [*piece.heads, (f"day-{day}", f"{day}:")] if day else piece.heads
            if is_pasted:
                self.late.add(f"turn-{number}")
        did = (lines.did(turn, most) for most in (6, 1_000))
        self.add(f"did-{number}", (TALK, number, 2), *(f"  {one}" for one in did if one))
        closing = turn.closing
        if closing is not None and not (following is self.last and "before" in self.pieces):
            is_answered = following.message is not None and is_short(following.message)
            cuts = cutting.cuts(closing.text, order.CLOSING, is_answered=is_answered)
            is_last = next(reversed(course(turn)), None) is closing or turn.has("ended")
            texts = [f"  {_ENDS if is_last else _ON_THE_WAY} {quoting.indented(one, '    ')}" for one in cuts]
            self.add(f"{'agreed' if is_answered else 'closing'}-{number}", (TALK, number, 3), *texts)
        for place, said in enumerate(said for said in turn.texts if said is not closing):
            cuts = cutting.cuts(said.text, order.OTHER)
            texts = [f"  {_ON_THE_WAY} {quoting.indented(text, '    ')}" for text in cuts]
            kind = "hint" if len(said.text) <= _ANNOUNCEMENT else "other"
            self.add(f"{kind}-{number}-{place}", (TALK, number, 1, place), *texts)
        for place, aside in enumerate(turn.asides):
            is_behind = closing is not None and aside.line > closing.line
            where = (TALK, number, 4 if is_behind else 1.5, place)
            self.add(f"ran-{number}-{place}", where, f"  {quoting.indented(_aside(aside, day))}")

    def _comments(self) -> None:
        """What the agent has written into the code, the newest first, each once."""
        found: dict[str, str] = {}
        gone: set[str] = set()
        for turn in reversed(self.view.talk.turns):
            for step in reversed(turn.steps):
                for words in step.comments:
                    if words not in gone:
                        found.setdefault(words, step.files[0][0] if step.files else step.object)
                gone.update(step.uncommented)
        newest = [*found.items()][:_MOST_COMMENTS]
        self.add_each("comment", (CODE,), (f"- {path}: {quoting.quoted(words, 200)}" for words, path in newest))


def _is_interrupted(turn: Turn) -> bool:
    newest = next(reversed(course(turn)), None)
    return isinstance(newest, Mark) and newest.kind == "interrupted"


def _each_file_once(entries: Iterable[Said | Step]) -> list[Said | Step]:
    """Entries of the log, each file where it was edited last before a check or after all."""
    found: list[Said | Step] = []
    seen: set[str] = set()
    for entry in reversed([*entries]):
        if isinstance(entry, Step) and entry.checks:
            seen.clear()
        if isinstance(entry, Step) and entry.kind == "edit" and entry.outcome == "ok" and not entry.agent:
            entry = replace(entry, files=tuple(file for file in entry.files if file[0] not in seen))
            seen.update(path for path, _ in entry.files)
        found.append(entry)
    return found[::-1]


def _only_looked(step: Step) -> bool:
    """Whether a call only looked, and there was something to see."""
    return step.looks and not step.checks and step.outcome != "failed"


def _words(message: Message) -> str:
    """What a message says; of a plan that was approved the plan."""
    return message.about if message.form == "plan" and message.about else message.text


def _taken_back(message: Message, files: Sequence[str]) -> str:
    edited = f" (it had edited {lines.files(files, 4)}; whether that was restored is not recorded)" if files else ""
    return f"- {quoting.clock(message.at)} {quoting.quoted(message.text, 200)}{edited}"


def _aside(message: Message, day: str = "") -> str:
    """What the person ran, or typed and took back; `day`: the one that goes without saying."""
    at = quoting.clock(message.at, day)
    if message.form == "ran":
        return f"{at} {lines.own_command(message)}"
    return f"{at} typed and taken back, not sent in this record: {quoting.quoted(message.text, 280)}"
