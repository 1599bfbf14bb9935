"""The tags in which a client puts its own text into a person's message, and how far such text goes.

What stands between two tags may be anybody's: output of a command, a file, another agent's message. It can hold the
closing tag, so a block goes to the last closing tag of its name: the client writes that one after all content.
"""

from __future__ import annotations

import re

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
_MEMORY = r"(?s)<user-memory-input>(.*?)</user-memory-input>"


def outside_tags(text: str) -> str:
    """The words of a text that stand in no client's tag, "" where the text is the client's.

    A block around a person's words goes from its tag to the last closing tag of that name, or, where the text begins
    with it and it is never closed, to the end. Such a tag that is only mentioned is the person's word.
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
    rest = "".join([*kept, text[at:]]).strip()
    return "" if re.match(_IS_ALONE, rest) else rest


def command(text: str) -> str | None:
    """A slash command as it was typed, `/name arguments`: "" for one without arguments, None for any other text.

    Neither a name nor the arguments go beyond their first closing tag.
    """
    if not text.startswith("<"):
        return None
    memory = re.match(_MEMORY, text)
    if memory:
        return memory[1].strip()
    if not re.match(_COMMAND, text):
        return None
    called = re.match(_CALLED, text)
    name = re.search(_NAME, called[0]) if called else None
    given = re.match(_ARGUMENTS, text[called.end() :]) if called else None
    words = given[1].strip() if given else ""
    return f"/{name[1]} {words}" if name and words else ""


def expands(text: str) -> bool:
    """Whether a text is a slash command that the client follows with the command's own prompt, as a text of its own."""
    return text.lstrip().startswith(_EXPANDED)
