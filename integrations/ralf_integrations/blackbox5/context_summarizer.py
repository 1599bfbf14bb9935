"""`context_summarizer` of the proposal: a table of what `proposal` has of it."""

from __future__ import annotations

import sys

from ralf_integrations.blackbox5.proposal import summarize, summarizer as main

__all__ = ["main", "summarize"]

if __name__ == "__main__":
    sys.exit(main())
