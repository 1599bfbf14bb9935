"""Random damage to random small stores: `verify` names it, a repair mends it, and whatever is whole stays.

    python -m tests.faults.damage --rounds 10000

A round copies a store, harms one to four of its files (bits, truncation, deletion, garbage, exchange), looks, repairs,
and looks again.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from tests import storekit
from tests.faults import rig
from tests.storekit import context_of, write_session

import ralf
from ralf import project as projects
from ralf.errors import RouteNotFound
from ralf.finding.search import search
from ralf.maintenance import repair as repairs
from ralf.maintenance.forget import forget
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import VerifyReport, verify
from ralf.route import archive
from ralf.storage.filestore import FileStore

ROUTES = ("tide", "moon")
_FRAME = re.compile(
    rb'(\{"id":"[^"]+","length":(?P<length>\d+),"sha256":"(?P<sum>[0-9a-f]{32})"),"frame":"(?P<frame>[^"]*)","record":'
)


class Failed(AssertionError):
    """A promise that was not kept; its round is in a note."""


# ---- stores ----


def bases(folder: Path) -> list[Path]:
    """A few small stores: plain ones, with an archive, and with one that was rewritten."""
    plain = folder / "plain"
    plain.mkdir(parents=True)
    context_of(plain).mkdir(parents=True)
    storekit.configure(plain, "archive_days: 0\n")
    write_session(plain / "tide.jsonl", 3_000)
    write_session(plain / "moon.jsonl", 800, "s-2")
    for route in ROUTES:
        ralf.checkpoint(route, plain / f"{route}.jsonl", root=plain, segment_tokens=400)
        ralf.record_decision(route, "Keep the levels in centimetres", rationale="as the old logbook does", root=plain)
    search("harbour level", root=plain)
    archived = storekit.copied(plain, folder / "archived")
    assert archive.archive(projects.find(archived), "tide")
    rewritten = storekit.copied(archived, folder / "rewritten")
    slip = ralf.record_decision("tide", "Paint the gauge boards red in every spring", root=rewritten)
    forget("tide", slip.id, root=rewritten)
    ralf.record_decision("tide", "Number the stations from zero", root=rewritten)
    return [plain, archived, rewritten]


def files(root: Path) -> list[Path]:
    """The files of a store that may come to harm."""
    top = context_of(root)
    found = [path for name in ("journal", "blobs", "routes", "cache") for path in (top / name).rglob("*")]
    return sorted(path for path in found if path.is_file() and not path.name.endswith(".schema.json"))


# ---- harm ----


def _bits(dice: random.Random, path: Path, _: list[Path]) -> None:
    content = bytearray(path.read_bytes())
    for _n in range(dice.randint(1, 4)):
        if content:
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def _truncation(dice: random.Random, path: Path, _: list[Path]) -> None:
    os.truncate(path, dice.randrange(path.stat().st_size + 1))


def _deletion(_: random.Random, path: Path, __: list[Path]) -> None:
    path.unlink()


def _garbage(dice: random.Random, path: Path, _: list[Path]) -> None:
    content, junk = path.read_bytes(), dice.choice([b"\n", b"\0" * 40, dice.randbytes(200), b'{"id":"x","length":9,'])
    place = dice.choice([0, len(content), dice.randrange(len(content) + 1)])
    path.write_bytes(content[:place] + junk + content[place:])


def _exchange(dice: random.Random, path: Path, others: list[Path]) -> None:
    alike = [other for other in others if other.suffix == path.suffix and other.parts[-3] == path.parts[-3]]
    other = dice.choice(alike or others)
    if path.exists() and other.exists():
        one, two = path.read_bytes(), other.read_bytes()
        path.write_bytes(two)
        other.write_bytes(one)


def _lines(dice: random.Random, path: Path, _: list[Path]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    if lines:
        chosen = dice.randrange(len(lines))
        dice.choice([lines.pop, lambda n: lines.insert(0, lines[n]), lambda n: lines.append(lines[n])])(chosen)
    path.write_bytes(b"".join(lines))


HARMS: list[Callable[[random.Random, Path, list[Path]], None]] = [_bits] * 2
HARMS += [_truncation, _deletion, _garbage, _exchange, _lines]


def harm(dice: random.Random, root: Path) -> list[str]:
    """Harm a store; what was done, for the message."""
    told = []
    every = files(root)
    for _ in range(dice.randint(1, 4)):
        kind = dice.choice(sorted({path.relative_to(context_of(root)).parts[0] for path in every}))
        path = dice.choice([one for one in every if one.relative_to(context_of(root)).parts[0] == kind])
        if path.exists():
            harmed = dice.choice(HARMS)
            harmed(dice, path, every)
            told.append(f"{harmed.__name__} {path.relative_to(context_of(root))}")
    return told


# ---- what was whole before a repair has to be there after it: read by this harness's own eyes ----


def _sum(content: bytes, digits: int) -> bytes:
    return hashlib.sha256(content).hexdigest()[:digits].encode()


def records_on_disk(root: Path) -> set[bytes]:
    """Every whole record that lies in a line of its own in any journal's file."""
    found: set[bytes] = set()
    for path in context_of(root).glob("journal/routes/*"):
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = _unpacked(content)
        for line in content.split(b"\n"):
            match = _FRAME.match(line)
            record = line[match.end() : -1] if match else b""
            if match and (_sum(record, 32), _sum(match[1], 16)) == (match["sum"], match["frame"]):
                found.add(record)
    return found


def _unpacked(packed: bytes) -> bytes:
    content = b""
    while packed:
        machine = zlib.decompressobj(31)
        try:
            while packed and not machine.eof:
                content += machine.decompress(packed[:64])
                packed = machine.unused_data + packed[64:]
        except zlib.error:
            break
    return content


def bytes_of(root: Path) -> set[bytes]:
    """What all files that are no cache hold."""
    return {path.read_bytes() for path in context_of(root).rglob("*") if path.is_file() and "cache" not in path.parts}


def _check_names(root: Path, base: Path, report: VerifyReport, told: list[str]) -> None:
    """Whatever is no longer what it was, but for caches and what only a reader's eye would miss, is named."""
    named = {finding.path for finding in report.findings}
    for path in files(base):
        name = path.relative_to(base)
        kind = name.relative_to(context_of(Path())).parts[0]
        now = (root / name).read_bytes() if (root / name).exists() else b""
        if kind == "blobs" and path.suffix in ("", ".gz") and now != path.read_bytes():
            gone = any(finding.path.name == name.name for finding in report.findings)
            if not gone and root / name not in named and not any(" journal/routes/" in one for one in told):
                raise Failed(f"{name} is damaged, and nobody says so: {told}")
        if kind == "journal" and now != path.read_bytes() and not report.findings:
            raise Failed(f"{name} is damaged, and nobody says so: {told}")


def _check_read(root: Path, base: Path, told: list[str]) -> None:
    """Where only caches came to harm, every read is what it was: what they hold is not believed."""
    if all(" cache/" in one for one in told):
        for route in ROUTES:
            if ralf.get_context(route, root=root) != ralf.get_context(route, root=base):
                raise Failed(f"the route {route} is read as another")


def round_of(number: int, base: Path, folder: Path) -> None:
    """One round; Failed when a promise is not kept."""
    dice = random.Random(number)
    root = storekit.copied(base, folder / f"store-{number}")
    try:
        told = harm(dice, root)
        where = f"round {number}, {base.name}: {told}"
        try:
            report = verify(root=root)
            _check_names(root, base, report, told)
            _check_read(root, base, told)
            contents = bytes_of(root)
            mended = repair(root=root)
            if mended.after.damaged:
                left = [f"{one.path}: {one.what}" for one in mended.after.findings if one.damage]
                raise Failed(f"still damaged after the repair: {left}")
            read = {entry.record for route in ROUTES for entry in FileStore(context_of(root)).read(f"routes/{route}")}
            if unread := records_on_disk(root) - read:
                raise Failed(f"{len(unread)} whole records are not read")
            _check_kept(root, contents)
            again = repair(root=root)
            if again.done:
                raise Failed(f"a second repair did {again.done}")
            for one in ralf.list_routes(root=root):
                with suppress(RouteNotFound):  # nothing at all was left of it
                    ralf.get_context(one.route, root=root)
            search("harbour level", root=root)
        except Failed as error:
            error.add_note(where)
            raise
        except Exception as error:
            crash = Failed(f"crashed with {type(error).__name__}")
            crash.add_note(f"{where}: {error}")
            raise crash from error
    finally:
        shutil.rmtree(root)


def _check_kept(root: Path, before: set[bytes]) -> None:
    """Every file that was there is there, moved, or made of what is there: nothing was the only copy and went."""
    now = bytes_of(root)
    joined = b"\0".join(now)
    plain = joined + b"\0".join(_unpacked(content) for content in now if content[:2] == b"\x1f\x8b")
    for content in before - now:
        if content in joined:
            continue
        lines = _unpacked(content) if content[:2] == b"\x1f\x8b" else content
        rest = [line for line in lines.split(b"\n") if line.strip(b"\n") and line not in plain]
        rest = [line for line in rest if not line.startswith(b'{"header":')]
        if rest and b"context_checkpoint" not in content[:200] and not _pieces_are_kept(rest, plain):
            raise Failed("bytes are gone")


def _pieces_are_kept(lines: list[bytes], plain: bytes) -> bool:
    """Whether lines that were cut where a record begins or ends are kept in pieces, every byte of them."""
    for line in lines:
        begins = {match.start() for match in re.finditer(rb'\{"id":"', line)}
        ends = {min(match.end() + int(match["length"]) + 1, len(line)) for match in _FRAME.finditer(line)}
        cuts = sorted({0, len(line), *begins, *ends})
        if not all(line[start:end].rstrip(b"\n") in plain for start, end in pairwise(cuts)):
            return False
    return True


# ---- the command ----


def _aside(self: repairs._Repair, path: Path, *_: object) -> Path:
    """Remove what cannot be read, instead of putting it aside."""
    if path.suffix not in (".jsonl", ".gz"):
        path.unlink(missing_ok=True)
    self.note(path, "removed")
    return path


BROKEN = {"a repair that removes": lambda: patch.object(repairs._Repair, "aside", _aside)}


def run(size: rig.Rounds, seed: int, _: Sequence[str]) -> rig.Found:
    """Rounds on stores made anew."""
    with tempfile.TemporaryDirectory(dir=storekit.MEMORY) as name:
        made = bases(Path(name) / "bases")

        def share(numbers: Sequence[int]) -> rig.Found:
            found = rig.Found(rounds=len(numbers))
            for number in numbers:
                try:
                    round_of(number, made[number % len(made)], Path(name))
                except Failed as error:
                    found.note(str(error), f"--seed {seed} --first {number}: {error.__notes__}")
            return found

        first = seed * 1_000_000 + size.first
        return rig.shared_out(share, range(first, first + size.rounds), jobs=size.jobs)


if __name__ == "__main__":
    sys.exit(rig.command("damage", rig.Rounds(), run, broken=BROKEN))
