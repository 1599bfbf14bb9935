"""Systems other than Linux: what ralf says there, tried in processes that lack what those systems lack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import storekit

pytestmark = pytest.mark.ci

WINDOWS = """
import sys
import ralf.errors  # as installed
for module in ("fcntl", "posix", "pwd", "resource"):
    sys.modules[module] = None
sys.platform = "win32"
"""

MACOS = """
import ctypes, fcntl, os, sys, urllib.request  # the last one looks for a module that only macOS has
for name in [name for name in dir(fcntl) if name.startswith(("F_OFD_", "F_SETLEASE", "F_GETLEASE", "F_SETSIG"))]:
    delattr(fcntl, name)
sys.platform = "darwin"
import ralf.storage.durable
ralf.storage.durable._renameat2 = lambda: None
"""


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    variables = storekit.environment(folder / "home")
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=variables, capture_output=True, text=True)


def command(system: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(f"{system}\nsys.argv = {['ralf', *arguments]!r}\nfrom ralf_cli.start import run\nrun()", folder)


def test_on_windows_the_command_says_in_one_error_that_it_does_not_run_there(tmp_path: Path) -> None:
    for arguments in (["--version"], ["list"], ["hook", "SessionStart"]):
        done = command(WINDOWS, tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        error, hint = done.stderr.splitlines()
        assert error.startswith("error: ralf: ") and "Windows" in error and hint.startswith("hint: ")


def test_on_windows_the_library_raises_that_error(tmp_path: Path) -> None:
    call = "import ralf\ntry:\n    ralf.list_routes()\nexcept ralf.errors.RalfError as error:\n    print(error)"
    done = python(f"{WINDOWS}\n{call}", tmp_path)
    assert done.stdout.startswith("ralf: Windows is not supported"), done.stderr


def test_without_what_macos_lacks_a_decision_is_kept_and_read_again(tmp_path: Path) -> None:
    """Its own kernel is not tried: the features that it lacks are taken away on Linux."""
    (tmp_path / ".autonomous").mkdir()
    for text in ("Use SQLite", "Use one file"):
        done = command(MACOS, tmp_path, "decide", "tides", text, "--because", "it is small")
        assert done.returncode == 0, done.stderr
    done = command(MACOS, tmp_path, "show", "tides")
    assert "Use SQLite" in done.stdout and "Use one file" in done.stdout
    assert command(MACOS, tmp_path, "doctor", "--store").returncode == 0
