"""The entry point of `ralf`, before anything is loaded that some systems do not have."""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> "NoReturn":
    """Run the command line and exit with its status: 1 on a system that lacks what ralf needs."""
    gc.disable()  # loaded modules stay: to look through them again and again is a tenth of a short command
    try:
        import posix  # noqa: F401  # before click: Windows lacks it

        from ralf_cli import answers

        if sys.argv[1:] in (["--help"], ["-h"]):
            _print_help()
        answers.give_again(sys.argv[1:])
        from ralf_cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        from ralf import errors

        if (unsupported := errors.unsupported(error)) is None:
            raise
        sys.stderr.write(f"error: {unsupported}\nhint: {unsupported.hint}\n")
        sys.exit(1)
    gc.enable()
    main.run()


def _print_help() -> None:
    """Print the page that `ralf_cli.main` makes for 80 columns, and end; return on a terminal or after an error."""
    if sys.stdout is None or sys.stdout.isatty():
        return
    with open(f"{os.path.dirname(__file__)}/help.txt", "rb") as file:  # noqa: PTH120, PTH123  # no `pathlib` yet
        page = file.read()
    try:
        sys.stdout.buffer.write(page)
        sys.stdout.flush()
    except OSError:  # main reports it
        return
    sys.exit(0)
