"""TLS of the server: certificate and key from files, read again when they change.

Purpose: gRPC asks for the certificate in front of every handshake; `CertificateFiles` looks at the files' state then
and hands over what is new, so that a renewed certificate needs no restart. A pair that does not fit (one file is new,
the other not yet) is not taken: the old one goes on, and the log says so.

Threading: gRPC asks from its own threads, one at a time or several; a lock orders them.

Rejected: a signal to reload (renewal tools would have to know the process), a thread that polls (a handshake is the
only time that matters).
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from memsvc.errors import ConfigInvalid

LOG = logging.getLogger("memsvc.tls")


class CertificateFiles:
    """See the module. `client_ca` None: clients need no certificate."""

    def __init__(self, cert: Path, key: Path, client_ca: Path | None) -> None:
        self._cert = cert
        self._key = key
        self._client_ca = client_ca
        self._lock = threading.Lock()
        self._state: tuple[tuple[int, int, int], ...] = ()

    def credentials(self) -> grpc.ServerCredentials:
        """What a server listens with. Raises ConfigInvalid naming the file."""
        self._state = self._seen()
        return grpc.dynamic_ssl_server_credentials(
            self._loaded(),
            self.changed,  # type: ignore[arg-type]  # gRPC takes None for "no change"; its stubs don't know
            require_client_authentication=self._client_ca is not None,
        )

    def changed(self) -> grpc.ServerCertificateConfiguration | None:
        """The certificate, if a file changed since it was last taken; None to go on with that one."""
        with self._lock:
            try:
                state = self._seen()
                if state == self._state:
                    return None
                configuration = self._loaded()
            except ConfigInvalid as error:
                LOG.warning(
                    "the TLS files have changed and can't be used; the old certificate stays: %s", error.message
                )
                return None
            self._state = state
            LOG.info("the TLS certificate was read again")
            return configuration

    def _files(self) -> list[tuple[str, Path]]:
        files = [("tls_cert", self._cert), ("tls_key", self._key)]
        return files if self._client_ca is None else [*files, ("tls_client_ca", self._client_ca)]

    def _seen(self) -> tuple[tuple[int, int, int], ...]:
        """What shows a change: time, size and inode of each file."""
        seen = []
        for setting, path in self._files():
            try:
                stat = path.stat()
            except OSError as error:
                raise _unusable(setting, path, error.strerror or "") from error
            seen.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(seen)

    def _loaded(self) -> grpc.ServerCertificateConfiguration:
        content = {}
        for setting, path in self._files():
            try:
                content[setting] = path.read_bytes()
            except OSError as error:
                raise _unusable(setting, path, error.strerror or "") from error
        self._check(content)
        return grpc.ssl_server_certificate_configuration(
            [(content["tls_key"], content["tls_cert"])], content.get("tls_client_ca")
        )

    def _check(self, content: dict[str, bytes]) -> None:
        """Raises ConfigInvalid unless key and certificate are ones, and fit."""
        try:
            certificate = x509.load_pem_x509_certificates(content["tls_cert"])[0]
        except ValueError as error:
            raise _unusable("tls_cert", self._cert, "it holds no PEM certificate") from error
        try:
            key = serialization.load_pem_private_key(content["tls_key"], None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise _unusable("tls_key", self._key, "it holds no PEM key without a password") from error
        if _public(key) != _public(certificate):
            raise _unusable("tls_key", self._key, f"it is not the key of {self._cert}")
        if self._client_ca is not None:
            try:
                x509.load_pem_x509_certificates(content["tls_client_ca"])
            except ValueError as error:
                raise _unusable("tls_client_ca", self._client_ca, "it holds no PEM certificate") from error


def _public(holder: x509.Certificate | PrivateKeyTypes) -> bytes:
    public = holder.public_key()
    return public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _unusable(setting: str, path: Path, why: str) -> ConfigInvalid:
    return ConfigInvalid(f"{setting} {path} can't be used: {why}", setting=setting)
