"""Notices to a session: they wait in its stream `inbox/SLUG` of the store, and its next hook hands them over.

A notice is delivered by a record that says so, appended where nobody has appended meanwhile: of two callers of `take`
one gets it. Who can be killed before it has passed a notice on reads what is `waiting`, and calls `deliver` afterwards.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from ralf.errors import Busy, Conflict, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage.journal import MALFORMED, Token
from ralf.text import cleaning
from ralf.text.cleaning import clean, fenced, one_line, shown, trimmed
from ralf.text.frozen import dataclass

LONGEST = 8_000
"""Characters that a notice has at most: with its fence it fits what a hook may answer."""

_ID, _SHORT = "notice-", 8  # how ids begin, and how many characters behind that tell two notices apart
_VERSION = 1
_LONGEST_NAME = 100  # characters of a session's or sender's name
_MOST_TRIES = 100  # each means that another sender or hook has got on
_NO_TAG = str.maketrans("()", "  ")  # a name says nothing of who gives it
_HEAD = "Notices to this session that were waiting:\n"


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice."""

    id: str  # unique in its inbox
    sent: str  # ISO 8601
    sender: str  # who sent it, in a few words that it gives itself
    text: str  # redacted
    by: str = ""  # who that is: `user`, `agent`, or "" for ralf itself


def stream_of(session: str) -> str:
    """The name of a session's inbox; the session's id is any text."""
    return f"inbox/{cleaning.slug(session)}"


def send(project: Project, session: str, text: str, *, sender: str, by: str = "agent") -> str:
    """Leave a notice of at most `LONGEST` characters to a session, which nobody need have seen yet; its id. Durable
    when this returns.

    Raises UsageError (no session, nothing said, too much said), Busy, OSError.
    """
    name = _name(session)
    if not name:
        raise UsageError("inbox", "a notice needs a session", "ralf status --all")
    redacted = redactor_for(project).text
    said = redacted(clean(text).strip())
    if not said:
        raise UsageError(name, "a notice needs words", "ralf send SESSION TEXT")
    if len(said) > LONGEST:
        what = f"{len(said):,} characters are too long for a notice: at most {LONGEST:,}"
        raise UsageError(name, what, "put it into a file, and name the file in the notice")
    id_ = f"{_ID}{uuid.uuid4().hex}"
    project.prepare()
    for _ in range(_MOST_TRIES):
        head = project.store.head(stream_of(session))
        record = {"session": redacted(name), "sender": redacted(_name(sender)), "text": said, "by": by}
        if _appended(project, session, "notice", record, id_, head):
            return id_
    raise _busy(session)


def take(project: Project, session: str, limit: int) -> list[Notice]:
    """The oldest notices that wait and fit (`fitting`); no other call returns them again.

    Raises DamagedJournal, Busy, OSError: then none was taken.
    """
    return _delivered(project, session, lambda all_: fitting(all_, limit))


def deliver(project: Project, session: str, notices: Iterable[Notice]) -> None:
    """Say that notices were handed over; those that wait no longer are passed over. Raises what `take` does."""
    ids = {notice.id for notice in notices}
    _delivered(project, session, lambda all_: [notice for notice in all_ if notice.id in ids])


def waiting(project: Project, session: str) -> list[Notice]:
    """The notices that wait for a session, oldest first; they go on waiting. DamagedJournal, OSError."""
    return _waiting(project, session)[0]


def rendered(notices: Sequence[Notice]) -> str:
    """Notices as they are handed over: in the fence that says that they are data; "" for none."""
    return fenced(shown(_HEAD + listed(notices))) if notices else ""


def listed(notices: Iterable[Notice]) -> str:
    """Notices, each with who sent it on a line before its words, which are indented: they begin no other one."""
    return "".join(map(_listed, notices))


def fitting(notices: Iterable[Notice], limit: int) -> list[Notice]:
    """The first notices whose text (`rendered`) has at most `limit` characters, as JavaScript counts them."""
    found: list[Notice] = []
    for notice in notices:
        if len(rendered([*found, notice]).encode("utf-16-le", "surrogatepass")) > 2 * limit:
            break
        found.append(notice)
    return found


def _listed(notice: Notice) -> str:
    name = one_line(notice.sender).translate(_NO_TAG) or "unknown"
    origin = f"{name} ({notice.by})" if notice.by else name
    text = "".join(f"  {line}".rstrip() + "\n" for line in notice.text.split("\n"))
    return f"- from {origin}, {notice.sent} ({notice.id.removeprefix(_ID)[:_SHORT]}):\n{text}"


def _delivered(project: Project, session: str, chosen: Callable[[Sequence[Notice]], list[Notice]]) -> list[Notice]:
    """The notices that are chosen of those that wait, when a record says that they are delivered."""
    for _ in range(_MOST_TRIES):
        waits, head = _waiting(project, session)
        found = chosen(waits)
        record = {"delivered": [notice.id for notice in found]}
        if not found or _appended(project, session, "delivered", record, f"delivered-{uuid.uuid4().hex}", head):
            return found
    raise _busy(session)


def _waiting(project: Project, session: str) -> tuple[list[Notice], Token | None]:
    """The notices that no record says to be delivered, and the place of the newest record; a record that makes no
    sense is passed over. Nothing is made where nobody has written to the inbox.
    """
    notices: dict[str, Notice] = {}
    stream, last = stream_of(session), None
    for entry in project.store.read(stream) if project.store.head(stream) is not None else ():
        last = entry.token
        try:
            record = json.loads(entry.record)
            kind, delivered = record.get("kind"), [*record.get("delivered", ())]
        except MALFORMED:
            continue
        if kind == "notice":
            texts = (str(record.get(key, "")) for key in ("at", "sender", "text", "by"))
            notices.setdefault(entry.id, Notice(entry.id, *texts))
        elif kind == "delivered":
            for one in delivered:
                notices.pop(str(one), None)
    return list(notices.values()), last


def _appended(project: Project, session: str, kind: str, record: dict[str, Any], id_: str, after: Token | None) -> bool:
    """Append a record; whether nobody else had appended meanwhile."""
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = json.dumps({"v": _VERSION, "kind": kind, "at": at, **record}, ensure_ascii=False, separators=(",", ":"))
    try:
        project.store.append(stream_of(session), line.encode(), id=id_, after=after)
    except Conflict:
        return False
    return True


def _name(text: str) -> str:
    return trimmed(one_line(clean(text)), _LONGEST_NAME)


def _busy(session: str) -> Busy:
    return Busy(_name(session), "others use its inbox as fast as it is read", "try again")
