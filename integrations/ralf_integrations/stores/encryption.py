"""Encrypts what an engine keeps, so that its servers, their logs and their backups hold nothing that can be read.

The cipher is AES-256-GCM of the package `cryptography`. The keys are derived (HKDF-SHA256) from the project's key,
which lies in the user's own folder. An encrypted value is

     1 byte   the format, 1
     8 bytes  the id of the key, so that a wrong key is told from damage
    12 bytes  a random nonce
     …        the ciphertext, of which the last 16 bytes authenticate it and the place that it was encrypted for

Each subject has a key of its own. One key may encrypt 2**32 values before two nonces are likely to be the same.
"""

from __future__ import annotations

import hmac
import json
import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from ralf.errors import Damaged, UsageError

FORMAT = b"\x01"

_NONCE, _TAG, _ID, _KEY = 12, 16, 8, 32  # bytes

_OVERHEAD = len(FORMAT) + _ID + _NONCE + _TAG

OTHER_KEY = "copy the keys of the machine that wrote it: docs/team.md#agents-on-several-machines, Another machine"
"""What to do where a value was encrypted with another key."""


class Cipher:
    """Encrypts and decrypts values, and makes names that tell nothing, with one key.

    key  32 random bytes: the project's key
    id   16 hexadecimal digits that name the key, and from which nobody can find it
    """

    def __init__(self, key: bytes) -> None:
        """ValueError for a key of another length."""
        if len(key) != _KEY:
            raise ValueError(f"a key has {_KEY} bytes, this one {len(key)}")
        self._values = _derived(key, b"values")
        self._names = _derived(key, b"names")
        self._id = _derived(key, b"id")[:_ID]
        self.id = self._id.hex()

    def encrypt(self, content: bytes, subject: str, *place: str) -> bytes:
        """Encrypt a value for its place: only there it can be decrypted."""
        nonce = os.urandom(_NONCE)
        encrypted = _cipher_of(self._values, subject).encrypt(nonce, content, _place(subject, place))
        return b"".join((FORMAT, self._id, nonce, encrypted))

    def decrypt(self, value: bytes, subject: str, *place: str) -> bytes:
        """A value as it was before `encrypt`, given the same place.

        Damaged where it is not encrypted, or was changed, or belongs to another place; UsageError where it was
        encrypted with another key.
        """
        if len(value) < _OVERHEAD or not value.startswith(FORMAT):
            raise Damaged(subject, "is not encrypted: this user's ralf did not write it")
        key, nonce = value[len(FORMAT) : len(FORMAT) + _ID], value[len(FORMAT) + _ID : _OVERHEAD - _TAG]
        if key != self._id:
            raise UsageError(subject, f"was encrypted with another key ({key.hex()}, ours is {self.id})", OTHER_KEY)
        try:
            return _cipher_of(self._values, subject).decrypt(nonce, value[_OVERHEAD - _TAG :], _place(subject, place))
        except InvalidTag:
            raise Damaged(subject, "was changed on the server, or put in the place of another one") from None

    def name(self, *parts: str) -> str:
        """64 hexadecimal digits that stand for a name: the same ones for the same name, and no one without the key can
        find out whether they stand for a name that they guess.
        """
        return hmac.digest(self._names, json.dumps(parts).encode(), "sha256").hex()


@lru_cache(maxsize=1024)
def _cipher_of(key: bytes, subject: str) -> AESGCM:
    """What encrypts a subject's values: to derive its key takes longer than to encrypt a record."""
    return AESGCM(_derived(key, subject.encode()))


def _derived(key: bytes, purpose: bytes) -> bytes:
    return HKDFExpand(SHA256(), _KEY, b"ralf engine: " + purpose).derive(key)


def _place(subject: str, place: tuple[str, ...]) -> bytes:
    return json.dumps([subject, *place]).encode()
