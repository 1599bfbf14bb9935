"""What all tests share: examples are the same in every run, so that a failure is one of the change under test."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
