"""The entry point of `ralf`, before anything is loaded that some systems do not have."""

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> "NoReturn":
    """Run the command line and exit with its status: 1 on a system that lacks what ralf needs."""
    gc.disable()  # what is loaded stays: to look through it again and again is a tenth of a short command
    try:
        from ralf_cli import answers

        answers.give_again(sys.argv[1:])
        from ralf_cli import plain
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        from ralf import errors

        if (unsupported := errors.unsupported(error)) is None:
            raise
        sys.stderr.write(f"error: {unsupported}\nhint: {unsupported.hint}\n")
        sys.exit(1)
    plain.run()
