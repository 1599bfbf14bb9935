"""The installed command `ralf`, as a person has it: its console script, with its modules compiled."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from pathlib import Path

from measure import IMPORT_ROOTS, ROOT


def ralf() -> str:
    """The console script beside this interpreter. SystemExit when it is missing or runs another checkout."""
    script = Path(sys.executable).with_name("ralf")
    if not script.exists():
        raise SystemExit(f"{script}: no such command; install this checkout there: pip install -e .")
    where = "import ralf_cli; print(ralf_cli.__file__)"
    found = subprocess.run([sys.executable, "-c", where], capture_output=True, text=True, cwd="/", check=False).stdout
    if not Path(found.strip()).is_relative_to(ROOT):
        raise SystemExit(f"{script}: runs {found.strip() or 'nothing'}; install this checkout there: pip install -e .")
    _compile()
    return str(script)


def _compile() -> None:
    """Compile every module, as an installer does; a session that forbids writing bytecode measures the compiler."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for root in IMPORT_ROOTS:
        compileall.compile_dir(root, quiet=2)
