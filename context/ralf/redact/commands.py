"""Secrets in command lines and calls: what a program takes, by option, place, pipe or here-string, and what it prints.

A command is read into its words once, from the first word that a table knows on; the tables say which word is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache

from ralf.redact.engine import Hit, Rule, Text
from ralf.redact.names import finds, kind_of, stems_of
from ralf.redact.table import expression, rows, words
from ralf.redact.values import CHOSEN, ID, MIXED, RANDOM, WORD, is_phrase, is_placeholder, is_random, strength
from ralf.text.patterns import regex

# ---- what takes a secret ----


def _signed(options: Iterable[str]) -> dict[str, str]:
    """Options, each with the signs behind it that tell how it takes a secret."""
    return {name: option[len(name) :] for option in options for name in (option.rstrip("=:%,?"),)}


_OPTIONS = {name: _signed(its.split()) for programs, its in rows("programs") for name in programs.split()}
_ANY = _signed(words("options"))  # of any program
_OF_USER = dict.fromkeys(words("options-of-user"), "?")  # where another option names who logs in
_USERS, _VERBS, _TAKERS, _ALWAYS = (frozenset(words(name)) for name in ("users", "verbs", "takers", "hashers"))
_STARTS = frozenset(
    ["<<<", *(f"{program.lower()} " for program in (*_OPTIONS, *_TAKERS, "echo", "printf"))]
    + [f" {user.lower()}{sign}" for user in _USERS for sign in " ="]
)
_WORD = regex(
    expression(r"(?P<gap>%l++)") + r"|(?P<end><<<|[\n|;&]++|[<>()]++)"
    r"|(?P<word>(?:'[^'\n]*'|\"(?:[^\"\\\n]|\\.)*+\"|\\.|[^\s'\"\\|;&<>()])++)"
)
_HERE = regex(r"<<[-~]?[ ]?[\"']?\w{1,20}[\"']?[^\n]{0,80}\n[ \t]{0,20}(\S{6,512}+)[ \t\r]{0,20}\n")  # a here-document
_LONGEST_COMMAND, _NEAR, _LONG_ID = 2000, 150, 20
_HOST = regex(
    r"[\w.-]+:[0-9]{2,5}\Z|[\w.+-]+@[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*\Z|https?:"
    r"|[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.[a-z]{2,24}\Z"
)

Part = tuple[int, int, str]
"""A word of a command: where it begins and ends, without its quotes, and it."""


def _find(text: Text, there: Collection[str]) -> Iterator[Hit]:
    """The secrets of command lines, which a program takes, in no order; they may overlap."""
    read = 0
    for found in finds(_STARTS.intersection(there)).finditer(text.low):
        first = found.start()
        joined = bool(first) and (text.raw[first - 1].isalnum() or text.raw[first - 1] in "_.-")
        if first < read or (joined and found[0][0].isalnum()):
            continue
        parts, read = _words(text.raw, first)
        for start, end in _taken(text.raw, parts, first, read):
            if end - start > 1 and not is_placeholder(text.raw[start:end]):
                yield Hit(start, end, "password")


RULE = Rule(tuple(sorted(_STARTS)), _find)


def _words(text: str, start: int) -> tuple[list[Part], int]:
    """The words of a command up to what ends it, and where that is."""
    parts: list[Part] = []
    place, limit = start, min(len(text), start + _LONGEST_COMMAND)
    while (found := _WORD.match(text, place, limit)) is not None:
        if found["end"] is not None and found["end"] != "<<<":
            break
        place = found.end()
        if found["gap"] is None:
            parts.append(_unquoted(text, *found.span()))
            if text[place - 1] == "." and text[place - 2].isalpha():  # of a sentence, which no command has
                break
    return parts, max(place, start + 1)


def _unquoted(text: str, first: int, last: int) -> Part:
    if last - first > 1 and text[first] in "'\"" and text[last - 1] == text[first]:
        first, last = first + 1, last - 1
    return first, last, text[first:last]


def _taken(text: str, parts: list[Part], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of a command's secrets."""
    options, verb, taker, here = dict(_ANY), False, False, False
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    for number, (first, last, word) in enumerate(parts):
        name = word.rpartition("/")[2].removesuffix(".exe")
        options |= _OPTIONS.get(name, {})
        if word.partition("=")[0] in _USERS:
            options = _OF_USER | options
        taker = taker or name in _TAKERS
        following = parts[number + 1] if number + 1 < len(parts) else None
        if word == "<<<":
            if following is not None and not here:
                command = f"{before}{text[start:first]} {text[following[1] : following[1] + _NEAR]}"
                yield from _given(text, following, command)
            here = True
        elif (sign := options.get(word)) is not None:
            if following is not None and sign != "=":
                yield from _behind(text, following, sign)
        elif (joined := _joined(word, options)) is not None:
            yield from _behind(text, (first + joined[0], last, word[joined[0] :]), joined[1])
        elif verb and not (here or '"' in word or word.startswith("-") or _HOST.match(word)):
            value = word.removeprefix("token=")
            if "=" in value.rstrip("="):  # what a name calls so
                continue
            known = len(value) < _LONG_ID and strength(value) == ID
            if strength(value) >= (MIXED if taker and "/" not in word else RANDOM) and not known:
                yield last - len(value), last
        named = name in _VERBS or word.startswith(("http-basic.", "pypi-token."))
        verb = verb or name in _ALWAYS or (number > 0 and named)
    if len(parts) > 1 and parts[0][2] in ("echo", "printf"):
        behind = text[end : end + 2 * _NEAR]
        if behind.startswith(("|", ">")) or (behind.startswith(")") and "|" in behind[:4]):
            yield from _given(text, parts[-1], f"{behind.split(chr(10), 1)[0]} {before}", least=CHOSEN)
    command = f"{before}{text[start:end]}"
    if (given := _HERE.match(text, end)) is not None and _reads(command):
        yield from _given(text, (*given.span(1), given[1]), command)


def _joined(word: str, options: dict[str, str]) -> tuple[int, str] | None:
    """Where the value begins of an option that is joined with it, `-pX`, `--user=X`, `/p:X`, and the option's sign."""
    name, found, _ = word.partition("=")
    if found and name in options:
        return len(name) + 1, options[name]
    for option, sign in options.items() if word[:1] in ("-", "/") and word[:2] != "--" else ():
        if option[0] in "-/" and option[:2] != "--" and len(word) > len(option) and word.startswith(option):
            return len(option) + word.startswith(":", len(option)), sign
    return None


def _behind(text: str, part: Part, sign: str) -> Iterator[tuple[int, int]]:
    """The secret of an option's value."""
    first, last, value = _unquoted(text, *part[:2])
    for parts in filter(sign.__contains__, ":%,"):
        user, found, value = value.partition(parts)
        if not found:
            return
        first += len(user) + 1
    if (value.startswith(("-", "$")) and len(value) < len("-0123456")) or value.startswith(("pass:", '",', '"}', '"]')):
        return
    if "?" not in sign or strength(value) >= MIXED:
        yield first, last


def _given(text: str, part: Part, command: str, least: int = MIXED) -> Iterator[tuple[int, int]]:
    """The secret of what a program is given to read: `bob:X`, `X\\nX`, `user = "bob:X"`.

    command  the program that reads it
    least    how strong it is, where the program reads a secret
    """
    first, last, _ = part
    if _DECODES.search(command.lower()):
        return
    least = least if _reads(command) else RANDOM
    for found in re.finditer(r"(?:\\n)?([^\n\\\"']{2,512})", text[first:last]):
        value, start = found[1].lstrip("$"), first + found.start(1)
        for split in (":", "="):
            user, parted, rest = value.partition(split)
            plain = len(user) < 65 and strength(user) < MIXED and not value.startswith(("{", "http"))
            if parted and plain and rest.strip("="):
                start, value = start + len(user) + 1, rest
        whole = found[1].lstrip("$")
        if strength(value) < least <= strength(whole):
            start, value = first + found.end(1) - len(whole), whole
        if strength(value) >= least:
            yield start, start + len(value)


_DECODES = regex(r"[|>][ ]?(?:base64|xxd|jq|gunzip|wc|md5sum|sha[0-9]{1,3}sum|cat|tr|fold|rev)\b")


_READERS = tuple(row[0] for row in rows("readers"))


def _reads(command: str) -> bool:
    """Whether a command reads a secret from its standard input."""
    return any(map(f" {command.lower()} ".__contains__, _READERS))


# ---- what prints a secret ----

_ALONE = regex(
    r"(?m)^[ \t]*+(?:[0-9]{1,6}\u2192)?+(\S{6,4096}+|[A-Za-z][a-z]{2,20}(?: [A-Za-z][a-z]{2,20}){3,24}+)[ \t\r]*+$"
)  # on a line of its own

_BASE64 = regex(r"[A-Za-z0-9+/]+=*\Z")

_IN_OUTPUT = regex(r"(?<![\w/+.=:-])(?![0-9a-fA-F]+\b)([A-Za-z0-9+/_-]{16,8192}+={0,2})(?![\w/+.-])")
_QUOTED = regex(r"(?m)(?:(?<=\")(?=[^\"\s]{6,200}\"(?![ ]?:))|(?<=[:=] )(?=\S{6,200}$))([^\"\s]{6,200})")
_ID_OF = regex(r"(?i)\bids?[\"']?\s{0,8}[:=]\s{0,12}[\"']?\Z")
_INNER = regex(
    r"(?:\b\w+=)?\$\([^()]*\)|`[^`]*`|(?:-H|--header)\s{1,4}(?:'[^']*'|\"[^\"]*\")"
)  # what a command within a command prints is read by that
_LISTS = regex(r"\s*(?:sudo )?(?:ls|ll|find|tree|git|stat|du|wc)\b")
_DUMPS, _DUMPED = (
    regex(r"\b(?:xxd|hexdump|od)\b[^\n|;]{0,200}(?:key|secret)"),
    regex(r"(?:\b[0-9a-f]{2,4} {1,2}){7,15}[0-9a-f]{2,4}\b"),
)
_IN_WORDS = regex(r"[A-Za-z_][\w.-]{0,59}", re.A)
_USER = regex(r"(?:[\w.*-]{1,100}:){4}|[a-z][\w.-]{0,30}:(?=[${])")  # of a file of passwords or hashes
_HASHES = regex(r"\b(?:git|sha\w{0,6}|md5\w{0,3}|hash|digest|checksum|uuid|fingerprint|commit|rev)\b")
_ANSWERS = frozenset(words("answers"))
_MOST_LINES, _FEW_LINES = 40, 5


@cache
def _prints() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What matches a command whose output is a secret, and the names of sources, whose contents are none."""
    sources = "|".join(words("sources"))
    return re.compile("|".join(row[0] for row in rows("prints"))), re.compile(rf"(?<![\w-])[\w-]++\.(?:{sources})\b")


def printed(command: str, output: str) -> Iterator[Hit]:
    """The secrets of what a call printed that is known to print some, or names one and printed little else."""
    if not command or len(command) > _LONGEST_COMMAND or output.count("\n") > _MOST_LINES:
        return
    if _DUMPS.search(command):
        yield from (Hit(*found.span(), "printed") for found in _DUMPED.finditer(output))
    lines = list(_ALONE.finditer(output))
    told = [found for found in lines if _is_printed(found[1], WORD if len(lines) == 1 else CHOSEN)]
    told = [found for found in told if len(lines) == 1 or strength(found[1]) != ID]
    made = [found.span(1) for found in _IN_OUTPUT.finditer(output) if strength(found[1]) == RANDOM]
    made += [found.span(1) for found in _QUOTED.finditer(output) if strength(found[1]) in (MIXED, RANDOM)]
    if not told and not made:
        return
    command = _INNER.sub("", command)
    if _LISTS.match(command):
        return
    if _prints()[0].search(command):
        kept = (place for place in made if not _ID_OF.search(output, max(0, place[0] - 20), place[0]))
        yield from (Hit(*place, "printed") for place in kept)
    elif not (_is_one(told, command, output) and _names_secret(command)):
        return
    for found in told:
        start = found.start(1) + (user.end() if (user := _USER.match(found[1])) else 0)
        yield Hit(start, found.end(1), "printed")


_SETS = regex(r"[A-Z_]{2,40}=")


def _is_one(told: list[re.Match[str]], command: str, output: str) -> bool:
    """Whether a short output has one value that may be a secret."""
    if len(told) != 1 or _SETS.match(told[0][1]) or output.count("\n") >= _FEW_LINES:
        return False
    value = told[0][1]
    alone = value == output.strip()
    if strength(value) == ID:
        return alone and not _HASHES.search(command)
    return _is_printed(value, CHOSEN if alone else MIXED)


def _names_secret(command: str) -> bool:
    """Whether a command names a secret: `echo $DB_PASSWORD`, `cat ~/.vault-token`, `jq -r .apiKey`."""
    names = (found[0].lower() for found in _IN_WORDS.finditer(_prints()[1].sub("", command)))
    return any(kind_of(name, stem[0]) or stem[0] in ("passw", "secret") for name in names for stem in stems_of(name))


def _is_printed(value: str, least: int) -> bool:
    """Whether an output, or a line of one, may be a secret: as strong as that, and no path, place, number or answer."""
    level = strength(value.removesuffix("."))
    if (value.startswith(("http", "-")) or "/" in value) and not is_random(value):
        return False
    if value.isdigit() or value.lower() in _ANSWERS or _HOST.match(value) or (" " in value and not is_phrase(value)):
        return False
    return level >= (MIXED if value[-1] in ":.{}[],;()" else least) and (
        "/" not in value or _BASE64.match(value) is not None
    )
