"""What runs ralf: whether its Python stays (`uvx` and `pipx run` sweep theirs away), and which program `ralf` is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ralf.errors import UsageError
from ralf.storage.files import without_waiting
from ralf.text.patterns import regex

_OF_UV = regex(r"(?:archive|builds|environments)-v\d+")
_OF_PIPX = regex(r"[0-9a-f]{15}")
_SCRIPT = 64 << 10  # bytes of a program that are looked at
_LAUNCHER_MARKS = (b"ralf-loop", b"5-project-memory", b"RALF_PROJECT_DIR", b"BLACKBOX5")
_HINT = "install it to stay; in a clone of ralf: uv tool install . , or: pipx install ."

INSTALL = "in a clone of ralf: pipx install ."
_ON_THE_PATH = {"pipx_metadata.json": "pipx ensurepath", "uv-receipt.toml": "uv tool update-shell"}
"""By a file in an environment the command of its maker that puts its programs on the PATH."""


def check(prefix: str = "") -> None:
    """UsageError for an environment that its maker sweeps away. One that a person keeps below a cache folder is none.

    prefix  the environment's folder; "": that of this process
    """
    prefix = prefix or sys.prefix
    maker = maker_of(Path(prefix))
    if maker:
        what = f"this Python was made by `{maker}` for one run, and is swept away: no hook can name it"
        raise UsageError(prefix, what, _HINT)


def maker_of(prefix: Path) -> str:
    """The command that makes such environments, "" where this is none of them."""
    above = prefix.parent
    if _OF_UV.fullmatch(above.name):
        return "uvx"
    in_cache = above.name == "pipx" or (above.name == ".cache" and above.parent.name == "pipx")
    return "pipx run" if in_cache and _OF_PIPX.fullmatch(prefix.name) else ""


def how_to_find_ralf() -> str:
    """What to type where `ralf` is not on the PATH: this one may be installed."""
    found = (command for name, command in _ON_THE_PATH.items() if Path(sys.prefix, name).exists())
    return next((f"{command}, then open a new terminal" for command in found), INSTALL)


def is_ralf(program: str | os.PathLike[str]) -> bool:
    """Whether a program is a script that calls this command, of whatever version."""
    return b"ralf_cli" in _script(program)


def is_launcher(program: str | os.PathLike[str]) -> bool:
    """Whether a program is the `ralf` of a BlackBox5 tree, which starts its loop, and not this command."""
    head = _script(program)
    return b"ralf_cli" not in head and any(mark in head for mark in _LAUNCHER_MARKS)


def _script(program: str | os.PathLike[str]) -> bytes:
    """The beginning of a script; nothing of another program, or of one that cannot be read."""
    try:
        with open(program, "rb", opener=without_waiting) as file:
            head = file.read(_SCRIPT)
    except OSError:
        return b""
    return head if head.startswith(b"#!") else b""
