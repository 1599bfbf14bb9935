"""Comments in front matter, which YAML's loaders drop: each is found by the key above which it is written again.

One above or behind a top-level key stays there; one further inside moves above the key that it is in, and says which
line it was about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter

from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

_COMMENT = regex(r"(?<!\S)#")

_ABOUT = 80  # characters of the line that a comment was about


def found(front: str) -> dict[str, str]:
    """The comments of front matter that can be loaded, by the top-level key above which they belong, "" for the end."""
    if "#" not in front:
        return {}
    from ralf.document import guarded_yaml  # the parser: most files have no comment

    lines, keys, comments = front.split("\n"), list[tuple[int, str]](), dict[str, list[str]]()
    bare = [*lines]  # without what the scalars hold
    for scalar in guarded_yaml.scalars(front):
        if scalar.top:
            keys.append((scalar.line, scalar.text))
        is_block = scalar.style in ("|", ">")  # behind its sign there may be a comment
        for number in range(scalar.line + is_block, scalar.last + 1):
            begin = scalar.column if number == scalar.line else 0
            end = scalar.end if number == scalar.last else len(lines[number])
            bare[number] = f"{bare[number][:begin]}{'_' * (end - begin)}{bare[number][end:]}"
    for number, line in enumerate(bare):
        if (match := _COMMENT.search(line)) is None:
            continue
        said, own = clean(lines[number][match.start() :]).rstrip(), lines[number][: match.start()].strip()
        if match.start():
            at, key = max(((at, name) for at, name in keys if at <= number), default=(-1, ""), key=itemgetter(0))
            below = (line.strip() for line in lines[number + 1 :])
            about = own if own else next((line for line in below if line and not line.startswith("#")), "")
            said += f" ← {trimmed(one_line(about).removeprefix('- '), _ABOUT)}" if about and at != number else ""
        else:
            key = next((name for at, name in keys if at > number), "")
        comments.setdefault(key, []).append(said)
    return {key: "\n".join(said) for key, said in comments.items()}


def lines_of(comments: Mapping[str, str], key: str) -> Iterable[str]:
    """The lines of the comment above a key; nothing else than a comment, whatever the text is."""
    for line in clean(comments.get(key, "")).split("\n"):
        if line.strip():
            yield line if line.startswith("#") else f"# {line}"
