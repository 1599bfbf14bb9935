"""Which files a script writes that stands in a command line: `python - <<'PY'`, `python -c`, `node -e`, a patch.

A script is not run, and not parsed: what it does is told by the calls that open, write and delete, where they name the
file, a name that was given one, or the first argument of a function to which one is passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PYTHON = re.compile(r"python(?:\d(?:\.\d{1,2})?)?")
_LONGEST = 40_000  # characters of one script that are read
_LITERAL = r"""[rb]?["']([^"'\n{}]{1,300})["']"""
_ASSIGNED = re.compile(
    r"(?m)(?:^|;)[ \t]{0,40}(\w{1,60})[ \t]?=[ \t]?(?:(?:pathlib\.)?Path\([ \t]?)?"
    rf"{_LITERAL}[ \t]?\)?[ \t]?(?=$|[;#])"
)
_PASSED_ON = re.compile(
    r"(?m)(?:^|;)[ \t]{0,40}(\w{1,60})[ \t]?=[ \t]?(?:pathlib\.)?Path\([ \t]?(\w{1,60})[ \t]?\)[ \t]?(?=$|[;#])"
)
_EACH = re.compile(r"\bfor (\w{1,60}) in [\[(]([^\])]{1,2000})[\])][ \t]?:")
_STRING = re.compile(_LITERAL)
_FUNCTION = re.compile(r"\bdef (\w{1,60})\([ \t]?(\w{1,60})")
_TARGET = rf"(?:(?:pathlib\.)?Path\([ \t]?)?(?:{_LITERAL}|(\w{{1,60}}))[ \t]?\)?"
_OPENED = re.compile(rf"""\bopen\([ \t]?{_TARGET}[ \t]?,[ \t]?(?:mode=)?["'](\w{{1,3}}\+?\w?)["']""")
_WRITTEN = re.compile(rf"""(?<![\w."'(]){_TARGET}\.(?:write_text|write_bytes|touch|open\([ \t]?(?:mode=)?["'][wax])""")
_DELETED = re.compile(
    rf"\bos\.(?:remove|unlink)\([ \t]?{_TARGET}"
    rf"|(?<![\w.\"'(])(?:pathlib\.)?(?:Path\([ \t]?{_LITERAL}[ \t]?\)|(\w{{1,60}}))\.unlink\("
)
_READ = re.compile(rf"\bopen\([ \t]?{_TARGET}[ \t]?\)|(?<![\w.\"'(]){_TARGET}\.read_(?:text|bytes)\(")
_IN_NODE = re.compile(rf"\b(?:writeFileSync|writeFile|appendFileSync|appendFile|File\.write)\([ \t]?{_LITERAL}")
_IN_PATCH = re.compile(r"(?m)^\+\+\+ (?:b/)?([^\s\n]{1,300})")


def is_python(program: str) -> bool:
    """Whether a program of this name runs Python."""
    return _PYTHON.fullmatch(program) is not None


def touched(program: str, script: str) -> Iterator[tuple[str, str]]:
    """(path as written, what is done to it) of the files that a program's script names; nothing for other programs."""
    script = script[:_LONGEST]
    if is_python(program):
        yield from _of_python(script)
    elif program in ("node", "ruby", "bun", "deno"):
        yield from ((match[1], "edited") for match in _IN_NODE.finditer(script))
    elif program in ("patch", "git"):
        yield from ((match[1], "edited") for match in _IN_PATCH.finditer(script) if match[1] != "/dev/null")


def _of_python(script: str) -> Iterator[tuple[str, str]]:
    meant = _meanings(script)
    done: dict[str, None] = {}
    for match in _OPENED.finditer(script):
        if set(match[3]) & set("wax+"):
            yield from _named(match[1], match[2], meant, "edited", done)
    for match in _WRITTEN.finditer(script):
        yield from _named(match[1], match[2], meant, "edited", done)
    for match in _DELETED.finditer(script):
        yield from _named(match[1] or match[3], match[2] or match[4], meant, "deleted", done)
    for match in _READ.finditer(script):
        yield from _named(match[1] or match[3], match[2] or match[4], meant, "read", done)


def _named(
    literal: str | None, name: str | None, meant: dict[str, list[str]], did: str, done: dict[str, None]
) -> Iterator[tuple[str, str]]:
    """What is done to the files that a literal, or a name, stands for; each file once."""
    for path in [literal] if literal else meant.get(name or "", ()):
        if path not in done:
            done[path] = None
            yield path, did


def _meanings(script: str) -> dict[str, list[str]]:
    """For each name the files that it may stand for."""
    meant: dict[str, list[str]] = {}
    for match in _ASSIGNED.finditer(script):
        meant.setdefault(match[1], []).append(match[2])
    for match in _EACH.finditer(script):
        meant.setdefault(match[1], []).extend(_STRING.findall(match[2]))
    functions = {match[1]: match[2] for match in _FUNCTION.finditer(script)}
    for match in _CALLED.finditer(script) if functions else ():
        if match[1] in functions:
            meant.setdefault(functions[match[1]], []).append(match[2])
    for match in _PASSED_ON.finditer(script):
        meant.setdefault(match[1], []).extend(meant.get(match[2], ()))
    return meant


_CALLED = re.compile(rf"\b(\w{{1,60}})\([ \t]?{_LITERAL}")
