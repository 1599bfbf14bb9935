"""Certificates of an authority of our own, and `.creds` files of a NATS operator of our own."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization as encoding
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID


class Authority:
    """An authority that vouches for certificates; `path` is its own."""

    def __init__(self, folder: Path, name: str = "ours") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=0)
        made = self._builder(self._name, self._key).add_extension(basic, critical=True).sign(self._key, SHA256())
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(made.public_bytes(encoding.Encoding.PEM))

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))

    def certificate(self, host: str, *others: str, pass_phrase: bytes = b"") -> tuple[Path, Path]:
        """A certificate for a host, and others that are it, too, and its key."""
        names: list[x509.GeneralName] = []
        for each in (host, *others):
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(each)))
            except ValueError:
                names.append(x509.DNSName(each))
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), key)
        made = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(self._key, SHA256())
        paths = self._folder / f"{host}.crt", self._folder / f"{host}.key"
        paths[0].write_bytes(made.public_bytes(encoding.Encoding.PEM))
        locked = encoding.BestAvailableEncryption(pass_phrase) if pass_phrase else encoding.NoEncryption()
        content = key.private_bytes(encoding.Encoding.PEM, encoding.PrivateFormat.PKCS8, locked)
        paths[1].write_bytes(content)
        paths[1].chmod(0o600)
        return paths


def _text(prefix: bytes, content: bytes) -> str:
    body = prefix + content
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode().rstrip("=")


def _url_safe(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@dataclass(frozen=True)
class NatsKey:
    """A key of NATS: of an operator, an account or a user."""

    kind: int
    key: ed25519.Ed25519PrivateKey

    @classmethod
    def made(cls, kind: str) -> NatsKey:
        """A new one: `O`, `A` or `U`."""
        return cls({"O": 14 << 3, "A": 0, "U": 20 << 3}[kind], ed25519.Ed25519PrivateKey.generate())

    @property
    def public(self) -> str:
        """Its name."""
        return _text(bytes([self.kind]), self.key.public_key().public_bytes_raw())

    @property
    def seed(self) -> str:
        """What nobody else may know."""
        return _text(bytes([18 << 3 | self.kind >> 5, (self.kind & 31) << 3]), self.key.private_bytes_raw())

    def token(self, subject: NatsKey, claims: dict[str, Any]) -> str:
        """What this key says of another one."""
        head = _url_safe(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        now = int(time.time())
        tree = {"jti": subject.public, "iat": now, "iss": self.public, "sub": subject.public, "name": "x"}
        body = _url_safe(json.dumps(tree | {"nats": {"version": 2, **claims}}).encode())
        return f"{head}.{body}.{_url_safe(self.key.sign(f'{head}.{body}'.encode()))}"


def operated(folder: Path) -> tuple[list[str], Path]:
    """Lines of the configuration of a server with an operator and an account, and a `.creds` file of a user of it."""
    operator, account, system, user = (NatsKey.made(kind) for kind in "OAAU")
    everything = {"subs": -1, "data": -1, "payload": -1}
    limits = {**everything, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "wildcards": True}
    stores = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
    tokens = {
        each: operator.token(each, {"type": "account", "limits": limits | (stores if each is account else {})})
        for each in (account, system)
    }
    lines = [
        f"operator: {operator.token(operator, {'type': 'operator'})}",
        f"system_account: {system.public}",
        "resolver: MEMORY",
        "resolver_preload: {",
        *(f"  {each.public}: {token}" for each, token in tokens.items()),
        "}",
    ]
    path = folder / "ralf.creds"
    token = account.token(user, {"type": "user", "pub": {}, "sub": {}, **everything})
    path.write_text(
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    path.chmod(0o600)
    return lines, path
