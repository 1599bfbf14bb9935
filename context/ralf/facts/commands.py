"""Finds what commands, scripts and calls of file tools do to which files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ralf.text.patterns import regex

# ---- scripts ----

_LONGEST = 40_000  # characters of one script that are read

_LITERAL = r"""[rb]?["'][^"'\n{}]{1,300}["']"""

_STRING = regex(r"""["']([^"'\n{}]{1,300})["']""")

_NAMED = regex(
    r"(?m)(?:^|;)[ \t]{0,40}(\w{1,60})[ \t]?=[ \t]?(?:(?:pathlib\.)?Path\([ \t]?)?"
    rf"({_LITERAL})[ \t]?\)?[ \t]?(?=$|[;#])"
    r"|\bfor (\w{1,60}) in [\[(]([^\])]{1,2000})[\])][ \t]?:"
)
"""Names in Python that stand for a literal, or for each of several."""

_TARGET = rf"(?:(?:pathlib\.)?Path\([ \t]?)?({_LITERAL}|\w{{1,60}})[ \t]?\)?"

_IN_PYTHON = (
    (regex(rf"""\bopen\([ \t]?{_TARGET}[ \t]?,[ \t]?(?:mode=)?["'](?=[\w+]*?[wax+])\w{{1,3}}\+?\w?["']"""), "edited"),
    (
        regex(rf"""(?<![\w."'(]){_TARGET}\.(?:write_text|write_bytes|touch|open\([ \t]?(?:mode=)?["'][wax])"""),
        "edited",
    ),
    (regex(rf"\bos\.(?:remove|unlink)\([ \t]?{_TARGET}"), "deleted"),
    (regex(rf"(?<![\w.\"'(]){_TARGET}\.unlink\("), "deleted"),
)

_IN_NODE = regex(rf"\b(?:writeFileSync|writeFile|appendFileSync|appendFile|File\.write)\([ \t]?({_LITERAL})")

_IN_PATCH = regex(r"(?m)^\+\+\+ (?:b/)?([^\s\n]{1,300})")

_SCRIPTS = {
    "python": _IN_PYTHON,
    **dict.fromkeys(("node", "ruby", "bun", "deno"), ((_IN_NODE, "edited"),)),
    **dict.fromkeys(("patch", "git"), ((_IN_PATCH, "edited"),)),
}
"""By program what its script does to a file: the group of each pattern is the path, or in Python a name for it."""

_VERSION = regex(r"(?<=python)\d(?:\.\d{1,2})?$")


def _by_script(program: str, words: tuple[str, ...], document: str) -> Iterator[tuple[str, str]]:
    """(path as written, what is done to it) of the files that a program's script names, in its words or a document."""
    program = _VERSION.sub("", program)
    option = "-c" if program == "python" else "-e"
    script = document if program != "git" or words[:1] == ("apply",) else ""
    script = (words[words.index(option) + 1] if option in words[:-1] else script)[:_LONGEST]
    meant: dict[str, list[str]] = {}
    for match in _NAMED.finditer(script) if program == "python" else ():
        meant.setdefault(match[1] or match[3], []).extend(_STRING.findall(match[2] or match[4]))
    for pattern, did in _SCRIPTS.get(program, ()):
        for target in pattern.findall(script):
            literal = target if program in ("patch", "git") else "".join(_STRING.findall(target))
            yield from ((path, did) for path in ([literal] if literal else meant.get(target, ())))


# ---- command lines ----

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
    bodies: list[list[str]] = []
    for line in text.split("\n"):
        if ends and line.strip() == ends[0]:
            del ends[0]
        elif ends:
            bodies[-len(ends)].append(line)
        else:
            kept.append(line)
            ends = [match[2] for match in _HEREDOC.finditer(line)]
            bodies += [[] for _ in ends]
    return "\n".join(kept), ["\n".join(body) for body in bodies]


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
                if ">" in target:
                    writes.append(_plain(value))
                elif target in ("<<", "<<-") and documents:
                    document = documents.pop(0)
                target = ""
            case "word" if words or not _ASSIGNMENT.match(value):
                words.append(_plain(value))
    return found


def _plain(word: str) -> str:
    return _QUOTED.sub(lambda m: m[1] or m[2] or m[3] or "", word)


def placed(text: str, cwd: str) -> Iterator[tuple[Simple, str]]:
    """The simple commands of a command line, each with the folder in which it ran."""
    folder, nested = cwd, 0
    for one in simple_commands(text):
        yield one, folder
        if one.words[:1] == ("cd",):
            target = next((word for word in one.words[1:] if word == "-" or word[0] != "-"), "~")
            folder = "?" if _NOT_LITERAL.search(target) else joined(folder, target)
        if one.then == "(":  # of `$(…)`: that of a group has no words before it
            nested += 1
        elif one.then == ")":
            folder, nested = folder if nested else cwd, max(nested - 1, 0)


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

_GIT_LOOKS = (
    "status|log|diff|diff-index|diff-tree|show|rev-parse|merge-base|ls-files|ls-tree|ls-remote|cat-file|blame|reflog"
    "|describe|for-each-ref|shortlog|grep|rev-list|fsck|count-objects"
    r"|branch (?:.* )?(?:-a|-vv?|-r|--list|--show-current)|config (?:.* )?(?:--list|--get|-l)|worktree (?:.* )?list"
    r"|stash (?:.* )?(?:list|show)|remote (?:.* )?(?:-v|show)"
)

_HUB = regex(
    r"api (?!.*(?<= )(?:-X|-f|-F|--method|--(?:raw-)?field|--input))|\S+ (?:view|list|diff|checks|status) ", re.S
)

_AWK = regex(r"(?!.*(?:(?<= )-i|>|system\())", re.S)

_INLINE = {"sed": regex(r"-[nErsz]*i\S*|--in-place\S*"), "perl": regex(r"-[a-z0-9]*i\S*")}

_LOOKS_IF = {
    "git": regex(rf"(?:-[Cc] \S+ |--no-pager )*+(?:{_GIT_LOOKS}) ", re.S),
    **dict.fromkeys(("gh", "glab"), _HUB),
    **dict.fromkeys(("awk", "gawk", "mawk"), _AWK),
    "sed": regex(r"(?!.*(?<= )(?:-[nErsz]*i|--in-place))", re.S),
    "find": regex(r"(?!.*(?<= )(?:-delete|-exec|-execdir|-ok) )", re.S),
}
"""By program what its other words must be so that it only looks."""


def only_looks(text: str) -> bool:
    """Whether a command line changes and verifies nothing: it lists, searches or prints."""
    found = simple_commands(text)
    return bool(found) and all(map(_looks, found))


def _looks(simple: Simple) -> bool:
    name, rest = program_of(simple.words), "".join(f"{word} " for word in simple.words[1:])
    does = _LOOKS_IF[name].match(f" {rest}", 1) is not None if name in _LOOKS_IF else name in _LOOKS or not simple.words
    return does and all(target == "/dev/null" for target in simple.writes)


def program_of(words: Sequence[str]) -> str:
    """The name of the program that a command's words call, "" for none."""
    return words[0].rpartition("/")[2] if words else ""


# ---- what a command does to which files ----

_ALL_OPERANDS = {"rm": "deleted", "unlink": "deleted", "tee": "edited"}

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
    words = simple.words
    while words and words[0] in ("sudo", "command", "time", "do"):
        words = words[1:]
    name, rest = program_of(words), words[1:]
    if name in ("then", "else"):  # it may not have run
        return
    if name not in ("[[", "["):
        yield from ((target, "edited") for target in simple.writes if not target.isdigit())
    if name == "git" and rest[:1] in (("rm",), ("mv",)) and not {"--cached", "-n", "--dry-run"} & set(rest):
        name, rest = rest[0], rest[1:]
    operands = _operands(rest)
    if name in _ALL_OPERANDS:
        yield from ((one, _ALL_OPERANDS[name]) for one in operands)
    elif name == "mv" and len(operands) > 1 and not any(word.startswith(("-t", "--target")) for word in rest):
        yield from ((one, "deleted") for one in operands[:-1])
        if len(operands) == 2 and "." in program_of(operands[1:]).strip("."):  # otherwise the target may be a folder
            yield operands[1], "created"
    elif name in _INLINE and any(_INLINE[name].fullmatch(word) for word in rest):
        values = {number + 1 for number, word in enumerate(rest) if _GIVES_SCRIPT.fullmatch(word)}
        files = [word for number, word in enumerate(rest) if word and word[0] != "-" and number not in values]
        yield from ((one, "edited") for one in (files if values else files[1:]))
    else:
        yield from _by_script(name, rest, simple.document)


def _operands(words: tuple[str, ...]) -> list[str]:
    """Words that are not options."""
    place = words.index("--") if "--" in words else len(words)
    return [word for word in words[:place] if not word.startswith("-")] + list(words[place + 1 :])


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


_FINDS = regex(r"grep|glob|search|list|find|issue|comment")

_FILE = regex(r"[^/\\]\.[A-Za-z]\w{0,7}$")


def did_by(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a tool of this name does to the file that its arguments name; "" if it is no file tool."""
    name = tool.lower().rpartition("__")[2].replace("_", "").replace("-", "").replace(".", "")
    if "strreplace" in name or "texteditor" in name:
        return {"view": "read", "create": "created"}.get(str(arguments.get("command", "")), "edited")
    if _FINDS.search(name) and "replace" not in name:
        return "read" if "grep" in name and _FILE.search(named_in(arguments)) else ""  # one file was searched
    return next((did for word, did in _VERBS.items() if word in name), "")


_CHANGES = {"add": "created", "update": "edited", "delete": "deleted"}


def changed(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(path, what was done to it) of a call whose arguments list changes by path, as Codex tells a patch's outcome."""
    given = arguments.get("changes")
    found: list[tuple[str, str]] = []
    for path, change in given.items() if isinstance(given, Mapping) else ():
        told = change if isinstance(change, Mapping) else {}
        did, moved = _CHANGES.get(str(told.get("type"))), told.get("move_path")
        if did:
            found += [(path, "deleted"), (moved, "created")] if isinstance(moved, str) and moved else [(path, did)]
    return found


OLD_KEYS = ("old_string", "old_str", "oldText")
