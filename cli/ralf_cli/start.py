"""The entry point of `ralf`, before anything is loaded that some systems do not have."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> "NoReturn":
    """Run the command line and exit with its status: 1 on a system that lacks what ralf needs."""
    try:
        from ralf_cli import answers

        answers.give_again(sys.argv[1:])
        _load_late("inspect")
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


def _load_late(name: str) -> None:
    """Have a module loaded when something of it is first asked for: `dataclasses` imports `inspect`, which takes a
    tenth of a short command, for the docstrings of classes that have none.
    """
    late = type(sys)(name)

    def attribute(wanted: str) -> object:
        if sys.modules.get(name) is late:
            del sys.modules[name]
        from importlib import import_module

        return getattr(import_module(name), wanted)

    late.__getattr__ = attribute  # type: ignore[method-assign]
    sys.modules.setdefault(name, late)
