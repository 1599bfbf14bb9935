"""The documentation says what the code does."""

from __future__ import annotations

import re
import shlex
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
from ralf_cli.aliases import resolved
from ralf_cli.command import GLOBAL
from ralf_cli.main import main
from ralf_integrations.blackbox5 import dropins
from ralf_integrations.blackbox5.budget import ContextBudget

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


def test_the_readme_has_exactly_two_set_up_commands_one_of_which_runs_the_tests() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", read("README.md"), re.S)
    assert [len(block.strip().splitlines()) for block in blocks] == [1, 1]
    assert "ralf --root examples checkpoint" in blocks[0]
    assert blocks[1].rstrip().endswith("-m pytest --numprocesses auto --dist worksteal --quiet")


def test_config_md_names_every_key_with_its_default_and_no_other() -> None:
    rows = dict(re.findall(r"(?m)^\| `(\w+)` \| (?:`([^`]*)`)? ?\|", read("docs/config.md").split("## The env")[0]))
    assert rows == {field.name: "" if field.default == () else str(field.default) for field in fields(config.Config)}


@pytest.mark.parametrize("local", [False, True])
def test_config_md_begins_to_say_of_each_key_what_config_list_says(local: bool) -> None:
    text = read("docs/config.md").split("| local key |")[1] if local else read("docs/config.md").split("## The env")[0]
    said = dict(re.findall(r"(?m)^\| `(\w+)` \|[^|]*\| (?:\* )?(.*?) \|$", text))
    meanings = settings.meanings(local=local)
    assert list(meanings) == [field.name for field in fields(local_config.LocalConfig if local else config.Config)]
    for key, does in meanings.items():
        assert re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", said[key]).startswith(does), key
        assert len(does) <= 100, key


def test_config_md_names_every_local_key_with_its_default_and_no_other() -> None:
    rows = dict(re.findall(r"(?m)^\| `(\w+)` \| (?:`([^`]*)`)? ?\|", read("docs/config.md").split("| local key |")[1]))
    defaults = {field.name: field.default for field in fields(local_config.LocalConfig)}
    assert rows == {name: str(default or "") for name, default in defaults.items()}


@pytest.mark.parametrize(
    "cls", [model.Decision, model.ActiveWork, model.Facts, model.Checkpoint, model.Spend, model.Header]
)
def test_format_md_names_every_field(cls: type) -> None:
    words = set(re.findall(r"\w+", read("docs/format.md")))
    assert {field.name for field in fields(cls)} - {"extra"} <= words


def test_format_md_names_every_kind_of_record() -> None:
    assert set(re.findall(r"(?m)^\| `(\w+)` \| `", read("docs/format.md").split("The record of a route")[1])) >= set(
        _KINDS
    )


def test_every_module_says_its_purpose_in_its_first_line() -> None:
    for path in ROOT.glob("*/ralf*/**/*.py"):
        first = path.read_text(encoding="utf-8").split("\n", 1)[0]
        assert re.match(r'"""\w|"""`', first), path


def test_no_module_is_a_drawer_for_leftovers() -> None:
    names = {path.stem for path in ROOT.glob("*/ralf*/**/*.py")}
    assert not names & {"utils", "util", "helpers", "helper", "common", "misc"}


def test_links_between_the_documents_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("module", "home"),
    [
        ("click", "cli/ralf_cli"),
        ("rich", "cli/ralf_cli"),
        ("tiktoken", "context/ralf/text/tokens.py"),
        ("frontmatter", "context/ralf/route/routefile.py"),
        ("yaml", "context/ralf/document/guarded_yaml.py"),
    ],
)
def test_a_library_is_imported_in_its_one_place_only(module: str, home: str) -> None:
    pattern = re.compile(rf"(?m)^\s*(?:import|from) {module}\b")
    for path in ROOT.glob("*/ralf*/**/*.py"):
        if pattern.search(path.read_text(encoding="utf-8")):
            assert path.relative_to(ROOT).as_posix().startswith(home), path


@pytest.mark.ci
def test_only_environment_py_looks_at_the_environment() -> None:
    """And `answers.py`, which gives an answer again before anything of ralf is loaded."""
    for path in ROOT.glob("*/ralf*/**/*.py"):
        if re.search(r"\bos\.(?:environ|getenv)\b", path.read_text(encoding="utf-8")):
            assert path.name in ("environment.py", "answers.py"), path


# ---- examples ----


@pytest.mark.ci
def test_the_python_of_every_page_imports_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    dropins.main(["install", str(tmp_path)])
    before = set(sys.modules)
    ran = 0
    for page in PAGES:
        storekit.write_session(tmp_path / "session.jsonl", 800, page)
        names = {"run_dir": tmp_path, "budget": ContextBudget(run_dir=tmp_path), "__name__": page}
        for language, block in _FENCED.findall(read(page)):
            if language == "python":
                exec(compile(block, page, "exec"), names)  # noqa: S102
                ran += 1
    for name in set(sys.modules) - before & set(dropins.NAMES):
        sys.modules.pop(name, None)
    assert ran >= 5


def commands_of(page: str) -> Iterator[list[str]]:
    """The words behind `ralf` in every command line of a page: in its blocks, and in code within its text."""
    text = read(page)
    blocks = [line.removeprefix("$ ") for _, block in _FENCED.findall(text) for line in block.splitlines()]
    for line in [*blocks, *re.findall(r"`([^`\n]+)`", _FENCED.sub("", text))]:
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
