"""Which words of a Codex rollout a person typed, and which the client, a hook or ralf wrote in a person's name."""

from __future__ import annotations

import json
import re

from ralf.briefing.fence import outside
from ralf.briefing.standing import besides
from ralf.transcripts.content import Record, blocks, words

_BY_PERSON = "user.text"
"""The kind that newer versions give to the blocks that were typed."""

_REQUEST = "## My request for Codex:"
"""An editor's extension puts what is open before the words that were typed, and this line between the two: the last
such line, since what is open may hold one."""

_WRAPPED = re.compile(r"<([a-z][\w-]*)(?:\s[^<>]*)?>.*</\1>\s*\Z", re.S)
_OPENED = re.compile(
    r"<(?:environment_context|user_instructions|turn_aborted|user_shell_command|user_action|image)\b|</image>"
)
_MACHINE = (
    "# AGENTS.md instructions",
    "Another language model started to solve this problem",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "You have exceeded the maximum number of tokens",
)
_NOTE = "user_note: "


def in_message(payload: Record) -> str:
    """The words that a person typed of a `response_item` in the user's role, "" for none.

    Newer versions say of each block where it comes from. Of older ones what stands whole between two tags, or begins as
    the client's texts do, is taken for the client's: such versions record what was typed as an event, too (`in_event`).
    """
    passed = payload.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    texts = []
    for number, block in enumerate(blocks(payload.get("content"))):
        text = words(block.get("text"))
        if isinstance(kinds, list):
            if number < len(kinds) and kinds[number] == _BY_PERSON:
                texts.append(text)
        elif not _is_machine_written(text.strip()):
            texts.append(text)
    return _requested("\n".join(text for text in texts if text.strip()))


def in_event(payload: Record) -> str:
    """The words that a person typed as a `user_message` or `UserMessage` event tells them, "" for none."""
    if "item" in payload:
        item = payload["item"]
        content = item.get("content") if isinstance(item, dict) else None
        return _requested("\n".join(text for block in blocks(content) if (text := words(block.get("text"))).strip()))
    return _requested(words(payload.get("message"))) if payload.get("kind") in (None, "plain") else ""


def answered(asked: object, output: str) -> tuple[str, bool]:
    """What a person answered to `request_user_input`, each behind its question, a line each; whether one is secret.

    asked   the call's arguments
    output  the text of its output, JSON
    """
    try:
        given = json.loads(output)["answers"]
        questions = [dict(question) for question in asked["questions"]]  # type: ignore[index]
        answers = [(question, given[question["id"]]["answers"]) for question in questions if question["id"] in given]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", False
    lines, secret = [], False
    for question, said in answers:
        if question.get("isSecret") is True:
            secret = True
        elif isinstance(said, list) and (texts := [words(text).removeprefix(_NOTE) for text in said if words(text)]):
            lines.append(" ".join([words(question.get("question")), *texts]).strip())
    return "\n".join(lines), secret


def _requested(text: str) -> str:
    text = besides(outside(text)).strip()
    _, found, request = text.rpartition(_REQUEST) if text.startswith("# ") else ("", "", "")
    return request.strip() if found else text


def _is_machine_written(text: str) -> bool:
    if text.startswith("<"):
        return bool(_OPENED.match(text) or _WRAPPED.match(text))
    return text.startswith(_MACHINE)
