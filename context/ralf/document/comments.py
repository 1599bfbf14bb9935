"""Comments in front matter, which YAML's loaders drop: each is found by the key above which it is written again.

One above or behind a top-level key stays there; one further inside moves above the key that it is in, and says which
line it was about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

# Possessive: else every character of a long scalar is kept on a stack.
_QUOTED = regex(
    r"""(?<![^\s\[{,])(?:"(?:[^"\\]|\\.|\\\n)*+"|'(?:[^']|'')*+')(?=[\s:,\]}]|\Z)|(?P<comment>(?<!\S)#[^\n]*)"""
)

_BLOCK = regex(r"((?: *- +)*+ *)([^\s#].*?: +)?[|>][-+0-9]*[ \t]*(?:#.*)?\Z")

_KEY = regex(r"(?m)^([^\s#,\]}\-][^\n]*?) *:(?=\s|\Z)")

_ABOUT = 80  # characters of the line that a comment was about


def found(front: str, ours: str = "") -> dict[str, str]:
    """The comments of front matter that can be loaded, by the top-level key above which they belong, "" for the end.

    ours  a comment that is no person's: it is left out
    """
    if "#" not in front:
        return {}
    bare = _QUOTED.sub(lambda match: match[0] if match["comment"] else _blank(match[0]), _without_blocks(front))
    if "#" not in bare:
        return {}
    keys = [(match.start(), _name(front[match.start() : match.end(1)])) for match in _KEY.finditer(bare)]
    comments: dict[str, list[str]] = {}
    for match in (one for one in _QUOTED.finditer(bare) if one["comment"]):
        said, place = clean(front[match.start() : match.end()]).rstrip(), match.start()
        begin = bare.rfind("\n", 0, place) + 1
        if said == ours:
            continue
        if place == begin:
            key = next((name for at, name in keys if at > place), "")
        else:
            at, key = max(((at, name) for at, name in keys if at <= place), default=(-1, ""))
            own = front[begin:place].strip()
            if (about := own if at != begin else "") or (not own and (about := _line_below(front, place))):
                said = f"{said} ← {_shown(about)}"
        comments.setdefault(key, []).append(said)
    return {key: "\n".join(said) for key, said in comments.items()}


def lines_of(comments: Mapping[str, str], key: str) -> Iterable[str]:
    """The lines of the comment above a key; nothing else than a comment, whatever the text is."""
    for line in clean(comments.get(key, "")).split("\n"):
        if line.strip():
            yield line if line.startswith("#") else f"# {line}"


def _without_blocks(front: str) -> str:
    """Front matter with spaces for the text of block scalars."""
    found, inside = list[str](), -1
    for line in front.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if inside >= 0 and (not line.strip() or indent >= inside):
            found.append(" " * len(line))
            continue
        match = _BLOCK.match(line)
        inside = -1
        if match is not None:
            inside = len(match[1]) + 1 if match[2] else len(match[1].rstrip())
        found.append(line)
    return "\n".join(found)


def _blank(text: str) -> str:
    return "\n".join("_" * len(line) for line in text.split("\n"))


def _name(raw: str) -> str:
    if raw[:1] not in "\"'":
        return raw
    from ralf.document import guarded_yaml  # the parser: only a key in quotes needs it

    return next(iter(guarded_yaml.load(f"{raw}: x")))


def _line_below(front: str, place: int) -> str:
    lines = (line.strip() for line in front[place:].split("\n")[1:])
    return next((line for line in lines if line and not line.startswith("#")), "")


def _shown(about: str) -> str:
    return trimmed(one_line(about).removeprefix("- "), _ABOUT)
