"""Keeps large results of tools outside of the conversation, and puts them back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Protocol

from ralf.conversation.messages import Message, changed, checked
from ralf.errors import NotFound
from ralf.text.patterns import regex

OVER = 8_000
"""Characters over which a result is kept outside."""

_REFERENCE = regex(r"\[Result stored at [^\s,\]/]{1,100}/(result-[0-9a-f]{16,64}(?:\.json)?), [0-9]{1,15} bytes\]")

_JSON = ".json"  # ends the key of a result that is no text


class Results(Protocol):
    """Where results are kept: a run of `ralf.agent`."""

    def external(self, key: str, blob: bytes) -> str:
        """Keep bytes and return the line that stands in their place."""

    def fetch(self, key: str) -> bytes:
        """The bytes that were kept under a key, or that a line stands for; NotFound."""


def store_results(messages: Sequence[Message], run: Results, *, over: int = OVER) -> list[Message]:
    """The messages with each tool's result of more than `over` characters kept with a run, and a line that refers to
    it in its place. `restore` puts them back byte for byte. Done again, it keeps nothing twice.

    A result that looks like such a line and is none is kept, too, whatever its length: `restore` gives it back. What
    JSON cannot hold stays where it is.
    """

    def stored(content: Any) -> Any:
        is_text = isinstance(content, str)
        try:
            text = content if is_text else json.dumps(content, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return content
        if len(text) <= over and not (is_text and _only_looks_like_one(text, run)):
            return content
        blob = text.encode("utf-8", "surrogatepass")
        name = f"result-{hashlib.sha256(blob).hexdigest()[:16]}"
        return run.external(name if is_text else name + _JSON, blob)

    return [changed(message, str, stored) for message in checked(messages)]


def _only_looks_like_one(text: str, run: Results) -> bool:
    """Whether a text has the form of a line that refers to a result, and the run has no such result."""
    if _REFERENCE.fullmatch(text) is None:
        return False
    try:
        run.fetch(text)
    except NotFound:
        return True
    return False


def restore(messages: Sequence[Message], run: Results) -> list[Message]:
    """The messages with each result that is kept with a run put back into its place. NotFound for one that is gone."""

    def restored(content: Any) -> Any:
        found = _REFERENCE.fullmatch(content) if isinstance(content, str) else None
        if found is None:
            return content
        text = run.fetch(content).decode("utf-8", "surrogatepass")
        return json.loads(text) if found[1].endswith(_JSON) else text

    return [changed(message, str, restored) for message in checked(messages)]
