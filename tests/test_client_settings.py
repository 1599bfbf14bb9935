"""Installing for a client: what is put into files that are not ours, and that it comes out of them byte for byte."""

from __future__ import annotations

import json
import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings as hypothesis_settings, strategies as st

from examples import examples
from ralf.errors import Busy, UsageError
from ralf.project import Project
from ralf_integrations.client import CLAUDE_CODE, CODEX, GEMINI, OPENCODE, Client
from ralf_integrations.clients import agents_md, installation, interpreter, jsontext, settings
from ralf_integrations.clients.installation import Change, Part

CLIENTS = (CLAUDE_CODE, CODEX, GEMINI)


def hooks_of(root: Path, client: Client = CLAUDE_CODE, *, shared: bool = False) -> Part:
    return installation.of_client(Project(root), client, shared=shared)


def install(root: Path, part: Part) -> Change | None:
    project = Project(root)
    change = installation.plan(project, part)
    if change is not None:
        installation.apply(project, change)
    return change


def uninstall(root: Path, part: Part) -> Change | None:
    project = Project(root)
    change = installation.plan_removal(project, part)
    if change is not None:
        installation.apply(project, change)
    return change


def written(root: Path, text: str | bytes, client: Client = CLAUDE_CODE) -> Path:
    path = client.path(root, shared=False)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ---- arbitrary settings ----

names = st.text(string.ascii_letters + 'é"\\\n😀 ', max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
commands = st.sampled_from(
    ["echo hi", "ralf-lint", "python3 -I -S x.py", "ralf hook Stop && date", "notify 'a b'", "'"]
)
handlers = st.fixed_dictionaries({"type": st.just("command"), "command": commands}, optional={"timeout": st.integers()})
groups = st.fixed_dictionaries({"hooks": st.lists(handlers, max_size=3)}, optional={"matcher": st.text(max_size=5)})
events = st.sampled_from(["SessionStart", "Stop", "PreToolUse", "PostToolBatch", "Notification"])
hook_maps = st.dictionaries(events, st.lists(groups, max_size=3), max_size=4)
trees = st.tuples(st.dictionaries(names, values, max_size=4), st.none() | hook_maps, st.booleans()).map(
    lambda parts: _with_hooks(*parts)
)


def _with_hooks(tree: dict[str, Any], hooks: Any, first: bool) -> dict[str, Any]:
    tree.pop("hooks", None)
    if hooks is None:
        return tree
    return {"hooks": hooks, **tree} if first else {**tree, "hooks": hooks}


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Settings as anybody may have written them: indented, or not, in any way, with any line end."""
    tree = draw(trees)
    indent = draw(st.sampled_from([None, 0, 1, 2, 3, 4, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,  ", " : ")]))
    text = json.dumps(tree, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    before, behind = (
        draw(st.sampled_from(["", "\n", "  ", "\ufeff"])),
        draw(st.sampled_from(["", "\n", "\n\n ", "\r\n"])),
    )
    return f"{before}{text}{behind}"


ENTRIES = {client.name: client.entries(shared=False) for client in CLIENTS}


@given(texts(), st.sampled_from(CLIENTS))
@hypothesis_settings(max_examples=examples(15), deadline=None)
def test_what_is_installed_comes_out_again_and_all_else_stays(text: str, client: Client) -> None:
    comes_out_again(text, client)


def comes_out_again(text: str, client: Client) -> None:
    path, wanted = Path("settings.json"), ENTRIES[client.name]
    after, ranges = jsontext.inserted(text, settings.insertions(path, text, client.groups(shared=False)))
    assert jsontext.cut(after, ranges) == text
    before_tree, after_tree = json.loads(text.lstrip("\ufeff")), json.loads(after.lstrip("\ufeff"))
    assert settings.ours(path, text) == []
    assert sorted(settings.ours(path, after), key=repr) == sorted(wanted.items(), key=repr)
    assert {key: value for key, value in after_tree.items() if key != "hooks"} == {
        key: value for key, value in before_tree.items() if key != "hooks"
    }
    assert list(after_tree)[: len(before_tree)] == list(before_tree)
    for event, there in before_tree.get("hooks", {}).items():
        assert after_tree["hooks"][event][: len(there)] == there
    stripped = json.loads(settings.stripped(path, after).lstrip("\ufeff"))
    assert _filled(stripped) == _filled(before_tree)


def _filled(tree: dict[str, Any]) -> dict[str, Any]:
    """Settings without what is empty in their hooks: where the record is lost, nobody knows that it stood there."""
    hooks = {event: groups for event, groups in tree.get("hooks", {}).items() if groups}
    rest = {key: value for key, value in tree.items() if key != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


# ---- one file ----


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.json"
    elsewhere.write_text("{}")
    path = written(tmp_path, "{}")
    path.unlink()
    path.symlink_to(elsewhere)
    with pytest.raises(UsageError):
        install(tmp_path, hooks_of(tmp_path))
    path.unlink()
    path.hardlink_to(elsewhere)
    with pytest.raises(UsageError):
        install(tmp_path, hooks_of(tmp_path))
    path.unlink()
    path.parent.rmdir()
    (tmp_path / "real").mkdir()
    path.parent.symlink_to(tmp_path / "real")
    with pytest.raises(UsageError):
        install(tmp_path, hooks_of(tmp_path))
    assert elsewhere.read_text() == "{}"


def test_no_folder_on_the_way_to_a_file_may_be_a_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / ".opencode").symlink_to(outside)  # the plugin lies two folders below the project
    project = Project(root)
    with pytest.raises(UsageError, match="symbolic link"):
        installation.plan(project, installation.of_client(project, OPENCODE, shared=False))
    assert not list(outside.iterdir())


@pytest.mark.parametrize("text", [None, "{}\n"])
def test_what_another_program_saves_while_ours_is_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    project, part = Project(tmp_path), hooks_of(tmp_path)
    if text is not None:
        part.path.parent.mkdir(parents=True)
        part.path.write_text(text)
    change = installation.plan(project, part)
    assert change is not None
    theirs, sync = '{"permissions": {"allow": ["Bash(ls)"]}}\n', os.fsync

    def saved_meanwhile(descriptor: int) -> None:
        sync(descriptor)
        if list(part.path.parent.glob(".ralf-*")) and (not part.path.exists() or part.path.read_text() == text):
            part.path.with_suffix(".theirs").write_text(theirs)
            part.path.with_suffix(".theirs").rename(part.path)

    monkeypatch.setattr(os, "fsync", saved_meanwhile)
    with pytest.raises(Busy):
        installation.apply(project, change)
    assert part.path.read_text() == theirs
    assert [path.name for path in part.path.parent.iterdir()] == [part.path.name]


# ---- what stands in the settings ----


@pytest.mark.parametrize(
    "command",
    ["ralf hook Stop --client claude-code && date", "ralf hook Stop; date", "ralf status", "my-ralf hook Stop", "ralf"],
)
def test_a_command_that_does_more_is_not_ours(command: str) -> None:
    assert not settings.is_ours({"type": "command", "command": command})


# ---- AGENTS.md ----


@given(st.text(st.characters(codec="utf-8"), max_size=60))
@hypothesis_settings(max_examples=8, deadline=None)
def test_the_section_of_agents_md_comes_out_again(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    assume(agents_md.BEGIN not in text)
    root = tmp_path_factory.mktemp("p")
    path = root / "AGENTS.md"
    path.write_bytes(text.encode())
    part = installation.of_agents_md(Project(root))
    install(root, part)
    assert install(root, part) is None
    assert path.read_bytes().decode().startswith(text)
    uninstall(root, part)
    assert path.read_bytes() == text.encode()


# ---- the interpreter ----


@pytest.mark.parametrize(
    ("prefix", "maker"),
    [
        ("/home/a/.cache/uv/archive-v0/x7Yb_k2", "uvx"),
        ("/fast/uv-cache/builds-v0/.tmpAbC123", "uvx"),
        ("/home/a/.cache/uv/environments-v2/tool-0a1b2c3d", "uvx"),
        ("/home/a/.cache/pipx/0123456789abcde", "pipx run"),
        ("/home/a/.local/share/pipx/.cache/0123456789abcde", "pipx run"),
        ("/home/a/.local/share/pipx/venvs/ralf-context", ""),
        ("/home/a/.local/share/uv/tools/ralf-context", ""),
        ("/home/a/.cache/pipx/my-venv", ""),
        ("/home/a/.cache/ralf/venv", ""),
        ("/home/a/.cache/uv/venv", ""),
        ("/home/a/.cache/pypoetry/virtualenvs/tide-x1-py3.12", ""),
        ("/srv/archive-v0-of-mine/.venv", ""),
        ("/usr", ""),
    ],
)
def test_only_an_environment_that_is_swept_away_is_refused(prefix: str, maker: str) -> None:
    assert interpreter.maker_of(Path(prefix)) == maker
    if maker:
        with pytest.raises(UsageError):
            interpreter.check(prefix)
    else:
        interpreter.check(prefix)
