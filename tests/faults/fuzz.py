"""Fuzzed route files, journals, transcripts, JSON, names and configurations: no crash, hang or escape, little memory.

    python -m tests.faults.fuzz --rounds 1000000
    python -m tests.faults.fuzz --seed 7 --first 1234 --rounds 1      one case again

Each case goes through the public API in this process, and one in a few hundred through the command itself, with its
exit status, in a forked one. Around the store lies a tree of canaries, which must stay as it is to the byte.

crash    any error but ours (`RalfError`; for an answer of a model `BadAnswer`); from the command, a traceback
hang     more than a second of processor time, or ten seconds of anything
escape   a canary that changed, or a file that lies where none belongs
memory   more than 200 MB at the peak
"""

from __future__ import annotations

import hashlib
import json
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from unittest.mock import patch

import yaml
from tests import storekit
from tests.contexts import as_read
from tests.faults import mutations, rig, samples
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
from ralf_cli.main import run as run_command
from ralf_integrations.client import CLIENTS
from ralf_integrations.hooks import checkpoints, entry, instant

MOST_CPU = 1.0  # seconds of a case
MOST_WAIT = 10.0
MOST_MEMORY = 200 << 20
_COUNTED_BY_TABLE = "\u0e01\u0e47"  # loads the table of tokens, which takes a process 0.4 s and no case
STATUSES = range(6)


class Hang(BaseException):
    """A case took too long."""


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
        self.route_file = self.store / "routes" / f"{samples.ROUTE}.md"
        self.journal = self.store / "journal" / "routes" / f"{samples.ROUTE}.jsonl"
        samples.fill(self.root)
        self._kept = Kept(self.store)
        self._seen = self._canaries()

    def reset(self) -> None:
        """The store as it was made."""
        self._kept.lay(self.store)

    def harmed(self) -> list[str]:
        """What lies outside the store and is not as it was, or in it where none of its files belongs."""
        now = self._canaries()
        changed = [name for name in sorted(set(now) | set(self._seen)) if now.get(name) != self._seen.get(name)]
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


def name(world: World, rng: random.Random, data: bytes) -> None:
    """A route name reaches the disk only as itself, within the folder of the routes."""
    text = data[: rng.choice((3, 20, 70, 5_000))].decode("utf-8", "surrogateescape")
    assert cleaning.is_valid(cleaning.slug(text))
    if cleaning.is_valid(text):
        assert world.project.route_file(text).parent == world.store / "routes"
    if rng.random() < 0.05:
        ralf.record_decision(text, "x", root=world.root)
        world.reset()
    ralf.get_context(text, root=world.root)


def front_matter(_: World, __: random.Random, data: bytes) -> None:
    """Front matter is a mapping that can be written and read again, or refused."""
    tree = guarded_yaml.load(data.decode("utf-8", "surrogateescape"))
    assert repr(guarded_yaml.load(dump(tree))) == repr(tree)


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
    world.route_file.write_bytes(data)
    if rng.random() < 0.3:
        world.journal.unlink()
    if rng.random() < 0.5:
        shutil.rmtree(world.store / "cache")
    ralf.list_routes(root=world.root)
    with suppress(RalfError):
        ralf.get_context(samples.ROUTE, root=world.root).render(rng.choice((None, 0, 50, 600)))
    if rng.random() < 0.3:
        damaged = _is_damaged(data)
        made = ralf.record_decision(samples.ROUTE, "Written by the harness", root=world.root)
        assert not damaged or world.route_file.read_bytes() == data
        world.route_file.unlink()
        assert made.id in [item.id for item in ralf.get_context(samples.ROUTE, root=world.root).decisions]


def _is_damaged(data: bytes) -> bool:
    try:
        routefile.parse(data, "x.md")
    except RalfError:
        return bool(data)  # an empty one is none
    return False


def journal(world: World, rng: random.Random, data: bytes) -> None:
    """A journal's bytes, raw or with frames that fit: records are read, or the damage is told."""
    if rng.random() < 0.7:
        lines = [line for line in data.split(b"\n") if line]
        data = b"".join(journal_file.framed(str(n), line) for n, line in enumerate(lines))
    world.journal.write_bytes(data)
    if rng.random() < 0.7:
        shutil.rmtree(world.store / "cache")
    if rng.random() < 0.5:
        world.route_file.unlink()
    ralf.list_routes(root=world.root)
    with suppress(RalfError):
        ralf.get_context(samples.ROUTE, root=world.root).render(400)
    if rng.random() < 0.3:
        with suppress(RalfError):
            ralf.record_decision(samples.ROUTE, "Written by the harness", root=world.root)
    if rng.random() < 0.1:
        with suppress(RalfError):
            ralf.search("harness", root=world.root)
        ralf.why(samples.ROUTE, "cp-001", root=world.root)


def transcript(world: World, rng: random.Random, data: bytes) -> None:
    """A transcript gives events whose text can be kept, from any place, and ends where a second reading goes on."""
    path = world.store / rng.choice(("x.jsonl", "x.json", "x.txt", "x.md", "x.traj"))
    path.write_bytes(data)
    try:
        found = open_transcript(path)
        for event in list(found.events())[:200]:
            event.text.encode()
            json.dumps(dict(event.input)).encode()
        assert list(found.events(found.end)) == [] or not data.endswith(b"\n")
        if rng.random() < 0.02:
            ralf.checkpoint(samples.ROUTE, path, root=world.root)
            ralf.get_context(samples.ROUTE, root=world.root).render()
            world.reset()
    finally:
        path.unlink(missing_ok=True)


def caches(world: World, rng: random.Random, data: bytes) -> None:
    """What lies in the cache is worth nothing to anybody: whatever it is, the store says the same."""
    rng.choice(sorted(path for path in (world.store / "cache").rglob("*") if path.is_file())).write_bytes(data)
    ralf.get_context(samples.ROUTE, root=world.root).render(200)
    ralf.list_routes(root=world.root)
    ralf.search("batch", root=world.root)
    ralf.record_decision(samples.ROUTE, "Written by the harness", root=world.root)
    ralf.checkpoint(samples.ROUTE, world.root / "src" / "session.jsonl", root=world.root)


def answer(_: World, __: random.Random, data: bytes) -> None:
    """What a model answers: a value, or a refusal."""
    tree = _mapping(data)
    if tree is None:
        return
    quotes = Quotes(_SAID)
    try:
        made = answers.answer_of(tree)
        last, kept = answers.checked(made, Shown(texts_of(_SAID)), quotes, model="m")
    except answers.BadAnswer as error:
        raise RalfError("answer", str(error)) from None
    known = (handover.Kept("decision", "d", "DEC-001"), handover.Kept("open", "t", "OPEN-001", author="agent"))
    answers.carry(Carried(kept=known), last, kept, made.ended, quotes=quotes)


_SAID = [Message("1", line=1, text="d, since r; not o: w"), Said(line=2, text="t, s and g")]


def _mapping(data: bytes) -> dict[str, object] | None:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


def hook(world: World, rng: random.Random, data: bytes) -> None:
    """A hook that is told whatever there is answers JSON that the client's contract has, or nothing."""
    data = data.replace(b"ROOT", os.fsencode(world.root))
    client = rng.choice(("claude-code", "codex", "gemini", ""))
    event = rng.choice((*sorted({name for one in CLIENTS.values() for name in one.hooks}), "PreToolUse", "x" * 99))
    (world.store / "config.yaml").write_text("threshold: 2000\n")
    told: list[str] = []
    start = _in_this_process if rng.random() < 0.01 else lambda *_: 0
    with patch.object(environment, "start_detached", start):
        if not instant.is_idle(client, event, data):
            entry.run(client, event, data, told.append)
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
        checkpoints._STATE_PATIENCE = 0.0  # its hook still runs
        checkpoints.make(arguments)
    finally:
        os.chdir(here)
    return 0


def command(world: World, rng: random.Random, data: bytes) -> None:
    """The command says what is wrong in its own words, with one of its statuses."""
    path = world.root / ".autonomous" / "given"
    path.write_bytes(data)
    args = [rng.choice(("show", "list"))]
    kind = rng.choice(("routes", "journal", "transcript", "config", "name"))
    if kind in ("routes", "journal"):
        (world.route_file if kind == "routes" else world.journal).write_bytes(data)
    elif kind == "config":
        (world.store / "config.yaml").write_bytes(data)
        args = ["status"] if rng.random() < 0.3 else ["checkpoint"]
    elif kind == "transcript":
        args = ["checkpoint"]
    if args[-1] == "checkpoint":
        args += ["--transcript", str(path)]
    if args[0] in ("show", "checkpoint"):
        named = data[:60].replace(b"\0", b"").decode("utf-8", "surrogateescape") if kind == "name" else samples.ROUTE
        args += ["--", named]
    try:
        status, said = forked(world.root, ["--root", str(world.root), *args])
        if status not in STATUSES or b"Traceback" in said:
            raise AssertionError(f"{args}: status {status}: {said.decode('utf-8', 'replace')[-1500:]}")
    finally:
        path.unlink()


def forked(cwd: Path, args: Sequence[str]) -> tuple[int, bytes]:
    """Exit status and standard error of the command, run in a fork of this process."""

    def there() -> None:
        os.chdir(cwd)
        for stream, file in (
            (0, os.open(os.devnull, os.O_RDWR)),
            (1, os.open(os.devnull, os.O_RDWR)),
            (2, said.fileno()),
        ):
            os.dup2(file, stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
        sys.argv = ["ralf", *args]
        status = 0
        try:
            run_command()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 98
        except BaseException:  # what the interpreter would print
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)

    with tempfile.TemporaryFile() as said:
        pid = rig.forked(there)
        try:
            ended = os.waitpid(pid, 0)[1]
        except Hang:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        said.seek(0)
        return os.waitstatus_to_exitcode(ended), said.read()


@dataclass(frozen=True)
class Kind:
    """A kind of case, how often it comes, the valid bytes that it is made of, and whether it changes the store."""

    run: Callable[[World, random.Random, bytes], None]
    weight: float
    seeds: Callable[[], Sequence[bytes]]
    changes: bool = False


KINDS: dict[str, Kind] = {
    "name": Kind(name, 20, samples.route_names),
    "front matter": Kind(front_matter, 22, samples.front_matters),
    "config": Kind(configuration, 16, samples.configs),
    "route text": Kind(route_text, 12, samples.route_files),
    "route file": Kind(route_file, 3, samples.route_files, changes=True),
    "journal": Kind(journal, 4, samples.records, changes=True),
    "transcript": Kind(transcript, 15, samples.transcripts),
    "cache": Kind(caches, 0.8, samples.caches, changes=True),
    "answer": Kind(answer, 7, samples.answers),
    "hook": Kind(hook, 3, samples.payloads),
    "command": Kind(command, 0.2, samples.anything, changes=True),
}


# ---- readers without their guards ----


def _by_the_book(_: World, __: random.Random, data: bytes) -> None:
    """Crashes: YAML with dates, aliases, numbers of any length and any depth."""
    try:
        tree = yaml.safe_load(data.decode("utf-8", "replace"))
    except yaml.YAMLError:
        raise RalfError("x.md", "no YAML") from None
    json.dumps(tree).encode()


def _by_its_characters(world: World, _: random.Random, data: bytes) -> None:
    """Escapes: a name that was checked for its characters alone."""
    text = data.decode("utf-8", "replace")
    if not re.match(r"[A-Za-z0-9._/-]{1,200}$", text):
        raise RalfError("name", "refused")
    path = world.store / "routes" / f"{text}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")


def _in_many_ways(_: World, __: random.Random, data: bytes) -> None:
    """Hangs: an expression whose repetitions can be divided in many ways."""
    re.search(rb'^(?:\s*"?[\w ]+"?[:,]?)*$', data[:100], re.M)


def _as_it_is_told(_: World, rng: random.Random, data: bytes) -> None:
    """Takes memory without end: repeats what it is told to."""
    held = data * (rng.randrange(2) * (400 << 20) // max(1, len(data)))
    del held


def _unguarded(kind: str, reader: Callable[[World, random.Random, bytes], None]) -> AbstractContextManager[object]:
    return patch.dict(KINDS, {kind: Kind(reader, 1, KINDS[kind].seeds)})


BROKEN = {
    "front matter": lambda: _unguarded("front matter", _by_the_book),
    "name": lambda: _unguarded("name", _by_its_characters),
    "transcript": lambda: _unguarded("transcript", _in_many_ways),
    "cache": lambda: _unguarded("cache", _as_it_is_told),
}


# ---- running ----


def one(world: World, seed: int, number: int, only: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with one case, a function of seed and number."""
    rng = random.Random(f"{seed}:{number}")  # to be repeated, not to be secret
    chosen = rng.choices(only, [KINDS[kind].weight for kind in only])[0]
    kind = KINDS[chosen]
    data = mutations.mutated(rng, kind.seeds())
    case = f"{chosen}, --seed {seed} --first {number}, of {data[:60]!r}"
    begun = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, MOST_CPU)
        signal.setitimer(signal.ITIMER_REAL, MOST_WAIT)
        try:
            kind.run(world, rng, data)
        finally:  # within the outer `try`: a signal that arrives here, at the case's end, is a Hang too
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (RalfError, guarded_yaml.BadYaml):
        pass
    except (Exception, Hang) as error:  # this is what is looked for
        told = "".join(traceback.format_exception(error)[-4:])
        yield "hang" if isinstance(error, Hang) else "crash", f"{case}: {told}"
    else:
        if (took := time.process_time() - begun) > MOST_CPU:
            yield "hang", f"{case}: {took:.2f} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if kind.changes:
        world.reset()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _late(_: int, frame: FrameType | None) -> None:
    raise Hang(f"at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else "somewhere")


@contextmanager
def _world() -> Iterator[World]:
    """A world of this process, which is in it, and has nothing of its own in its environment."""
    for variable in [name for name in os.environ if name.startswith(("CLAUDE", "RALF_", "BB5_", "CODEX"))]:
        del os.environ[variable]
    for which in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(which, _late)
    tokens.count(_COUNTED_BY_TABLE)
    with tempfile.TemporaryDirectory(dir=storekit.MEMORY) as base:
        world = World(Path(base))
        os.chdir(world.root)
        yield world


def run(size: rig.Rounds, seed: int, only: Sequence[str] = tuple(KINDS)) -> rig.Found:
    """So many cases of these kinds."""

    def share(numbers: Sequence[int]) -> rig.Found:
        found = rig.Found(rounds=len(numbers))
        with _world() as world:
            most = max(MOST_MEMORY, _peak() + MOST_MEMORY // 2)  # a fork begins with what its parent had
            for number in numbers:
                before = _peak()
                for kind, example in one(world, seed, number, only):
                    found.note(kind, example)
                    world.reset()
                grown = _peak() > max(before, most)
                found.note("memory", f"--seed {seed} --first {number}: {_peak() / 1e6:.0f} MB", grown)
            for harm in world.harmed():
                found.note("escape", f"--seed {seed}, in cases from {numbers[0]} on: {harm}")
        return found

    return rig.shared_out(share, range(size.first, size.first + size.rounds), jobs=size.jobs)


if __name__ == "__main__":
    sys.exit(rig.command("fuzz", rig.Rounds(20_000), run, kinds=KINDS, broken=BROKEN))
