"""Tells what an answered call did outside the project's files: what it posted or created for people, and renamed."""

from __future__ import annotations

from itertools import pairwise

from ralf.facts.commands import Simple, command_text, is_shell, simple_commands
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex
from ralf.text.sentences import plain
from ralf.transcripts.events import Event

_WORDS = 90  # characters of what was posted

_KINDS = {"pr": "pull request", "issue": "issue"}

_VERBS = {"comment": "commented on", "create": "created", "close": "closed", "merge": "merged", "review": "reviewed"}

_SAYS = ("--body", "-b", "--title", "-t", "--message", "-m")

_NUMBER = regex(r"/(?:pull|issues|merge_requests)/(\d{1,9})\b")

_ESCAPED = regex(r"\\([`\"$\\])")

_TICKET = regex(r"\b[A-Z]{2,10}-\d{1,7}\b")

_TOOL = regex(
    r"(?:^|_)(create|add|save|post|reply_to|reply|update|close)_(?:an?_)?(?:new_)?"
    r"(issue|comment|ticket|pull_request|merge_request|page|task|review)(?:_comment|s)?$"
)

_DID = {"save": "wrote", "reply": "replied to", "reply_to": "replied to", "close": "closed"}


def deeds(call: Event, result: Event) -> list[str]:
    """What a call that went through did so, each in a few words: "commented on pull request #91: add `Type()`"."""
    if is_shell(call.tool):
        command = command_text(call.input)
        if not ("gh " in command or "git branch" in command):
            return []
        return [told for one in simple_commands(command) if (told := _of_command(one, command, result.text))]
    told = _of_tool(call, result.text)
    return [told] if told else []


def _of_command(simple: Simple, command: str, output: str) -> str:
    words = simple.words
    if words[:2] == ("git", "branch") and len(words) == 5 and words[2] in ("-m", "-M", "--move"):
        return f"renamed branch {words[3]} to {words[4]}"
    if words[:1] != ("gh",) or len(words) < 3 or words[1] not in _KINDS or words[2] not in _VERBS:
        return ""
    named = next((word.lstrip("#") for word in words[3:4] if word.lstrip("#").isdecimal()), "")
    found = _NUMBER.search(output)
    number = named or (found[1] if found else "")
    said = simple.document or next((two for one, two in pairwise(words) if one in _SAYS), "")
    if said.startswith("$(") or not said:
        _, _, said = command.partition("EOF'\n")
    return _told(_VERBS[words[2]], _KINDS[words[1]], f"#{number}" if number else "", said)


def _of_tool(call: Event, output: str) -> str:
    match = _TOOL.search(call.tool.lower().replace("-", "_"))
    if match is None:
        return ""
    given = {key.lower(): value for key, value in call.input.items() if isinstance(value, str)}
    said = next((given[key] for key in ("title", "name", "body", "content", "text") if given.get(key)), "")
    place = next((given[key] for key in ("issueid", "issue_id", "issue", "id", "number") if given.get(key)), "")
    verb, kind = match[1], match[2].replace("_", " ")
    if kind == "comment":
        return _told("commented on", "", place, said)
    created = _TICKET.search(output) if verb == "create" else None
    return _told(_DID.get(verb, f"{verb.rstrip('e')}ed"), kind, created[0] if created else place, said)


def _told(verb: str, kind: str, name: str, said: str) -> str:
    """A deed in words; "" where neither a name nor what was said is known."""
    lines = [line.strip(" #>*-") for line in said.split("\n")]
    lines = [_ESCAPED.sub(r"\1", line) for line in lines]
    first = plain(one_line(next((line for line in lines if len(line.split()) > 1), "")))
    what = " ".join(filter(None, (verb, kind, name)))
    if not (first or name):
        return ""
    return f"{what}: {trimmed(first, _WORDS)}" if first else what
