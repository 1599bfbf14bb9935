"""Which words of a record a person typed, and which a client, a hook or ralf wrote in a person's name."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ralf.text.cleaning import besides, one_line, outside
from ralf.text.patterns import regex
from ralf.transcripts.events import Record, object_in

# ---- the tags of clients ----

# Text between two tags may be anything: the output of a command, a file, the message of another agent. It can hold the
# closing tag, so a block goes to the last closing tag of its name: the client writes that one after all content.


_AROUND = (
    "system-reminder",
    "system_reminder",
    "ide_selection",
    "ide_opened_file",
    "ide_diagnostics",
    "new-diagnostics",
    "terminal",
    "browser",
    "browser_instruction",
    "user-prompt-submit-hook",
    "session-start-hook",
    "post-tool-use-hook",
    "hook_context",
    "local-command-caveat",
)
"""Blocks that a client sets before or behind a person's words, in the same text."""

_ALONE = (
    "agent-message",
    "agent-notification",
    "artifact-content",
    "artifact-embed",
    "artifact-file-content",
    "artifact-origin-notes",
    "artifact-room-event",
    "artifact-stored-declaration",
    "artifact-type-instructions",
    "artifact-view-context",
    "bash-exit-code",
    "bash-input",
    "bash-stderr",
    "bash-stdout",
    "channel",
    "coordinator-relay",
    "coordinator-task",
    "cross-session-message",
    "fetched-web-content",
    "fork-boilerplate",
    "forked-skill-launch",
    "function_results",
    "github-webhook-activity",
    "local-command-stderr",
    "local-command-stdout",
    "mcp-polling-update",
    "mcp-resource-update",
    "persisted-output",
    "remote-review",
    "remote-review-progress",
    "sandbox_violations",
    "slack-messages",
    "slack-ping",
    "slack-tag-message",
    "system-note",
    "task-notification",
    "teammate-message",
    "tick",
    "tool_use_error",
    "total_tokens",
    "untrusted-widget-state",
    "untrusted_context",
    "wake",
    "webhook-payload",
)
"""Blocks of which a client makes a whole text: nothing that stands in such a text was typed."""

# Compiled for the first text with a tag in it: hooks read texts that have none.
_OPENS = rf"<({'|'.join(_AROUND)})(?:\s[^<>]*)?>"

_IS_ALONE = rf"<(?:{'|'.join(_ALONE)})[\s/>]"

_COMMAND = r"<command-(?:name|message|args|contents)>"

_CALLED = r"(?:\s*+<command-(name|message)>[^<]{0,400}+</command-\1>)++"

_NAME = r"<command-name>\s*+/?([^<\s]{1,200}+)\s*+</command-name>"

_ARGUMENTS = r"(?s)\s*+<command-args>(.*?)</command-args>"

_EXPANDED = "<command-message>"

BUILT_IN = frozenset(
    """add-dir agents allowed-tools app bashes bg branch bug cd checkpoint chrome clear color compact config context
    continue copy cost desktop diff doctor effort exit export extra-usage fast feedback fork heapdump help hooks ide
    install-github-app install-slack-app ios keybindings login logout marketplace mcp memory mobile model new
    output-style passes permissions plan plugin plugins powerup privacy-settings quit rate-limit-options rc
    release-notes reload-plugins remote-control remote-env rename reset resume rewind sandbox settings skills stats
    status stickers tag tasks teleport terminal-setup theme think-back todos undo upgrade usage vim voice""".split()
)
"""The commands that the client carries out itself: without arguments they ask the agent for nothing."""

_SHELL_INPUT = "<bash-input>"

_PRINTED = regex(
    r"(?s)\s*<bash-(stdout|stderr|exit-code)>(.*?)</bash-\1>(?=\s*(?:<bash-(?:stdout|stderr|exit-code)>|\Z))"
)

_PRINTS = ("<bash-stdout>", "<bash-stderr>", "<bash-exit-code>")

_LOCAL = ("<local-command-", "<task-notification")
"""Frames that the client alone writes, whatever else its record says."""

_ELEMENT = r"<([A-Za-z][\w.:-]{0,80})(?:\s[^<>]{0,400})?>"

_MEMORY = r"(?s)<user-memory-input>(.*?)</user-memory-input>"


def without_tags(text: str) -> str:
    """The words of a text that stand in no tag that a client sets around a person's words.

    Such a block goes from its tag to the last closing tag of that name, or, where the text begins with it and it is
    never closed, to the end. Such a tag that is only mentioned is the person's word.
    """
    text = text.strip()
    if "<" not in text:
        return text
    kept: list[str] = []
    at, has_words = 0, False
    closed: dict[str, int] = {}
    for found in re.finditer(_OPENS, text):
        name = found[1]
        if found.start() < at:
            continue
        if name not in closed:
            closed[name] = text.rfind(f"</{name}>")
        end = closed[name]
        has_words = has_words or bool(text[at : found.start()].strip())  # looked at until there is one
        if end >= found.end():
            kept.append(text[at : found.start()])
            at = end + len(name) + 3
        elif not has_words:
            return ""
    return "".join([*kept, text[at:]]).strip()


def command(text: str) -> str | None:
    """A slash command as it was typed, `/name arguments`: "" for one of the client's own without arguments, None for
    any other text.

    Neither a name nor the arguments go beyond their first closing tag.
    """
    if not text.startswith("<"):
        return None
    memory = re.match(_MEMORY, text)
    if memory:
        return memory[1].strip()
    if not re.match(_COMMAND, text):
        return None
    given = re.match(_ARGUMENTS, text)
    called = re.match(_CALLED, text[given.end() if given else 0 :])
    name = re.search(_NAME, called[0]) if called else None
    if called and not given:
        given = re.match(_ARGUMENTS, text[called.end() :])
    words = given[1].strip() if given else ""
    if not name or not (words or name[1] not in BUILT_IN):
        return ""
    return f"/{name[1]} {words}".rstrip()


def expands(text: str) -> bool:
    """Whether a text is a slash command that the client follows with the command's own prompt, as a text of its own."""
    return text.lstrip().startswith(_EXPANDED)


# ---- the words that a person typed ----


_MACHINE = (
    "Caveat: The messages below were generated by",
    "[Request interrupted",
    "[Image: source:",
    "Stop hook feedback:",
    "Base directory for this skill:",
    "<<autonomous-loop",
)

_MACHINE_ALONE = ("Continue from where you left off.",)

_INTERRUPTED = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")

_BARE_COMMAND = regex(r"/([\w:.-]+)\Z")

DECLINED = "The user doesn't want to"
"""How the result of a call begins that a person declined."""

_SAID = "the user said:\n"

_CLARIFY = "The user wants to clarify these questions"

_NOTE = "\n\nNote: The user's next message may contain"

_ASKED = "Questions asked:\n"

_CLARIFIED = regex(r"  (?:Answer: ([^\n]+)|\(No answer provided\))(?:\n +User notes: (.+))?\s*", re.S)

_ANSWERED = regex(r"(?:User has answered your questions|The user answered|Your questions have been answered): ")

_ANSWER = r'\A(?:"((?:(?!"=).)*)"|\(no option selected\))(?: (?:user )?notes: ([^"]+?))?'

_LAST_ANSWER = regex(_ANSWER + r'\.(?: [^"]*)?', re.S)

_ANSWER_BEFORE = regex(_ANSWER + ", ", re.S)


Part = Literal["message", "command", "ran", "printed", "interrupted", "client", "unknown"]
"""What a text in a record of the person is.

message      the person's words
command      a slash command of theirs, `/name arguments`
ran          a command that they ran in a shell
printed      what that command printed
interrupted  that they interrupted the agent
client       a frame of the client, or output of ralf: no words of theirs
unknown      one element that no list names, from its first character to its last
"""


def part(text: str, *, proven: bool = False, of_turn: bool = False) -> tuple[Part, str]:
    """What a text is, and the words of it that matter: "" for a text of the client.

    The client's tags around a person's words, our own output and a loop's standing prompt are taken out.

    proven   a field of the record says that the person sent it: then it is a message, also where it begins like a frame
             that people paste
    of_turn  a field says that it began a turn: then it is a message, also where it is an element that no list names
    """
    text = besides(outside(text)).strip()
    if text.startswith(_SHELL_INPUT):
        return "ran", text.removeprefix(_SHELL_INPUT).removesuffix("</bash-input>").strip()
    if text.startswith(_PRINTS):
        return "printed", _printed(text)
    text = without_tags(text)
    if text in _INTERRUPTED:
        return "interrupted", ""
    called = command(text)
    if called is not None:
        return "command" if called.startswith("/") else "message" if called else "client", called
    if not text or text.startswith(_LOCAL) or ((bare := _BARE_COMMAND.match(text)) and bare[1] in BUILT_IN):
        return "client", ""
    if proven:
        return "message", text
    if text.startswith(_MACHINE) or text in _MACHINE_ALONE or (text.startswith("<") and re.match(_IS_ALONE, text)):
        return "client", ""
    return ("message" if of_turn or not _is_element(text) else "unknown"), text


def typed(text: str) -> str:
    """The words of a user's message that a person typed, "" if there are none; see `part`."""
    kind, found = part(text)
    return found if kind in ("message", "command", "unknown") else ""


def _printed(text: str) -> str:
    """What a command printed, on both of its outputs. What the text holds may have the closing tags in it, too."""
    found: list[str] = []
    at = 0
    while match := _PRINTED.match(text, at):
        at = match.end()
        if match[1] != "exit-code" and match[2].strip():
            found.append(match[2].strip("\n"))
    return "\n".join(found) if at else text


def _is_element(text: str) -> bool:
    """Whether a text is one element: the tag that it begins with is closed by the text's end, and not before."""
    opening = re.match(_ELEMENT, text) if text.startswith("<") else None
    if not opening or not text.endswith(f"</{opening[1]}>"):
        return False
    depth = 0
    for tag in re.finditer(rf"<(/?){re.escape(opening[1])}(?=[\s/>])", text):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return tag.end() + 1 == len(text)
    return False


def reason_given(text: str, feedback: object) -> str:
    """The reason that a person gave for declining a call, "" if none.

    text      the call's result; whether a person declined it, the record has told
    feedback  the record's `userFeedback`, in newer versions
    """
    if isinstance(feedback, str) and feedback.strip():
        return _feedback(feedback)
    return _feedback(text.partition(_SAID)[2]) if text.startswith(DECLINED) else ""


def clarified(reason: str, questions: Sequence[str]) -> list[tuple[str, str]] | None:
    """The questions that a person answered, with their answers, where they declined to answer all of them; None for
    a reason in words of their own.
    """
    if not reason.startswith(_CLARIFY):
        return None
    told = _behind(reason.partition(_ASKED)[2].lstrip(), [f'- "{question}"\n' for question in questions])
    return _said_to(questions, [_CLARIFIED.fullmatch(one) for one in told])


def answered(text: str, details: Record, options: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """What a person answered to the client's questions: each question with its answer.

    text     the result
    details  the record's `toolUseResult`: it holds `answers`, and `annotations` with notes
    options  the questions that were asked, each with what could be chosen
    """
    answers = details.get("answers")
    if isinstance(answers, Mapping):
        return _pairs(answers, object_in(details, "annotations"))
    return answers_in(text, options)


def answers_in(text: str, options: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """What a client's sentence, `User has answered your questions: "QUESTION"="ANSWER", ….`, tells of the answers to
    all of the questions, where no field does; `options` as above.

    The agent wrote the questions and the options, so they may hold what looks like an answer: [] for a text that is not
    the sentence about just these questions in their order, or that could be read in two ways.
    """
    start = _ANSWERED.match(text)
    if not start or any('"=' in option for offered in options.values() for option in offered):
        return []
    told = _behind(text[start.end() :], [f'"{question}"=' for question in options])
    patterns = [*(_ANSWER_BEFORE,) * (len(told) - 1), _LAST_ANSWER]
    return _said_to(list(options), [pattern.fullmatch(one) for pattern, one in zip(patterns, told, strict=False)])


def _behind(text: str, headings: Sequence[str]) -> list[str]:
    """What stands behind each of some headings, if they stand in the text in this order from its beginning on, each of
    them once; else [].
    """
    starts = [text.find(heading) for heading in headings]
    ends = [start + len(heading) for start, heading in zip(starts, headings, strict=True)]
    once = all(text.rfind(heading) == start for start, heading in zip(starts, headings, strict=True))
    if starts[:1] != [0] or not once or any(end > start for end, start in zip(ends, starts[1:], strict=False)):
        return []
    return [text[end:start] for end, start in zip(ends, [*starts[1:], len(text)], strict=True)]


def _said_to(questions: Sequence[str], found: Sequence[re.Match[str] | None]) -> list[tuple[str, str]]:
    """The questions to which something was said; none if one of the answers was not understood."""
    if not all(found):
        return []
    said = [" ".join(part.strip() for part in one.groups() if part) for one in found if one]
    return [pair for pair in zip(questions, said, strict=False) if pair[1]]


def _pairs(answers: Mapping[str, Any], notes: Record) -> list[tuple[str, str]]:
    pairs = []
    for question in [*answers, *(q for q in notes if q not in answers)]:
        answer, remark = answers.get(question), object_in(notes, question).get("notes")
        if isinstance(answer, list):
            answer = ", ".join(part for part in answer if isinstance(part, str))
        said = [part.strip() for part in (answer, remark) if isinstance(part, str) and part.strip()]
        if said:
            pairs.append((str(question), " ".join(said)))
    return pairs


def _feedback(text: str) -> str:
    return text.partition(_NOTE)[0].strip()


class Queue:
    """What was queued while the agent worked, so that a text which arrives once more is still one request.

    Each has an id, "" for a notice of the client, which leaves the queue in its turn like what people typed.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, str]] = deque(maxlen=64)
        self._leaving: deque[tuple[str, str]] = deque(maxlen=16)
        self._recent: deque[str] = deque(maxlen=32)

    def put(self, text: str, own: str) -> None:
        """A text was queued."""
        words = one_line(text)
        self._waiting.append((words, own))
        if own:
            self._recent.append(words)

    def took(self, operation: object, text: str) -> None:
        """Texts left the queue: `remove` gave the oldest to the running turn, `dequeue` sends it as a message, `popAll`
        gives what people typed back to them: what they send then is a message of its own.
        """
        words = one_line(text)
        if operation == "popAll":
            self._waiting = deque((one for one in self._waiting if not one[1]), maxlen=64)
        elif self._waiting:
            taken = next((one for one in self._waiting if one[0] == words), self._waiting[0])
            self._waiting.remove(taken)
            if operation != "remove" and taken[1]:
                self._leaving.append(taken)

    def again(self, text: str) -> str:
        """The id of the first of the queued texts that a message repeats, alone or joined; "" where it repeats none.
        Those that had left count for this message only.
        """
        words = one_line(text)
        candidates = [*self._leaving, *(one for one in self._waiting if one[1])]
        self._leaving.clear()
        for first, (begins, _) in enumerate(candidates):
            if not words.startswith(begins):
                continue
            for last in range(first + 1, len(candidates) + 1):
                if " ".join(queued for queued, _ in candidates[first:last]) == words:
                    for used in candidates[first:last]:
                        if used in self._waiting:
                            self._waiting.remove(used)
                    return candidates[first][1]
        return ""

    def handed_over(self, text: str) -> bool:
        """Whether a text that the client handed to the running turn is one that was queued in this pass."""
        words = one_line(text)
        for place in (self._waiting, self._leaving):
            if found := next((one for one in place if one[0] == words), None):
                place.remove(found)
        return words in self._recent
