"""Fuzzed route files, journals, transcripts, JSON, names and configurations: no crash, hang or escape, little memory.

    python -m tests.faults.fuzz --rounds 1000000 --jobs 2       the long run
    python -m tests.faults.fuzz --seed 7 --case 1234            one case again, with its bytes

Each case goes through the public API in this process, and one in a few hundred through the command itself, with its
exit status, in a forked one. Around the store lies a tree of canaries, which must stay as it is to the byte.

crash    any error but ours (`RalfError`; for an answer of a model `BadAnswer`); from the command, a traceback
hang     more than a second of processor time, or ten seconds of anything
escape   a canary that changed, or a file that lies where none belongs
memory   more than 200 MB at the peak
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest
from tests import storekit
from tests.contexts import as_read
from tests.faults import documents, mutations, samples, unguarded
from tests.faults.figures import told
from tests.faults.kept import Kept

import ralf
from ralf import config, environment
from ralf.config import local_config
from ralf.document import guarded_yaml
from ralf.document.yaml_text import dump
from ralf.errors import RalfError
from ralf.model import Carried, handover
from ralf.model.entries import Message, Said
from ralf.project import Project
from ralf.route import routefile
from ralf.storage import journal_file
from ralf.talk import answer as answers
from ralf.talk.names import Quotes, Shown, texts_of
from ralf.text import cleaning, tokens
from ralf.transcripts.reader import open_transcript
from ralf_integrations.hooks import checkpoints, entry, instant

MOST_CPU = 1.0  # seconds of a case
MOST_WAIT = 10.0
MOST_MEMORY = 200 << 20
CHUNK = 2_000  # cases of one process before its canaries are looked at
_COUNTED_BY_TABLE = "\u0e01\u0e47"  # loads the table of tokens, which takes a process 0.4 s and no case
STATUSES = range(6)


class Hang(BaseException):
    """A case took too long."""


@dataclass
class Report:
    """What a run found: how many cases of each kind, and what went wrong, each with the command that shows it."""

    cases: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    peak: int = 0
    slowest: float = 0.0

    def add(self, other: Report) -> None:
        """Take another run in."""
        self.cases += other.cases
        self.refused += other.refused
        self.failures += other.failures
        self.peak = max(self.peak, other.peak)
        self.slowest = max(self.slowest, other.slowest)

    def __str__(self) -> str:
        lines = [f"{kind:12} {count:>9,} cases, {self.refused[kind]:>9,} refused" for kind, count in self.cases.items()]
        lines.append(f"{self.cases.total():,} cases; peak {self.peak / 1e6:.0f} MB; slowest {self.slowest:.2f} s CPU")
        lines.append(f"{len(self.failures)} failures")
        return "\n".join([*sorted(lines[:-2]), *lines[-2:], *self.failures[:20]])


class World:
    """A project with a store, among canaries that nothing may touch."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "around" / "project"
        self.root.mkdir(parents=True)
        for name in ("around/etc/passwd", "around/routes/x.md", "around/project/src/main.py", "other/.autonomous/x"):
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text(f"canary {name}\n")
        self.store = self.root / ".autonomous" / "context"
        self.project = Project(self.root)
        samples.fill(self.root)
        self._kept = Kept(self.store)
        self.seen = self._canaries()

    def reset(self) -> None:
        """The store as it was made."""
        self._kept.lay(self.store)

    def harmed(self) -> list[str]:
        """What lies outside the store and is not as it was, or in it where none of its files belongs."""
        now = self._canaries()
        changed = [name for name in sorted(set(now) | set(self.seen)) if now.get(name) != self.seen.get(name)]
        return changed + [name for name in ("/tmp/pwned",) if Path(name).exists()]

    def _canaries(self) -> dict[str, str]:
        found = {}
        for folder, folders, files in os.walk(self.base):
            if Path(folder) == self.store.parent:
                folders.remove("context")
            for name in [*folders, *files]:
                path = Path(folder, name)
                content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
                found[str(path)] = f"{content} {path.lstat().st_mode}"
        return found


# ---- what is fuzzed ----

Case = Callable[[World, random.Random, bytes], None]


def name(world: World, rng: random.Random, data: bytes) -> None:
    """A route name reaches the disk only as itself, within the folder of the routes."""
    text = data[: rng.choice((3, 20, 70, 5_000))].decode("utf-8", "surrogateescape")
    made = cleaning.slug(text)
    assert cleaning.is_valid(made)
    if cleaning.is_valid(text):
        assert world.project.route_file(text).parent == world.store / "routes"
    if rng.random() < 0.05:
        ralf.record_decision(text, "x", root=world.root)
        world.reset()
    ralf.get_context(text, root=world.root)


def front_matter(_: World, __: random.Random, data: bytes) -> None:
    """Front matter is a mapping that can be written and read again, or refused."""
    tree = guarded_yaml.load(data.decode("utf-8", "surrogateescape"))
    again = guarded_yaml.load(dump(tree))
    assert repr(again) == repr(tree)


def configuration(world: World, rng: random.Random, data: bytes) -> None:
    """A configuration that came with a clone sets numbers and names; none of it is run."""
    path = world.root / ".autonomous" / "config"
    path.write_bytes(data)
    try:
        path.chmod(0o600)
        if rng.random() < 0.5:
            found = config.load(path)
            assert found.segment_limit > 0
            assert found.limits
        else:
            local_config.load_local_config(path)
    finally:
        path.unlink()


def route_text(_: World, __: random.Random, data: bytes) -> None:
    """What a route file holds is rendered so that it reads back as it was, and handed over in one fence."""
    context = routefile.parse(data, "x.md")
    assert routefile.parse(routefile.render(context).encode(), "x.md") == as_read(context)
    text = context.render()
    assert text.count("<!--") == 2
    assert text.startswith("<!-- ralf:context ")
    assert text.endswith(" ends -->\n")


def route_file(world: World, rng: random.Random, data: bytes) -> None:
    """A route file is served, or what the journal holds; a damaged one is never written over."""
    path = world.store / "routes" / f"{samples.ROUTE}.md"
    path.write_bytes(data)
    if rng.random() < 0.3:
        (world.store / "journal" / "routes" / f"{samples.ROUTE}.jsonl").unlink()
    if rng.random() < 0.5:
        shutil.rmtree(world.store / "cache")
    try:
        ralf.list_routes(root=world.root)
        with refusing():
            ralf.get_context(samples.ROUTE, root=world.root).render(rng.choice((None, 0, 50, 600)))
        if rng.random() < 0.3:
            damaged = _is_damaged(data)
            made = ralf.record_decision(samples.ROUTE, "Written by the harness", root=world.root)
            assert not damaged or path.read_bytes() == data
            path.unlink()
            assert made.id in [item.id for item in ralf.get_context(samples.ROUTE, root=world.root).decisions]
    finally:
        world.reset()


def _is_damaged(data: bytes) -> bool:
    try:
        routefile.parse(data, "x.md")
    except RalfError:
        return bool(data)  # an empty one is none
    return False


def journal(world: World, rng: random.Random, data: bytes) -> None:
    """A journal's bytes, raw or with frames that fit: records are read, or the damage is told."""
    path = world.store / "journal" / "routes" / f"{samples.ROUTE}.jsonl"
    if rng.random() < 0.7:
        lines = [line for line in data.split(b"\n") if line]
        data = b"".join(journal_file.framed(str(n), line) for n, line in enumerate(lines))
    path.write_bytes(data)
    if rng.random() < 0.7:
        shutil.rmtree(world.store / "cache")
    if rng.random() < 0.5:
        (world.store / "routes" / f"{samples.ROUTE}.md").unlink()
    try:
        ralf.list_routes(root=world.root)
        with refusing():
            ralf.get_context(samples.ROUTE, root=world.root).render(400)
        if rng.random() < 0.3:
            with refusing():
                ralf.record_decision(samples.ROUTE, "Written by the harness", root=world.root)
        if rng.random() < 0.1:
            with refusing():
                ralf.search("harness", root=world.root)
            ralf.why(samples.ROUTE, "cp-001", root=world.root)
    finally:
        world.reset()


def transcript(world: World, rng: random.Random, data: bytes) -> None:
    """A transcript gives events whose text can be kept, from any place, and ends where a second reading goes on."""
    path = world.store / rng.choice(("x.jsonl", "x.json", "x.txt", "x.md", "x.traj"))
    path.write_bytes(data)
    try:
        found = open_transcript(path)
        events = list(found.events())
        for event in events[:200]:
            event.text.encode()
            json.dumps(dict(event.input)).encode()
        end = found.end
        assert list(found.events(end)) == [] or not data.endswith(b"\n")
        if rng.random() < 0.02:
            ralf.checkpoint(samples.ROUTE, path, root=world.root)
            ralf.get_context(samples.ROUTE, root=world.root).render()
            world.reset()
    finally:
        path.unlink(missing_ok=True)


def caches(world: World, rng: random.Random, data: bytes) -> None:
    """What lies in the cache is worth nothing to anybody: whatever it is, the store says the same."""
    files = sorted(path for path in (world.store / "cache").rglob("*") if path.is_file())
    path = rng.choice(files)
    path.write_bytes(_with_sums(path, data) if rng.random() < 0.7 else data)
    try:
        ralf.get_context(samples.ROUTE, root=world.root).render(200)
        ralf.list_routes(root=world.root)
        ralf.search("batch", root=world.root)
        ralf.record_decision(samples.ROUTE, "Written by the harness", root=world.root)
        ralf.checkpoint(samples.ROUTE, world.root / "src" / "session.jsonl", root=world.root)
    finally:
        world.reset()


def _with_sums(path: Path, data: bytes) -> bytes:
    """The bytes with the sums that a file of the cache has: without them nobody looks at it any closer."""
    return data


def answer(_: World, __: random.Random, data: bytes) -> None:
    """What a model answers, as the JSON that a hook gets on its standard input: a value, or a refusal."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(tree, dict):
        return
    quotes = Quotes(_SAID)
    try:
        made = answers.answer_of(tree)
        last, kept = answers.checked(made, Shown(texts_of(_SAID)), quotes, model="m")
    except answers.BadAnswer as error:
        raise RalfError("answer", str(error)) from None
    before = Carried(
        kept=(handover.Kept("decision", "d", "DEC-001"), handover.Kept("open", "t", "OPEN-001", author="agent"))
    )
    answers.carry(before, last, kept, made.ended, quotes=quotes)


_SAID = [Message("1", line=1, text="d, since r; not o: w"), Said(line=2, text="t, s and g")]


def hook(world: World, rng: random.Random, data: bytes) -> None:
    """A hook that is told whatever there is answers JSON that the client's contract has, or nothing."""
    data = data.replace(b"ROOT", os.fsencode(world.root))
    client = rng.choice(("claude-code", "codex", "gemini", ""))
    event = rng.choice((*sorted(instant.DOES), "PreToolUse", "x" * 99))
    (world.store / "config.yaml").write_text("threshold: 2000\n")
    with pytest.MonkeyPatch.context() as patch:
        for variable in [name for name in os.environ if name.startswith(("CLAUDE", "RALF_", "BB5_", "CODEX"))]:
            patch.delenv(variable)
        patch.setattr(environment, "start_detached", _in_this_process if rng.random() < 0.01 else lambda *_: 0)
        told: list[str] = []
        if not instant.is_idle(client, event, data):
            entry.run(client, event, data, told.append, instant.is_idle)
        said = "".join(told)
    if said and event != "PreCompact":
        assert json.loads(said).keys() <= {"systemMessage", "hookSpecificOutput"}
    log = world.store / "cache" / "hooks.log"
    if log.exists():  # a hook fails open: what it met there is seen here alone
        met = [line for line in log.read_text().splitlines() if re.search(r" at [a-z_]+\.py:\d+: (?!the client)", line)]
        assert not met, met
        world.reset()


def _in_this_process(_: str, __: str, arguments: Sequence[str]) -> int:
    """What a hook starts, with an end that this process sees."""
    here = Path.cwd()
    try:
        checkpoints.make(arguments)
    finally:
        os.chdir(here)
    return 0


def command(world: World, rng: random.Random, data: bytes) -> None:
    """The command says what is wrong in its own words, with one of its statuses."""
    path = world.root / ".autonomous" / "given"
    kind = rng.choice(("routes", "journal", "transcript", "config", "name"))
    args = [rng.choice(("show", "list"))]
    if kind == "routes":
        (world.store / "routes" / f"{samples.ROUTE}.md").write_bytes(data)
    elif kind == "journal":
        (world.store / "journal" / "routes" / f"{samples.ROUTE}.jsonl").write_bytes(data)
    elif kind == "config":
        (world.store / "config.yaml").write_bytes(data)
        args = ["status"] if rng.random() < 0.3 else ["checkpoint"]
    elif kind == "transcript":
        args = ["checkpoint"]
    path.write_bytes(data)
    if args[-1] == "checkpoint":
        args += ["--transcript", str(path)]
    if args[0] in ("show", "checkpoint"):
        named = data[:60].replace(b"\0", b"").decode("utf-8", "surrogateescape") if kind == "name" else samples.ROUTE
        args += ["--", named]
    try:
        status, said = forked(world.root, ["--root", str(world.root), *args])
        if status not in STATUSES or b"Traceback" in said:
            raise AssertionError(f"{args}: status {status}: {said.decode('utf-8', 'replace')[-1500:]}")
        if status:
            raise RalfError("command", str(status))
    finally:
        path.unlink()
        world.reset()


def forked(cwd: Path, args: Sequence[str]) -> tuple[int, bytes]:
    """Exit status and standard error of the command, run in a fork of this process."""
    with tempfile.TemporaryFile() as said:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            status = 99
            try:
                os.chdir(cwd)
                os.dup2(os.open(os.devnull, os.O_RDWR), 0)
                os.dup2(said.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_RDWR), 1)
                sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
                sys.argv = ["ralf", *args]
                from ralf_cli.main import run

                try:
                    run()
                except SystemExit as error:
                    status = error.code if isinstance(error.code, int) else 98
                except BaseException:  # what the interpreter would print
                    traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(status)
        try:
            _, ended = os.waitpid(pid, 0)
        except Hang:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        said.seek(0)
        return os.waitstatus_to_exitcode(ended), said.read()


@contextmanager
def refusing() -> Iterator[None]:
    """What is refused here is no end of the case."""
    with suppress(RalfError):
        yield


@dataclass(frozen=True)
class Kind:
    """A kind of case, how often it comes, and the valid bytes that its cases are made of."""

    run: Case
    weight: float
    seeds: Callable[[], Sequence[bytes]]


KINDS: dict[str, Kind] = {
    "name": Kind(name, 20, samples.route_names),
    "front matter": Kind(front_matter, 22, samples.front_matters),
    "config": Kind(configuration, 16, samples.configs),
    "route text": Kind(route_text, 12, samples.route_files),
    "route file": Kind(route_file, 3, samples.route_files),
    "journal": Kind(journal, 4, samples.records),
    "transcript": Kind(transcript, 15, samples.transcripts),
    "cache": Kind(caches, 0.8, samples.caches),
    "answer": Kind(answer, 7, samples.answers),
    "hook": Kind(hook, 3, samples.payloads),
    "command": Kind(command, 0.2, samples.anything),
    "document": Kind(documents.document, 1.5, documents.documents),
    "state file": Kind(documents.state_file, 1, documents.state_files),
}

UNGUARDED: dict[str, Kind] = {
    f"unguarded {kind}": Kind(run, 0, KINDS[kind].seeds)
    for kind, run in (
        ("front matter", unguarded.front_matter),
        ("name", unguarded.name),
        ("transcript", unguarded.transcript),
        ("cache", unguarded.cache),
    )
}
"""The deliberately broken ones, which run only when they are asked for."""


# ---- running ----


def _case(seed: int, number: int, only: str = "") -> tuple[str, random.Random, bytes]:
    """Kind, generator and bytes of a case: a function of seed and number."""
    rng = random.Random(f"{seed}:{number}")  # to be repeated, not to be secret
    kind = only or rng.choices(list(KINDS), [kind.weight for kind in KINDS.values()])[0]
    return kind, rng, mutations.mutated(rng, (KINDS | UNGUARDED)[kind].seeds())


def one(world: World, seed: int, number: int, report: Report, only: str = "") -> None:
    """Run one case, and add what came of it to the report."""
    kind, rng, data = _case(seed, number, only)
    report.cases[kind] += 1
    failure = ""
    begun = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, MOST_CPU)
        signal.setitimer(signal.ITIMER_REAL, MOST_WAIT)
        try:
            (KINDS | UNGUARDED)[kind].run(world, rng, data)
        finally:  # within the outer `try`: a signal that arrives here, at the case's end, is a Hang too
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (RalfError, guarded_yaml.BadYaml):
        report.refused[kind] += 1
    except (Exception, Hang) as error:  # this is what is looked for
        failure = "".join(traceback.format_exception(error)[-4:])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    took = time.process_time() - begun
    report.slowest = max(report.slowest, took)
    if took > MOST_CPU and not failure:
        failure = f"{took:.2f} s\n"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if peak > max(MOST_MEMORY, report.peak):
        failure += f"{peak / 1e6:.0f} MB\n"
    report.peak = max(report.peak, peak)
    if failure:
        report.failures.append(f"--seed {seed} --case {number} ({kind}{', --only' if only else ''}): {failure}")
        world.reset()


def chunk(seed: int, first: int, count: int, only: str = "") -> Report:
    """Run some cases in a world of their own."""
    report = Report()
    tokens.count(_COUNTED_BY_TABLE)
    for which in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(which, _late)
    with tempfile.TemporaryDirectory(dir=storekit.MEMORY) as base:
        here = Path.cwd()
        world = World(Path(base))
        os.chdir(world.root)
        try:
            for number in range(first, first + count):
                one(world, seed, number, report, only)
        finally:
            os.chdir(here)
        report.failures += [f"--seed {seed}, cases {first}-{first + count}: escape: {harm}" for harm in world.harmed()]
    return report


def _late(_: int, frame: FrameType | None) -> None:
    raise Hang(f"at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else "somewhere")


def fuzz(rounds: int, *, seed: int = 1, jobs: int = 2, only: str = "", tell: bool = False) -> Report:
    """Run `rounds` cases in `jobs` processes."""
    report = Report()
    starts = range(0, rounds, CHUNK)
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=None) as pool:
        waiting = [pool.submit(chunk, seed, first, min(CHUNK, rounds - first), only) for first in starts]
        for first, future in zip(starts, waiting, strict=True):
            try:
                report.add(future.result())
            except BrokenProcessPool:
                report.failures.append(f"--seed {seed}, from case {first} on: a process died")
            if tell:
                print(
                    f"\r{report.cases.total():,} of {rounds:,}, {len(report.failures)} failures",
                    end="",
                    file=sys.stderr,
                )
    return report


def main() -> int:
    """The long run, or one case again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[*KINDS, *UNGUARDED], default="")
    parser.add_argument("--case", type=int)
    options = parser.parse_args()
    if options.case is not None:
        print(_case(options.seed, options.case, options.only)[2])
        report = chunk(options.seed, options.case, 1, options.only)
    else:
        report = fuzz(options.rounds, seed=options.seed, jobs=options.jobs, only=options.only, tell=True)
    print(f"\n{report}", file=sys.stderr)
    what = f"{report.cases.total():,} hostile inputs: crashes, hangs, escapes, memory"
    return told([(what, len(report.failures), "0")], report.failures)


if __name__ == "__main__":
    sys.exit(main())
