"""A hook in a project whose store belongs to another user: it does nothing, and the person is told so once."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

from ralf import environment
from ralf.errors import OtherOwner
from ralf.files import folders
from ralf.files.opening import ours_alone
from ralf.text import clean, one_line
from ralf_integrations.hooks import answer as answers
from ralf_integrations.hooks.payload import Payload

_TOLD = "refused"  # folder of the user's own: an empty file for each project that they were told of
_LONGEST = 400  # characters of a line


def answer(error: OtherOwner, payload: Payload) -> str:
    """What is written to standard output, "" for nothing: the person was told before, or cannot be told."""
    folder = environment.user_folder()
    if folder is None or not answers.takes_notice(payload):
        return ""
    name = hashlib.sha256(os.fsencode(str(error.where))).hexdigest()[:32]
    with suppress(OSError):  # told before; or it cannot be remembered, and would be said again and again
        folders.make(folder / _TOLD)
        open(folder / _TOLD / name, "x", opener=ours_alone).close()
        line = f"ralf: hooks do nothing here: {error}; {error.hint}"
        return answers.written(answers.Answer(notice=one_line(clean(line))[:_LONGEST]), payload)
    return ""
