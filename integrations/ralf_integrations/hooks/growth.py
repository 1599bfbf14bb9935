"""What a transcript has grown by, told without reading all of it again: tokens at the most, how full the window is.

`instant` asks it where a hint's bound is passed, in an interpreter that has loaded next to nothing (no `os`, `re`,
`json`, `typing`): it mirrors the texts of the two readers of lines, and rather counts one too many. What it does not
know for certain, a look finds.
"""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

FORMATS = ("", "claude-code", "codex")
"""Of transcripts; a hint names one by its number, 0 for any other."""

COMPLETING = ("TodoWrite", "TaskUpdate", "update_plan", "todowrite", "write_todos")
"""Tools that can say that all is done."""

FEWEST = 4096
"""Bytes by which a transcript grows at least between two looks."""
BYTES = 1.4
"""Bytes that a token takes in a transcript at least, on average: so few where it is all Base64."""

_MOST = 1 << 20  # bytes; a look is no slower for more
_CONTINUED = "This session is being continued from a previous conversation"
_FIGURES = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_NO_WORDS = ("type", "id", "call_id", "role", "status", "encrypted_content")  # of an item of Codex
_CODEX_ITEMS = ("reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_CODEX_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class Unsure(Exception):
    """Only a look can tell: no error."""


class Grown:
    """What whole lines of a transcript hold.

    place   bytes up to the end of the last of them
    tokens  estimated tokens of all texts that a look would count
    texts   how many these are
    fills   tokens in the client's window, each time that they were told
    """

    def __init__(self, place: int, window: int) -> None:
        self.place = place
        self._window = window
        self.tokens = 0
        self.texts = 0
        self.fills: list[int] = []
        self._ran: dict[str, int] = {}  # commands of Codex that an event tells of
        self._answered: set[str] = set()

    def count(self, text: str) -> None:
        """Take in a text."""
        if text:
            self.tokens += estimate(text)
            self.texts += 1

    # ---- Claude Code ----

    def claude_code(self, record: "dict[str, Any]") -> None:
        """Take in a record of Claude Code."""
        kind = record.get("type")
        message = record.get("message")
        if not isinstance(kind, str):
            raise Unsure
        if record.get("isSidechain") is True:
            return  # a sub-agent's counts for nothing
        if kind == "queue-operation":
            self._counted(record.get("content"))
        elif kind == "attachment":
            attachment = record.get("attachment")
            if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
                self._counted(attachment.get("prompt"))
        elif kind == "system" and record.get("subtype") == "compact_boundary":
            raise Unsure
        elif kind == "assistant" and isinstance(message, dict):
            if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
                return
            self._filled(message.get("usage"))
            self._blocks(message.get("content"), by_agent=True)
        elif kind == "user" and isinstance(message, dict):
            if record.get("isCompactSummary") is True:
                raise Unsure
            self._blocks(message.get("content"), by_agent=False)
            details = record.get("toolUseResult")
            if isinstance(details, dict) and not details.keys().isdisjoint(("agentId", "answers", "annotations")):
                self._counted(details)
            self._counted(record.get("userFeedback"))

    def _blocks(self, content: object, *, by_agent: bool) -> None:
        if isinstance(content, str):
            self._said(content, by_agent=by_agent)
        for block in content if isinstance(content, list) else ():
            if isinstance(block, str):
                self._said(block, by_agent=by_agent)
                continue
            kind = block.get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str):
                continue
            if kind == "text":
                self._said(block.get("text"), by_agent=by_agent)
            elif kind == "thinking":
                self._counted(block.get("thinking"))
            elif kind.endswith("tool_use"):
                given = block.get("input")
                command = given.get("command") if isinstance(given, dict) else None
                if block.get("name") in COMPLETING or (isinstance(command, str) and "task done" in command):
                    raise Unsure
                self._counted(given)
            elif kind.endswith("tool_result"):
                for _ in range(2 if block.get("is_error") is True else 1):  # a person's reason is a text of its own
                    self._texts(block.get("content"))

    def _said(self, text: object, *, by_agent: bool) -> None:
        if isinstance(text, str):
            if text.startswith(_CONTINUED) or (by_agent and "<promise>" in text):
                raise Unsure
            self.count(text)

    def _texts(self, content: object) -> None:
        """The text blocks of a content: images are none."""
        parts = content if isinstance(content, list) else [content]
        texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
        self.count("\n".join(text for text in texts if isinstance(text, str)))

    # ---- Codex ----

    def codex(self, record: "dict[str, Any]") -> None:
        """Take in a record of Codex."""
        kind, payload = record.get("type"), record.get("payload")
        if not isinstance(payload, dict) or kind == "compacted":
            raise Unsure
        inner = payload.get("type")
        if kind == "token_usage_record" or (kind == "event_msg" and inner == "token_count"):
            info = payload.get("info")
            self._has_room(info)
            usage = info.get("last_token_usage") if isinstance(info, dict) else payload.get("usage")
            self._filled(usage, "total_tokens")
        elif kind == "event_msg":
            self._told(inner, payload)
        elif kind == "response_item" and inner == "message" and payload.get("role") in ("user", "assistant"):
            self._blocks_of_codex(payload.get("content"), by_agent=payload.get("role") == "assistant")
        elif kind == "response_item" and inner in _CODEX_ITEMS:
            if payload.get("name") in COMPLETING:
                raise Unsure
            self._worded(payload)
        elif kind == "response_item" and inner in _CODEX_OUTPUTS:
            self._worded(payload)
            if "running" not in str(payload.get("output")):  # else it has no result before its end
                self._answered.add(str(payload.get("call_id")))

    def _blocks_of_codex(self, content: object, *, by_agent: bool) -> None:
        for block in content if isinstance(content, list) else (content,):
            self._said(block.get("text") if isinstance(block, dict) else block, by_agent=by_agent)

    def _told(self, inner: object, payload: "dict[str, Any]") -> None:
        item = payload.get("item")
        self._has_room(payload)
        what = item.get("type") if isinstance(item, dict) else inner
        if what in ("user_message", "UserMessage"):
            self._worded(payload)
        elif isinstance(item, dict) and what in ("CommandExecution", "FileChange"):
            before = self.tokens
            self._worded(item)
            found, self.tokens = self.tokens - before, before
            self._ran[str(item.get("id"))] = found

    def _has_room(self, info: object) -> None:
        """Take in how large the window is, where that is told."""
        told = info.get("model_context_window") if isinstance(info, dict) else None
        if told and told != self._window:
            raise Unsure  # its marks lie elsewhere

    def _worded(self, payload: "dict[str, Any]") -> None:
        for key, value in payload.items():
            if key not in _NO_WORDS:
                self._counted(value)

    # ---- both ----

    def _counted(self, value: object) -> None:
        """Every string and number in a value, one a line."""
        self.count("\n".join(_leaves(value)))

    def _filled(self, usage: object, total: str = "") -> None:
        """Take in how full the window is; `total`: the figure that says it by itself, where there is one."""
        if isinstance(usage, dict) and (
            told := _whole(usage.get(total)) or sum(_whole(usage.get(key)) for key in _FIGURES)
        ):
            self.fills.append(told)

    def end(self, place: int) -> None:
        """All lines were taken in."""
        self.place = place
        self.tokens += sum(size for ran, size in self._ran.items() if ran not in self._answered)


def grown(
    path: str, begin: int, end: int, *, what: str, window: int, parse: "Callable[[bytes], dict[str, Any]]"
) -> Grown:
    """What the whole lines between two places of a transcript hold.

    begin   the end of a line
    what    one of `FORMATS`
    window  tokens that the client's window has, as far as that was told
    parse   makes an object of a line; ValueError, TypeError for what is none

    Unsure, also where it is too much, and where the last line has no end; what `parse` raises; OSError.
    """
    if not 0 < begin <= end or end - begin > _MOST:
        raise Unsure
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    try:
        data = posix.pread(descriptor, end - begin + 1, begin - 1)
    finally:
        posix.close(descriptor)
    if data[:1] != b"\n" or data[-1:] != b"\n":
        raise Unsure
    found = Grown(begin, window)
    take = {"claude-code": found.claude_code, "codex": found.codex}.get(what)
    if take is None:
        raise Unsure
    for line in data.split(b"\n"):
        if line.strip():
            take(parse(line))
    found.end(begin - 1 + len(data))
    return found


def _leaves(value: object) -> "Iterator[str]":
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left.extend(reversed(item.values()))
        elif isinstance(item, list):
            left.extend(reversed(item))
        elif isinstance(item, (int, float)) and not isinstance(item, bool):
            yield str(item)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


# ---- the estimate ----

_LOWER, _UPPER, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
_SPACE = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_OF_BASE64 = b"+/=_-"
_TAILS = bytes(range(0x80, 0xC0))  # all but the first byte of a character that is not ASCII


def _classes() -> bytes:
    table = bytearray(b"p" * 128 + b"n" * 128)  # signs, and what is not ASCII
    for name, members in zip(b"aA0wq", (_LOWER, _UPPER, _DIGITS, _SPACE, _OF_BASE64), strict=True):
        for member in members:
            table[member] = name
    return bytes(table)


def _only(classes: bytes) -> bytes:
    """Each of these classes as it is, all else a space."""
    return bytes(one if one in classes else 32 for one in range(256))


_CLASSES = _classes()
_RUNS = tuple(map(_only, (b"a", b"A", b"0", b"W"))), bytes(112 if one in b"pq" else 32 for one in range(256))
_UNBROKEN = _only(b"aA0q")
_ANY_UNBROKEN = bytes(120 if one in b"aA0q" else 32 for one in range(256))
_LEAST_UNBROKEN = 48  # letters, digits and signs of Base64 in a row that may be no words


def estimate(text: str) -> int:
    """The tokens of a text, by an estimate that knows of what has no words, too, at some 35 MB/s: a token for each 12
    small letters (and a capital before them), 4 capitals, 3 digits, character that is not ASCII, run of signs and run
    of white space; of what is unbroken for long (Base64 and the like), one for each 1.4 bytes.
    """
    classes = text.encode("utf-8", "surrogatepass").translate(_CLASSES, _TAILS)
    found = _pieces(classes)
    if b"x" * _LEAST_UNBROKEN in classes.translate(_ANY_UNBROKEN):
        for run in classes.translate(_UNBROKEN).split():
            if len(run) >= _LEAST_UNBROKEN:
                found += max(0, -(-len(run) * 5 // 7) - _pieces(run))
    return found


def _pieces(classes: bytes) -> int:
    """How many pieces there are; a run that makes several is cut with a mark of no class."""
    cut = classes.replace(b"a" * 12, b"a|").replace(b"AAAA", b"A|").replace(b"000", b"0|").replace(b"ww", b"W")
    found = cut.count(b"n") + cut.count(b"AAa") - cut.count(b"Aa")  # one capital goes with what follows it
    runs, signs = _RUNS
    return found + sum(len(cut.translate(one).split()) for one in runs) + len(cut.translate(signs).split())
