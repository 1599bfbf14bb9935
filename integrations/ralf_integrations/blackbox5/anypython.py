"""Lets a drop-in that is called as a file go on in the Python that ralf is installed in, whatever Python reads it.

Imports nothing of ours, and uses no syntax that Python 3.7 cannot read.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "ralf_integrations.blackbox5"
_OLDEST = (3, 11)
_NEEDED = ("ralf", "yaml", "frontmatter", "tiktoken")


def enter(file: str, *, running: bool) -> None:
    """Go on in this Python where it can run ralf, else in the one that ralf is installed in.

    file     the drop-in's `__file__`
    running  whether it is run as a command: then the other Python takes this process's place. Where none is found, it
             ends with status 1 and says what to type; an import raises ImportError with the same words
    """
    if sys.version_info >= _OLDEST and all(map(find_spec, _NEEDED)):
        return
    module = f"{_PACKAGE}.{Path(file).stem}"
    python = find(Path(file).resolve())
    if running and python:
        os.execv(python, [python, "-P", "-m", module, *sys.argv[1:]])  # noqa: S606
    told = f"{file}: {sys.executable} has no ralf; call this with the Python that has: "
    told += f"{python} {file}" if python else f"PYTHON -m {module}"
    if running:
        sys.exit(f"Error: {told}")
    raise ImportError(told)


def find(file: Path) -> str:
    """The Python that ralf is installed in: of the environment or the checkout that holds `file`, of the command `ralf`
    on the PATH; "" where there is none.
    """
    for folder in file.parents:
        for environment in (folder, folder / ".venv"):
            python = environment / "bin" / "python"
            if (environment / "pyvenv.cfg").exists() and os.access(python, os.X_OK):
                return str(python)
    return _of_command(shutil.which("ralf"))


def _of_command(path: str | None) -> str:
    """The Python of a script `ralf` that an installer has made; "" for any other program of this name."""
    if path is None:
        return ""
    with Path(path).open("rb") as file:
        head = file.read(2048).decode("utf-8", "replace")
    python = head[2:].partition("\n")[0].strip()
    return python if head.startswith("#!/") and "ralf_cli" in head and os.access(python, os.X_OK) else ""
