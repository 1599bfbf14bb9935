"""The recipes of CONTRIBUTING.md, followed on a copy of the source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import storekit

pytestmark = pytest.mark.ci

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the packages, to be changed."""
    for top in storekit.PACKAGES.split(os.pathsep):
        shutil.copytree(top, tmp_path / "source" / Path(top).name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "source"


def run(source: Path, *arguments: str) -> str:
    """What a Python with the changed packages prints."""
    folders = os.pathsep.join(str(source / Path(top).name) for top in storekit.PACKAGES.split(os.pathsep))
    environment = storekit.environment(source.parent, PYTHONPATH=folders)
    command = [sys.executable, "-W", "ignore", *arguments]
    done = subprocess.run(command, cwd=source.parent, env=environment, capture_output=True, timeout=storekit.HANGS)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def put(path: Path, before: str, line: str) -> None:
    """Put a line before the only place of a text."""
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    path.write_text(text.replace(before, f"{line}\n{before}"), encoding="utf-8")


def test_one_line_in_the_table_of_formats_redacts_another_vendor_s_token(source: Path) -> None:
    put(source / "context/ralf/data/secrets.tsv", "google-key\t", "tidepool\ttdp_\t%a{20,}+")
    code = (
        "from ralf.project import find; from ralf.redact import redactor_for\n"
        "print(redactor_for(find('.')).text('sent tdp_q8Zk2LmX0vB7nC4tRy1W to the gauge, not tdp_short'))"
    )
    assert re.fullmatch(r"sent \[REDACTED:tidepool:\w+\] to the gauge, not tdp_short\n", run(source, "-c", code))


def test_a_module_and_an_entry_in_its_group_make_a_command(source: Path) -> None:
    command = 'import click\n@click.command()\ndef hello():\n    """Say hello."""\n    click.echo("hello")\n'
    (source / "cli/ralf_cli/hello.py").write_text(command, encoding="utf-8")
    put(
        source / "cli/ralf_cli/main.py",
        '            "list": "ralf_cli.',
        '            "hello": "ralf_cli.hello:hello",',
    )
    assert run(source, "-m", "ralf_cli", "hello") == "hello\n"


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


def test_a_module_and_an_entry_in_readers_read_another_client_s_log(source: Path) -> None:
    log = source.parent / "day.log"
    log.write_text('{"who": "master", "said": "Log the tides"}\n{"who": "mate", "said": "Done"}\n', encoding="utf-8")
    code = (
        "from pathlib import Path; from ralf.transcripts.reader import open_transcript\n"
        "print([(event.kind, event.text) for event in open_transcript(Path('day.log')).events()])"
    )
    with pytest.raises(AssertionError, match="DamagedTranscript"):
        run(source, "-c", code)
    (source / "context/ralf/transcripts/harbour.py").write_text(HARBOUR, encoding="utf-8")
    entry = "    from ralf.transcripts import harbour\n\n    yield harbour.reader"
    put(source / "context/ralf/transcripts/reader.py", "    from ralf.transcripts import notes\n\n    yield", entry)
    assert run(source, "-c", code) == "[('user', 'Log the tides'), ('agent', 'Done')]\n"


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:ralf|tests|cli|integrations|migrations)/[\w./]*)`", PAGE)))
)
def test_each_path_of_the_page_is_there(path: str) -> None:
    assert (ROOT / ("context" if path.startswith("ralf/") else "") / path).exists() or "NAME" in path
