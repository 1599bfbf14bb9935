"""Certificates of an authority of our own."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization as encoding
from cryptography.hazmat.primitives.asymmetric import ec
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

    def certificate(self, host: str, *others: str) -> tuple[Path, Path]:
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
        content = key.private_bytes(encoding.Encoding.PEM, encoding.PrivateFormat.PKCS8, encoding.NoEncryption())
        paths[1].write_bytes(content)
        paths[1].chmod(0o600)
        return paths
