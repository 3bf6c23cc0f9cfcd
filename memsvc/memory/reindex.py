"""Re-embedding the store with another model, resumably, while serving.

Purpose: for every version that can be recalled, the target model's vector is written beside the old one; when none is
missing, the model recorded with the data is switched and the old vectors are dropped. A crash resumes: vectors that
are there already are not made again, and a switch is one transaction.

Threading: `Reindexer.run` works on the caller's thread; writes that come in meanwhile are seen by the last passes,
which repeat until one finds nothing missing, the last of them inside the switching transaction.

Rejected: overwriting vectors in place (recall would mix two spaces), stopping writes for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from memsvc.errors import ModelMismatch
from memsvc.model import Memory, Namespace, embedded_text
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.segments import vector_hash
from memsvc.storage.engine import Engine, ReadTxn, WriteTxn

META_MODEL = "embedding_model"
BATCH_ROWS = 64


class ModelRecord(msgspec.Struct, frozen=True):
    """The model that the store's vectors are of."""

    model_id: str
    dim: int


def stored_model(engine: Engine) -> ModelRecord | None:
    """What the store says; None for a new one."""
    with engine.read() as txn:
        raw = txn.meta(META_MODEL)
    return None if raw is None else msgspec.msgpack.decode(raw, type=ModelRecord)


def check_model(engine: Engine, embedder: Embedder, model_argument: str) -> None:
    """Records the model in a new store; raises ModelMismatch naming the fix when the store's is another one."""
    wanted = ModelRecord(embedder.model_id, embedder.dim)
    known = stored_model(engine)
    if known is None:
        engine.write(lambda txn: txn.put_meta(META_MODEL, msgspec.msgpack.encode(wanted)))
    elif known != wanted:
        raise ModelMismatch(
            f"the store was embedded by {known.model_id} ({known.dim} dimensions), this model is {wanted.model_id} "
            f"({wanted.dim}). Re-embed it with `memsvc reindex{f' --model {model_argument}' if model_argument else ''}`"
            ", or serve with the model that it was written with",
            stored=known.model_id,
            given=wanted.model_id,
        )


class Reindexer:
    """Moves a store to `embedder`'s model. `progress(done, total)` is called after each batch."""

    def __init__(
        self,
        engine: Engine,
        embedder: Embedder,
        progress: Callable[[int, int], None],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine = engine
        self._embedder = embedder
        self._progress = progress
        self._cancelled = cancelled
        self.done_count = 0
        self.total_count = 0

    def run(self, on_switch: Callable[[], None] = lambda: None) -> bool:
        """Embeds all that is missing, then switches; False when it was cancelled (call again to resume).

        `on_switch` runs after the switch is durable and before the next write.
        """
        with self._engine.read() as txn:
            self.total_count = sum(head.memory_count for head in txn.heads())
        previous = stored_model(self._engine)
        while True:
            missing = self._pass()
            if missing is None:
                return False
            if missing == 0 and self._engine.write(self._switch, on_commit=lambda done: on_switch() if done else None):
                break
        if previous is not None and previous.model_id != self._embedder.model_id:
            self._engine.write(lambda txn: txn.drop_vectors(previous.model_id))
        return True

    def _pass(self) -> int | None:
        """Embeds what is missing now; returns how many vectors it made, None when cancelled."""
        made = 0
        self.done_count = 0
        with self._engine.read() as txn:
            namespaces = [head.namespace for head in txn.heads()]
        for namespace in namespaces:
            after_id = ""
            while True:
                if self._cancelled():
                    return None
                with self._engine.read() as txn:
                    batch = _next(txn.scan(namespace, after_id=after_id), BATCH_ROWS)
                    missing = self._missing(txn, namespace, batch)
                if missing:
                    self._embed(namespace, missing)
                    made += len(missing)
                if not batch:
                    break
                after_id = batch[-1].memory_id
                self.done_count += len(batch)
                self.total_count = max(self.total_count, self.done_count)
                self._progress(self.done_count, self.total_count)
        return made

    def _missing(self, txn: ReadTxn, namespace: Namespace, memories: list[Memory]) -> list[Memory]:
        memories = [memory for memory in memories if memory.embedding_dim]  # exact facts have no vector
        if not memories:
            return []
        hashes = [vector_hash(m) for m in memories]
        _, found = txn.vectors(namespace, self._embedder.model_id, hashes, self._embedder.dim)
        return [memories[i] for i in np.flatnonzero(~found).tolist()]

    def _embed(self, namespace: Namespace, memories: list[Memory]) -> None:
        vectors = self._embedder.embed_passages([embedded_text(m) for m in memories], cancelled=self._cancelled)

        def put(txn: WriteTxn) -> None:
            for memory, vector in zip(memories, vectors, strict=True):
                txn.put_vector(namespace, self._embedder.model_id, vector_hash(memory), vector)

        self._engine.write(put)

    def _switch(self, txn: WriteTxn) -> bool:
        """Inside one transaction: if nothing is missing, the store's model is the new one."""
        for head in list(txn.heads()):
            after_id = ""
            while batch := _next(txn.scan(head.namespace, after_id=after_id), 1024):
                if self._missing(txn, head.namespace, batch):
                    return False
                after_id = batch[-1].memory_id
        record = ModelRecord(self._embedder.model_id, self._embedder.dim)
        txn.put_meta(META_MODEL, msgspec.msgpack.encode(record))
        return True


def _next(memories: Iterator[Memory], count: int) -> list[Memory]:
    batch = []
    for memory in memories:
        batch.append(memory)
        if len(batch) == count:
            break
    return batch
