"""Finds what commands, scripts and calls of file tools do to which files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ralf.text.patterns import regex

# ---- scripts ----

_PYTHON = regex(r"python(?:\d(?:\.\d{1,2})?)?")

_LONGEST = 40_000  # characters of one script that are read

_LITERAL = r"""[rb]?["']([^"'\n{}]{1,300})["']"""

_ASSIGNED = regex(
    r"(?m)(?:^|;)[ \t]{0,40}(\w{1,60})[ \t]?=[ \t]?(?:(?:pathlib\.)?Path\([ \t]?)?"
    rf"{_LITERAL}[ \t]?\)?[ \t]?(?=$|[;#])"
)

_PASSED_ON = regex(
    r"(?m)(?:^|;)[ \t]{0,40}(\w{1,60})[ \t]?=[ \t]?(?:pathlib\.)?Path\([ \t]?(\w{1,60})[ \t]?\)[ \t]?(?=$|[;#])"
)

_EACH = regex(r"\bfor (\w{1,60}) in [\[(]([^\])]{1,2000})[\])][ \t]?:")

_STRING = regex(_LITERAL)

_FUNCTION = regex(r"\bdef (\w{1,60})\([ \t]?(\w{1,60})")

_TARGET = rf"(?:(?:pathlib\.)?Path\([ \t]?)?(?:{_LITERAL}|(\w{{1,60}}))[ \t]?\)?"

_OPENED = regex(rf"""\bopen\([ \t]?{_TARGET}[ \t]?,[ \t]?(?:mode=)?["'](?=[\w+]*?[wax+])\w{{1,3}}\+?\w?["']""")

_WRITTEN = regex(rf"""(?<![\w."'(]){_TARGET}\.(?:write_text|write_bytes|touch|open\([ \t]?(?:mode=)?["'][wax])""")

_DELETED = regex(
    rf"\bos\.(?:remove|unlink)\([ \t]?{_TARGET}"
    rf"|(?<![\w.\"'(])(?:pathlib\.)?(?:Path\([ \t]?{_LITERAL}[ \t]?\)|(\w{{1,60}}))\.unlink\("
)

_CALLED = regex(rf"\b(\w{{1,60}})\([ \t]?{_LITERAL}")

_READ = regex(rf"\bopen\([ \t]?{_TARGET}[ \t]?\)|(?<![\w.\"'(]){_TARGET}\.read_(?:text|bytes)\(")

_DEEDS = ((_OPENED, "edited"), (_WRITTEN, "edited"), (_DELETED, "deleted"), (_READ, "read"))
"""What calls in Python do to a file: an odd group of each pattern is its path, an even one a name for it."""

_IN_NODE = regex(rf"\b(?:writeFileSync|writeFile|appendFileSync|appendFile|File\.write)\([ \t]?{_LITERAL}")

_IN_PATCH = regex(r"(?m)^\+\+\+ (?:b/)?([^\s\n]{1,300})")


def is_python(program: str) -> bool:
    """Whether a program of this name runs Python."""
    return _PYTHON.fullmatch(program) is not None


def touched_by_script(program: str, script: str) -> Iterator[tuple[str, str]]:
    """(path as written, what is done to it) of the files that a program's script names; nothing for other programs."""
    script = script[:_LONGEST]
    if is_python(program):
        yield from _of_python(script)
    elif program in ("node", "ruby", "bun", "deno"):
        yield from ((match[1], "edited") for match in _IN_NODE.finditer(script))
    elif program in ("patch", "git"):
        yield from ((match[1], "edited") for match in _IN_PATCH.finditer(script) if match[1] != "/dev/null")


def _of_python(script: str) -> Iterable[tuple[str, str]]:
    """What is done to the files that literals, or names, stand for; each file once."""
    meant = _meanings(script)
    done: dict[str, str] = {}
    for pattern, did in _DEEDS:
        for match in pattern.finditer(script):
            group = match.lastindex or 0
            for path in [match[group]] if group % 2 else meant.get(match[group], ()):
                done.setdefault(path, did)
    return done.items()


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


# ---- command lines ----

_SHELL = regex(
    r"(?:ba|z|power)?sh(?:ell)?|terminal|exec|exec_command|execute_command|unified_exec|container\.exec|local_shell(?:_call)?"
    r"|run_command|run_terminal_cmd|run_in_terminal|run_shell_command|shell_command"
)

_HEREDOC = regex(r"(?<!<)<<-?[ \t]*(['\"]?)\\?([A-Za-z_]\w*)\1")

_COMMENT = regex(r"(?m)^[ \t]*#[^\n]*")

_TOKEN = regex(
    r"(?P<space>(?:[ \t\r]|\\\n)+)"
    r"|(?P<redirect>&>>?|\d*(?:<<<|<<-?|>>|>\||<>|>|<)(?:&[\d-])?)"
    r"|(?P<operator>\|\||\|&|&&|;;|[;|&\n()])"
    r"|(?P<word>(?:[^\s'\"\\;|&<>()]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+)",
    re.S,
)

_QUOTED = regex(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|\\(.)", re.S)

_ASSIGNMENT = regex(r"[A-Za-z_]\w*=")

_NOT_LITERAL = regex(r"[$*?\[\]{}`\n]")


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command: its words, where its output is sent, whether it is certain that it ran, its here-document,
    and the operator that follows it.
    """

    words: tuple[str, ...]
    writes: tuple[str, ...]
    certain: bool
    document: str = ""
    then: str = ""


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
    return [*_simple_commands(text)]


@lru_cache(maxsize=32)  # of one command, which is asked for several things in a row
def _simple_commands(text: str) -> Sequence[Simple]:
    text, documents = _without_heredocs(text[:_LONGEST])
    text = _COMMENT.sub("", text)
    found: list[Simple] = []
    words: list[str] = []
    writes: list[str] = []
    certain, target, place, document = True, "", 0, ""

    def close(then: str = "") -> None:
        if words or writes:
            found.append(Simple(tuple(words), tuple(writes), certain, document, then))
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
            close(value)
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

_SENDS = regex(r"-X|-f|-F|--method|--(?:raw-)?field|--input")


def only_looks(text: str) -> bool:
    """Whether a command line changes and verifies nothing: it lists, searches or prints."""
    found = simple_commands(text)
    return bool(found) and all(_looks(simple) for simple in found)


def _looks(simple: Simple) -> bool:
    if any(name != "/dev/null" for name in simple.writes):
        return False
    words = simple.words
    name, rest = words[0].rpartition("/")[2] if words else "true", words[1:]
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
    if name in _AWKS:
        return not any(word.startswith("-i") or ">" in word or "system(" in word for word in rest)
    if name == "find":
        return not {"-delete", "-exec", "-execdir", "-ok"} & set(rest)
    return name in _LOOKS


_AWKS = frozenset(("awk", "gawk", "mawk"))


def _operands(words: tuple[str, ...]) -> list[str]:
    """Words that are not options."""
    if "--" in words:
        place = words.index("--")
        return [w for w in words[:place] if not w.startswith("-")] + list(words[place + 1 :])
    return [w for w in words if not w.startswith("-")]


_INLINE = {"sed": regex(r"-[nErsz]*i\S*|--in-place\S*"), "perl": regex(r"-[a-z0-9]*i\S*")}


def _in_place(name: str, words: tuple[str, ...]) -> list[str]:
    """The files that `sed -i` or `perl -i` rewrites."""
    if name not in _INLINE or not any(_INLINE[name].fullmatch(word) for word in words):
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


_ALL_OPERANDS = {"rm": "deleted", "unlink": "deleted", "tee": "edited"}


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
    yield from touched_by_script(name, _script(name, rest, simple.document))
    if name == "git" and rest[:1] in (("rm",), ("mv",)):
        name, rest = rest[0], rest[1:]
        if {"--cached", "-n", "--dry-run"} & set(rest):
            return
    operands = _operands(rest)
    if name in _ALL_OPERANDS:
        yield from ((one, _ALL_OPERANDS[name]) for one in operands)
    elif name == "mv":
        if len(operands) < 2 or any(w.startswith(("-t", "--target")) for w in rest):
            return
        yield from ((one, "deleted") for one in operands[:-1])
        last = operands[-1].rpartition("/")[2]
        if len(operands) == 2 and "." in last.strip("."):  # otherwise the target may be a folder
            yield operands[-1], "created"
    elif name in ("cat", "head", "tail", "nl", "less", "bat"):
        yield from ((one, "read") for one in operands if re.search(r"\.\w", one))
    elif name in ("sed", "perl"):
        changed = _in_place(name, rest)
        yield from ((one, "edited") for one in changed)
        if not changed and name == "sed" and "-n" in rest and len(operands) == 2:
            yield operands[1], "read"


def _script(name: str, words: tuple[str, ...], document: str) -> str:
    """The script that a program is given in its words, or in a here-document."""
    option = "-c" if is_python(name) else "-e"
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


_PATCHED = regex(r"(?m)^\*\*\* (Add File|Update File|Delete File|Move to): ([^\n]+)$")

_PATCH_DID = {"Add File": "created", "Update File": "edited", "Delete File": "deleted", "Move to": "created"}


def patched(text: str) -> list[tuple[str, str]]:
    """(path, what was done to it) from the headers of an `apply_patch` envelope; a file that was moved is gone."""
    found: list[tuple[str, str]] = []
    for match in _PATCHED.finditer(text) if "*** Begin Patch" in text else ():
        if match[1] == "Move to" and found and found[-1][1] == "edited":
            found[-1] = (found[-1][0], "deleted")
        found.append((match[2].strip(), _PATCH_DID[match[1]]))
    return found


# ---- tools that work on files ----

_DONE = ("created", "edited", "deleted", "read")

_PATH_KEYS = ("file_path", "notebook_path", "absolute_path", "filePath", "filepath", "target_file", "path")

_VERBS = {
    **dict.fromkeys(("delete", "remove"), "deleted"),
    **dict.fromkeys(("edit", "replace", "insert", "append", "patch", "diff", "write"), "edited"),
    "createfile": "created",
    **dict.fromkeys(("read", "view", "openfile"), "read"),
}
"""What a tool does by a word in its name; the first that is in it counts."""


def named_in(arguments: Mapping[str, Any]) -> str:
    """The path that a file tool's arguments name, "" where there is none."""
    return next((arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str)), "")


_FILE = regex(r"[^/\\]\.[A-Za-z]\w{0,7}$")


def did_by(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a tool of this name does to the file that its arguments name; "" if it is no file tool."""
    name = tool.lower().rpartition("__")[2].replace("_", "").replace("-", "").replace(".", "")
    if "strreplace" in name or "texteditor" in name:
        return {"view": "read", "create": "created"}.get(str(arguments.get("command", "")), "edited")
    if (
        any(word in name for word in ("grep", "glob", "search", "list", "find", "issue", "comment"))
        and "replace" not in name
    ):
        return "read" if "grep" in name and _FILE.search(named_in(arguments)) else ""  # one file was searched
    return next((did for word, did in _VERBS.items() if word in name), "")


_CHANGES = {"add": "created", "update": "edited", "delete": "deleted"}


def changed(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(path, what was done to it) of a call whose arguments list changes by path, as Codex tells a patch's outcome."""
    changes = arguments.get("changes")
    found: list[tuple[str, str]] = []
    for path, change in changes.items() if isinstance(changes, Mapping) else ():
        did = _CHANGES.get(str(change.get("type"))) if isinstance(change, Mapping) else None
        moved = change.get("move_path") if did else None
        if did:
            found += [(path, "deleted"), (moved, "created")] if isinstance(moved, str) and moved else [(path, did)]
    return found


OLD_KEYS = ("old_string", "old_str", "oldText")


def in_order(did: Sequence[str]) -> tuple[str, ...]:
    """What was done to a file, each once, in one order."""
    return tuple(word for word in _DONE if word in did)
