"""`context_reader` of the proposal: a table of what `proposal` has of it."""

from __future__ import annotations

import sys

from ralf_integrations.blackbox5.proposal import ContextReader, get_context, get_summary, list_routes, reader as main

__all__ = ["ContextReader", "get_context", "get_summary", "list_routes", "main"]

if __name__ == "__main__":
    sys.exit(main())
