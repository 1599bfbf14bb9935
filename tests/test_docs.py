"""The documents say what the code does: keys, fields, links, and every example runs alone."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

import storekit
from ralf import config, model
from ralf.config import local_config, settings
from ralf.route.fold import _KINDS
from ralf_cli.command import GLOBAL
from ralf_cli.main import main
from ralf_cli.names import resolved
from ralf_integrations.blackbox5 import dropins
from test_cli_sessions import Shell, Step, steps_of

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("integrations/ralf_integrations/texts/**/*.md"),
    )
)
_FENCED = re.compile(r"(?ms)^```(\w*)\n(.*?)^```")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(*languages: str) -> list[tuple[str, str]]:
    """The page and the text of each block in one of these languages."""
    found = [(page, *block) for page in PAGES for block in _FENCED.findall(read(page))]
    return [(page, text) for page, language, text in found if language in languages]


def test_the_readme_has_exactly_two_set_up_commands_one_of_which_runs_the_tests() -> None:
    one, other = re.findall(r"```sh\n(.*)\n```", read("README.md"))
    assert "ralf --root examples checkpoint" in one
    assert other.endswith("-m pytest --numprocesses auto --dist worksteal --quiet")


@pytest.mark.parametrize("local", [False, True])
def test_config_md_names_every_key_with_its_default_and_its_meaning(local: bool) -> None:
    parts = read("docs/config.md").split("## The env")[0], read("docs/config.md").split("| local key |")[1]
    rows = re.findall(r"(?m)^\| `(\w+)` \| (?:`([^`]*)`)? ?\| (?:\* )?(.*) \|$", parts[local])
    known = fields(local_config.LocalConfig if local else config.Config)
    assert {key: default for key, default, _ in rows} == {one.name: str(one.default or "") for one in known}
    for key, _, said in rows:
        does = settings.meanings(local=local)[key]
        assert re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", said).startswith(does), key
        assert len(does) <= 100, key


def test_format_md_names_every_field_and_every_kind_of_record() -> None:
    page = read("docs/format.md")
    words = set(re.findall(r"\w+", page))
    for kind in (model.Decision, model.ActiveWork, model.Facts, model.Checkpoint, model.Spend, model.Header):
        assert {field.name for field in fields(kind)} - {"extra"} <= words, kind
    assert set(re.findall(r"(?m)^\| `(\w+)` \| `", page.split("The record of a route")[1])) >= set(_KINDS)


def anchors(page: Path) -> set[str]:
    """The anchors that a host makes of the headings of a page."""
    found = re.findall(r"(?m)^#+ (.*)$", _FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_links_lead_to_a_page_and_a_heading() -> None:
    for page in map(ROOT.joinpath, PAGES):
        for name, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
            path = page.parent / name if name else page
            assert path.exists(), f"{page.name}: {name}"
            assert not anchor or anchor in anchors(path), f"{page.name}: {name}#{anchor}"


@pytest.mark.ci
def test_the_code_names_pages_and_headings_that_there_are() -> None:
    for path in (*ROOT.glob("*/ralf*/**/*.py"), ROOT / "pyproject.toml"):
        for name, anchor in re.findall(r"\b(docs/[\w-]+\.md)(?:#([\w-]+))?", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path}: {name}"
            assert not anchor or anchor in anchors(ROOT / name), f"{path}: {name}#{anchor}"


# ---- examples ----

_PYTHON = blocks("python")
_PRELUDE = """\
from pathlib import Path
from ralf_integrations.blackbox5.context_budget import ContextBudget
run_dir, budget = Path.cwd(), ContextBudget(run_dir=Path.cwd())
"""


@pytest.mark.ci(seconds=4)
@pytest.mark.parametrize(("page", "text"), _PYTHON, ids=[f"{page}-{at}" for at, (page, _) in enumerate(_PYTHON)])
def test_each_python_example_runs_alone(tmp_path: Path, page: str, text: str) -> None:
    """Pasted into a new file of a new project; what it asserts holds."""
    storekit.write_session(tmp_path / "session.jsonl", 800)
    of_the_loop = page == "docs/ralf-loop.md"
    if of_the_loop:
        dropins.main(["install", str(tmp_path)])
    (tmp_path / "block.py").write_text(_PRELUDE * of_the_loop + text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "block.py"],
        cwd=tmp_path,
        env=storekit.environment(tmp_path / "home"),
        capture_output=True,
        text=True,
        timeout=storekit.HANGS,
    )
    assert ran.returncode == (-9 if "SIGKILL" in text else 0), ran.stderr


@pytest.mark.parametrize(("page", "text"), [one for one in blocks("yaml") if one[0].startswith("docs/")])
def test_each_yaml_example_is_a_configuration(tmp_path: Path, page: str, text: str) -> None:
    path = tmp_path / "config.local.yaml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    local_config.load_local_config(path)


_CLIENT = """#!/bin/sh
ralf task done "The schema is written" >/dev/null 2>&1
echo '{"type": "result", "structured_output": {"now": "The schema is written", "next": ["Read CSV files"]}}'
"""
_STAGE = """\
git init -q && mkdir -p .beads runs/executor/run-0001 src && touch src/reader.py
ralf init --yes --verify-commands
ralf config threshold 1000
ralf checkpoint TASK-001 --transcript session.jsonl
ralf config threshold --default
ralf decide TASK-001 "One" && ralf decide TASK-001 "Two" && ralf decide TASK-001 "Three"
CLAUDECODE=1 ralf memory add preference "quotes: double"
echo '{"id": "bd-1", "title": "Write it", "status": "open", "priority": 2, "issue_type": "task"}' >.beads/issues.jsonl
printf '# RESULTS\\n\\n**Status:** PARTIAL\\n\\nIt is read.\\n' >runs/executor/run-0001/RESULTS.md
ralf checkpoint TASK-001
"""
_ELSEWHERE = ("ralf web", "ralf mcp", "ralf trust Ann")  # a server; what another clone has shared
_GUIDES = ("docs/library.md", "docs/ralf-loop.md", "docs/cli.md")  # typed whole by tests of their own, or generated


class Project:
    """A project with a route of checkpoints and decisions, a live session, an offer of memory, and clients."""

    def __init__(self, folder: Path) -> None:
        self.shell, self._folders = Shell(folder), (folder / "my project", folder / "home")
        for name, text in {"claude": _CLIENT, "codex": _CLIENT, "pytest": "#!/bin/sh\n"}.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        log = storekit.session_log(folder / "home", self.shell.folder, "3f2a9100-0000-4000-8000-000000000000")
        storekit.write_session(log, 3_000, log.stem)
        for command in _STAGE.splitlines():
            self.type(command)
        self._kept = folder / "kept"
        for one in self._folders:
            shutil.copytree(one, self._kept / one.name, symlinks=True)

    def type(self, command: str) -> None:
        """Type a command as a person who agrees; fails unless it succeeds."""
        printed = self.shell.run(re.sub(r"ralf init\b(?!.*--yes)", "ralf init --yes", command))
        assert not printed or not printed[-1].startswith("[status"), "\n".join((command, *printed))

    def reset(self) -> None:
        """The project as it was made."""
        for one in self._folders:
            shutil.rmtree(one)
            shutil.copytree(self._kept / one.name, one, symlinks=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("docs"))


def here_document(step: Step) -> list[str]:
    """The lines behind a command that it reads."""
    return step.expected[: step.expected.index("EOF") + 1] if "<<" in step.command else []


def typed(language: str, text: str) -> Iterator[str]:
    """The commands of ralf in a block that need no other program than the stand-ins."""
    joined = re.sub(r"\\\n", "", text)
    if language == "console":
        steps = steps_of(f"```console\n{joined}```".splitlines())
        commands = [one.command + "".join(f"\n{line}" for line in here_document(one)) for one in steps]
    else:
        commands = re.sub(r",\n", ",", joined).splitlines()
    for command in commands:
        if re.match(r"(echo .*\| *)?ralf\b", command) and not command.startswith(_ELSEWHERE):
            yield command


_COMMANDS = [
    (page, list(typed(language, text)))
    for page in PAGES
    if page not in _GUIDES
    for language, text in _FENCED.findall(read(page))
    if language in ("console", "sh", "bash")
]
_COMMANDS = [(page, commands) for page, commands in _COMMANDS if commands]


@pytest.mark.ci(seconds=10)
@pytest.mark.parametrize(
    ("page", "commands"), _COMMANDS, ids=[f"{page}-{at}" for at, (page, _) in enumerate(_COMMANDS)]
)
def test_each_block_of_commands_runs_alone(project: Project, page: str, commands: list[str]) -> None:
    project.reset()
    for command in commands:
        project.type(command)


@pytest.mark.ci(seconds=10)
def test_each_line_that_comes_from_aqua_runs(project: Project) -> None:
    project.reset()
    client = project.shell.folder.parent / "bin" / "claude"
    client.write_text(_CLIENT.replace("ralf", "sleep 2; ralf", 1))  # there is time to follow the loop
    rows = re.findall(r"(?m)^\| `aqua [^|]*\| `(?:setsid )?(ralf [^`]*?)(?: &)?`", read("docs/tasks.md"))
    assert len(rows) == 15
    for command in sorted(rows, key=lambda row: row.startswith("ralf task fail")):  # then the loop has nothing to do
        if command.startswith("ralf task fail"):
            project.type('ralf task add "Serve it" && ralf task claim')
        project.type(command)


def commands_of(page: str) -> Iterator[list[str]]:
    """The words behind `ralf` in every command line of a page: in blocks, but for help's prose, and in code in text."""
    text = read(page)
    lines = re.findall(r"(?m)^(?:\$ )?((?! {2}[\w-]).*)$", "\n".join(block for _, block in _FENCED.findall(text)))
    for line in [*lines, *re.findall(r"`([^`\n]+)`", _FENCED.sub("", text))]:
        for part in re.split(r"[|;&]+|\s#|\s[<>]", line):
            found = re.match(r"""\s*(?:"\$door" |"\$python" -m |\.venv/bin/|! |\w+=\S+ )*ralf(?:_cli)? +(.+)""", part)
            if found:
                try:
                    yield shlex.split(found[1].replace("[", " ").replace("]", " "))
                except ValueError:  # a quotation goes on in the next line
                    continue


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_of_a_page_is_one_with_options_that_there_are(page: str) -> None:
    for words in commands_of(page):
        if not words or words[0].endswith(",") or words[0] == "help":  # prose, or what the help is asked for
            continue
        command: click.Command = main
        options: dict[str, click.Parameter] = {}
        value = False
        for word in resolved(words):
            options |= {name: option for option in (*command.params, *GLOBAL) for name in option.opts}
            name, given, _ = word.partition("=")
            if value or not word.strip("-"):
                value = False
            elif word.startswith("-"):
                option = options.get(name.rstrip(".,:"))
                assert option is not None or name in ("-h", "--help"), f"{page}: {' '.join(words)}: {word}"
                value = isinstance(option, click.Option) and not option.is_flag and not given
            elif isinstance(command, click.Group) and re.fullmatch(r"[a-z-]+", word):
                found = command.get_command(click.Context(command), word)
                assert found is not None, f"{page}: {' '.join(words)}: {word}"
                command = found
