"""Harnesses, run from the root as `python -m tests.faults.NAME`; they share the kits of the tests."""

import sys
from pathlib import Path

if (_TESTS := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.append(_TESTS)
