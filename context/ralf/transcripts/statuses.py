"""The exit status that a command's answer tells in its own text or record, where the log has no field for failures."""

from __future__ import annotations

import re

from ralf.transcripts.content import Record

_LONGEST = 300  # characters of a line that may tell a status
_NUMBER = r"[ \t]{0,2}[:=]?[ \t]{0,2}(-?\d{1,5})\b"
_TELLS = re.compile(
    r"[\W_]{0,3}(?:error[: ]{1,2})?(?:(?:the )?(?:process|command|shell|script|program)\b[ :]{0,2})?"
    r"(?:(?:finished|exited|failed|completed|terminated|returned|ended)[ :]{1,2})?(?:with )?(?:a )?(?:non-?zero )?"
    r"(?:returncode>?|return code|(?:exit|return)[ _-]?(?:code|status)>?|(?<=exited )(?:with )?(?:code|status)"
    rf"|(?<=with )(?:code|status)){_NUMBER}",
    re.I,
)
_RAISED = r"(?:<exception>.{0,2000}?</exception>\s{0,4})?"
_EXCEPTION = re.compile(_RAISED, re.S)
_OBSERVATION = re.compile(rf"\s{{0,4}}{_RAISED}<returncode>-?\d{{1,5}}</returncode>", re.S)
_KEYS = ("returncode", "exit_code", "exitCode", "exit_status")


def status_of(text: str, record: Record) -> int | None:
    """The exit status that an answer tells: in a field of its record, in its first line, or in its last one."""
    holders = [record, *(record[key] for key in ("extra", "metadata") if isinstance(record.get(key), dict))]
    told = [holder.get(key) for holder in holders for key in _KEYS]
    if (field := next((one for one in told if isinstance(one, int) and not isinstance(one, bool)), None)) is not None:
        return field
    text = text.strip()
    raised = _EXCEPTION.match(text)
    first = text[raised.end() if raised else 0 :].partition("\n")[0]
    for line in (first, text.rpartition("\n")[2]):
        if len(line) <= _LONGEST and (found := _TELLS.match(line.strip())):
            return int(found[1])
    return None


def is_observation(text: str) -> bool:
    """Whether a text is how mini-swe-agent shows the answer of a command."""
    return _OBSERVATION.match(text) is not None
