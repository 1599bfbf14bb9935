"""`context_checkpoint` of the proposal: a table of what `proposal` has of it."""

from __future__ import annotations

import sys

from ralf_integrations.blackbox5.proposal import checkpoint as main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
