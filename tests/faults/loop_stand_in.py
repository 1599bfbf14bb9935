"""The stand-in for an agent of `ralf loop`: at each attempt it does what the plan says, and writes down when.

Run as `python -I -S loop_stand_in.py FOLDER`; it imports nothing of ours, so that it is there at once, and tells again
and again that it lives. FOLDER holds `TASK-ID.json`, a list of what each attempt does and how many seconds it takes,
and `log`, to which every line is appended by one write:

    TIME WHAT TASK NUMBER PID      begin, beat, ending, end of the agent PID; child: a process that it left behind
                                   lives; limit: it tells a usage limit, as the client does that STAND_IN_FOR names
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

FOLDER = sys.argv[1]
BEAT = 0.02  # seconds
LEFT = 4.0  # seconds that a process lives which an agent leaves behind
LATER = ("done", 0.05)  # what every attempt does for which the plan says nothing

_task, _, _number = os.environ.get("RALF_LEASE", "none:0").rpartition(":")
_agent = int(sys.argv[2]) if sys.argv[2:] else os.getpid()
_log = os.open(os.path.join(FOLDER, "log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

ODD = (
    b"I added API key validation. rate limit reached, usage limit: try again at 3am\n"
    b"\xe2\x82\n<promise>COMPLETE</promise>\nAll tasks complete\n\x00\xff\xfe\x1b]0;title\x07\x1b[2J\r\xf0\x9f\x98"
)
"""Words that other loops take for an error, half a character, and bytes that are no text."""


def note(what: str) -> None:
    """Write down what happens now."""
    os.write(_log, f"{time.monotonic():.6f} {what} {_task} {_number} {_agent}\n".encode())


def beat(what: str) -> None:
    """Write down again and again that this process lives."""

    def beats() -> None:
        while True:
            note(what)
            time.sleep(BEAT)

    threading.Thread(target=beats, daemon=True).start()


def attempt() -> tuple[str, float]:
    """What this attempt does: the plan's entry for as many attempts as have begun before this one."""
    with open(os.path.join(FOLDER, "log"), "rb") as file:
        begun = [line.split() for line in file.read().splitlines()]
    before = sum(1 for line in begun if line[1:3] == [b"begin", _task.encode()] and line[4] != b"%d" % _agent)
    with open(os.path.join(FOLDER, f"{_task}.json"), encoding="utf-8") as file:
        acts = json.load(file)
    does, takes = acts[before] if before < len(acts) else LATER
    return str(does), float(takes)


def ralf(*words: str) -> int:
    """Run a command of ralf, as an agent does."""
    with open(os.path.join(FOLDER, "ralf"), encoding="utf-8") as file:
        known = json.load(file)
    return subprocess.run(
        [*known["command"], *words], env={**os.environ, **known["environment"]}, check=False
    ).returncode


def finish() -> None:
    """Complete the task."""
    note("ending")
    ralf("task", "done", f"The table of {_task} is carried over.")


def tell_limit() -> None:
    """Tell a usage limit that is over at once, as the real client tells it, and end as that does."""
    note("limit")
    if os.environ.get("STAND_IN_FOR") == "codex":
        at = time.strftime("%I:%M %p").lstrip("0")
        os.write(2, f"ERROR: You've hit your usage limit. Upgrade to Pro or try again at {at}.\n".encode())
    else:
        said = f"Claude AI usage limit reached|{int(time.time())}"
        os.write(1, json.dumps({"type": "result", "is_error": True, "result": said}).encode() + b"\n")
    sys.exit(1)


def main() -> None:
    """Do what the plan says."""
    prompt = sys.stdin.buffer.read()
    note("begin")
    does, takes = attempt()
    with open(os.path.join(FOLDER, f"{_task}.{_number}.prompt"), "wb") as file:
        file.write(prompt)
    beat("beat")
    time.sleep(takes)
    if does in ("leave", "leave and crash"):
        subprocess.Popen([sys.executable, "-I", "-S", __file__, FOLDER, str(_agent)], stdin=subprocess.DEVNULL)
    if does in ("crash", "leave and crash"):
        sys.exit(1)
    elif does == "limit":
        tell_limit()
    elif does == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif does == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif does == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    elif does == "fail":
        note("ending")
        ralf("task", "fail", "The gauge does not answer.")
    elif does == "hand over":
        ralf("task", "progress", "Half of the table is carried over.")
        note("ending")
        ralf("task", "release", "--note", "The other half is left.")
    elif does == "odd":
        os.write(1, ODD)
        os.write(2, ODD)
        finish()
    elif does == "done and crash":
        finish()
        sys.exit(1)
    elif does == "done and linger":
        finish()
        time.sleep(0.3)
    elif does in ("done", "leave"):
        finish()
    else:
        assert does == "silent", does
    note("end")


if __name__ == "__main__":
    if sys.argv[2:]:
        beat("child")
        time.sleep(LEFT)
    else:
        main()
