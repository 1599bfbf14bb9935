"""Bad input: each kind has a clear error, its exit status and a hint, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
import storekit
from ralf.storage import registry
from storekit import Cli, context_of, grow, kept_bytes, records_of, remount, route_file, small_disk, write_session

CONFLICT = b"<<<<<<< HEAD\n%s=======\n  extra: x\n>>>>>>> branch\n"


def _conflict_at(marker: bytes) -> Callable[[bytes], bytes]:
    def damaged(good: bytes) -> bytes:
        assert marker in good
        return good.replace(marker, CONFLICT % marker, 1)

    return damaged


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "YAML that is none": lambda good: good.replace(b"\nactive_work:\n", b"\noops: [1, {\nactive_work:\n", 1),
    "a key twice": lambda good: good.replace(b"\nactive_work:\n", b'\nbegan_as: "again"\nactive_work:\n', 1),
    "no closing fence": lambda good: good.replace(b"\n---\n", b"\n", 1).replace(b"\n---\n", b"\n"),
    "front matter that is a list": lambda good: b"---\n- one\n- two\n---\n" + good.split(b"\n---\n", 1)[1],
    "not UTF-8 in the header": lambda good: good.replace(b"\n  version:", b"\n  note: \xff\xfe\n  version:", 1),
    "zero bytes": lambda good: b"\0" * len(good),
    "conflict markers in the header": _conflict_at(b"  checkpoint_count: 1\n"),
    "conflict markers in the text": _conflict_at(b"### Checkpoint 1"),
    "a count that is a word": lambda good: good.replace(b"checkpoint_count: 1", b'checkpoint_count: "many"', 1),
    "thousands of sections": lambda good: good + b"\n### x\n" * 2_001,
    "only white space": lambda good: b"\n \n",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two routes: `good`, and `bad`, whose file the tests damage in their copy."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 2_000)
    for name in ("good", "bad"):
        ralf.checkpoint(name, root / "session.jsonl", root=root)
        ralf.record_decision(name, "Keep the old columns", rationale="readers depend on them", root=root)
    return root


def damaged(project: Path, kind: str) -> bytes:
    """Damage the file of `bad`; its bytes now."""
    path = route_file(project, "bad")
    good = path.read_bytes()
    content = DAMAGES[kind](good)
    assert content != good
    path.write_bytes(content)
    return content


# ---- transcripts ----


NO_TRANSCRIPTS: dict[str, tuple[Callable[[Path], object], int]] = {
    "binary": (lambda path: path.write_bytes(os.urandom(4096) + b"\0"), 4),
    "all malformed": (lambda path: path.write_text('{"type": "user", \n{"type": broken}\n{{{\n'), 4),
    "unknown JSON": (lambda path: path.write_text('{"a": 1}\n{"b": 2}\n'), 4),
    "a folder": (Path.mkdir, 4),
    "a pipe": (os.mkfifo, 4),
    "a link to nowhere": (lambda path: path.symlink_to("nowhere"), 3),
    "a link to itself": (lambda path: path.symlink_to(path.name), 1),
    "nothing": (lambda path: None, 3),
}
"""What may lie in the place of a transcript, and the exit status."""


@pytest.mark.ci
@pytest.mark.parametrize("kind", NO_TRANSCRIPTS)
def test_a_file_that_is_no_transcript_is_named_and_nothing_is_written(cli: Cli, project: Path, kind: str) -> None:
    path = project / "x.jsonl"
    make, status = NO_TRANSCRIPTS[kind]
    make(path)
    before = kept_bytes(project)
    for verb in (("checkpoint", "good"), ("checkpoint", "new")):
        cli(*verb, "--transcript", path).complains(status, path)
    cli("checkpoint", "--watch", "good", "--transcript", path, "--once").complains(status, path)
    assert kept_bytes(project) == before


@pytest.mark.ci
def test_a_transcript_that_was_replaced_says_how_to_go_on_and_that_works(cli: Cli, project: Path) -> None:
    before = kept_bytes(project)
    (project / "session.jsonl").write_text(storekit.lines_of(4_000, first=60)[0])
    ran = cli("checkpoint", "good", "--transcript", project / "session.jsonl")
    ran.complains(5, project / "session.jsonl", "--restart")
    assert kept_bytes(project) == before
    ran = cli("checkpoint", "good", "--transcript", project / "session.jsonl", "--restart")
    assert (ran.status, ran.err) == (0, "")
    assert "Keep the old columns" in cli("show", "good").out


def _complains_below(ran: storekit.Ran, folder: Path) -> None:
    """Fails unless the error names a path in the folder, and a hint follows."""
    complaint, advice = ran.err.splitlines()
    assert (ran.status, advice[:6]) == (1, "hint: "), (ran.status, ran.out, ran.err)
    assert complaint.startswith(f"error: {folder}"), ran.err


@pytest.mark.ci
def test_a_read_only_disk_is_named_and_can_still_be_read(cli: Cli, project: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        storekit.copied(project, disk / "p")
        (disk / "empty").mkdir()
        grow(disk / "p" / "session.jsonl", 500, 60)
        before = kept_bytes(disk / "p")
        remount(disk, "ro")
        for args in (
            ("checkpoint", "good", "--transcript", disk / "p" / "session.jsonl"),
            ("decide", "good", "Go on"),
            ("decide", "new", "Go on"),
            ("init", "--yes"),
            ("route", "good"),
        ):
            _complains_below(cli(*args, root=disk / "p"), disk)
        assert kept_bytes(disk / "p") == before
        known = {one.path for one in registry.everyone()}
        for args in (("init", "--yes"), ("decide", "new", "Go on")):
            _complains_below(cli(*args, root=disk / "empty"), disk)
        assert {one.path for one in registry.everyone()} == known
        assert "Keep the old columns" in cli("show", "good", root=disk / "p").out
        assert cli("list", root=disk / "p").status == 0
        assert cli("status", root=disk / "p").status == 0
        assert cli("search", "columns", root=disk / "p").status == 0
        remount(disk, "rw")
        assert cli("decide", "good", "Go on", root=disk / "p").status == 0


# ---- route files ----


@pytest.mark.ci
@pytest.mark.parametrize("kind", DAMAGES)
def test_writes_to_a_damaged_route_file_are_acknowledged_and_shown_after_its_repair(
    cli: Cli, project: Path, kind: str
) -> None:
    good = route_file(project, "bad").read_bytes()
    content = damaged(project, kind)
    session = ("--transcript", project / "session.jsonl")
    grow(project / "session.jsonl", 500, 60)
    cli("checkpoint", "bad", *session).complains(4, route_file(project, "bad"))
    cli("checkpoint", "bad", *session).complains(4, route_file(project, "bad"))  # until it is mended
    decided = cli("decide", "bad", "Decided in the dark")
    decided.complains(4, route_file(project, "bad"))
    assert "DEC-" in decided.out
    assert route_file(project, "bad").read_bytes() == content
    kinds = [record["kind"] for record in records_of(project, "bad")]
    assert kinds == ["checkpoint", "decision", "checkpoint", "decision"]

    mended = good.replace(b"Keep the old columns", b"Keep the OLD columns")
    route_file(project, "bad").write_bytes(mended)
    _all_there(cli, "bad", 2, "Keep the OLD columns", "Decided in the dark")
    assert cli("list").status == 0
    assert cli("decide", "bad", "Mended").status == 0
    _all_there(cli, "bad", 2, "Keep the OLD columns", "Decided in the dark", "Mended")
    text = route_file(project, "bad").read_text(encoding="utf-8")
    assert all(words in text for words in ("Keep the OLD columns", "Decided in the dark", "Mended"))


def _all_there(cli: Cli, route: str, checkpoints: int, *decisions: str) -> None:
    shown = cli("show", route, "--json")
    assert (shown.status, shown.err) == (0, "")
    found = shown.json()
    assert found["checkpoint_count"] == checkpoints
    said = [decision["decision"] for decision in found["decisions"]]
    assert sorted(words for words in said if words in decisions) == sorted(decisions)
    assert len({decision["id"] for decision in found["decisions"]}) == len(said)


BELOW_THE_HEAD = {
    "YAML that is none", "a key twice", "no closing fence", "thousands of sections", "a count that is a word",
}  # fmt: skip
"""What a list, which reads the head of a file alone, cannot tell of a file that no writer of ours has seen yet."""


@pytest.mark.ci
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_without_a_journal_is_named_left_alone_and_hides_no_other(
    cli: Cli, project: Path, kind: str
) -> None:
    content = damaged(project, kind)
    storekit.journal_file(project, "bad").unlink()
    shutil.rmtree(context_of(project) / "cache")
    cli("show", "bad").complains(4, route_file(project, "bad"))
    listed = cli("list")
    assert {line.split()[0] for line in listed.lines} == {"ROUTE", "bad", "good"}
    if kind not in BELOW_THE_HEAD:
        listed.complains(4, route_file(project, "bad"))
    session = ("--transcript", project / "session.jsonl")
    cli("decide", "bad", "Decided in the dark").complains(4, route_file(project, "bad"))
    cli("checkpoint", "bad", "--again", *session).complains(4, route_file(project, "bad"))
    assert route_file(project, "bad").read_bytes() == content
    assert [record["kind"] for record in records_of(project, "bad")] == ["decision", "checkpoint"]
    cli("list").complains(4, route_file(project, "bad"))
    served = cli("show", "bad")
    served.complains(4, route_file(project, "bad"))
    assert "Decided in the dark" in served.out
    route_file(project, "bad").rename(project / "aside.md")  # what the hint says
    _all_there(cli, "bad", 1, "Decided in the dark")


# ---- names ----

REFUSED = ["../x", "a/b", "..", "x.md", "x.lock", "con", "a" * 65, "ünïcode", "", ".x", "-x", "a\nb", "a\x1b[31m"]


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_refused_route_name_is_refused_by_every_command_before_it_becomes_a_path(
    cli: Cli, project: Path, tmp_path: Path, name: str
) -> None:
    before, beside = kept_bytes(project, cache=True), sorted(path.name for path in tmp_path.iterdir())
    shown = name if name.isprintable() and name == name.strip() else ascii(name)
    for args in (
        ("show", "--", name),
        ("checkpoint", "--transcript", project / "session.jsonl", "--", name),
        ("checkpoint", "--watch", "--once", "--transcript", project / "session.jsonl", "--", name),
        ("decide", "--", name, "Go on"),
        ("search", "x", f"--route={name}") if name else ("show", "--", name),
        ("route", "--", name),
        ("status", f"--route={name}") if name else ("show", "--", name),
    ):
        cli(*args).complains(2, (shown or '""')[:80])
    assert kept_bytes(project, cache=True) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == beside
