"""The section of the loop's prompts that says how earlier runs are read, and its marks: how it gets in and out."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

from ralf.briefing.standing import BEGIN, END
from ralf_integrations import texts
from ralf_integrations.clients.jsontext import Insertion

_BROKEN = " together with the line break before it"
_SECTION = re.compile(
    rf"(?:\r?\n)?(?:{re.escape(BEGIN.format(''))}|\r?\n{re.escape(BEGIN.format(_BROKEN))}).*?{re.escape(END)}(?:\r?\n)?",
    re.S,
)

_START = re.compile(r"`([^`\n]+) start`")


def section(script: Path, *, broken: bool = False) -> str:
    """The section, between its marks; `broken`: it stands behind a line that had no end."""
    words = texts.text("loop.md").replace("$RALF", shlex.quote(str(script)))
    return f"{BEGIN.format(_BROKEN if broken else '')}\n{words}{END}\n"


def insertions(text: str, script: Path) -> list[Insertion]:
    """What adds the section at the end of a prompt that does not hold it, with the line ends that the prompt has."""
    broken = bool(text) and not text.endswith("\n")
    between = "" if not text else "\n\n" if broken else "\n"
    added = between + section(script, broken=broken)
    return [Insertion(len(text), added.replace("\n", "\r\n") if "\r\n" in text else added)]


def holds(text: str, script: Path) -> bool:
    """Whether the section stands in a prompt as this version writes it for the script, and once."""
    plain = text.replace("\r\n", "\n")
    ours = any(section(script, broken=broken) in plain for broken in (False, True))
    return ours and len(_SECTION.findall(text)) == 1


def script_in(text: str) -> Path | None:
    """The script that the section of a prompt names, of whatever version; None for none."""
    found = _SECTION.search(text)
    named = _START.search(found[0]) if found is not None else None
    with suppress(ValueError):  # somebody has edited it
        words = shlex.split(named[1]) if named is not None else []
        return Path(words[0]) if len(words) == 1 else None
    return None


def stripped(text: str) -> str:
    """A prompt without the section, of whatever version."""
    return _SECTION.sub("", text)


def has(text: str) -> bool:
    """Whether a prompt holds the section of any version."""
    return _SECTION.search(text) is not None
