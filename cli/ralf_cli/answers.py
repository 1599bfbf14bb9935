"""Answers of `list` and `show` in a pipe that are printed again, without loading what makes one."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def may_be_kept(words: "Sequence[str]") -> bool:
    """Whether the answer to a command line may be kept: of `list` and `show ROUTE [--max-tokens N]`.
    With other options it may depend on the clock.
    """
    rest = words[2:] if words[:1] == ["--root"] else words
    is_list = list(rest) == ["list"]
    return is_list or (len(rest) in (2, 4) and rest[0] == "show" and list(rest[2:3]) in ([], ["--max-tokens"]))


def give_again(words: "Sequence[str]") -> None:
    """Print the kept answer to a command line, and end; return if there is none."""
    if not may_be_kept(words) or sys.stdout is None or sys.stdout.isatty():
        return
    try:
        from ralf.finding import kept

        text = kept.read(words)
    except Exception:  # noqa: BLE001  # no error of the index reaches anyone
        return
    try:
        say(text)
    except BrokenPipeError:  # the reader has gone
        pass
    except OSError:  # the command reports it
        return
    os._exit(0)  # nothing that was loaded has to end in some other way


def say(text: bytes) -> None:
    """Write to standard output, all of it, also where that is a pipe that is full and does not block."""
    while text:
        try:
            text = text[os.write(1, text) :]
        except BlockingIOError:
            import select

            select.select((), (1,), ())


def watched(words: "Sequence[str]", make: "Callable[[], object]") -> object:
    """Return what `make` returns, which prints the answer to a command line; keep an answer that may be given again."""
    out, err = sys.stdout, sys.stderr
    if not may_be_kept(words) or out is None or err is None or out.isatty() or out.encoding.lower() != "utf-8":
        return make()
    from contextlib import redirect_stderr, redirect_stdout, suppress
    from io import BytesIO, StringIO, TextIOWrapper

    from ralf.finding.kept import Watch

    answer, complaints = BytesIO(), StringIO()
    stream = TextIOWrapper(answer, "utf-8", "backslashreplace", write_through=True)
    try:
        with Watch() as watch, redirect_stdout(stream), redirect_stderr(complaints):
            status = make()
    finally:
        text, said = answer.getvalue(), complaints.getvalue()
        say(text)
        err.write(said)
        err.flush()
    if not status and text and not said:
        with suppress(Exception):  # the answer was given
            watch.keep(words, text)
    return status
