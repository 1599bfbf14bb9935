"""What a prompt asks for of our notes: a route by its name, or to go on with what was left. Precise rather than eager:
a brief that nobody asked for costs the agent its window.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ralf import command, names
from ralf_integrations.hooks import phrases

Kind = Literal["load", "named", "continue", ""]

_READ = 20_000  # characters of a prompt
_CLOSE, _CLEARLY = 0.84, 0.06  # how like a name words must be, and how much more than any other
_SHORTEST_CLOSE = 5
_MOST_COMPARED = 5_000  # pairs of words and names of like length and the same numbers
_BEFORE = 40  # characters before a word in which a sign of a name may stand

NO_REQUEST = ("/", "<", "!", "#")
"""How prompts begin that ask the client, or that the client has written."""

_LOAD = re.compile(r"(?<![\w-])--load-context(?:([ =]+)[`'\"]?([^\s`'\",;]+))?")
_TOKEN = re.compile(r"[A-Za-z0-9][\w./-]*[A-Za-z0-9]|[A-Za-z0-9]")
_FLAT = re.compile(r"[-_./\s]+")
_NUMBER = re.compile(r"\d+")
_SHAPE = re.compile(r"[A-Za-z0-9][-_.][A-Za-z0-9]|\d")
_BEFORE_PATHS, _AFTER_PATHS = frozenset("/@-\\#="), frozenset("/@\\(")
_MOST_STARTS, _MOST_WORDS = 400, 8
_CUE = re.compile(
    r"(?:\broutes?|\bcontext (?:of|for)|\bresume|\bcontinue(?: with| on)?|\b(?:carry|go) on with)\s+(?:the\s+)?\Z",
    re.I,
)
_QUOTES = "`'\"\u201c\u201d\u2018\u2019\xab\xbb"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for.

    kind    load: `--load-context`; named: a route is named in passing; continue: to go on; "": nothing
    route   the route that is named, "" where none is
    other   load: what stands for a route and names none
    about   continue: the words for the work that is meant, "" where none say it
    """

    kind: Kind = ""
    route: str = ""
    other: str = ""
    about: str = ""


def read(prompt: str, routes: Sequence[str]) -> Wish:
    """What a prompt asks for, given the names of all routes."""
    text, names_ = prompt[:_READ], _Names(routes)
    if found := _LOAD.search(text):
        word = (found[2] or "").rstrip(".,;:!?)")
        route = names_.exact(word) or names_.like([word])
        names_one = _is_shaped(word) or "=" in (found[1] or "")
        return Wish("load", route, word if not route and names_one else "")
    if route := _named(text, names_):
        return Wish("named", route)
    goes_on, about = phrases.goes_on(text)
    return Wish("continue", about=about) if goes_on else Wish()


def is_request(prompt: str) -> bool:
    """Whether a prompt asks for work and says for what: it is not for the client, nor for ralf, nor written by the
    client, nor a wish to go on, nor a greeting.
    """
    if prompt.lstrip().startswith(NO_REQUEST) or command.is_all(prompt):
        return False
    return not read(prompt, ()).kind and phrases.names_subject(prompt)


class _Names:
    """The names of all routes, to look words up in."""

    def __init__(self, routes: Sequence[str]) -> None:
        self._all = frozenset(routes)
        self._folded: dict[str, list[str]] = {}
        self._flat: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for route in routes:
            self._folded.setdefault(route.casefold(), []).append(route)
            flat = _flattened(route)
            self._flat.setdefault(tuple(_NUMBER.findall(flat)), []).append((flat, route))

    def exact(self, word: str) -> str:
        """The route of this name, or of the branch of this name; case counts only between names that differ in it."""
        if word in self._all:
            return word
        found = self._folded.get(word.casefold(), [])
        if not found and "/" in word and (slug := names.slug(word)) in self._all:
            return slug
        return found[0] if len(found) == 1 else ""

    def like(self, words: Iterable[str]) -> str:
        """The one route that is surely meant by words that are like its name, "" for none, or more than one."""
        best: dict[str, float] = {}
        compared = 0
        for word in dict.fromkeys(map(_flattened, words)):
            if len(word) < _SHORTEST_CLOSE:
                continue
            matcher = difflib.SequenceMatcher(None, "", word, autojunk=False)
            for flat, route in self._flat.get(tuple(_NUMBER.findall(word)), ()):
                if (
                    abs(len(flat) - len(word)) <= max(2, len(flat) // 5)
                    and (compared := compared + 1) <= _MOST_COMPARED
                ):
                    matcher.set_seq1(flat)
                    if matcher.quick_ratio() >= _CLOSE and (ratio := matcher.ratio()) >= _CLOSE:
                        best[route] = max(best.get(route, 0.0), ratio)
        ranked = sorted(best.items(), key=lambda found: -found[1])
        if not ranked or (len(ranked) > 1 and ranked[0][1] - ranked[1][1] < _CLEARLY):
            return ""
        return ranked[0][0]


def _flattened(name: str) -> str:
    return _FLAT.sub("-", name.casefold())


def _named(text: str, routes: _Names) -> str:
    """The one route that a prompt names; "" for none, and for several."""
    tokens = list(_TOKEN.finditer(text))
    exact = {route for token in tokens if (route := routes.exact(token[0])) and _means(route, token, text)}
    if exact:
        return exact.pop() if len(exact) == 1 else ""
    words = [token[0] for token in tokens if _is_shaped(token[0]) and not _is_path(token, text)]
    words += [token[0] for token in tokens if _is_cued(token, text)]
    return routes.like([*words, *_phrases(tokens, text)])


def _means(route: str, token: re.Match[str], text: str) -> bool:
    """Whether a token that is a route's name is meant as one: a name that is a plain word needs a sign of it."""
    if _is_path(token, text) and "/" not in token[0]:
        return False
    if _is_shaped(route):
        return True
    around = text[token.start() - 1 : token.start()], text[token.end() : token.end() + 1]
    return all(sign and sign in _QUOTES for sign in around) or text.strip() == token[0] or _is_cued(token, text)


def _is_cued(token: re.Match[str], text: str) -> bool:
    return bool(_CUE.search(text[max(0, token.start() - _BEFORE) : token.start()]))


def _is_shaped(word: str) -> bool:
    """Whether a word has a form that names have and words of a language do not."""
    return len(word) >= 3 and bool(_SHAPE.search(word)) and not word.isdecimal()


def _is_path(token: re.Match[str], text: str) -> bool:
    """Whether a token is part of a path, an address or an option."""
    before, after = text[max(0, token.start() - 1) : token.start()], text[token.end() : token.end() + 1]
    return before in _BEFORE_PATHS or after in _AFTER_PATHS or "/" in token[0]


def _phrases(tokens: Sequence[re.Match[str]], text: str) -> Iterator[str]:
    """What is said in several words, as a name would join them: three or more, or two behind a sign of a name."""
    for first, token in enumerate(tokens[:_MOST_STARTS]):
        for count in range(2 if _is_cued(token, text) else 3, _MOST_WORDS + 1):
            found = tokens[first : first + count]
            between = text[token.start() : found[-1].end()]
            if len(found) < count or not between.replace(" ", "").replace("-", "").isalnum():
                break
            yield "-".join(match[0] for match in found)
