"""Whether the Python that runs us will still be there tomorrow: what `uvx` and `pipx run` make is swept away."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ralf.errors import UsageError

_OF_UV = re.compile(r"(?:archive|builds|environments)-v\d+")
_OF_PIPX = re.compile(r"[0-9a-f]{15}")
_HINT = "install it to stay; in a clone of ralf: uv tool install . , or: pipx install ."


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
