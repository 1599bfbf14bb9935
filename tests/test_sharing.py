"""Shared route files: several clones write them, git merges them, by ralf's driver or alone, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import ralf
from contexts import contexts, quick
from ralf import project as projects
from ralf.errors import DamagedRouteFile
from ralf.format import guarded_yaml, spread
from ralf.format.codec import outline
from ralf.format.routefile import parse, render
from ralf.maintenance import merge_driver, ownership, trust
from ralf.maintenance.verify import verify
from ralf.model import Decision, RouteContext
from ralf.proof.provenance import why
from ralf.route import edits, filed, fold
from ralf.route.sharing import Merged, merge_files
from ralf.storage.journal import Record
from storekit import Cli, context_of, route_file, write_session

ROUTE = "api"
DRIVER = f"{sys.executable} -P -m ralf_cli"
FILE = f".autonomous/context/routes/{ROUTE}.md"


class Clone:
    """A clone of a repository, and a user with a folder of settings."""

    def __init__(self, folder: Path, name: str) -> None:
        self.root, self.own = folder / name, folder / f"{name}-own"
        self.root.mkdir()
        who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
        self.environment = {**plain, **who, **alone, "XDG_CONFIG_HOME": str(self.own)}

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run git, whatever comes of it."""
        command = ["git", *map(str, words)]
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True)

    def git(self, *words: object) -> str:
        """Run git; it has to succeed."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def works(self) -> Iterator[Path]:
        """Be this user for a block."""
        before = os.environ.get("XDG_CONFIG_HOME")
        os.environ["XDG_CONFIG_HOME"] = str(self.own)
        try:
            yield self.root
        finally:
            os.environ.pop("XDG_CONFIG_HOME") if before is None else os.environ.update(XDG_CONFIG_HOME=before)

    def share(self, *, driver: bool) -> None:
        """Opt in and share the route files."""
        with self.works() as root:
            ownership.init(projects.find(root), share=True)
            if driver:
                merge_driver.install(projects.find(root), DRIVER)

    def decide(self, *texts: str, commit: bool = True, **more: str) -> list[str]:
        """Record decisions; their labels."""
        with self.works() as root:
            made = [ralf.record_decision(ROUTE, text, rationale="so", root=root, **more).id for text in texts]
        if commit:
            self.commit()
        return made

    def commit(self) -> None:
        """Commit what git sees."""
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "more")

    def accept(self) -> None:
        """Accept what came from another clone."""
        with self.works() as root:
            trust.accept_route(projects.find(root), ROUTE)

    @property
    def context(self) -> RouteContext:
        """The route as this user's ralf reads it."""
        with self.works() as root:
            return ralf.get_context(ROUTE, root=root)

    @property
    def said(self) -> dict[str, Decision]:
        """The decisions by their words."""
        return {item.decision: item for item in self.context.decisions}

    @property
    def content(self) -> bytes:
        """The route file."""
        return route_file(self.root, ROUTE).read_bytes()

    def fetch(self, other: Clone) -> None:
        """Fetch what the other has committed."""
        self.git("fetch", "-q", other.root, "HEAD")


def pair(folder: Path, *, driver: bool = False) -> tuple[Clone, Clone]:
    """Two clones that share a route with one decision of the first."""
    one, other = Clone(folder, "one"), Clone(folder, "other")
    one.git("init", "-q", "-b", "main")
    one.share(driver=driver)
    one.decide("Use metres")
    other.git("clone", "-q", one.root, ".")
    other.share(driver=driver)
    other.accept()
    return one, other


WORDS = {"Use metres", "Read one", "Write one", "Read other", "Write other"}


@pytest.mark.parametrize("driver", [False, True], ids=["by git alone", "by the driver"])
@pytest.mark.parametrize("way", ["merge", "squash", "rebase", "cherry-pick"])
def test_what_two_clones_have_decided_is_all_there_however_git_joins_it(
    tmp_path: Path, way: str, *, driver: bool
) -> None:
    one, other = pair(tmp_path, driver=driver)
    one.decide("Read one")
    one.decide("Write one")
    other.decide("Read other")
    other.decide("Write other")
    one.fetch(other)
    words = {
        "merge": [("merge", "--no-edit", "FETCH_HEAD")],
        "squash": [("merge", "--squash", "FETCH_HEAD"), ("commit", "-m", "squashed")],
        "rebase": [("rebase", "FETCH_HEAD")],
        "cherry-pick": [("cherry-pick", "HEAD..FETCH_HEAD")],
    }[way]
    for command in words:
        one.git(*command)
    found = parse(one.content, "a file")
    assert {item.decision for item in found.decisions} == WORDS
    assert len({item.id for item in found.decisions}) == len(WORDS)
    before = {item.decision: item.id for item in one.context.decisions}
    assert before.keys() == {"Use metres", "Read one", "Write one"}  # until the rest is accepted
    one.accept()
    assert one.said.keys() == WORDS
    assert {words: one.said[words].id for words in before} == before
    assert not one.context.warnings


def test_what_comes_from_another_clone_is_foreign_until_it_is_accepted(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    one.decide("Read one")
    other.decide("Read other")
    one.fetch(other)
    one.git("merge", "--no-edit", "FETCH_HEAD")
    assert one.context.foreign
    assert any("Read other" in note for note in one.context.foreign_notes)
    assert "Read other" not in one.said
    one.accept()
    assert one.said["Read other"].origin == "import"
    assert one.said["Read one"].origin == "unknown"
    assert not one.context.foreign


def test_a_label_that_both_gave_is_told_apart_and_the_old_one_still_finds_the_decision(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    assert one.decide("Read one") == other.decide("Read other") == ["DEC-002"]
    one.fetch(other)
    one.git("merge", "--no-edit", "FETCH_HEAD")
    one.accept()
    mine, theirs = one.said["Read one"], one.said["Read other"]
    assert mine.id == "DEC-002" != theirs.id
    assert theirs.aliases == ("DEC-002",)
    with one.works() as root:
        assert why(ROUTE, "DEC-002", root=root).claim == "Read one"
        assert why(ROUTE, theirs.id, root=root).claim == "Read other"
        assert f"{theirs.id} (elsewhere DEC-002)" in ralf.get_context(ROUTE, root=root).render()
    one.commit()
    other.fetch(one)
    other.git("merge", "--no-edit", "FETCH_HEAD")
    other.accept()
    assert other.said["Read other"].id == "DEC-002"  # a clone goes on calling its own as it has called them
    with other.works() as root:
        assert why(ROUTE, other.said["Read one"].id, root=root).claim == "Read one"


def test_an_alias_is_found_where_no_decision_bears_that_label(tmp_path: Path) -> None:
    context = RouteContext(decisions=(Decision(id="DEC-009", decision="x", aliases=("DEC-004",)),))
    assert edits.by_label(context.decisions, "dec-004") == context.decisions[0]
    assert edits.by_label(context.decisions, "DEC-005") is None


def test_what_replaces_a_decision_names_it_by_its_label_in_the_merged_file(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    one.decide("Read one")
    other.decide("Read other")
    other.decide("Read it twice", supersedes="DEC-002")
    one.fetch(other)
    one.git("merge", "--no-edit", "FETCH_HEAD")
    one.accept()
    said = one.said
    assert said["Read it twice"].supersedes == said["Read other"].id
    assert said["Read other"].superseded_by == said["Read it twice"].id
    assert said["Read one"].status == "active"


def test_a_field_that_both_changed_is_marked_shown_by_verify_and_settled_by_an_edit(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    for clone, reason in ((one, "because of one"), (other, "because of other")):
        path = route_file(clone.root, ROUTE)
        path.write_text(path.read_text().replace('rationale: "so"', f'rationale: "{reason}"'))
        clone.decide(f"Read {clone.root.name}")
    one.fetch(other)
    done = one.run("merge", "--no-edit", "FETCH_HEAD")
    assert done.returncode == 0
    assert "DEC-001 rationale" in done.stderr
    one.accept()
    stands = one.said["Use metres"].rationale
    (entry,) = one.context.unresolved
    assert entry.at == ("decisions", "DEC-001", "rationale")
    assert {stands, *entry.also} == {"because of one", "because of other"}
    with one.works() as root:
        (shown,) = [one.what for one in verify(root=root).findings if "two values" in one.what]
        assert "DEC-001 rationale" in shown
        path = route_file(root, ROUTE)
        path.write_text(path.read_text().replace(f'rationale: "{stands}"', f'rationale: "{entry.also[0]}"'))
    one.decide("Write one", commit=False)
    assert not one.context.unresolved
    assert one.said["Use metres"].rationale == entry.also[0]


def test_a_decision_that_one_dropped_and_the_other_left_alone_stays_dropped(tmp_path: Path) -> None:
    from ralf.route.corrections import drop

    one, other = pair(tmp_path, driver=True)
    with one.works() as root:
        drop(ROUTE, "DEC-001", root=root)
    one.commit()
    other.decide("Read other")
    one.fetch(other)
    one.git("merge", "--no-edit", "FETCH_HEAD")
    one.accept()
    assert one.said["Use metres"].status == "dropped"
    assert one.said["Read other"].status == "active"


def test_checkpoints_of_both_keep_their_sections_under_numbers_of_their_own(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    for clone in (one, other):
        session = clone.root.parent / f"{clone.root.name}.jsonl"
        write_session(session, 1_000, clone.root.name)
        with clone.works() as root:
            ralf.checkpoint(ROUTE, session, root=root)
        clone.commit()
    one.fetch(other)
    one.git("merge", "--no-edit", "FETCH_HEAD")
    one.accept()
    context = one.context
    assert [entry.checkpoint_id for entry in context.checkpoints] == ["cp-001", "cp-002"]
    assert {entry.session for entry in context.checkpoints} == {"one", "other"}
    assert [section.number for section in context.body.sections] == [2, 1]
    assert context.checkpoint_count == 2


def test_git_sees_route_files_alone_and_no_output_of_a_tool(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    session = tmp_path / "s.jsonl"
    write_session(session, 1_000)
    with one.works() as root:
        ralf.checkpoint(ROUTE, session, root=root)
        assert ralf.get_context(ROUTE, root=root).active_work.last_output
    one.commit()
    names = one.git("ls-files", ".autonomous").split()
    assert names == [FILE]
    assert b"Seen last" not in one.content
    assert one.context.active_work.last_output
    assert not one.context.warnings


def test_the_attribute_is_committed_and_the_driver_is_in_no_repository(tmp_path: Path) -> None:
    one, _ = pair(tmp_path, driver=True)
    assert one.git("check-attr", "merge", FILE).strip().endswith("merge: ralf")
    assert ".autonomous/context/routes/.gitattributes" in one.git("ls-files")
    bare = Clone(tmp_path, "bare")
    bare.git("clone", "-q", one.root, ".")
    assert bare.run("config", "merge.ralf.driver").returncode == 1


def test_init_share_installs_the_driver_and_uninstall_gives_the_configuration_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    one = Clone(tmp_path, "one")
    cli = Cli(one.root, monkeypatch, capfd)
    one.git("init", "-q", "-b", "main")
    before = (one.root / ".git" / "config").read_bytes()
    done = cli("init", "--share", "--yes")
    assert "git merges route files" in done.out
    assert "merge-driver %O %A %B %P" in one.git("config", "merge.ralf.driver")
    assert "nothing to do" in cli("init", "--share", "--yes").out
    assert "as text again" in cli("init", "--uninstall", "--yes").out
    assert (one.root / ".git" / "config").read_bytes() == before


def test_files_from_before_are_laid_out_when_they_are_shared(tmp_path: Path) -> None:
    one = Clone(tmp_path, "one")
    one.git("init", "-q", "-b", "main")
    with one.works() as root:
        ownership.init(projects.find(root), share=False)
        for text in ("Use metres", "Use feet"):
            ralf.record_decision(ROUTE, text, root=root)
        assert not parse(one.content, "a file").body.is_spread
    one.share(driver=True)
    assert parse(one.content, "a file").body.is_spread
    assert one.said.keys() == {"Use metres", "Use feet"}
    assert not one.context.warnings


def test_a_route_that_one_clone_renamed_has_what_the_other_decided_under_its_new_name(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=True)
    for text in ("Use SQLite for the store", "Keep the old columns", "Never push"):
        one.decide(text)
    other.commit()  # what it has accepted
    other.fetch(one)
    other.git("merge", "--no-edit", "FETCH_HEAD")
    other.accept()
    other.decide("Read other")
    renamed = FILE.replace("api.md", "tide.md")
    one.git("mv", FILE, renamed)
    path = one.root / renamed
    path.write_text(path.read_text().replace('route: "api"', 'route: "tide"'))
    one.git("add", "--all")
    one.git("commit", "-q", "-m", "rename")
    one.fetch(other)
    one.git("merge", "--no-edit", "FETCH_HEAD")
    found = parse(path.read_bytes(), "a file")
    assert found.route == "tide"
    assert {"Read other", "Never push"} <= {item.decision for item in found.decisions}


@pytest.mark.parametrize("damage", [b"---\nno end", b"\xff\xfe", b"---\ndecisions: {\n---\n", b""])
def test_a_file_that_cannot_be_read_is_merged_as_text_without_a_traceback(tmp_path: Path, damage: bytes) -> None:
    one, other = pair(tmp_path, driver=True)
    one.decide("Read one")
    route_file(other.root, ROUTE).write_bytes(damage)
    other.commit()
    one.fetch(other)
    done = one.run("merge", "--no-edit", "FETCH_HEAD")
    assert done.returncode == 1
    assert "merged as text" in done.stderr
    assert "Traceback" not in done.stderr
    with one.works() as root:
        assert "Read one" in {item.decision for item in ralf.get_context(ROUTE, root=root).decisions}


def test_a_conflict_that_git_left_is_reported_and_never_read_as_an_edit(tmp_path: Path) -> None:
    one, other = pair(tmp_path)
    for clone in (one, other):
        path = route_file(clone.root, ROUTE)
        path.write_text(path.read_text().replace("Use metres", f"Use {clone.root.name}"))
        clone.decide("Read it")
    one.fetch(other)
    assert one.run("merge", "--no-edit", "FETCH_HEAD").returncode == 1
    with pytest.raises(DamagedRouteFile, match="conflict markers"):
        parse(one.content, "a file")
    assert any("conflict markers" in warning for warning in one.context.warnings)
    assert one.said.keys() == {"Use one", "Read it"}


def test_a_conflict_of_git_alone_is_resolved_by_the_driver_once_it_is_there(tmp_path: Path) -> None:
    one, other = pair(tmp_path)
    for clone in (one, other):
        path = route_file(clone.root, ROUTE)
        path.write_text(path.read_text().replace('"so"', f'"so says {clone.root.name}"'))
        clone.decide(f"Read {clone.root.name}")
    one.fetch(other)
    assert one.run("merge", "--no-edit", "FETCH_HEAD").returncode == 1
    with one.works() as root:
        merge_driver.install(projects.find(root), DRIVER)
    one.git("checkout", "--merge", FILE)
    found = parse(one.content, "a file")
    assert {item.decision for item in found.decisions} == {"Use metres", "Read one", "Read other"}
    assert [entry.at for entry in found.unresolved] == [("decisions", "DEC-001", "rationale")]


def test_a_list_of_routes_tells_the_revision_of_a_shared_one(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    one.decide("Read one")
    with one.works() as root:
        (summary,) = ralf.list_routes(root=root)
    assert summary.revision == one.context.revision == 2


def test_a_person_edits_a_shared_file_as_any_other(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    path = route_file(one.root, ROUTE)
    path.write_text(path.read_text().replace('"Use metres"', '"Use feet"'))
    one.decide("Read one")
    assert one.said.keys() == {"Use feet", "Read one"}
    assert not one.context.unresolved


def test_a_shared_file_is_known_again_without_the_cache(tmp_path: Path) -> None:
    import shutil

    one, _ = pair(tmp_path)
    one.decide("Read one")
    shutil.rmtree(context_of(one.root) / "cache")
    assert one.said.keys() == {"Use metres", "Read one"}
    assert not one.context.foreign
    one.decide("Write one")
    assert one.said.keys() == {"Use metres", "Read one", "Write one"}


def test_a_reader_that_does_not_know_the_layout_reads_all_decisions(tmp_path: Path) -> None:
    one, _ = pair(tmp_path)
    one.decide("Read one", "Write one")
    front = one.content.decode().split("---\n")[1]
    found = guarded_yaml.load(front)["decisions"]
    assert {item["decision"] for item in found} == {"Use metres", "Read one", "Write one"}


# ---- the merge by itself ----

_TAG = "3fa9c1"


@quick
@given(contexts, contexts, contexts)
def test_any_two_versions_come_to_the_same_file_whichever_is_ours(
    base: RouteContext, one: RouteContext, other: RouteContext
) -> None:
    was, ours, theirs = (render(version).encode() for version in (base, one, other))
    merged = merge_files(was, ours, theirs, "a file")
    assert merge_files(was, theirs, ours, "a file") == merged
    labels = [item.id for item in parse(merged.content, "a file").decisions if item.id]
    assert len(set(labels)) == len(labels)


@quick
@given(contexts, contexts)
def test_a_version_that_nobody_changed_gives_way_to_the_other(one: RouteContext, other: RouteContext) -> None:
    base, changed = render(one).encode(), render(other).encode()
    assert merge_files(base, changed, base, "a file") == merge_files(base, base, changed, "a file") == Merged(changed)


def _labelled(context: RouteContext) -> RouteContext:
    """The context with labels in the order of its list, and of a history."""
    decisions = (replace(item, id=f"DEC-{place:03d}") for place, item in enumerate(context.decisions, start=1))
    made = replace(context, decisions=tuple(decisions))
    return edits.with_header(made, revision=3, lineage="r3-0123456789ab", decision_count=len(made.decisions), clones=())


@quick
@given(contexts)
def test_what_the_layout_holds_is_read_back_as_it_was(context: RouteContext) -> None:
    context = _labelled(context)
    found = spread.as_of(parse(filed.content_of(context, _TAG), "a file"), _TAG)
    assert found.body.is_spread
    assert outline(spread.with_output(found, context)) == outline(context.as_filed())


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True))
@quick
def test_what_each_of_two_clones_adds_is_there_once(words: list[str]) -> None:
    base = fold.empty("api")
    for text in ("Use metres", "Use feet"):
        base = _decided(base, text, "0" * 6)
    sides = [base, base]
    for place, text in enumerate(words):
        sides[place % 2] = _decided(sides[place % 2], f"Read {text!a}", f"{place % 2}" * 6)
    was, one, other = (
        filed.content_of(context, tag) for context, tag in zip((base, *sides), ("0" * 6, "0" * 6, "1" * 6), strict=True)
    )
    merged = parse(merge_files(was, one, other, "a file").content, "a file")
    said = [item.decision for item in merged.decisions]
    assert sorted(said) == sorted({*said, "Use metres", "Use feet"})
    assert {item.decision for side in sides for item in side.decisions} == set(said)


def _decided(context: RouteContext, text: str, tag: str) -> RouteContext:
    payload = {"decision": {"decision": text, "timestamp": "2026-11-27T10:00:00Z", "status": "active"}}
    ready = edits.signed(context, "decision", edits.labelled(context, "decision", payload), tag)
    return fold.apply(context, Record(context.revision + 1, "decision", dict(ready)))
