"""Notices to a session: they wait in its stream `inbox/SLUG` of the store, and its next hook hands them over.

A notice is delivered by a record that says so, appended where nobody has appended meanwhile. `take` appends it at once:
of two callers one gets the notice. Who can be killed before it has passed a notice on reads what is `waiting`, and
calls `deliver` afterwards.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ralf.errors import Busy, Conflict, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage.journal import MALFORMED, Entry, Token
from ralf.text import cleaning
from ralf.text.cleaning import clean, fenced, one_line, shown, trimmed
from ralf.text.digests import sha256
from ralf.text.frozen import dataclass

LONGEST = 8_000
"""Characters that a notice has at most: with its fence it fits what a hook may answer."""

_PREFIX = "inbox/"
_ID, _SHORT = "notice-", 8  # how ids begin, and how many characters behind that tell two notices apart
_VERSION = 1
_LONGEST_NAME = 100  # characters of a session's or sender's name
_MOST_TRIES = 100  # each means that another sender or hook has got on
_NO_TAG = str.maketrans("()", "  ")  # a name says nothing of who gives it
_HEAD = "Notices to this session that were waiting:\n"


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice.

    id      unique in its inbox
    sent    ISO 8601
    sender  who sent it, in a few words that it gives itself
    text    what it says, redacted
    by      who that is: `user`, `agent`, or "" for ralf itself
    """

    id: str
    sent: str
    sender: str
    text: str
    by: str = ""

    @property
    def origin(self) -> str:
        """Who sent it, in words: its own name of itself, and whether that is a person or an agent."""
        name = one_line(self.sender).translate(_NO_TAG) or "unknown"
        return f"{name} ({self.by})" if self.by else name


def stream_of(session: str) -> str:
    """The name of a session's inbox; the session's id is any text."""
    return f"{_PREFIX}{cleaning.slug(session)}"


def send(project: Project, session: str, text: str, *, sender: str, by: str = "agent", key: str = "") -> str:
    """Leave a notice to a session, and return its id; durable when this returns.

    session  the client's id of it; whether anybody has ever seen it does not matter
    text     at most `LONGEST` characters
    by       as in `Notice`
    key      a notice of the same key to the same session is left once, whoever sends it and how often

    Raises UsageError (no session, nothing said, too much said), Busy, OSError.
    """
    if not session.strip():
        raise UsageError("inbox", "a notice needs a session", "ralf status --all")
    redacted = redactor_for(project).text
    said = redacted(clean(text).strip())
    if not said:
        raise UsageError(_named(session), "a notice needs words", "ralf send SESSIONTEXT")
    if len(said) > LONGEST:
        what = f"{len(said):,} characters are too long for a notice: at most {LONGEST:,}"
        raise UsageError(_named(session), what, "put it into a file, and name the file in the notice")
    digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    id_ = f"{_ID}{digest if key else uuid.uuid4().hex}"
    record = {
        "session": redacted(_named(session)),
        "sender": redacted(trimmed(one_line(clean(sender)), _LONGEST_NAME)),
        "text": said,
        "by": by,
    }
    project.prepare()
    for _ in range(_MOST_TRIES):
        try:
            _append(project, session, "notice", record, id_, project.store.head(stream_of(session)))
        except Conflict:
            continue
        return id_
    raise _busy(session)


def take(project: Project, session: str, limit: int) -> list[Notice]:
    """The oldest notices that wait whose text (`rendered`) has at most `limit` characters, as JavaScript counts them;
    no other call returns them again. [] for none; what does not fit waits on.

    Raises DamagedJournal, Busy, OSError: then none was taken.
    """
    return _delivered(project, session, lambda all_: fitting(all_, limit))


def deliver(project: Project, session: str, notices: Iterable[Notice]) -> None:
    """Say that notices were handed over; those that wait no longer are passed over. Raises what `take` does."""
    ids = {notice.id for notice in notices}
    _delivered(project, session, lambda all_: [notice for notice in all_ if notice.id in ids])


def _delivered(project: Project, session: str, chosen: Callable[[Sequence[Notice]], list[Notice]]) -> list[Notice]:
    """The notices that are chosen of those that wait, when a record says that they are delivered."""
    for _ in range(_MOST_TRIES):
        entries = _entries(project, session)
        found = chosen(_waiting(entries))
        if not found:
            return []
        record = {"delivered": [notice.id for notice in found]}
        try:
            _append(project, session, "delivered", record, f"delivered-{uuid.uuid4().hex}", entries[-1].token)
        except Conflict:
            continue
        return found
    raise _busy(session)


def waiting(project: Project, session: str) -> list[Notice]:
    """The notices that wait for a session, oldest first; they go on waiting. DamagedJournal, OSError."""
    return _waiting(_entries(project, session))


def rendered(notices: Sequence[Notice]) -> str:
    """Notices as they are handed over: in the fence that says that they are data; "" for none."""
    if not notices:
        return ""
    return fenced(shown(_HEAD + listed(notices)))


def listed(notices: Iterable[Notice]) -> str:
    """Notices, each with who sent it on a line before its words, which are indented: they begin no other one."""
    return "".join(map(_rendered, notices))


def _rendered(notice: Notice) -> str:
    text = "".join(f"  {line}".rstrip() + "\n" for line in notice.text.split("\n"))
    short = notice.id.removeprefix(_ID)[:_SHORT]
    return f"- from {notice.origin}, {notice.sent} ({short}):\n{text}"


def fitting(notices: Iterable[Notice], limit: int) -> list[Notice]:
    """The first notices whose text (`rendered`) has at most `limit` characters, as JavaScript counts them."""
    found: list[Notice] = []
    for notice in notices:
        if len(rendered([*found, notice]).encode("utf-16-le", "surrogatepass")) > 2 * limit:
            break
        found.append(notice)
    return found


def _waiting(entries: Iterable[Entry]) -> list[Notice]:
    """The notices that no record says to be delivered; a record that makes no sense is passed over."""
    notices: dict[str, Notice] = {}
    for entry in entries:
        try:
            record = json.loads(entry.record)
            delivered = [*record.get("delivered", ())]
        except MALFORMED:
            continue
        if record.get("kind") == "notice":
            notice = Notice(entry.id, *(str(record.get(key, "")) for key in ("at", "sender", "text", "by")))
            notices.setdefault(entry.id, notice)
        elif record.get("kind") == "delivered":
            for one in delivered:
                notices.pop(str(one), None)
    return list(notices.values())


def _entries(project: Project, session: str) -> list[Entry]:
    """The records of a session's inbox; none are there, and nothing is made, where nobody has written to it."""
    stream = stream_of(session)
    return list(project.store.read(stream)) if project.store.head(stream) is not None else []


def _append(
    project: Project, session: str, kind: str, record: Mapping[str, Any], id_: str, after: Token | None
) -> Token:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = json.dumps({"v": _VERSION, "kind": kind, "at": at, **record}, ensure_ascii=False, separators=(",", ":"))
    return project.store.append(stream_of(session), line.encode(), id=id_, after=after)


def _named(session: str) -> str:
    return trimmed(one_line(clean(session)), _LONGEST_NAME)


def _busy(session: str) -> Busy:
    return Busy(_named(session), "others use its inbox as fast as it is read", "try again")
