"""Twelve ways of breaking a promise, and which test finds each: who deletes a test learns here what nobody would see.

    python -m tests.mutations [NAME...]

Each mutation replaces text in a copy of this checkout; a text that is not there any more is an error, for then the
mutation has to be written anew. It is caught by a test that fails in the copy and passes without the mutation. Exit
status 1 if any is not caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LEFT_OUT = shutil.ignore_patterns(".venv", ".git", ".*_cache", "__pycache__", "docs", "benchmarks")
_NO_METER = ("-p", "no:ralf-cost")  # a test that takes long notices nothing
_LONGEST = 900.0  # seconds that the tests of one mutation may take


@dataclass(frozen=True)
class Mutation:
    """Texts of a file of the product and what replaces them, and the files of the tests that are to notice it."""

    name: str
    path: str
    changes: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "no fsync before the acknowledgement",
        "context/ralf/storage/journal_file.py",
        (("                durable.sync_content(self.descriptor)\n", "                pass\n"),),
        ("test_api",),
    ),
    Mutation(
        "no lock",
        "context/ralf/storage/locks.py",
        (
            ("            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", "            pass\n"),
            ("        fcntl.flock(self._descriptor, fcntl.LOCK_EX)\n", "        return\n"),
        ),
        ("test_durability",),
    ),
    Mutation(
        "the file before the record",
        "context/ralf/document/access.py",
        (
            (
                "        token = document.store.append(document.stream,",
                "        places.put(document.place, then.shown())\n"
                "        token = document.store.append(document.stream,",
            ),
        ),
        ("test_durability",),
    ),
    Mutation(
        "a fence that its content can close",
        "context/ralf/text/cleaning.py",
        ((r'return text.replace("<!--", "<\\!--") if "<!--" in text else text', "return text"),),
        ("test_commands",),
    ),
    Mutation(
        "an allow-list that allows everything",
        "context/ralf/tasks/evidence.py",
        (("    if found.verify_commands:\n", "    if found is not None:\n"),),
        ("test_tasks",),
    ),
    Mutation(
        "a claim without compare-and-swap",
        "context/ralf/tasks/claims.py",
        (
            ("    if claim_ is None or claim_.by != wanted.by:\n", "    if claim_ is None:\n"),
            ("    return same or not (claim_.process and wanted.process)\n", "    return True\n"),
            ("    if old is not None and _is_same(old, wanted) and", "    if old is None and"),
        ),
        ("test_tasks",),
    ),
    Mutation(
        "a forget that leaves the words in the cache",
        "context/ralf/maintenance/forget.py",
        (("        self._drop_caches()\n", ""),),
        ("test_forgetting",),
    ),
    Mutation(
        "redaction switched off for one door",
        "context/ralf/route/corrections.py",
        (("        decision=text_of(text),\n", "        decision=text,\n"),),
        ("test_commands",),
    ),
    Mutation(
        "an undo that does nothing",
        "context/ralf/route/corrections.py",
        (
            (
                "    clean_ = [redacted(project, one) for one in changes]\n",
                "    clean_ = list[Change]()\n",
            ),
        ),
        ("test_history",),
    ),
    Mutation(
        "an answered call is repeated in a run",
        "context/ralf/agent/run.py",
        (("            if answer is not None:\n", "            if False:\n"),),
        ("test_runs",),
    ),
    Mutation(
        "a hook that exits non-zero",
        "integrations/ralf_integrations/hooks/entry.py",
        (
            (
                "        if project is None or not project.folder.exists() or not _is_admitted(project):\n"
                "            return\n"
                "        error_log",
                "        os._exit(2)\n        error_log",
            ),
        ),
        ("test_hooks",),
    ),
    Mutation(
        "an uninstall that leaves one line",
        "integrations/ralf_integrations/clients/installation.py",
        (
            (
                "        return jsontext.cut(text, record.ranges)\n",
                '        return jsontext.cut(text, record.ranges) + "\\n"\n',
            ),
        ),
        ("test_installing",),
    ),
)


def apply(mutation: Mutation, root: Path) -> None:
    """Break the product in a copy; SystemExit where a text is not there, or there more than once."""
    path = root / mutation.path
    text = path.read_text(encoding="utf-8")
    for old, new in mutation.changes:
        if text.count(old) != 1:
            sys.exit(f"error: {mutation.path}: {text.count(old)} times, not once: {old!r} ({mutation.name})")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def failed(root: Path, tests: Sequence[str]) -> str:
    """The first of some tests that fails in a checkout, "" for none; SystemExit where they cannot be run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST_", "RALF_"))}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *_NO_METER, *tests],
        cwd=root,
        env=kept,
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    if ran.returncode not in (0, 1):
        sys.exit(f"error: {root}: pytest ended with status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0].split(" ", 1)[1].partition(" - ")[0] if lines else ""


def caught_by(mutation: Mutation) -> str:
    """The test that fails with a mutation and passes without it, "" for none."""
    with tempfile.TemporaryDirectory(prefix="ralf-mutation-") as folder:
        copy = Path(folder) / "ralf"
        shutil.copytree(ROOT, copy, ignore=_LEFT_OUT, symlinks=True)
        apply(mutation, copy)
        for test in mutation.tests:
            path = f"tests/promises/{test}.py"
            found = failed(copy, [path]) if (copy / path).exists() else ""
            if found and not failed(ROOT, [found]):
                return found.removeprefix("tests/promises/")
    return ""


def main(names: Sequence[str]) -> int:
    """Try the mutations whose names begin so, or all; the exit status."""
    chosen = [one for one in MUTATIONS if not names or any(one.name.startswith(name) for name in names)]
    if unknown := [name for name in names if not any(one.name.startswith(name) for one in MUTATIONS)]:
        sys.exit(f"error: {unknown[0]}: no such mutation\nhint: {'; '.join(one.name for one in MUTATIONS)}")
    missed = 0
    print("mutation | caught by | seconds", flush=True)
    for mutation in chosen:
        began = time.monotonic()
        found = caught_by(mutation)
        missed += not found
        print(f"{mutation.name} | {found or 'NOT CAUGHT'} | {time.monotonic() - began:.0f}", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
