"""Reads shell command lines: their simple commands, and the files that they touch for certain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ralf.extraction import scripts

_SHELL = re.compile(
    r"(?:ba|z|power)?sh(?:ell)?|terminal|exec|exec_command|execute_command|unified_exec|container\.exec|local_shell(?:_call)?"
    r"|run_command|run_terminal_cmd|run_in_terminal|run_shell_command|shell_command"
)
_LONGEST = 40_000  # characters of one command that are read for the files it touches

_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)\\?([A-Za-z_]\w*)\1")
_COMMENT = re.compile(r"(?m)^[ \t]*#[^\n]*")
_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\r]|\\\n)+)"
    r"|(?P<redirect>&>>?|\d*(?:<<<|<<-?|>>|>\||<>|>|<)(?:&[\d-])?)"
    r"|(?P<operator>\|\||\|&|&&|;;|[;|&\n()])"
    r"|(?P<word>(?:[^\s'\"\\;|&<>()]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+)",
    re.S,
)
_QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", re.S)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NOT_LITERAL = re.compile(r"[$*?\[\]{}`\n]")


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command: its words, where its output is sent, whether it is certain that it ran, its here-document."""

    words: tuple[str, ...]
    writes: tuple[str, ...]
    certain: bool
    document: str = ""


def is_shell(tool: str) -> bool:
    """Whether a tool of this name runs shell commands."""
    return _SHELL.fullmatch(tool.lower().rpartition("__")[2]) is not None


def command_text(arguments: Mapping[str, Any]) -> str:
    """The command of a shell tool's call as it was typed, "" where there is none."""
    value = arguments.get("command", arguments.get("cmd"))
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        wrapped = len(value) == 3 and value[1] in ("-c", "-lc")
        return str(value[2]).strip() if wrapped else " ".join(value).strip()
    return ""


def _without_heredocs(text: str) -> tuple[str, list[str]]:
    """The command without the bodies of its here-documents, which may hold any quotes; and these bodies."""
    if "<<" not in text:
        return text, []
    kept: list[str] = []
    ends: list[str] = []
    bodies: list[list[str]] = []
    for line in text.split("\n"):
        if ends:
            if line.strip() == ends[0]:
                ends.pop(0)
            else:
                bodies[-len(ends)].append(line)
            continue
        kept.append(line)
        ends.extend(match[2] for match in _HEREDOC.finditer(line))
        bodies.extend([] for _ in ends)
    return "\n".join(kept), ["\n".join(body) for body in bodies]


def _plain(word: str) -> str:
    return _QUOTED.sub(lambda m: m[1] or m[2] or m[3] or "", word)


def simple_commands(text: str) -> list[Simple]:
    """The simple commands of a command line in order; none where its quotes do not close."""
    text, documents = _without_heredocs(text[:_LONGEST])
    text = _COMMENT.sub("", text)
    found: list[Simple] = []
    words: list[str] = []
    writes: list[str] = []
    certain, target, place, document = True, "", 0, ""

    def close() -> None:
        if words or writes:
            found.append(Simple(tuple(words), tuple(writes), certain, document))
        words.clear()
        writes.clear()

    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return []
        place = match.end()
        value = match.group()
        if match.lastgroup == "redirect":
            target = "" if value[-1].isdigit() or (value.endswith("-") and "&" in value) else value
            continue
        if match.lastgroup == "operator":
            close()
            target = document = ""
            if value in ("\n", ";"):
                certain = True
            elif value == "||":
                certain = False
        elif match.lastgroup == "word":
            if target:
                if ">" in target:
                    writes.append(_plain(value))
                elif target in ("<<", "<<-") and documents:
                    document = documents.pop(0)
                target = ""
            elif words or not _ASSIGNMENT.match(value):
                words.append(_plain(value))
    close()
    return found


_LOOKS = frozenset(
    "ls cat bat head tail less more grep egrep fgrep rg ag fd find tree wc stat file du df pwd cd echo printf which"
    " type whoami date env sort uniq cut tr jq column diff cmp nl true test [ [[ ps pgrep sleep"
    " basename dirname realpath xxd hexdump md5 md5sum shasum sha256sum strings".split()
)
_GIT_LOOKS = frozenset(
    "status log diff diff-index diff-tree show rev-parse merge-base ls-files ls-tree ls-remote cat-file blame reflog"
    " describe for-each-ref shortlog grep rev-list fsck count-objects".split()
)
_GIT_LISTS = {"branch": {"-a", "-v", "-vv", "-r", "--list", "--show-current"}, "config": {"--list", "--get", "-l"}}
_GIT_LISTS |= {"worktree": {"list"}, "stash": {"list", "show"}, "remote": {"-v", "show"}}
_HUB_LOOKS = frozenset("view list diff checks status".split())
_SENDS = re.compile(r"-X|-f|-F|--method|--(?:raw-)?field|--input")


def only_looks(text: str) -> bool:
    """Whether a command line changes and verifies nothing: it lists, searches or prints."""
    found = simple_commands(text)
    return bool(found) and all(_looks(simple) for simple in found)


def _looks(simple: Simple) -> bool:
    if any(name != "/dev/null" for name in simple.writes):
        return False
    words = simple.words
    if not words:
        return True
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name == "git":
        while len(rest) > 2 and rest[0] in ("-C", "-c"):
            rest = rest[2:]
        given = [word for word in rest if word != "--no-pager"]
        return bool(given) and (given[0] in _GIT_LOOKS or bool(_GIT_LISTS.get(given[0], set()) & set(given)))
    if name in ("gh", "glab"):
        if rest[:1] == ("api",):
            return not any(_SENDS.match(word) for word in rest)
        return len(rest) > 1 and rest[1] in _HUB_LOOKS
    if name == "sed":
        return not _in_place(name, rest)
    if name == "find":
        return not {"-delete", "-exec", "-execdir", "-ok"} & set(rest)
    return name in _LOOKS


def _operands(words: tuple[str, ...]) -> list[str]:
    """Words that are not options."""
    if "--" in words:
        place = words.index("--")
        return [w for w in words[:place] if not w.startswith("-")] + list(words[place + 1 :])
    return [w for w in words if not w.startswith("-")]


def _in_place(name: str, words: tuple[str, ...]) -> list[str]:
    """The files that `sed -i` or `perl -i` rewrites."""
    inline = name == "sed" and any(re.fullmatch(r"-[nErsz]*i\S*|--in-place\S*", w) for w in words)
    inline = inline or (name == "perl" and any(re.fullmatch(r"-[a-z0-9]*i\S*", w) for w in words))
    if not inline:
        return []
    files: list[str] = []
    script, skip = False, False
    for word in words:
        if skip:
            skip, script = False, True
        elif word.startswith("-"):
            skip = bool(re.fullmatch(r"-[a-zA-Z0-9]*[ef]|--expression|--file", word))
        elif word and not script:
            script = True
        elif word:
            files.append(word)
    return files


def _touched(simple: Simple) -> Iterator[tuple[str, str]]:
    words = simple.words
    while words and words[0] in ("sudo", "command", "time", "then", "do", "else"):
        if words[0] in ("then", "else"):
            return
        words = words[1:]
    for name in simple.writes:
        if words[:1] not in (("[[",), ("[",)) and not name.isdigit():
            yield name, "edited"
    if not words:
        return
    name, rest = words[0].rpartition("/")[2], words[1:]
    yield from scripts.touched(name, _script(name, rest, simple.document))
    if name == "git" and rest and rest[0] in ("rm", "mv"):
        name, rest = rest[0], rest[1:]
        if "--cached" in rest or "-n" in rest or "--dry-run" in rest:
            return
    if name in ("rm", "unlink"):
        for operand in _operands(rest):
            yield operand, "deleted"
    elif name == "mv":
        operands = _operands(rest)
        if len(operands) < 2 or any(w.startswith(("-t", "--target")) for w in rest):
            return
        for operand in operands[:-1]:
            yield operand, "deleted"
        last = operands[-1].rpartition("/")[2]
        if len(operands) == 2 and "." in last.strip("."):  # otherwise the target may be a folder
            yield operands[-1], "created"
    elif name == "tee":
        for operand in _operands(rest):
            yield operand, "edited"
    elif name in ("cat", "head", "tail", "nl", "less", "bat"):
        for operand in _operands(rest):
            if re.search(r"\.\w", operand):
                yield operand, "read"
    elif name in ("sed", "perl"):
        changed = _in_place(name, rest)
        for operand in changed:
            yield operand, "edited"
        operands = _operands(rest)
        if not changed and name == "sed" and "-n" in rest and len(operands) == 2:
            yield operands[1], "read"


def _script(name: str, words: tuple[str, ...], document: str) -> str:
    """The script that a program is given in its words, or in a here-document."""
    option = "-c" if scripts.is_python(name) else "-e"
    if option in words[:-1]:
        return words[words.index(option) + 1]
    return document if name != "git" or words[:1] == ("apply",) else ""


def touched(text: str) -> list[tuple[str, str, str]]:
    """(folder changed into before, path as typed, what was done to it), for the files that a passed command touched."""
    found: list[tuple[str, str, str]] = []
    folder = ""
    for simple in simple_commands(text):
        if not simple.certain:
            continue
        if simple.words[:1] == ("cd",):
            where = _operands(simple.words[1:])[:1]
            literal = where and not _NOT_LITERAL.search(where[0])
            folder = (where[0] if where[0].startswith("/") else f"{folder}/{where[0]}".lstrip("/")) if literal else "?"
            continue
        for path, did in _touched(simple):
            special = not path or path in (".", "..", "-", "/", "EOF") or path.startswith(("/dev/", "-", "&"))
            if not special and not _NOT_LITERAL.search(path) and len(path) < 400:
                found.append((folder, path, did))
    return found


_PATCHED = re.compile(r"(?m)^\*\*\* (Add File|Update File|Delete File|Move to): ([^\n]+)$")
_PATCH_DID = {"Add File": "created", "Update File": "edited", "Delete File": "deleted", "Move to": "created"}


def patched(text: str) -> list[tuple[str, str]]:
    """(path, what was done to it) from the headers of an `apply_patch` envelope; a file that was moved is gone."""
    if "*** Begin Patch" not in text:
        return []
    found: list[tuple[str, str]] = []
    for match in _PATCHED.finditer(text):
        if match[1] == "Move to" and found and found[-1][1] == "edited":
            found[-1] = (found[-1][0], "deleted")
        found.append((match[2].strip(), _PATCH_DID[match[1]]))
    return found
