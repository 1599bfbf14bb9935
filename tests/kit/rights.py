"""What modes of files allow, also where root runs the tests, to whom the system allows anything."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_CAPABILITIES_3 = 0x20080522
_OVERRIDE = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@contextmanager
def as_modes_say() -> Iterator[None]:
    """This thread may do with files what their modes allow, also where root runs it, who else may do anything."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
    effective = sets[0]
    sets[0] = effective & ~_OVERRIDE
    assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        sets[0] = effective
        assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
