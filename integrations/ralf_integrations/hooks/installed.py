"""The command that stands in a client's settings: an absolute interpreter and folder, chosen when it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

from ralf_integrations.hooks.payload import Client

# Python ends with status 2 where a script is gone, which clients take for "block this": after an uninstall no prompt
# would get through. A module that is gone is status 1, which they only report.
_CODE = "import sys; sys.path.insert(0, sys.argv[1]); import instant; instant.main()"


def command(client: Client, event: str) -> list[str]:
    """The arguments of the process that answers a client's event; without a shell, or quoted for one."""
    return [sys.executable, "-I", "-S", "-c", _CODE, str(Path(__file__).parent.absolute()), client, event]
