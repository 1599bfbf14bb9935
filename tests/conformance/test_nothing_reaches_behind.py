"""Nothing reaches behind the port: a project runs on a store without files, and on the embedded one no other module
opens or lists what the store keeps, nor imports how it does.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from memory_store import MemoryStore, SixMethods

import natskit
import ralf
from ralf import project as projects
from ralf.checkpointing import progress
from ralf.errors import UsageError
from ralf.maintenance.forget import forget, forget_route
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf.route import archive, corrections, history
from ralf.storage.journal import Store
from ralf_integrations import doctor
from storekit import PACKAGES, context_of, grow, route_file, write_session

KEPT = ("journal", "blobs", "archive")
"""Folders of the embedded store, which only `ralf.storage` opens."""
SHOWN = "routes"
"""The folder of the route files."""

OF_ROUTE_FILES = {
    "ralf.route.state": "reads a route file with the journal that it is made from",
    "ralf.route.write": "renders it, and takes in what a person has edited",
    "ralf.route.filed": "lays the schema for editors beside it",
    "ralf.finding.reader": "reads its head for a list",
    "ralf.routing": "lists the names of the files",
    "ralf.maintenance.forget": "removes the file with its route, and purges the files that no journal makes",
    "ralf.maintenance.remnants": "removes what was left under the names that a route had before",
    "ralf.maintenance.verify": "looks at copies beside the files",
    "ralf.maintenance.repair": "moves a damaged file to `damaged/`",
    "ralf.project": "keeps `.gitignore` beside the files",
}
"""The modules that open, list or change route files, and what each does."""

WHOLE_FOLDER = {
    "ralf.project": "looks for links before anything is read, and makes the folders",
    "ralf.maintenance.verify": "lists all folders for links, leftovers and files that others can read",
    "ralf.maintenance.repair": "moves and removes what `verify` has named by its path",
    "ralf.maintenance.forget": "makes all folders durable at the end",
    "ralf.maintenance.purge": "looks for forgotten words in every file, as a stranger would",
    "ralf_integrations.blackbox5.installing": "looks for documents in all folders of a project",
}
"""The modules that walk the context folder whatever lies in it; only `remains` opens what it finds."""

NAMES_A_FOLDER = {
    "ralf.project": "which folders hold a file for each route or blob",
    "ralf.maintenance.verify": "which folders are walked",
    "ralf.maintenance.forget": "`blobs` is a key of its record",
    "ralf.maintenance.set_aside": "a repair's `damaged/` has the same folders",
    "ralf_cli.maintenance": "`blobs` is a figure of a report",
    "ralf_integrations.hooks.instant": "asks the size of an inbox, before anything of ours is imported",
}
"""The modules outside the store in which the name of one of its folders stands."""

IMPORTS_THE_STORE = {
    "ralf.project": ("filestore",),
    "ralf.maintenance.verify": ("health",),
    "ralf.maintenance.repair": ("health", "journal_file"),  # makes the lines of a journal that is written anew
    "ralf.maintenance.purge": ("blob_files", "journal_file"),  # unpacks what is compressed
    "ralf.maintenance.set_aside": ("blob_files",),  # the members of an archive that a repair kept
    "ralf.maintenance.renaming": ("filestore",),  # writes a stream anew; on servers other machines know its name
    "ralf.maintenance.memories": ("health",),  # what a check has found
    "ralf_integrations.stores.files_and_nats": ("filestore",),  # is the embedded store, and servers beside it
    "ralf_integrations.stores.purged": ("filestore",),  # erases here what another machine has forgotten
}
"""What modules outside `ralf.storage` import of the embedded store."""

OF_THE_STORE = ("blob_files", "filestore", "health", "id_index", "journal_file")
"""The modules of `ralf.storage` that are the embedded store; the others are the port, files of any kind, and git's."""
OF_ANY_FILE = ("ralf.storage.durable", "ralf.storage.files")


# ---- a project without a file of the store ----


@pytest.fixture(params=[MemoryStore, SixMethods, *natskit.SERVERS.values()])
def project(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose store keeps nothing in files."""
    natskit.ready(request.param)
    monkeypatch.setattr(projects, "open_store", request.param)
    return tmp_path


def used(root: Path) -> str:
    """Use a project for all that any store can do; the label of a decision in it."""
    session = root / "s-1.jsonl"
    following = write_session(session, 3_000)
    assert ralf.checkpoint("tide", session, root=root).checkpoints
    grow(session, 3_000, following)
    assert ralf.checkpoint("tide", session, root=root).checkpoints
    label = ralf.record_decision("tide", "We keep the old columns of the table", root=root).id
    ralf.record_decision("other", "The gauge importer stays in Python", root=root)
    file = route_file(root, "tide")
    file.write_text(file.read_text().replace("old columns", "oldest columns"))
    context = ralf.get_context("tide", root=root)
    assert "oldest columns" in context.render()
    assert {one.route for one in ralf.list_routes(root=root)} == {"tide", "other"}
    assert ralf.search("tests/test_part_4.py", root=root)[0].kind == "evidence"
    assert ralf.why("tide", "DEC-001", root=root).evidence
    assert corrections.drop("tide", label, because="not needed", root=root).decision.id == label
    assert history.log("tide", root=root)[0].revision > context.revision
    file.unlink()
    assert "batch size" in ralf.get_context("tide", root=root).render()
    assert progress.status(Project(root)).routes == 2
    assert not verify(root=root).damaged
    assert not repair(root=root).after.damaged
    return label


def test_a_project_runs_on_a_store_without_files(project: Path) -> None:
    used(project)
    assert not any(os.path.lexists(context_of(project) / name) for name in KEPT)


def test_what_a_store_cannot_do_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "open_store", SixMethods)
    ralf.record_decision("tide", "We keep the old columns of the table", root=tmp_path)
    for refused in (
        partial(forget, "tide", text="the old columns of the table"),
        partial(forget_route, "tide"),
        partial(archive.prune, older_than="1d", remove=True),
        partial(archive.archive, "tide", older_than="1d"),
    ):
        with pytest.raises(UsageError, match="cannot"):
            refused(root=tmp_path)


@pytest.mark.parametrize("open_store", [MemoryStore, *natskit.SERVERS.values()])
def test_a_store_that_is_not_on_the_disk_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_store: Callable[..., Store]
) -> None:
    natskit.ready(open_store)
    monkeypatch.setattr(projects, "open_store", open_store)
    label, store = used(tmp_path), open_store(context_of(tmp_path))
    for done in (forget("tide", label, root=tmp_path), forget("tide", text="We use batch size", root=tmp_path)):
        assert done.touched
        assert done.left == ()
    records = [entry.record for stream in store.streams("") for entry in store.read(stream)]
    gone = (b"columns of the table", b"We use batch")
    assert not any(words in record for record in records for words in gone)
    assert not any(b"We use batch" in store.open_blob(blob.digest).read() for blob in store.blobs())
    assert not verify(root=tmp_path).damaged
    for route in ("tide", "other"):
        assert forget_route(route, root=tmp_path).left == ()
    assert list(store.streams("")) == list(store.blobs()) == []


# ---- who opens what ----

_seen: set[tuple[str, str]] | None = None


def _watch(event: str, args: tuple[object, ...]) -> None:
    """Note which module opens, lists or changes what lies in a folder of the store."""
    if (
        _seen is None
        or not args
        or not isinstance(args[0], (str, bytes, os.PathLike))
        or event in ("import", "compile")
    ):
        return
    _, found, inside = os.path.abspath(os.fsdecode(args[0])).partition("/.autonomous/context/")
    folder = inside.partition("/")[0]
    if found and folder in (*KEPT, SHOWN):
        _seen.add((folder, _responsible()))


def _responsible() -> str:
    """The module of ours that is at it: the innermost one that is no helper for files of any kind."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("ralf") and name not in OF_ANY_FILE:
            return name
        frame = frame.f_back  # type: ignore[assignment]
    return ""


sys.addaudithook(_watch)  # for good: nobody can take one away


@contextmanager
def watched() -> Iterator[set[tuple[str, str]]]:
    global _seen
    _seen = set()
    try:
        yield _seen
    finally:
        _seen = None


def test_only_the_store_opens_what_it_keeps_and_only_the_route_file_s_own_open_that(tmp_path: Path) -> None:
    with watched() as seen:
        label = used(tmp_path)
        archive.archive(older_than="0d", root=tmp_path)
        archive.prune(older_than="1d", remove=True, root=tmp_path)
        journal = context_of(tmp_path) / "journal" / "routes" / "other.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    with watched() as again:
        repair(root=tmp_path)
        forget("tide", label, root=tmp_path)
        forget_route("tide", root=tmp_path)
        list(doctor.examine(Project(tmp_path)))
    found = seen | again
    assert {folder for folder, _ in found} == {*KEPT, SHOWN}
    kept = {name.removeprefix("ralf.storage.") for folder, name in found if folder != SHOWN}
    assert kept - {*OF_THE_STORE} <= WHOLE_FOLDER.keys()
    assert {name for folder, name in found if folder == SHOWN} - {""} <= OF_ROUTE_FILES.keys() | WHOLE_FOLDER.keys()


def test_a_module_that_opens_a_journal_is_seen(tmp_path: Path) -> None:
    ralf.record_decision("tide", "We keep the old columns of the table", root=tmp_path)
    journal = context_of(tmp_path) / "journal" / "routes" / "tide.jsonl"
    for reach in ("open(path).close()", "os.listdir(os.path.dirname(path))", "os.truncate(path, 0)"):
        with watched() as seen:
            exec(reach, {"__name__": "ralf.finding.documents", "path": str(journal), "os": os})  # noqa: S102
        assert seen == {("journal", "ralf.finding.documents")}


# ---- what the source says ----


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The modules whose source has a word of those that are looked for; most have none, and need not be parsed."""
    words = re.compile("|".join((*KEPT, *OF_THE_STORE)).encode())
    for top in PACKAGES.split(os.pathsep):
        for path in Path(top).rglob("*.py"):
            source = path.read_bytes()
            if words.search(source):
                name = ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")
                yield name, ast.parse(source)


def folders_named(tree: ast.AST) -> set[str]:
    """The texts of a source that are the name of a folder of the store, or a path below one."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    paths = {text.strip("/") for text in texts if re.fullmatch(r"[\w./-]+", text)}
    return {path for path in paths if path.split("/")[0] in KEPT and (path != "archive")}


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of the embedded store that a source imports."""
    yield from (name for name in _of_storage(tree) if name in OF_THE_STORE)


def _of_storage(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "ralf.storage":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ralf.storage."):
            yield str(node.module).removeprefix("ralf.storage.")
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("ralf.storage.") for alias in node.names)


def test_only_the_store_names_its_folders_and_few_import_it() -> None:
    named, importing = {}, {}
    for name, tree in modules():
        if not name.startswith("ralf.storage"):
            if folders := folders_named(tree):
                named[name] = folders
            if parts := set(imported(tree)):
                importing[name] = parts
    assert named.keys() == NAMES_A_FOLDER.keys()
    assert importing == {name: set(parts) for name, parts in IMPORTS_THE_STORE.items()}


@pytest.mark.parametrize(
    "source",
    ['folder / "journal" / "routes"', 'f"{folder}/blobs/{digest}"', '"archive/journal/x"', 'open("journal/x")'],
)
def test_a_source_that_names_a_folder_of_the_store_is_found(source: str) -> None:
    assert folders_named(ast.parse(source))
