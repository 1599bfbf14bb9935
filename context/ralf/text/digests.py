"""SHA-256 and BLAKE2b, of small contents without OpenSSL: to load its library takes longer than to hash what a short
command hashes.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from hashlib import blake2b as blake2b, sha256 as sha256
else:
    try:
        from _blake2 import blake2b as blake2b

        try:
            from _sha2 import sha256 as _sha256  # since Python 3.12
        except ImportError:
            from _sha256 import sha256 as _sha256
    except ImportError:  # a Python that has OpenSSL's alone
        from hashlib import blake2b as blake2b, sha256 as _sha256

    _LARGE = 8_000  # bytes from which the speed of OpenSSL, five times as much, pays for its library

    def sha256(content: bytes) -> object:
        """`hashlib.sha256(content)`."""
        if len(content) < _LARGE:
            return _sha256(content)
        import hashlib

        return hashlib.sha256(content)
