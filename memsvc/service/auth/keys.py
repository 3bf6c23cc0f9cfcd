"""The keys that sign tokens: one signs, older ones go on verifying.

Purpose: Ed25519 keys as PEM files of mode 0600 in a directory of mode 0700, named by `kid`. The newest signs; a
rotation adds one and drops those that no token needs any more.

Threading: any number of threads; a lock around changes, readers take the present dict.

Rejected: keys in the store (a backup of the memories would be able to make tokens); an encrypted key file (its password
would lie beside it).
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from memsvc.errors import ConfigInvalid

_KID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}")
_SUFFIX = ".pem"


class SigningKeys:
    """See the module. `clock_us` gives UTC microseconds, `random_bytes(n)` n random bytes; a kid is a time and four
    random bytes in hex, so that the newest is the last by name.
    """

    def __init__(
        self, directory: Path, *, clock_us: Callable[[], int], random_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        """Reads the keys that are there. Raises ConfigInvalid for a file that others may read, or that is no key."""
        self._directory = directory
        self._clock_us = clock_us
        self._random_bytes = random_bytes
        self._lock = threading.Lock()
        self._private = {path.stem: _read(path) for path in sorted(directory.glob(f"*{_SUFFIX}"))}
        self._public = {kid: key.public_key() for kid, key in self._private.items()}

    def verifier(self, kid: str) -> Ed25519PublicKey | None:
        """The key that checks what `kid` signed, or None."""
        return self._public.get(kid)

    @property
    def kids(self) -> tuple[str, ...]:
        """All of them, oldest first."""
        return tuple(sorted(self._public))

    def signer(self) -> tuple[str, Ed25519PrivateKey]:
        """The newest key and its kid; the first one is made when there is none. Raises ConfigInvalid."""
        with self._lock:
            if not self._private:
                self._add()
            kid = max(self._private)
            return kid, self._private[kid]

    def rotate(self, still_used: set[str]) -> tuple[str, list[str]]:
        """Makes a new key that signs from now on, and drops older ones that are not in `still_used`. Returns the new
        kid and the dropped ones. Raises ConfigInvalid.
        """
        with self._lock:
            old = sorted(self._private)
            kid = self._add()
            dropped = [name for name in old if name not in still_used]
            for name in dropped:
                (self._directory / f"{name}{_SUFFIX}").unlink(missing_ok=True)
            self._private = {name: key for name, key in self._private.items() if name not in dropped}
            self._public = {name: key for name, key in self._public.items() if name not in dropped}
            _sync(self._directory)
            return kid, dropped

    def _add(self) -> str:
        """Under the lock: a new key, on disk before it is used."""
        newest_us = max((int(kid.partition("-")[0], 16) for kid in self._private), default=0)
        kid = f"{max(self._clock_us(), newest_us + 1):016x}-{self._random_bytes(4).hex()}"
        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(
                self._directory / f"{kid}{_SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600
            )
            with os.fdopen(handle, "wb") as file:
                file.write(pem)
                file.flush()
                os.fsync(file.fileno())
            _sync(self._directory)
        except OSError as error:
            raise ConfigInvalid(
                f"a key can't be written into {self._directory}: {error.strerror}", setting="data_dir"
            ) from error
        self._private = {**self._private, kid: key}
        self._public = {**self._public, kid: key.public_key()}
        return kid


def _read(path: Path) -> Ed25519PrivateKey:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        pem = path.read_bytes()
    except OSError as error:
        raise ConfigInvalid(f"key {path} can't be read: {error.strerror}", setting="data_dir") from error
    if mode & 0o077:
        raise ConfigInvalid(f"key {path} can be read by others: chmod 600 it, or rotate the keys", setting="data_dir")
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey) or not _KID.fullmatch(path.stem):
        raise ConfigInvalid(f"{path} is no key of this service: move it away", setting="data_dir")
    return key


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
