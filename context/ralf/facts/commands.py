"""Finds what commands and calls of file tools do to which files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ralf.text.patterns import regex

# ---- command lines ----

_LONGEST = 40_000  # characters of a command line that are read

_SHELL = regex(
    r"(?:ba|z|power)?sh(?:ell)?|terminal|exec|exec_command|execute_command|unified_exec|container\.exec|local_shell(?:_call)?"
    r"|run_command|run_terminal_cmd|run_in_terminal|run_shell_command|shell_command"
)

_HEREDOC = regex(r"(?<!<)<<-?[ \t]*(['\"]?)\\?([A-Za-z_]\w*)\1")

_TOKEN = regex(
    r"(?P<space>(?:^[ \t]*+\#[^\n]*|[ \t\r]|\\\n)+)"
    r"|(?P<redirect>&>>?|\d*(?:<<<|<<-?|>>|>\||<>|>|<)(?:&[\d-])?)"
    r"|(?P<operator>\|\||\|&|&&|;;|[;|&\n()])"
    r"|(?P<word>(?:[^\s'\"\\;|&<>()]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+)",
    re.S | re.M,
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


def simple_commands(text: str) -> list[Simple]:
    """The simple commands of a command line in order; none where its quotes do not close."""
    return [*_simple_commands(text)]


def _without_heredocs(text: str) -> tuple[str, list[str]]:
    """The command without the bodies of its here-documents, also of those within quotes, and these bodies: they may
    hold any quotes.
    """
    kept: list[str] = []
    ends: list[str] = []
    bodies: list[str] = []
    for line in text.split("\n"):
        if ends and line.strip() == ends[0]:
            del ends[0]
        elif ends:
            bodies[-len(ends)] += f"{line}\n"
        else:
            kept.append(line)
            ends = [match[2] for match in _HEREDOC.finditer(line)]
            bodies += [""] * len(ends)
    return "\n".join(kept), bodies


@lru_cache(maxsize=32)  # of one command, which is asked for several things in a row
def _simple_commands(text: str) -> Sequence[Simple]:
    text, documents = _without_heredocs(text[:_LONGEST])
    text += "\n\n"  # these close the last command, also behind a backslash
    found: list[Simple] = []
    words, writes = list[str](), list[str]()
    certain, target, document, place = True, "", "", 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            return []
        place, value = token.end(), token.group()
        match token.lastgroup:
            case "redirect":
                target = "" if "&" in value[1:] else value
            case "operator":
                if words or writes:
                    found.append(Simple(tuple(words), tuple(writes), certain, document, value))
                words, writes, target, document = [], [], "", ""
                certain = value in ("\n", ";") or (certain and value != "||")
            case "word" if target:
                writes += [_plain(value)] if ">" in target else []
                document = documents.pop(0) if target in ("<<", "<<-") and documents else document
                target = ""
            case "word" if words or not _ASSIGNMENT.match(value):
                words.append(_plain(value))
    return found


def _plain(word: str) -> str:
    return _QUOTED.sub(lambda m: m[1] or m[2] or m[3] or "", word)


def placed(text: str, cwd: str) -> Iterator[tuple[Simple, str]]:
    """The simple commands of a command line, each with the folder in which it ran."""
    folder = cwd
    for one in simple_commands(text):
        yield one, folder
        if one.words[:1] == ("cd",):
            target = next((word for word in one.words[1:] if word == "-" or word[0] != "-"), "~")
            folder = "?" if _NOT_LITERAL.search(target) else joined(folder, target)
        if one.then == ")" and folder != cwd:
            folder = "?"  # whether the `cd` was within the brackets is not known


def joined(folder: str, path: str) -> str:
    """A path as seen from a folder; "?" for one that a variable or a program's output names."""
    if path.startswith(("/", "~", "\\")) or path[1:2] == ":":
        return posixpath.normpath(path) if path.startswith("/") else path
    is_unknown = path.startswith(("$", "`", "-")) or folder == "?"
    return "?" if is_unknown else posixpath.normpath(posixpath.join(folder, path))


# ---- commands that only look ----

_LOOKS = frozenset(
    "ls cat bat head tail less more grep egrep fgrep rg ag fd tree wc stat file du df pwd cd echo printf which"
    " type whoami date env sort uniq cut tr jq column diff cmp nl true test [ [[ ps pgrep sleep"
    " basename dirname realpath xxd hexdump md5 md5sum shasum sha256sum strings"
    " Get-Content Select-String Get-ChildItem Get-Item Get-Location Test-Path Resolve-Path Measure-Object Select-Object"
    " Sort-Object Format-Table Format-List Out-String Where-Object ForEach-Object findstr dir where".split()
)

_HUB = regex(r"(?<!\S)\S++ (?:view|list|diff|checks|status) ")

_LOOKS_IF = {
    "git": regex(
        r"(?:status|log|diff|diff-index|diff-tree|show|rev-parse|merge-base|ls-files|ls-tree|ls-remote|cat-file|blame"
        r"|reflog|describe|for-each-ref|shortlog|grep|rev-list|stash (?:list|show)|worktree list|remote -v"
        r"|branch (?:-a|-vv?|-r|--list|--show-current)|config (?:--list|--get|-l)) "
    ),
    **dict.fromkeys(("gh", "glab"), _HUB),
}
"""By program with what its words begin if it only looks."""

_CHANGES = {
    "sed": regex(r"^-[nErsz]*i|^--in-place"),
    "find": regex(r"^-(?:delete|exec|execdir|ok)\Z"),
    **dict.fromkeys(("awk", "gawk"), regex(r"^-i|>|system\(")),
}
"""By program what one of its words has if it changes something."""


def only_looks(text: str) -> bool:
    """Whether a command line changes and verifies nothing: it lists, searches or prints."""
    found = simple_commands(text)
    return bool(found) and all(map(looks, found))


def looks(simple: Simple) -> bool:
    """Whether a simple command lists, searches or prints, and changes nothing."""
    name, rest = program_of(simple.words), simple.words[1:]
    if any(target != "/dev/null" for target in simple.writes):
        return False
    if name in _LOOKS_IF:
        return _LOOKS_IF[name].match(" ".join([*git_words(rest)[0], ""])) is not None
    if name in _CHANGES:
        return not any(map(_CHANGES[name].search, rest))
    return name in _LOOKS or not simple.words


def git_words(words: Sequence[str], folder: str = "") -> tuple[list[str], str]:
    """The words of a call of git without its own options, and the folder in which these make it run."""
    left = list(words)
    while len(left) > 1 and left[0].startswith("-"):
        if left[0].startswith(("--git-dir", "--work-tree")):
            folder = "?"
        elif left[0] == "-C":
            folder = joined(folder, left[1])
        del left[: 2 if left[0] in ("-C", "-c") else 1]
    return left, folder


def program_of(words: Sequence[str]) -> str:
    """The name of the program that a command's words call, "" for none."""
    return words[0].rpartition("/")[2] if words else ""


# ---- what a command does to which files ----

_GIVES_SCRIPT = regex(r"-[a-zA-Z0-9]*[ef]|--expression|--file")


def touched(text: str, cwd: str) -> list[tuple[str, str]]:
    """(path, what was done to it) of the files that a passed command touched for certain; `cwd`: where it ran."""
    return [
        (joined(folder, path), did)
        for simple, folder in placed(text, cwd)
        if simple.certain and folder != "?"
        for path, did in _touched(simple)
        if not _SPECIAL.match(path) and not _NOT_LITERAL.search(path) and len(path) < 400
    ]


_SPECIAL = regex(r"(?:\.{1,2}|/|EOF|)$|/dev/|[-&]")


def _touched(simple: Simple) -> Iterator[tuple[str, str]]:
    name, rest = program_of(simple.words), simple.words[1:]
    if name in ("then", "else", "[[", "["):  # it may not have run; these compare
        return
    yield from ((target, "edited") for target in simple.writes if not target.isdigit())
    if name == "git" and rest[:1] in (("rm",), ("mv",)) and not {"--cached", "-n", "--dry-run"} & set(rest):
        name, rest = rest[0], rest[1:]
    operands = [word for word in rest if not word.startswith("-")]
    if name == "rm":
        yield from ((one, "deleted") for one in operands)
    elif name == "mv" and len(operands) == 2:
        yield operands[0], "deleted"
        if "." in program_of(operands[1:]).strip("."):  # otherwise the target may be a folder
            yield operands[1], "created"
    elif name == "sed" and any(map(_CHANGES[name].search, rest)):
        values = {number + 1 for number, word in enumerate(rest) if _GIVES_SCRIPT.fullmatch(word)}
        files = [word for number, word in enumerate(rest) if word and word[0] != "-" and number not in values]
        yield from ((one, "edited") for one in (files if values else files[1:]))


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


def flat(tool: str) -> str:
    """A tool's name without case and marks. One of an MCP server keeps the server's name."""
    return tool.lower().replace("_", "").replace("-", "")


_FINDS = regex(r"grep|glob|search|list|find|issue|comment")


def did_by(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a tool of this name does to the file that its arguments name; "" if it is no file tool."""
    name = flat(tool.rpartition("__")[2]).replace(".", "")
    if "strreplace" in name or "texteditor" in name:
        return {"view": "read", "create": "created"}.get(str(arguments.get("command", "")), "edited")
    if _FINDS.search(name) and "replace" not in name:
        return ""
    return next((did for word, did in _VERBS.items() if word in name), "")


_PATCH_KINDS = {"add": "created", "update": "edited", "delete": "deleted"}


def changed(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(path, what was done to it) of a call whose arguments list changes by path, as Codex tells a patch's outcome."""
    given = arguments.get("changes")
    changes = given.items() if isinstance(given, Mapping) else ()
    told = [(path, one) for path, one in changes if isinstance(one, Mapping)]
    kinds = [(path, "delete" if one.get("move_path") else str(one.get("type"))) for path, one in told]
    kinds += [(str(one["move_path"]), "add") for _, one in told if one.get("move_path")]
    return [(path, _PATCH_KINDS[kind]) for path, kind in kinds if kind in _PATCH_KINDS]


OLD_KEYS = ("old_string", "old_str", "oldText")
