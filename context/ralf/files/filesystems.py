"""Which file systems the store may lie on: not those on which locks and renames are not to be trusted."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from ralf.errors import UsageError

# The numbers of statfs(2), and of FUSE, behind which sshfs, s3fs, gcsfuse and the shared folders of many machines lie.
REFUSED = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x01021997: "9p",
    0x65735546: "FUSE",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x73757245: "Coda",
    0x00C36400: "Ceph",
    0x47504653: "GPFS",
    0x0BD00BD0: "Lustre",
    0x19830326: "BeeGFS",
    0x786F4256: "vboxsf",
}
_HINT = "keep the project on a local disk, or name a folder on one: RALF_PROJECT_DIR=DIR"


@cache
def check(folder: Path) -> None:
    """UsageError where a folder, or the nearest one above that is there, lies on a network or FUSE file system.

    Asked once per folder and process. Where the system cannot tell, nothing is refused.
    """
    kind = kind_of(folder)
    if kind in REFUSED:
        what = f"lies on {REFUSED[kind]}, where neither locks nor renames can be trusted: not written to; reading works"
        raise UsageError(folder, what, _HINT)


def kind_of(folder: Path) -> int:
    """The number of the file system on which a folder lies, or will; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    import ctypes  # only writers pay for it

    there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    found = (ctypes.c_long * 32)()  # a `struct statfs`, which begins with the type; no architecture has more
    statfs = getattr(ctypes.CDLL(None, use_errno=True), "statfs", None)
    if statfs is None or statfs(os.fsencode(there), ctypes.byref(found)) != 0:
        return 0
    return int(found[0]) & 0xFFFFFFFF
