"""The attack scripts beside the project, each with an exit status: 0 the product held, 1 it broke, 2 its set-up failed.
Each runs as a copy, with a home and a folder of its own.

    python -m tests.faults.scripted_attacks [--venv VENV] [--only WORD]

VENV is a virtual environment with the product, also of another version; by default the one that runs this.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KIT = Path(__file__).parents[3] / "shared" / "attack"
HELD, BROKEN, NOT_SET_UP = 0, 1, 2

_MINUTES = 15  # that one script may take
_TYPED = '"$PY" "$KIT/turn3/pty_yes.py" "$RALF" memory add'


@dataclass(frozen=True)
class Attack:
    """A script and how its output is judged.

    script    its name in the kit; `words`: its arguments
    breaks    a break, as an expression over what it prints
    begins    what it prints once its set-up has succeeded, as an expression
    changes   of the copy, as pairs of old and new words: what the person types is typed at a terminal
    """

    script: str
    words: tuple[str, ...] = ()
    breaks: str = r"\A\Z"
    begins: str = ""
    changes: tuple[tuple[str, str], ...] = ()


_SETTINGS = ".autonomous/context/config.local.yaml"
_LOCAL = f"chmod 600 {_SETTINGS}"
_RUN = "t=time.time()"
_SLOW = r"PostToolUse=0/(?:[1-9]|\d\d)"  # s

ATTACKS = {
    "01 an archive's settings run a command": Attack(
        "01_archive_runs_command.sh", breaks=r"RESULT: BROKEN|by the hook of a prompt alone", begins=r"RESULT: "
    ),
    **{
        f"02 a store that comes by {how} speaks": Attack(
            "02_fresh_times.sh",
            (how,),
            r"== hooks[\s\S]*?STRANGER-[\s\S]*?== why|^\s*\d+:.*STRANGER|^-r.*VERIFY-RAN$|DEC-001\s+rule, by user",
            r"== verify",
        )
        for how in ("zip", "cp", "curl", "submodule", "symlink")
    },
    "03 trust accepts what it does not show": Attack(
        "03_trust_shows_less.sh",
        breaks=r"^EVIL-\S+\s+0 (?:\d+ [1-9]|[1-9]\d* \d)",
        begins=r"^EVIL-TAIL\s+[1-9]",
    ),
    "04 a refused question becomes the person's rule": Attack(
        "04_refused_question_becomes_rule.py", breaks=r"'(?:rule|user)'|-> \[\('rule'", begins=r"(?:Q: [\s\S]*){7}"
    ),
    "05 a memory that comes in an archive speaks": Attack(
        "05_believed.sh", breaks=r"STRANGER", begins=r"== rules in a brief"
    ),
    **{
        f"07 odd files, part {part}": Attack(
            "07_denial.sh", (part,), rf"TRACEBACK|=124/|{_SLOW}", r"normal: SessionStart=0" if part == "1" else ""
        )
        for part in ("1", "2")
    },
    "08 an agent under a page's influence at the MCP tools": Attack(
        "08_mcp.py", ("RALF", "PROJECT"), r"root:x:|Umbrella.*recorded|^   recorded.*\.\./", r"> checkpoint"
    ),
    "09 forget leaves words": Attack(
        "09_forget.sh",
        breaks=r"== after forget --text [1-9]",
        begins=r"== before \d\d",
        changes=(
            (_LOCAL, f"{_LOCAL}; export RALF_CONSENT=$(sha256sum < {_SETTINGS} | cut -c1-64)"),
            ("print((d if", "t=((d if"),
            ("[0]['id'])", "[0]);print(t.get('id') or t['task']['id'])"),
        ),
    ),
    "11 a hostile NATS server": Attack(
        "11_nats.py",
        ("RALF",),
        r"TIMEOUT60|tb=True|esc=True|fence=True|pass=True|[ (](?:2[1-9]|[3-9]\d)\.\ds",
        r"rc=",
        (
            (
                _RUN,
                f"os.environ['RALF_CONSENT'] = __import__('hashlib').sha256(open(proj + '/{_SETTINGS}', 'rb').read())"
                f".hexdigest(); {_RUN}",
            ),
        ),
    ),
    "13 an agent accepts a foreign memory": Attack(
        "13_memory_trust_by_agent.sh", breaks=r"handed over: .*STRANGER|handed over [1-9]", begins=r"after: shown"
    ),
    "14 an agent speaks as the person in the memory": Attack(
        "14_agent_speaks_in_memory.sh",
        breaks=r"STRANGER[^\n]*\(the person|preference-1\] tests: never run them, STRANGER[ \\](?!-FILE)|"
        r"additionalContext[^\n]*STRANGER-FILE(?! \(by hand)|additionalContext[^\n]*push: always",
        begins=r"== add[\s\S]*preference-2",
        changes=(('$RALF memory add preference "tests:', f'{_TYPED} preference "tests:'),),
    ),
    "16 an agent's rule stands unmarked": Attack(
        "16_agent_rule_unmarked.py", ("RALF",), r"^- DEC-\d+: Always run `curl", r"DEC-\d+.*Always run `curl"
    ),
    "promotion of strangers' words": Attack("promo.py", breaks=r"by user [1-9]", begins=r"carriers \d+"),
}


def play(attack: Attack, venv: Path, folder: Path) -> tuple[int, str]:
    """Run a copy of a script; its exit status, and what it printed."""
    kit, work = folder / "kit", folder / "work"
    shutil.copytree(KIT, kit)
    work.mkdir(parents=True)
    script = kit / "turn3" / attack.script
    text = script.read_text(encoding="utf-8")
    for old, new in attack.changes:
        if old not in text:
            return NOT_SET_UP, f"{attack.script} has no {old!r}"
        text = text.replace(old, new)
    script.write_text(text, encoding="utf-8")
    words = " ".join({"RALF": "$RALF", "PROJECT": "$W/v"}.get(word, word) for word in attack.words)
    prepare = (
        '[ -e "$W/v/.autonomous" ] || (cd "$W/v" && "$RALF" init >/dev/null)' if "PROJECT" in attack.words else ":"
    )
    program = (
        f'bash "$PWD/{attack.script}"' if script.suffix == ".sh" else f'. ./env.sh; {prepare}; "$PY" ./{attack.script}'
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RALF_", "CLAUDE"))}
    environment |= {"RALF_VENV": str(venv), "W": str(work), "TMPDIR": str(folder)}
    done = subprocess.run(
        ["bash", "-c", f"{program} {words}"],  # noqa: S607
        cwd=kit / "turn3",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=60 * _MINUTES,
        check=False,
    )
    return judged(attack, done.stdout), done.stdout


def judged(attack: Attack, printed: str) -> int:
    """The exit status that what a script printed stands for."""
    if re.search(attack.breaks, printed, re.M):
        return BROKEN
    return HELD if re.search(attack.begins, printed, re.M) else NOT_SET_UP


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the attacks, one after the other; the worst status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.scripted_attacks")
    parser.add_argument("--venv", type=Path, default=Path(sys.prefix), help="which product is attacked")
    parser.add_argument("--only", default="", help="attacks with this in their name")
    parser.add_argument("--keep", type=Path, help="a folder for what each printed")
    given = parser.parse_args(arguments)
    if not KIT.is_dir():
        print("skipped: ../shared/attack is not here")
        return NOT_SET_UP
    worst = HELD
    for name, attack in ATTACKS.items():
        if given.only not in name:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            status, printed = play(attack, given.venv, Path(folder))
        print(f"{status}  {name}  ({time.monotonic() - began:.0f} s)", flush=True)
        if given.keep is not None:
            given.keep.mkdir(parents=True, exist_ok=True)
            (given.keep / f"{name.replace(' ', '-')}.txt").write_text(printed, encoding="utf-8")
        worst = max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main())
