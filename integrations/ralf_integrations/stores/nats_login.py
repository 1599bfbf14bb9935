"""Reads what proves to NATS servers who we are, and what proves to us who they are: `.creds` files and certificates.

Each file with something secret in it must be the user's own and for nobody else to read. No error repeats its content.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Callable
from pathlib import Path

from ralf.errors import UsageError
from ralf.storage import registry

_PREFIX, _SEED, _SUM = 2, 32, 2  # bytes of a seed's text: what it is for, the key, CRC-16

_USER = bytes((0x95, 0x00))  # the two bytes before the seed of a user: the text begins with SU

_ENCRYPTED = "is encrypted with a pass phrase"


def creds(path: str) -> tuple[bytes, Callable[[str], bytes]]:
    """The user's token in a `.creds` file, and what signs the text with which a server asks for its key.

    UsageError where the file is missing, others may read it, or it is no such file.
    """
    text = _own(path)
    token, seed = _section(text, "NATS USER JWT"), _section(text, "USER NKEY SEED")
    if not token or not seed:
        raise UsageError(path, "is no .creds file of a user", "nsc generate creds")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # only for a user who has one

    key = Ed25519PrivateKey.from_private_bytes(_seed(path, seed))
    return token.encode(), lambda nonce: base64.b64encode(key.sign(nonce.encode()))


def _section(text: str, name: str) -> str:
    found = re.search(rf"-----BEGIN {name}-----\s+([A-Za-z0-9._=-]+)\s+-+END {name}-", text)
    return found[1] if found else ""


def _seed(path: str, text: str) -> bytes:
    try:
        decoded = base64.b32decode(text + "=" * (-len(text) % 8))
    except ValueError:
        decoded = b""
    if decoded[:_PREFIX] != _USER or len(decoded) != _PREFIX + _SEED + _SUM:
        raise UsageError(path, "has no seed of a user that is whole", "nsc generate creds")
    return decoded[_PREFIX:-_SUM]  # a server refuses one whose checksum is wrong


def tls_context(ca: str, certificate: str, key: str) -> ssl.SSLContext:
    """What a connection is encrypted with. The server's certificate has to be vouched for and of its host's name.

    ca           path of the certificates that vouch for servers, "" for the system's
    certificate  path of our own certificate, "" for none
    key          path of its key

    UsageError where one of them is missing or cannot be used, and where others may read the key.
    """
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(ca, f"holds no certificates: {_reason(error)}", "nats_ca: /etc/nats/ca.pem") from None
    if certificate:
        _own(key)

        def no_pass_phrase() -> str:
            raise UsageError(
                key, _ENCRYPTED, "write it without one, for you alone: chmod 600"
            )  # never ask on a terminal

        try:
            context.load_cert_chain(certificate, key, no_pass_phrase)
        except (OSError, ssl.SSLError) as error:
            what = f"is no certificate with the key {key}: {_reason(error)}"
            raise UsageError(certificate, what, "nats_certificate and nats_key in config.local.yaml") from None
    return context


def _own(path: str) -> str:
    """The text of a file that is the user's own. UsageError, Damaged."""
    if not path.startswith("/"):
        raise UsageError(path or "nats_key", "is not an absolute path", "/etc/nats/ralf.creds")
    found = registry.read(Path(path))
    if found is None:
        raise UsageError(path, "is not there", "config.local.yaml names it")
    return found


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", "")  # of OpenSSL
    return str(reason or error.strerror or type(error).__name__)
