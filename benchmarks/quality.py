"""Measures on your own sessions what is still there when an agent needs it later, next to masking and recency.

    python benchmarks/quality.py SESSION.jsonl … [--budget 2500] [--slice 50000] [--json]

Each session is fed as it grew, a checkpoint about every `--slice` tokens. At each of these places the session itself
says what was needed: the names (paths, identifiers, commit ids, tickets, numbers) of what lies before that the agent
used again afterwards, before any tool had shown them to it again.

closed      the name stands in the resume brief of `--budget` tokens
one search  ... or in one of five hits for the words that stood around the later use
stored      requests, changed files and failed commands of the whole session, in what is kept at its end
compacted   the same of what lay before a compaction of the client, and the names used again behind it, in a brief of as
            many tokens as the client's own summary of its window has, beside that summary; handed over: in what a
            session is given that goes on with the work, at the same size

Beside it, at the same number of tokens: *recency*, the newest text of the session; *masking*, the newest of it with the
tool output left out; and for the search *archive*, a full-text index over all of the session's text. No model is
called, no session is changed, nothing is left behind.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from measure import Row, add_record_option, record, table  # first: it puts this checkout before whatever is installed

import ralf
import ralf.errors
from ralf.text import tokens
from ralf.transcripts.events import Event
from ralf.transcripts.reader import open_transcript

_NAME = re.compile(
    r"(?<![\w./-])(?:"
    r"(?:[\w@.-]+/)+[\w@-]+\.\w{1,8}(?::\d+)?"  # a path with an ending, with or without a line
    r"|[\w-]+\.[a-z]{1,5}:\d+"  # file:line
    r"|[A-Za-z]+_[A-Za-z_]*\w|[a-z]+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+"  # identifiers of several words
    r"|(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}"  # commit ids
    r"|[A-Z]{2,}-\d+|\#\d+"  # tickets
    r"|\d{4,}"
    r")(?![\w/])"
)
_WORD = re.compile(r"\w{3,}")
_CHANGES = ("Edit", "MultiEdit", "Write", "NotebookEdit", "str_replace_based_edit_tool", "write_file", "create_file")
_PATH_KEYS = ("file_path", "notebook_path", "path")
_COMMON = 4  # events; a name that stands in more of them is in front of the agent all the time
_MOST_NEEDS = 60  # of one place
_AROUND = 120  # characters on each side of a later use, for the question
_COMMAND = 60  # characters of a command or request that have to be there
_HIT = 2_000  # characters of a hit that are looked at


@dataclass(frozen=True, slots=True)
class Need:
    """A name of the past that was used again, and the words around that use."""

    name: str
    question: str


@dataclass(slots=True)
class Shares:
    """How many of how many, by what was asked and who answered; the first arm is the baseline."""

    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    total: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, asked: str, arm: str, here: bool) -> None:
        """Count one probe."""
        self.total[asked, arm] += 1
        self.found[asked, arm] += here

    def rows(self) -> list[Row]:
        """The shares in percent, each also as a ratio to the first arm's."""
        first: dict[str, float] = {}
        rows = []
        for asked, arm in sorted(self.total, key=lambda pair: pair[0]):
            total = self.total[asked, arm]
            share = 100 * self.found[asked, arm] / total
            base = first.setdefault(asked, share)
            rows.append(Row(f"{asked}: {arm}", share, f"% of {total}", share / base if base else None))
        return rows


def main() -> int:
    """Measure the sessions that are named, print the shares, record them on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", nargs="+", type=Path, metavar="SESSION")
    parser.add_argument("--budget", type=int, default=2_500, help="tokens of the resume brief")
    parser.add_argument("--slice", type=int, default=50_000, help="tokens from checkpoint to checkpoint")
    parser.add_argument("--json", action="store_true")
    add_record_option(parser)
    options = parser.parse_args()
    shares, done = Shares(), 0
    for path in options.sessions:
        try:
            one(path, options.budget, options.slice, shares)
            done += 1
        except ralf.errors.RalfError as error:
            print(f"left out: {error}", file=sys.stderr)
    rows = shares.rows()
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else table(rows))
    if options.record:
        record("quality", ours_beside_the_others(rows), "SESSION...")
    return 0 if done else 1


def ours_beside_the_others(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """For each question the figures of ralf, beside those of the other arms."""
    ours: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for row in rows:
        asked, _, arm = row.name.partition(": ")
        _, _, how = arm.partition(", ")
        side = ours if arm.startswith("ralf") else others
        side.setdefault(asked, []).append(f"{how if side is ours else arm} {row.cells()[1]}".strip())
    return [(asked, "; ".join(figures), ", ".join(others.get(asked, ()))) for asked, figures in ours.items()]


def one(path: Path, budget: int, slice_tokens: int, shares: Shares) -> None:
    """Feed one session as it grew, and probe it at each checkpoint."""
    transcript = open_transcript(path)
    events = list(transcript.events())
    whole = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy = root / path.name
        for count in [*cuts(events, slice_tokens), len(events)]:
            copy.write_bytes(whole if count == len(events) else whole[: events[count - 1].end.byte])
            report = ralf.checkpoint("session", copy, root=root)
            _probe_needs(events, count, budget, root, shares)
        if report.path.exists():  # else there was nothing to keep
            _probe_stored(events, report.path, root, shares)
        for count, event in enumerate(events):
            if event.kind == "compaction" and event.text.strip():
                copy.write_bytes(whole[: event.start.byte])
                ralf.checkpoint(f"before-{count}", copy, root=root)
                _probe_compaction(events, count, root, shares)


def cuts(events: Sequence[Event], slice_tokens: int) -> Iterator[int]:
    """After how many events a checkpoint is made: about every so many tokens, at the end of a record."""
    size = 0
    for number, event in enumerate(events[:-1]):
        size += tokens.estimate(event.text)
        if size >= slice_tokens and events[number + 1].start.byte >= event.end.byte:
            yield number + 1
            size = 0


def needs(events: Sequence[Event], cut: int) -> list[Need]:
    """What lies before the cut and was used again behind it by the agent, before anything else showed it again."""
    before: Counter[str] = Counter()
    for event in events[:cut]:
        before.update(set(_NAME.findall(event.text)))
    found: dict[str, Need] = {}
    shown: set[str] = set()
    for event in events[cut:]:
        for match in _NAME.finditer(event.text):
            name = match[0]
            used = event.kind in ("assistant", "call") and 1 <= before[name] <= _COMMON
            if used and name not in shown and name not in found:
                around = event.text[max(0, match.start() - _AROUND) : match.end() + _AROUND].replace(name, " ")
                found[name] = Need(name, " ".join(_WORD.findall(around)))
            shown.add(name)
        if len(found) >= _MOST_NEEDS:
            break
    return list(found.values())


def _probe_needs(events: Sequence[Event], cut: int, budget: int, root: Path, shares: Shares) -> None:
    wanted = needs(events, cut)
    if not wanted:
        return
    views = {
        "masking": newest(masked(events[:cut]), budget),
        "recency": newest((event.text for event in events[:cut]), budget),
        "ralf": ralf.get_context("session", root=root).render(budget),
    }
    index = archive(events[:cut])
    for need in wanted:
        for arm, text in views.items():
            shares.add("names used again, closed", arm, need.name in text)
        hits = {
            "masking": _hits(index, need.question),
            "ralf": [hit.text[:_HIT] for hit in ralf.search(need.question, route="session", root=root)],
        }
        for arm, texts in hits.items():
            here = any(need.name in text for text in [views[arm], *texts])
            shares.add("names used again, one search", f"{arm} and {'archive' if arm == 'masking' else 'search'}", here)


def _probe_stored(events: Sequence[Event], route_file: Path, root: Path, shares: Shares) -> None:
    size = tokens.count(route_file.read_text("utf-8"))
    views = {
        "masking": _flat(newest(masked(events), size)),
        "recency": _flat(newest((event.text for event in events), size)),
        "ralf": _flat(ralf.get_context("session", root=root).render().replace("\n> ", "\n")),
    }
    for row, text in _to_keep(events):
        for arm, view in views.items():
            shares.add(f"{row}, stored", arm, _flat(text)[:_COMMAND].strip() in view)


def _probe_compaction(events: Sequence[Event], place: int, root: Path, shares: Shares) -> None:
    """What the client's own summary keeps of what lay before it, next to others of its size."""
    summary, before = events[place].text, events[:place]
    size = tokens.count(summary)
    context = ralf.get_context(f"before-{place}", root=root)
    views = {
        "the client's summary": summary,
        "masking": newest(masked(before), size),
        "recency": newest((event.text for event in before), size),
        "ralf": context.render(size).replace("\n> ", "\n"),
        "ralf, handed over": context.render(size, section="resume").replace("\n> ", "\n"),
    }
    flat = {arm: _flat(view) for arm, view in views.items()}
    for row, text in _to_keep(before):
        for arm, view in flat.items():
            shares.add(f"{row}, compacted", arm, _flat(text)[:_COMMAND].strip() in view)
    for need in needs([*before, *events[place + 1 :]], place):
        for arm, view in views.items():
            shares.add("names used again, compacted", arm, need.name in view)


def _to_keep(events: Sequence[Event]) -> list[tuple[str, str]]:
    """What nobody should have to ask for: requests, files that were changed, commands that failed, each once."""
    calls = {event.call_id: event for event in events if event.kind == "call"}
    kept: dict[tuple[str, str], None] = {}
    for event in events:
        if event.kind == "user" and len(event.text) >= 25:
            kept["requests", event.text] = None
        elif event.kind == "result" and event.call_id in calls:
            call = calls[event.call_id]
            path = next((str(call.input[key]) for key in _PATH_KEYS if call.input.get(key)), "")
            if call.tool in _CHANGES and path and not event.failed:
                kept["changed files", Path(path).name] = None
            elif event.failed and not event.refused and call.input.get("command"):
                kept["failed commands", str(call.input["command"])] = None
    return list(kept)


# ---- the baselines ----


def newest(texts: Iterable[str], budget: int) -> str:
    """The end of some text, in about so many tokens."""
    kept: list[str] = []
    for text in reversed(list(texts)):
        size = tokens.estimate(text)
        if size >= budget:
            kept.append(text[-4 * budget :])
            break
        kept.append(text)
        budget -= size
    return "\n".join(reversed(kept))


def masked(events: Iterable[Event]) -> list[str]:
    """The session without tool output, each call cut to one line."""
    return [
        f"{event.tool} {event.text}".replace("\n", " ")[:200] if event.kind == "call" else event.text
        for event in events
        if event.kind in ("user", "assistant", "call")
    ]


def archive(events: Iterable[Event]) -> sqlite3.Connection:
    """A full-text index over everything, as anybody would make it in five lines."""
    index = sqlite3.connect(":memory:")
    index.execute("create virtual table unit using fts5(text, tokenize='porter unicode61')")
    rows = ((event.text[start : start + _HIT],) for event in events for start in range(0, len(event.text), _HIT))
    index.executemany("insert into unit values (?)", rows)
    return index


def _hits(index: sqlite3.Connection, question: str) -> list[str]:
    match = " OR ".join(f'"{word}"' for word in _WORD.findall(question))
    found = index.execute("select text from unit where unit match ? order by rank limit 5", (match or '"-"',))
    return [text for (text,) in found]


# ---- text ----


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


if __name__ == "__main__":
    sys.exit(main())
