"""Who sent a record of the person in a Claude Code session, by its fields, and what they answered or declined."""

from __future__ import annotations

from collections.abc import Iterator

from ralf.text.cleaning import clean
from ralf.transcripts.events import Form, Record, object_in, words
from ralf.transcripts.typed import DECLINED, answered, clarified

_NOT_TYPED = frozenset(
    """agentId handedOff isMeta isVirtual isVisibleInTranscriptOnly queueSkipAttachments scheduledTaskId textNotTyped
    sourceToolUseID turnCompanion wakeupSource""".split()
)
"""Fields by which the client marks what it wrote in the person's name."""

_OF_TURN = frozenset({"permissionMode", "thinkingMetadata", "todos"})
"""Fields that the client adds to what begins a turn: to what was typed, and to some frames of its own."""

_SOURCES = {
    "typed": "person",
    "queued": "person",
    "suggestion_accepted": "person",
    "sdk": "program",
    "system": "client",
}

_NOT_ANSWERED = "(declined)"


def source_of(record: Record, *, expansion: bool = False) -> str:
    """Who a record or an attachment says has sent its words: "client", "person", "program"; "sdk" where it says of the
    turn alone that a program began it; "turn" where it says that they began one; "" where it says nothing.

    expansion  it may be the prompt of a slash command
    """
    origin = origin_of(record) if "origin" in record else ""
    if origin not in ("", "human") or (record.get("teamName") and record.get("agentName")):
        return "client"
    if not _NOT_TYPED.isdisjoint(record) and any(record.get(field) for field in _NOT_TYPED):
        return "client"
    if named := words(record.get("promptSource")):  # one that is not known is no person's
        return _SOURCES.get(named, "program")
    if origin:
        return "person"
    of_turn = not _OF_TURN.isdisjoint(record)
    if expansion and not of_turn:
        return "client"
    if record.get("turnOrigin") == "sdk" or words(record.get("entrypoint")).startswith("sdk"):
        return "sdk"
    return "turn" if of_turn else ""


def answers(
    text: str, details: Record, given: Record, *, declined: bool, reason: str
) -> Iterator[tuple[Form, str, str, list[str]]]:
    """What a person answered, or that they declined to: form, question, words, and what could be chosen."""
    asked = details.get("questions") or given.get("questions")
    options = dict(map(_question, asked if isinstance(asked, list) else ()))
    if not declined:
        pairs = answered(text, details, options)
    elif reason and (found := clarified(reason, list(options))) is None:
        yield "refused", clean("\n".join(options)), reason, []
        return
    else:
        pairs = (found if reason else None) or [(question, _NOT_ANSWERED) for question in options or [""]]
    for question, answer in pairs:
        yield "answer", clean(question), clean(answer), options.get(question, [])


def _question(asked: object) -> tuple[str, list[str]]:
    """A question with the labels that it offers."""
    if not isinstance(asked, dict):
        return "", []
    options = asked.get("options")
    labels = [words(one.get("label")) for one in options if isinstance(one, dict)] if isinstance(options, list) else []
    return words(asked.get("question")), labels


def is_declined(record: Record, tool: str) -> bool:
    """Whether the client says in a field of the record that a person declined the call.

    Where a record has neither `toolDenialKind` nor `permissionDecision`, `toolUseResult` says so, where the error of an
    MCP server stands, too: of its tools, and where the tool is unknown, it is not believed. A shell's error begins with
    its exit status there.
    """
    if was_not_asked(record):
        return False
    if "userFeedback" in record:
        return True
    permission = object_in(record, "permissionDecision")
    if "toolDenialKind" in record:
        return words(record["toolDenialKind"]) == "user-rejected"
    if "decision" in permission:
        return words(permission["decision"]) == "reject"
    told = record.get("toolUseResult")
    if not isinstance(told, str) or not tool or tool.startswith("mcp__"):
        return False
    return told == "User rejected tool use" or told.startswith(f"Error: {DECLINED}")


def was_not_asked(record: Record) -> bool:
    """Whether a rule or a hook decided about a call, as the `source` says. Where nobody was there to be asked, it is
    `config`, though `toolDenialKind` is that of a person's refusal.
    """
    return object_in(record, "permissionDecision").get("source") in ("config", "hook")


def origin_of(record: Record) -> str:
    """The kind of sender that a record or an attachment names, "" where it names none."""
    return words(object_in(record, "origin").get("kind"))
