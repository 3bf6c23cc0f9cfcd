"""The register of tokens: which were issued, which are revoked, when each was last used. Never a token itself.

Purpose: the only module that names the token table. A call asks the copy in RAM; a revocation is durable, and in the
copy, before `revoke` returns. What a token grants is opaque here: the service's bytes.

Threading: any number of threads. Records change in the store's write order; reading the copy takes no lock. The time of
last use is noted in RAM and written by a thread every few seconds; a crash loses at most those since then.

Rejected: a list of revoked ids only (a token that was never issued here would pass once a key leaks from a backup).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import msgspec

from memsvc.errors import NotFound, StoreCorrupt
from memsvc.memory import audit, page_tokens
from memsvc.memory.periodic import Periodic
from memsvc.model import Namespace, Scope
from memsvc.storage.engine import Engine, RecordTable, WriteTxn

LOG = logging.getLogger("memsvc.tokens")
REVOKED = "AdminService/RevokeToken"  # as the audit names it
_LIST = "tokens"


class TokenRecord(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What is kept of a token. Times are UTC microseconds, 0 for never. `token_id` is ordered by time of issue;
    `identity` is what the service encoded; `kid` names the key that signed; `issuer` is the actor. New fields go at
    the end.
    """

    token_id: str
    tenant: str
    name: str
    identity: bytes
    kid: str
    issuer: str
    issue_time_us: int
    expire_time_us: int
    revoke_time_us: int = 0
    last_use_time_us: int = 0


_DECODER = msgspec.msgpack.Decoder(TokenRecord)


class TokenRegister:
    """See the module. Reads all records when it is made; raises StoreCorrupt. A record goes `keep_expired_us` after
    its token expired: nobody asks any more why that one is refused.
    """

    def __init__(self, engine: Engine, *, flush_s: float, clock_us: Callable[[], int], keep_expired_us: int) -> None:
        self._engine = engine
        self._clock_us = clock_us
        self._keep_expired_us = keep_expired_us
        self._records: dict[str, TokenRecord] = {}
        self._used: dict[str, int] = {}
        self._flusher = Periodic(
            "tokens", self._tidy, every_s=flush_s, log=LOG, failure="could not bring the register of tokens up to date"
        )
        with engine.read() as txn:
            for _, key, raw in txn.all_records(RecordTable.TOKEN):
                self._records[key] = _decoded(key, raw)

    # -- asking --------------------------------------------------------------------------------------------------

    def get(self, token_id: str) -> TokenRecord | None:
        """The record, or None."""
        return self._records.get(token_id)

    def page(self, tenant: str | None, size: int, page_token: str) -> tuple[list[TokenRecord], str]:
        """Records of a tenant (None: all), newest first, with the last use as it is now, and the token of the next
        page ("" on the last). Raises InvalidArgument.
        """
        records = [record for record in list(self._records.values()) if tenant is None or record.tenant == tenant]
        page, token = page_tokens.newest_first(_LIST, records, _place, size, page_token, tuple[str])
        return [self.with_use(record) for record in page], token

    def with_use(self, record: TokenRecord) -> TokenRecord:
        """The record with its last use, written or not."""
        used_us = max(self._used.get(record.token_id, 0), record.last_use_time_us)
        return msgspec.structs.replace(record, last_use_time_us=used_us)

    def kids_in_use(self, now_us: int) -> set[str]:
        """Keys that signed a token which neither expired nor was revoked."""
        return {r.kid for r in list(self._records.values()) if not r.revoke_time_us and r.expire_time_us > now_us}

    # -- changing ------------------------------------------------------------------------------------------------

    def add(self, record: TokenRecord, call: str) -> None:
        """Writes a new record. `call`, which issued it, is for the audit. Raises what the store raises."""

        def put(txn: WriteTxn) -> None:
            _put(txn, record)
            audit.token_changed(txn, record.tenant, record.token_id, record.issuer, call, record.issue_time_us)

        self._engine.write(put, on_commit=lambda _: self._keep([record]))

    def revoke(self, token_id: str, now_us: int, actor: str) -> TokenRecord:
        """Marks a token as revoked; one that is already stays as it is. Durable, and no longer accepted, when this
        returns. `actor` is for the audit. Raises NotFound.
        """
        record = self._records.get(token_id)
        if record is None:
            raise NotFound(f"no token {token_id}", token_id=token_id)

        def change(txn: WriteTxn) -> TokenRecord:
            raw = txn.record(RecordTable.TOKEN, _namespace(record.tenant), token_id)
            stored = record if raw is None else _decoded(token_id, raw)
            if stored.revoke_time_us:
                return stored
            revoked = msgspec.structs.replace(stored, revoke_time_us=now_us)
            _put(txn, revoked)
            audit.token_changed(txn, record.tenant, token_id, actor, REVOKED, now_us)
            return revoked

        return self._engine.write(change, on_commit=lambda revoked: self._keep([revoked]))

    def note_use(self, token_id: str, now_us: int) -> None:
        """Notes that a token was used."""
        self._used[token_id] = now_us

    def _keep(self, records: Iterable[TokenRecord]) -> None:
        """In commit order: the store calls this for one commit at a time."""
        for record in records:
            self._records[record.token_id] = record

    # -- behind the calls ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the thread that writes uses and drops what expired long ago."""
        self._flusher.start()

    def close(self) -> None:
        """Stops the thread and writes what is left."""
        self._flusher.close()

    def _tidy(self) -> None:
        self.flush()
        self.prune()

    def prune(self) -> int:
        """Drops the records of tokens that expired long ago; returns how many."""
        before_us = self._clock_us() - self._keep_expired_us
        old = [record for record in list(self._records.values()) if record.expire_time_us <= before_us]
        if not old:
            return 0

        def change(txn: WriteTxn) -> list[str]:
            for record in old:
                txn.drop_record(RecordTable.TOKEN, _namespace(record.tenant), record.token_id)
            return [record.token_id for record in old]

        return len(self._engine.write(change, on_commit=self._drop))

    def _drop(self, token_ids: Iterable[str]) -> None:
        for token_id in token_ids:
            self._records.pop(token_id, None)
            self._used.pop(token_id, None)

    def flush(self) -> int:
        """Writes uses that are newer than their record; returns how many."""
        newer = [
            (record, used_us)
            for token_id, used_us in list(self._used.items())
            if (record := self._records.get(token_id)) is not None and used_us > record.last_use_time_us
        ]
        if not newer:
            return 0

        def change(txn: WriteTxn) -> list[TokenRecord]:
            changed = []
            for record, used_us in newer:
                raw = txn.record(RecordTable.TOKEN, _namespace(record.tenant), record.token_id)
                if raw is not None:
                    stored = msgspec.structs.replace(_decoded(record.token_id, raw), last_use_time_us=used_us)
                    _put(txn, stored)
                    changed.append(stored)
            return changed

        return len(self._engine.write(change, on_commit=self._keep))


def _place(record: TokenRecord) -> tuple[str]:
    return (record.token_id,)


def _namespace(tenant: str) -> Namespace:
    return Namespace(tenant, Scope.GLOBAL, "")


def _put(txn: WriteTxn, record: TokenRecord) -> None:
    txn.put_record(RecordTable.TOKEN, _namespace(record.tenant), record.token_id, msgspec.msgpack.encode(record))


def _decoded(key: str, raw: bytes) -> TokenRecord:
    try:
        return _DECODER.decode(raw)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"the record of token {key} can't be read; run `memsvc verify`") from error
