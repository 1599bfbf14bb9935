"""Secrets in command lines and calls: what a program takes, by option, place, pipe or here-string, and what it prints.

A command is read into its words once, from the first word that a table knows on; the tables say which word is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache

from ralf.redact.assignments import WRAP
from ralf.redact.engine import Hit, Text
from ralf.redact.names import STEM, kind_of
from ralf.redact.table import rows, words
from ralf.redact.values import (
    HASH,
    PLAUSIBLE,
    RANDOM,
    TOLD,
    UUID,
    is_mixed,
    is_phrase,
    is_placeholder,
    is_random,
    strength,
)
from ralf.text.patterns import regex

# ---- what takes a secret ----

_OPTION: dict[str, dict[str, str]] = {
    program: {word.rstrip("=:%,?"): word[len(word.rstrip("=:%,?")) :] for word in options.split()}
    for programs, options in rows("programs")
    for program in programs.split()
}
"""Programs, and their options, each with the sign that tells how it takes a secret."""

_VERBS = words("verbs")
"""Words behind which a program takes a secret at a place of its own: `vault login X`, `htpasswd -nb bob X`."""

_TAKERS = words("takers")
"""Programs whose places of their own take a secret behind a verb."""

_USERS = (
    "-u",
    "-U",
    "-l",
    "-D",
    "--user",
    "--username",
    "--login",
    "-user",
    "-username",
    "--apple-id",
    "--user-pool-id",
)
"""Options that name who logs in: with one, `-p X` is a password for any program."""

_OF_USER = {"-p", "-P", "-w", "-W", "-pw", "-gp"}

_STARTS = tuple(
    dict.fromkeys(
        [f"{program.lower()} " for program in (*_OPTION, *_TAKERS, "echo", "printf")]
        + [f" {user.lower()}{sign}" for user in _USERS for sign in " ="]
        + ["<<<"]
    )
)


@lru_cache(256)
def _start(there: frozenset[str]) -> re.Pattern[str]:
    """Finds where a command may begin in a text, in lower case, in which these words stand."""
    return re.compile("|".join(sorted(map(re.escape, there), key=len, reverse=True)))


_WORD = regex(
    rf"(?P<gap>(?:[ \t]|{WRAP})++)|(?P<end><<<|[\n|;&]++|[<>()]++)"
    r"|(?P<word>(?:'[^'\n]*'|\"(?:[^\"\\\n]|\\.)*+\"|\\.|[^\s'\"\\|;&<>()])++)"
)

_LONGEST_COMMAND = 2000

_TAKES = (
    "passw|encrypt_string|--stdin|vault |passphrase|sudo -|kinit|cryptsetup|login| su |gpg|ssh-add|secret|"
    "-k -|with-token|"
    "env add|lpass |keepassxc-cli | op | bw |keyring | age | pass |read -s|token|apikey| pw|_pass|_pwd|_pw|_key"
).split("|")
"""Words of which a command has one, in lower case, that reads a secret from its standard input."""

_BASE64 = regex(r"[A-Za-z0-9+/]+=*")

_HOST = regex(r"[\w.-]+:[0-9]{2,5}\Z|[^\s@]+@[\w.-]+\Z|https?:")

Part = tuple[int, int, str]
"""A word of a command: where it begins and ends, without its quotes, and it."""


class Commands:
    """What stands in command lines."""

    kind = "password"
    words = _STARTS

    def find(self, text: Text, there: Collection[str]) -> Iterator[Hit]:
        """The secrets of a text that a program takes, in no order; they may overlap."""
        read = 0
        for found in _start(frozenset(_STARTS).intersection(there)).finditer(text.low):
            first = found.start()
            joined = bool(first) and (text.raw[first - 1].isalnum() or text.raw[first - 1] in "_.-")
            if first < read or (joined and found[0][0].isalnum()):
                continue
            parts, read = _words(text.raw, first)
            for start, end in _taken(text.raw, parts, first, read):
                if end - start > 1 and not is_placeholder(text.raw[start:end]):
                    yield Hit(start, end, self.kind)


def _words(text: str, start: int) -> tuple[list[Part], int]:
    """The words of a command up to what ends it, and where that is."""
    parts: list[Part] = []
    place, limit = start, min(len(text), start + _LONGEST_COMMAND)
    while (found := _WORD.match(text, place, limit)) is not None:
        if found["end"] is not None and (found["end"] != "<<<"):
            break
        place = found.end()
        if found["gap"] is None:
            first, last = found.span()
            if last - first > 1 and text[first] in "'\"" and text[last - 1] == text[first]:
                first, last = first + 1, last - 1
            parts.append((first, last, text[first:last]))
    return parts, max(place, start + 1)


def _taken(text: str, parts: list[Part], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of a command's secrets."""
    options: dict[str, str] = {}
    taker = user = here = False
    verb = -1
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    for number, (first, last, word) in enumerate(parts):
        name = word.rpartition("/")[2].removesuffix(".exe")
        if name in _OPTION:
            options = options | _OPTION[name]
        taker = taker or name in _TAKERS
        if verb < 0 and number and (name in _VERBS or word.startswith(("http-basic.", "pypi-token."))):
            verb = number
        if name in ("htpasswd", "mkpasswd", "passwd", "wpa_passphrase"):
            verb = number
        user = user or word.partition("=")[0] in _USERS
        following = parts[number + 1] if number + 1 < len(parts) else None
        if word == "<<<":
            if following is not None and not here:
                yield from _given(
                    text, following, f"{before}{text[start:first]} {text[following[1] : following[1] + _NEAR]}"
                )
            here = True
        elif (sign := options.get(word)) is not None:
            if following is not None and sign != "=":
                yield from _behind(following, sign)
        elif (joined := _joined(word, options)) is not None:
            yield from _behind((first + joined[0], last, word[joined[0] :]), joined[1])
        elif word.startswith("--") and "=" in word:
            continue
        elif user and word in _OF_USER and following is not None:
            yield from _behind(following, "?")
        elif user and word[:2] in _OF_USER and len(word) > len("-phunter") and not word.startswith("--"):
            yield from _behind((first + 2, last, word[2:]), "?")
        elif word in ("-u", "--user", "--creds", "--auth", "--userpass", "--credentials") and following is not None:
            yield from _behind(following, "?:")
        elif 0 <= verb < number and not here and not word.startswith("-") and not _HOST.match(word):
            least = TOLD if taker and "/" not in word else RANDOM
            value = word.removeprefix("token=")
            if strength(value) >= least and not HASH.match(value) and not UUID.match(value):
                yield last - len(value), last
    if parts and parts[0][2] in ("echo", "printf") and len(parts) > 1:
        behind = text[end : end + 2 * _NEAR]
        if behind.startswith(("|", ">")) or (behind.startswith(")") and "|" in behind[:4]):
            yield from _given(text, parts[-1], f"{behind.split(chr(10), 1)[0]} {before}", printed=True)


_NEAR = 150


def _joined(word: str, options: dict[str, str]) -> tuple[int, str] | None:
    """Where the value begins of an option that is joined with it, `-pX`, `--user=X`, `/p:X`, and the option's sign."""
    name, found, _ = word.partition("=")
    if found and name in options:
        return len(name) + 1, options[name]
    for option, sign in options.items():
        if option[0] in "-/" and option[:2] != "--" and len(word) > len(option) and word.startswith(option):
            return len(option) + word.startswith(":", len(option)), sign
    return None


def _behind(part: Part, sign: str) -> Iterator[tuple[int, int]]:
    """The secret of an option's value."""
    first, last, value = part
    if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
        first, last, value = first + 1, last - 1, value[1:-1]
    for parts in ":%,":
        if parts in sign:
            user, found, _ = value.partition(parts)
            if not found:
                return
            first += len(user) + 1
            value = value[len(user) + 1 :]
    if (value.startswith(("-", "$")) and len(value) < len("-0123456")) or value.startswith("pass:"):
        return
    if "?" not in sign or strength(value) >= TOLD:
        yield first, last


def _given(text: str, part: Part, command: str, *, printed: bool = False) -> Iterator[tuple[int, int]]:
    """The secret of what a program is given to read: `bob:X`, `X\\nX`, `user = "bob:X"`.

    command  the program that reads it
    """
    first, last, word = part
    word = text[first:last]
    low = f" {command.lower()} "
    takes = any(word in low for word in _TAKES)
    for found in re.finditer(r"[^\n\\\"']{2,512}", word):
        value, start = found[0].lstrip("$"), first + found.start()
        if value.startswith("n") and word[max(0, found.start() - 1)] == "\\":
            value, start = value[1:], start + 1
        for split in (":", "="):
            if split in value and len(value.partition(split)[0]) < 65 and not value.startswith(("{", "http")):
                start += len(value.partition(split)[0]) + 1
                value = value.partition(split)[2]
        least = (PLAUSIBLE if printed or is_mixed(value) else TOLD) if takes else RANDOM
        if (strength(value) >= least or (takes and is_phrase(value))) and not HASH.match(value):
            yield start, start + len(value)


# ---- what prints a secret ----


_ALONE = regex(r"(?m)^[ \t]*+(\S{6,4096}+|[a-z]{3,20}(?: [a-z]{3,20}){3,24}+)[ \t\r]*+$")  # on a line of its own


@cache
def _prints() -> re.Pattern[str]:
    """Matches a command whose output is a secret."""
    return re.compile("|".join(row[0] for row in rows("prints")))


_SOURCE = regex(
    r"[\w-]+\.(?:py|[cm]?[jt]sx?|go|rs|rb|java|kt|md|css|scss|html|c|h|cpp|hpp|cs|php|sh|lock|vue|svelte|swift|ipynb|ya?ml|toml)\b"
)

_IN_WORDS = regex(r"[A-Za-z_][\w.-]{0,59}", re.A)

_MOST_LINES, _LONGEST_LINE = 40, 4096

_TRIVIAL = frozenset(
    "success error failed warning exists missing ready active running enabled disabled unknown found".split()
)


def printed(command: str, output: str) -> Iterator[Hit]:
    """The secrets of what a call printed that is known to print one, or names one and printed nothing else."""
    if not command or len(command) > _LONGEST_COMMAND or output.count("\n") > _MOST_LINES:
        return
    words = [found for found in _ALONE.finditer(output) if " " not in found[1] or is_phrase(found[1])]
    least = PLAUSIBLE if len(words) == 1 else TOLD
    told = [found for found in words if _is_printed(found[1], least)]
    only = len(told) == 1 and told[0][1] == output.strip() and _is_printed(told[0][1], TOLD)
    if told and (_prints().search(command) or (only and _names_secret(command))):
        yield from (Hit(*found.span(1), "printed") for found in told)


def _names_secret(command: str) -> bool:
    """Whether a command names a secret: `echo $DB_PASSWORD`, `cat ~/.vault-token`, `jq -r .apiKey`."""
    for found in _IN_WORDS.finditer(_SOURCE.sub("", command)):
        name = found[0].lower()
        stems = list(STEM.finditer(name))
        if stems and (name == "key" or kind_of(name, stems[-1][0]) or stems[-1][0] in ("passw", "secret")):
            return True
    return False


def _is_printed(value: str, least: int) -> bool:
    hashed = (HASH.match(value) or UUID.match(value)) and least > PLAUSIBLE
    if len(value) < len("012345") or hashed or value.lower() in _TRIVIAL or value.startswith(("/", "./", "http", "-")):
        return False
    if value.endswith((":", ".", "{", "}", "[", "]", ",", ";", "(", ")")) and not is_random(value):
        return False
    if _HOST.match(value) or ("/" in value and not (is_random(value) and _BASE64.fullmatch(value))):
        return False
    return strength(value) >= least and not value.isdigit()
