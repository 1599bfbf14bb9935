"""`context_manager` of the proposal: a table of what `proposal` has of it."""

from __future__ import annotations

from ralf_integrations.blackbox5.proposal import create_checkpoint, load, save

__all__ = ["create_checkpoint", "load", "save"]
