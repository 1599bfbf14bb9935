"""CONTRIBUTING.md: its paths are there, and its first recipe works on a copy of the source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import storekit

ROOT = Path(__file__).parents[1]
HARBOUR = '''"""Logs of a harbour: JSON lines, each with who said what."""
from ralf.transcripts.events import START
from ralf.transcripts.lines import Base, Log, Pass

class Harbour(Log):
    format = "harbour"

    def events(self, after=START):
        return self._read(_Pass(self.skipped), after)

class _Pass(Pass):
    def passed_over(self, line):
        return ""

    def events(self, record, line):
        yield Base(record, line, "").event("user" if record["who"] == "master" else "agent", record["said"])

def reader(path, head):
    is_ours = head.in_lines and any("who" in record for record in head.records)
    return Harbour(path, session="", cwd="", branch="") if is_ours else None
'''


@pytest.mark.ci
def test_a_module_and_an_entry_in_readers_read_another_client_s_log(tmp_path: Path) -> None:
    for top in storekit.PACKAGES.split(os.pathsep):
        shutil.copytree(top, tmp_path / Path(top).name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "day.log").write_text('{"who": "master", "said": "Log the tides"}\n{"who": "mate", "said": "Done"}\n')
    code = (
        "from pathlib import Path; from ralf.transcripts.reader import open_transcript\n"
        "print([(event.kind, event.text) for event in open_transcript(Path('day.log')).events()])"
    )
    folders = os.pathsep.join(str(tmp_path / Path(top).name) for top in storekit.PACKAGES.split(os.pathsep))

    def ran() -> str:
        environment = storekit.environment(tmp_path, PYTHONPATH=folders)
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=storekit.HANGS)
        return (done.stdout or done.stderr).decode()

    assert "DamagedTranscript" in ran()
    (tmp_path / "context/ralf/transcripts/harbour.py").write_text(HARBOUR, encoding="utf-8")
    readers = tmp_path / "context/ralf/transcripts/reader.py"
    text, notes = readers.read_text(encoding="utf-8"), "    from ralf.transcripts import notes\n\n    yield"
    assert text.count(notes) == 1
    ours = "    from ralf.transcripts import harbour\n\n    yield harbour.reader\n"
    readers.write_text(text.replace(notes, ours + notes), encoding="utf-8")
    assert ran() == "[('user', 'Log the tides'), ('agent', 'Done')]\n"


def test_the_paths_of_the_page_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:ralf|tests|cli|integrations|migrations)/[\w./]*)`", page):
        assert (ROOT / ("context" if path.startswith("ralf/") else "") / path).exists() or "NAME" in path, path
