"""Runs what takes longer than `.ci/run` may: before a release all of it, and the part of an area by whoever touches it.

    python -m tests.release                 # every part
    python -m tests.release nats faults     # these parts
    python -m tests.release --list          # what there is, and what each needs

It prints one table, a line a part: passed, failed or skipped with the reason, how many tests, and seconds; the output
of each is kept in `.release/NAME.log`. Exit status 1 where a part has failed. Real clients run offline
against scripted models; what they need from npm is installed into the user's cache, Chromium is not.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1]
LOGS = SOURCE / ".release"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))

CLIENTS = (
    "@anthropic-ai/claude-code@2.1.329",
    "@openai/codex@0.169.0",
    "@google/gemini-cli@0.61.0",
    "opencode-ai@1.18.33",
)
AXE = "axe-core@4.14.1"
_CLOSING = re.compile(r"^(?=.*\b(?:passed|failed|error|skipped)\b).* in [\d.]+s", re.M)


@dataclass(frozen=True)
class Part:
    """One line of the table.

    what   what it shows, in a few words
    files  the tests whose release marks belong to it
    runs   modules that it runs besides, with their arguments
    needs  sets up what it needs; the reason to skip it, "" for none
    """

    what: str
    files: tuple[str, ...] = ()
    runs: tuple[tuple[str, ...], ...] = ()
    needs: Callable[[], str] = lambda: ""


def _has_clients() -> str:
    if not (SOURCE.parent / "shared" / "clients").is_dir():
        return "../shared/clients is not here"
    return _has_npm_packages("RALF_TEST_CLIENTS", "ralf-test-clients", CLIENTS, "")


def _has_browser() -> str:
    if not (shutil.which("chromium") or shutil.which("chromium-browser")):
        return "Chromium is not installed: apt-get install chromium"
    if subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "playwright"], check=False).returncode:
        return "playwright cannot be installed"
    return _has_npm_packages("RALF_TEST_AXE", "ralf-test-axe", (AXE,), "node_modules/axe-core/axe.min.js")


def _has_frameworks() -> str:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--editable", ".[dev-frameworks]"]
    return "" if not subprocess.run(command, cwd=SOURCE, check=False).returncode else "they cannot be installed"


def _has_npm_packages(variable: str, folder: str, packages: Sequence[str], file: str) -> str:
    """Install packages into the user's cache, and name what is in them by a variable, unless that is set."""
    if os.environ.get(variable):
        return ""
    if shutil.which("npm") is None:
        return "npm is not installed"
    into = CACHE / folder
    into.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(into), *packages]
    if subprocess.run(command, check=False).returncode:
        return f"npm could not install {' '.join(packages)}"
    os.environ[variable] = str(into / file)
    return ""


def _has_shared_data() -> str:
    return "" if (SOURCE.parent / "shared" / "eval").is_dir() else "../shared/eval is not here"


PARTS = {
    "clients": Part("the real clients, offline", ("tests/clients/*.py",), needs=_has_clients),
    "browser": Part("the pages in Chromium", ("tests/test_web_browser.py",), needs=_has_browser),
    "frameworks": Part(
        "sessions of agent frameworks",
        (
            "tests/test_claude_sdk_store.py",
            "tests/test_openai_agents_session.py",
            "tests/test_langgraph.py",
            "tests/conformance/test_sessions_of_frameworks.py",
        ),
        needs=_has_frameworks,
    ),
    "nats": Part("the store on NATS servers", ("tests/test_*nats*.py", "tests/conformance/test_leases.py")),
    "faults": Part(
        "kills, failed calls, power loss, writers and merges; each broken variant is found",
        ("tests/test_fault_harnesses.py",),
    ),
    "storms": Part(
        "tasks, claims and loops under storms of processes and kills",
        ("tests/test_task*.py", "tests/test_loop*.py", "tests/test_memory*.py"),
    ),
    "hostile": Part(
        "hostile logs, documents, stores and repositories; expressions are linear; secrets",
        (
            "tests/test_hostile*.py",
            "tests/test_fuzz.py",
            "tests/test_linear.py",
            "tests/test_roundtrip.py",
            "tests/test_cut_secrets.py",
            "tests/test_redact.py",
        ),
    ),
    "large": Part(
        "transcripts of hundreds of megabytes", ("tests/test_large_transcript.py", "tests/test_importing_real.py")
    ),
    "mutations": Part("twelve promises broken on purpose", runs=(("tests.mutations",),)),
    "others": Part("everything else that is marked for a release", ("tests/",)),
    "index": Part("the quick tests and those of CI, with the index deleted before every command and write"),
    "examples": Part("every example of each property"),
    "quality": Part("the quality scorer, whole", needs=_has_shared_data),
}


def commands(name: str) -> list[list[str]]:
    """What a part runs."""
    python = [sys.executable, "-m"]
    tests = [*python, "pytest", "--numprocesses", "auto", "--dist", "worksteal", "--quiet"]
    if name == "examples":
        return [[*tests, "-m", "hypothesis", "--hypothesis-profile", "many"]]
    if name == "index":
        return [["env", "TESTS_WITHOUT_INDEX=1", *tests, "-m", "not release"]]
    if name == "quality":
        scorer = str(SOURCE.parent / "shared" / "eval" / "score.py")
        data, scores = str(SOURCE.parent / "shared" / "eval" / "data"), str(LOGS / "score.json")
        return [
            [sys.executable, scorer, "--data", data, "--arm", "ralf", "--json", scores],
            [sys.executable, "benchmarks/gates.py", scores],
        ]
    part = PARTS[name]
    mark = "release" if name in ("others", "storms", "hostile") else ""
    found = [[*python, *words] for words in part.runs]
    if paths := files_of(name):
        found.insert(0, [*tests, "-m", mark, "--hypothesis-profile", "some", *paths])
    return found


def files_of(name: str) -> list[str]:
    """The files of tests that a part runs."""
    found = sorted(str(path.relative_to(SOURCE)) for pattern in PARTS[name].files for path in SOURCE.glob(pattern))
    if name != "others":
        return [path for path in found if Path(path).name.startswith("test_")]
    of_others = {path for other in PARTS if other != name for path in files_of(other)}
    everything = sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / "tests").rglob("test_*.py"))
    marked = [path for path in everything if "mark.release" in (SOURCE / path).read_text(encoding="utf-8")]
    return [path for path in marked if path not in of_others]


@dataclass(frozen=True)
class Outcome:
    """How a part ended: `passed`, `failed`, or `skipped` with the reason."""

    name: str
    result: str
    tests: str = ""
    seconds: float = 0.0

    def row(self) -> str:
        """Its line of the table."""
        return f"| {self.name} | {self.result} | {self.tests} | {f'{self.seconds:,.0f}' if self.seconds else ''} |"


def run(name: str) -> Outcome:
    """Run a part."""
    if reason := PARTS[name].needs():
        return Outcome(name, f"skipped: {reason}")
    began = time.monotonic()
    status, said = 0, ""
    with (LOGS / f"{name}.log").open("w+", encoding="utf-8") as log:
        for command in commands(name):
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            status = subprocess.run(command, cwd=SOURCE, stdout=log, stderr=log, check=False).returncode or status
        log.seek(0)
        said = log.read()
    closing = _CLOSING.findall(said)
    counts = closing[-1].strip("= ").rpartition(" in ")[0] if closing else ""
    return Outcome(name, "failed" if status else "passed", counts, time.monotonic() - began)


def main() -> int:
    """Run parts and print the table; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--list", action="store_true", help="print the parts, and what each runs")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if given.list:
        for name, part in PARTS.items():
            print(f"{name}: {part.what}")
            for command in commands(name):
                print(f"    {' '.join(command)}")
        return 0
    LOGS.mkdir(exist_ok=True)
    print("| part | result | tests | seconds |\n| --- | --- | --- | --- |")
    outcomes = []
    for name in given.parts or PARTS:
        outcomes.append(run(name))
        print(outcomes[-1].row(), flush=True)
    return 1 if any(outcome.result == "failed" for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
