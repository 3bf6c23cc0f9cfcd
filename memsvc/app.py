"""The composition root: from settings to a running service.

Purpose: opens store, model and segments, builds policy and servers, and closes all of it in order. The only module
that knows every room.

Threading: `Service` is built, started and closed by one thread.

Rejected: a dependency-injection framework (twenty constructor calls say more).
"""

from __future__ import annotations

import functools
import gc
import logging
import random
import resource
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memsvc.config import Settings, default_model_cache_dir
from memsvc.errors import ConfigInvalid, InvalidArgument
from memsvc.memory import audit, care, text_caches
from memsvc.memory.access import AccessBook
from memsvc.memory.arbiter import Arbiter, calibration_for
from memsvc.memory.audit_book import AuditBook, Reads
from memsvc.memory.audit_reader import AuditReader
from memsvc.memory.care import ReindexJob
from memsvc.memory.chat import ChatEndpoint, ChatSettings
from memsvc.memory.context import ContextBuilder, SessionView
from memsvc.memory.erasure import Erasure
from memsvc.memory.events import Events
from memsvc.memory.facts import Facts
from memsvc.memory.feed import ChangeFeed
from memsvc.memory.forgetting import Forgetting
from memsvc.memory.funnel.chat_judge import ChatJudge
from memsvc.memory.ingest import Ingestor
from memsvc.memory.lifecycle.lifecycle import ACTOR, Lifecycle, Schedule
from memsvc.memory.lifecycle.policy import policy_of
from memsvc.memory.lifecycle.retention import strengthened
from memsvc.memory.memories import Memories, Staging
from memsvc.memory.permanent import Permanent, PermanentKind
from memsvc.memory.places import Places
from memsvc.memory.policies import Policies
from memsvc.memory.recall import Recaller
from memsvc.memory.reindex import check_model
from memsvc.memory.reviewing import Reviews
from memsvc.memory.sessions.condensing import ChatSummary, Condenser
from memsvc.memory.sessions.consolidation import Consolidator
from memsvc.memory.sessions.sessions import Sessions, SessionSettings
from memsvc.memory.settling import Settling
from memsvc.memory.skills.patterns import Proposals
from memsvc.memory.skills.skills import Skills
from memsvc.memory.token_counts import TokenCounts
from memsvc.memory.token_register import TokenRegister
from memsvc.memory.transactions import Mutation, Transactions
from memsvc.memory.why import why
from memsvc.model import IdMinter, Memory, MemoryType, Namespace
from memsvc.retrieval.default_model import ensure_default_model
from memsvc.retrieval.embedder import Embedder
from memsvc.retrieval.segments import SegmentStore
from memsvc.retrieval.warm import warm_kernels
from memsvc.service.admin_servicer import AdminServicer, Counters
from memsvc.service.admission import Admission
from memsvc.service.audit_servicer import AuditServicer
from memsvc.service.auth.guard import Guard
from memsvc.service.auth.keys import SigningKeys
from memsvc.service.auth.rates import Rates
from memsvc.service.auth.rules import Kind
from memsvc.service.auth.tls import CertificateFiles
from memsvc.service.auth.tokens import Tokens
from memsvc.service.context_servicer import ContextServicer
from memsvc.service.erasure_servicer import ErasureServicer
from memsvc.service.event_servicer import EventServicer
from memsvc.service.fact_servicer import FactServicer
from memsvc.service.memory_servicer import MemoryServicer
from memsvc.service.permanent_servicer import PermanentServicer
from memsvc.service.review_servicer import ReviewServicer
from memsvc.service.server import GrpcServer, Served, check_listen
from memsvc.service.session_servicer import SessionServicer
from memsvc.service.skill_servicer import SkillServicer
from memsvc.service.token_servicer import TokenServicer
from memsvc.storage.lmdb_engine import LmdbEngine
from memsvc.storage.session_log import FileSessionLog
from memsvc.v1 import (
    admin_service_pb2,
    admin_service_pb2_grpc,
    audit_service_pb2,
    audit_service_pb2_grpc,
    context_service_pb2,
    context_service_pb2_grpc,
    erasure_service_pb2,
    erasure_service_pb2_grpc,
    event_service_pb2,
    event_service_pb2_grpc,
    fact_service_pb2,
    fact_service_pb2_grpc,
    permanent_service_pb2,
    permanent_service_pb2_grpc,
    review_service_pb2,
    review_service_pb2_grpc,
    session_service_pb2,
    session_service_pb2_grpc,
    skill_service_pb2,
    skill_service_pb2_grpc,
    token_service_pb2,
    token_service_pb2_grpc,
)

LOG = logging.getLogger("memsvc")
STORE_DIR = "store"
SEGMENTS_DIR = "segments"
SESSIONS_DIR = "sessions"
KEYS_DIR = "keys"
_HOUR_US = 3_600_000_000


def now_us() -> int:
    """UTC microseconds: the process's wall clock."""
    return time.time_ns() // 1000


def open_engine(settings: Settings) -> LmdbEngine:
    """The store below the data directory. Raises StoreLocked, FormatVersionUnknown."""
    return LmdbEngine.open(settings.data_dir / STORE_DIR, max_map_size_bytes=settings.map_size_max_bytes)


def open_model(directory: str, progress: Callable[[str, int, int], None] | None = None) -> Embedder:
    """The embedder of a model directory, or of the default model, which is built when it is not there yet."""
    path = Path(directory) if directory else ensure_default_model(default_model_cache_dir(), progress)
    embedder = Embedder(path)
    embedder.warm()
    return embedder


def open_tokens(settings: Settings, engine: LmdbEngine, revoked: Callable[[], None] = lambda: None) -> Tokens:
    """Tokens of a data directory. Raises ConfigInvalid for keys that can't be used, StoreCorrupt."""
    minter = IdMinter(now_us)
    return Tokens(
        SigningKeys(settings.data_dir / KEYS_DIR, clock_us=now_us),
        TokenRegister(
            engine,
            flush_s=settings.access_flush_s,
            clock_us=now_us,
            keep_expired_us=round(settings.token_keep_expired_days * 24 * _HOUR_US),
        ),
        clock_us=now_us,
        make_id=lambda: minter.mint().replace("mem_", "tok_", 1),
        revoked=revoked,
    )


def tls_files(settings: Settings) -> CertificateFiles | None:
    """The configured TLS files, or None. Raises ConfigInvalid when only some are named."""
    if settings.tls_cert and settings.tls_key:
        return CertificateFiles(settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    if settings.tls_cert or settings.tls_key or settings.tls_client_ca:
        raise ConfigInvalid("TLS needs --tls-cert FILE and --tls-key FILE", setting="tls_cert")
    return None


class Service:
    """Everything that a serving process holds. `close` is safe after a failed start."""

    def __init__(self, settings: Settings, progress: Callable[[str, int, int], None] | None = None) -> None:
        tls = tls_files(settings)
        is_loopback = check_listen(settings.listen, has_tls=tls is not None)
        self.policies = Policies(settings.sensitive_policy)
        self._forgetting_policy = policy_of(settings.lifecycle_policy, settings.fade_below, settings.archive_below)
        self.settings = settings
        self._started_s = time.monotonic()
        self.engine = open_engine(settings)
        try:
            self.embedder = open_model(settings.model, progress)
            check_model(self.engine, self.embedder, settings.model)
            audit.begin(self.engine, now_us())
        except BaseException:
            self.engine.close()
            raise
        self.segments = SegmentStore(
            self.engine,
            self.embedder.model_id,
            self.embedder.dim,
            settings.data_dir / SEGMENTS_DIR,
            save_after_changes=settings.segment_save_rows,
        )
        self.feed = ChangeFeed(self.engine)
        self.transactions = Transactions(
            self.engine,
            self.embedder,
            self.segments,
            self.feed,
            clock_us=now_us,
            answer_retention_us=round(settings.answer_retention_hours * _HOUR_US),
        )
        chat = _chat_endpoint(settings)
        self._build_learning(settings, chat)
        self.access = AccessBook(
            self.engine,
            lambda access, memory, used_us: strengthened(access, memory, used_us, self._forgetting_policy),
            flush_s=settings.access_flush_s,
        )
        self.recaller = Recaller(self.engine, self.embedder, self.segments, clock_us=now_us, used=self.access.note)
        self.events = Events(self.transactions, self.memories, self.segments, self.recaller)
        self.facts = Facts(self.transactions, self.segments, self.policies, minter=IdMinter(now_us))
        self.permanent = Permanent(self.transactions, self.policies, IdMinter(now_us))
        self.skills = Skills(
            self.transactions, self.memories, self.segments, self.recaller, self.policies, minter=IdMinter(now_us)
        )
        self._build_sessions(settings, chat)
        self._build_lifecycle(settings)
        receipt_ids = IdMinter(now_us)
        self.erasure = Erasure(
            self.transactions,
            self.segments,
            self.feed,
            self.sessions,
            paused=self.consolidator.paused,
            forget=self._forget,
            make_id=lambda: receipt_ids.mint().replace("mem_", "rcp_", 1),
        )
        self.reindex = ReindexJob(self.engine, open_model, self._switch_model)
        self.memory_servicer = MemoryServicer(
            self.memories,
            self.forgetting,
            self.ingestor,
            self.settling,
            self.recaller,
            self.feed,
            remembered=self.lifecycle.remembered,
            clock_us=now_us,
            latency_budget_s=settings.latency_budget_ms / 1000,
            content_max_bytes=settings.content_max_bytes,
            watch_streams_max=settings.watch_streams_max,
        )
        self.audit_book = AuditBook(
            self.engine, reads=Reads(settings.audit_reads), sample=settings.audit_sample, clock_us=now_us
        )
        self.tokens = open_tokens(settings, self.engine, revoked=self.feed.wake_all)
        self.guard = Guard(
            self.tokens,
            Places(self.transactions, self.permanent, self.sessions, self.consolidator),
            Rates(
                {Kind.READ: settings.token_reads_per_minute, Kind.WRITE: settings.token_writes_per_minute},
                timer_us=lambda: time.monotonic_ns() // 1000,
            ),
            Admission(random.random),
            self.audit_book,
            token_required=settings.require_token or not is_loopback,
        )
        self.server = GrpcServer(
            self.memory_servicer,
            self._others(),
            self.guard,
            tls=tls,
            worker_threads=settings.worker_threads,
            admission_queue_max=settings.admission_queue_max,
            watch_streams_max=settings.watch_streams_max,
        )

    def _forget(self, namespaces: Sequence[Namespace]) -> None:
        """Drops what the process holds of texts, after some were purged."""
        self.permanent.forget(namespaces)
        self.recaller.forget_records()
        self.memory_servicer.forget_encoded()
        self.embedder.forget_texts()
        self.arbiter.forget_texts()
        self.token_counts.forget_texts()
        text_caches.empty()

    def _build_learning(self, settings: Settings, chat: ChatEndpoint | None) -> None:
        """Writing, and the funnel in front of it."""
        self.arbiter = Arbiter(self.engine, self.segments, calibration_for(self.embedder.model_id))
        self.memories = Memories(
            self.transactions,
            self.arbiter,
            self.policies,
            minter=IdMinter(now_us),
            content_max_bytes=settings.content_max_bytes,
            staging=Staging(round(settings.staging_days * 24 * _HOUR_US), settings.staging_sessions),
        )
        self.forgetting = Forgetting(self.transactions)
        self.settling = Settling(self.transactions, self.policies, settings.content_max_bytes)
        self.reviews = Reviews(
            self.transactions,
            self.arbiter,
            self.memories,
            self.settling,
            self.policies,
            content_max_bytes=settings.content_max_bytes,
        )
        self.ingestor = Ingestor(
            self.transactions,
            self.memories,
            self.policies,
            content_max_bytes=settings.content_max_bytes,
            make_judge=None if chat is None else lambda local: ChatJudge(local, chat),
        )

    def _build_sessions(self, settings: Settings, chat: ChatEndpoint | None) -> None:
        """Open sessions, and what becomes of them at their end."""
        self.token_counts = TokenCounts(lambda: self.embedder)
        self.session_log = FileSessionLog(settings.data_dir / SESSIONS_DIR)
        self.sessions = Sessions(
            self.session_log,
            clock_us=now_us,
            count_tokens=self.token_counts.of,
            settings=SessionSettings(
                ttl_us=round(settings.session_ttl_hours * _HOUR_US),
                window_turns=settings.session_window_turns,
                summary_tokens=settings.session_summary_tokens,
                tool_outputs=settings.session_tool_outputs,
                tool_output_chars=settings.session_tool_output_chars,
                sessions_max=settings.sessions_max,
                content_max_bytes=settings.content_max_bytes,
            ),
            policies=self.policies,
            make_id=lambda: uuid.uuid4().hex,
            condenser=None
            if chat is None
            else Condenser(ChatSummary(chat, settings.session_summary_tokens, self.token_counts.of)),
        )
        self.context = ContextBuilder(
            self.recaller,
            rules=self.permanent.active,
            session=self._session_view,
            counts=self.token_counts,
            used=lambda uses: self.access.note(uses, now_us()),
        )
        self.consolidator = Consolidator(
            self.engine, self.sessions, self.ingestor, self.memories, self.policies, clock_us=now_us
        )

    def _build_lifecycle(self, settings: Settings) -> None:
        """What fades, is archived, expires, and is proposed for the permanent store."""
        self.lifecycle = Lifecycle(
            self.transactions, self.segments, self._forgetting_policy, propose=self._propose_permanent
        )
        self.segments.on_load = self.lifecycle.refresh
        self.schedule = Schedule(self.lifecycle, self.transactions, interval_s=settings.lifecycle_interval_hours * 3600)

    def _propose_permanent(self, memory: Memory, reason: str) -> None:
        kind = PermanentKind.SAFETY if memory.type == MemoryType.RULE else PermanentKind.PROFILE
        self.permanent.propose_from_memory(memory, kind, reason, Mutation("", b"", ACTOR, ACTOR), by_job=True)

    def _session_view(self, namespace: Namespace) -> SessionView | None:
        """What a context block takes of an open session."""
        session = self.sessions.open_session(namespace)
        if session is None or session.sealed:
            return None
        state = session.state
        return SessionView(
            goal=state.goal,
            constraints=state.constraints,
            pending=state.pending,
            finished=state.finished,
            slots=tuple(state.slots.items()),
            tool_outputs=[(output.tool, output.content) for output in state.tool_outputs],
            summary=session.summary,
            turns=[(turn.speaker, turn.content) for turn in session.window],
        )

    def _others(self) -> list[Served]:
        """The services beside MemoryService."""
        return [
            Served(self._admin(), admin_service_pb2_grpc.add_AdminServiceServicer_to_server, _name(admin_service_pb2)),
            Served(
                AuditServicer(
                    AuditReader(self.engine),
                    functools.partial(why, self.engine),
                    self.lifecycle.remembered,
                    clock_us=now_us,
                ),
                audit_service_pb2_grpc.add_AuditServiceServicer_to_server,
                _name(audit_service_pb2),
            ),
            Served(self._events(), event_service_pb2_grpc.add_EventServiceServicer_to_server, _name(event_service_pb2)),
            Served(
                self._sessions(),
                session_service_pb2_grpc.add_SessionServiceServicer_to_server,
                _name(session_service_pb2),
            ),
            Served(
                ContextServicer(self.context, self.settings.latency_budget_ms / 1000),
                context_service_pb2_grpc.add_ContextServiceServicer_to_server,
                _name(context_service_pb2),
            ),
            Served(
                ErasureServicer(self.erasure),
                erasure_service_pb2_grpc.add_ErasureServiceServicer_to_server,
                _name(erasure_service_pb2),
            ),
            Served(self._facts(), fact_service_pb2_grpc.add_FactServiceServicer_to_server, _name(fact_service_pb2)),
            Served(
                PermanentServicer(self.permanent),
                permanent_service_pb2_grpc.add_PermanentServiceServicer_to_server,
                _name(permanent_service_pb2),
            ),
            Served(
                SkillServicer(self.skills, Proposals(self.skills)),
                skill_service_pb2_grpc.add_SkillServiceServicer_to_server,
                _name(skill_service_pb2),
            ),
            Served(
                ReviewServicer(self.reviews, clock_us=now_us),
                review_service_pb2_grpc.add_ReviewServiceServicer_to_server,
                _name(review_service_pb2),
            ),
            Served(
                TokenServicer(self.tokens, clock_us=now_us),
                token_service_pb2_grpc.add_TokenServiceServicer_to_server,
                _name(token_service_pb2),
            ),
        ]

    def _sessions(self) -> SessionServicer:
        return SessionServicer(
            self.sessions,
            self.consolidator,
            self.context,
            latency_budget_s=self.settings.latency_budget_ms / 1000,
            clock_us=now_us,
            counts=self.token_counts,
        )

    def _events(self) -> EventServicer:
        return EventServicer(self.events, clock_us=now_us)

    def _facts(self) -> FactServicer:
        return FactServicer(self.facts)

    def _admin(self) -> AdminServicer:
        return AdminServicer(
            stats=lambda: care.stats(self.engine),
            counters=self.counters,
            verify=lambda: care.verify(self.engine, self.segments),
            backup=self.backup,
            reindex=self.reindex,
            lifecycle=self.lifecycle,
            tokens=self.tokens,
            erasure=self.erasure,
            clock_us=now_us,
        )

    def start(self) -> str:
        """Warms, loads the large segments, serves; returns HOST:PORT."""
        warm_kernels(self.embedder.dim)
        self.erasure.start()
        self.segments.start()
        with self.engine.read() as txn:
            heads = list(txn.heads())
        for head in heads:
            if head.sequence >= self.settings.preload_rows:
                self.segments.get(head.namespace)
        self.access.start()
        self.audit_book.start()
        self.tokens.register.start()
        self.schedule.start()
        self.sessions.start_sweeping()
        self.consolidator.start()
        gc.collect()
        gc.freeze()  # what is loaded stays: the collector need not walk it again in the middle of a recall
        return self.server.start(self.settings.listen)

    def counters(self) -> Counters:
        """Counts since the start."""
        return Counters(
            self.recaller.recall_count,
            self.recaller.degraded_count,
            self.memory_servicer.write_count,
            int(time.monotonic() - self._started_s),
            resident_size_bytes(),
            self.embedder.model_id,
            self.embedder.dim,
            self.segments.unindexed_rows(),
            self.ingestor.counts.messages,
            self.ingestor.counts.kept,
            self.ingestor.counts.fallbacks,
        )

    def backup(self, directory: Path) -> int:
        """A hot copy in the layout of a data directory: `serve --data-dir` opens it. Raises InvalidArgument for a place
        inside this one: a purge would leave what it holds there.
        """
        if directory.resolve().is_relative_to(self.settings.data_dir.resolve()):
            raise InvalidArgument("a backup goes outside of the data directory", field="directory")
        with self.consolidator.paused():
            return care.backup(self.engine, self.session_log, directory / STORE_DIR, directory / SESSIONS_DIR)

    def _switch_model(self, embedder: Embedder) -> None:
        """After a reindex: everything uses the new model from the next call on."""

        def switch() -> None:
            self.transactions.embedder = self.recaller.embedder = self.embedder = embedder
            self.arbiter.calibration = calibration_for(embedder.model_id)

        self.segments.switch_model(embedder.model_id, embedder.dim, switch)

    def close(self) -> None:
        """Stops serving, saves segments, closes the store."""
        self.server.stop()
        self.erasure.close()
        self.reindex.close()
        self.consolidator.close()
        self.sessions.close()
        self.schedule.close()
        self.access.close()
        self.audit_book.close()
        self.tokens.register.close()
        self.segments.close()
        self.embedder.close()
        self.engine.close()


def _name(module: Any) -> str:
    """Full name of the one service of a generated module."""
    (service,) = module.DESCRIPTOR.services_by_name.values()
    return str(service.full_name)


def _chat_endpoint(settings: Settings) -> ChatEndpoint | None:
    """The configured endpoint, or None. Raises ConfigInvalid when its settings are not whole."""
    if not settings.chat_url:
        return None
    return ChatEndpoint(
        ChatSettings(
            base_url=settings.chat_url,
            model=settings.chat_model,
            api_key=settings.chat_api_key.get_secret_value(),
            timeout_s=settings.chat_timeout_s,
        )
    )


def resident_size_bytes() -> int:
    """Resident memory of this process; the peak where the system does not tell the present (not Linux)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()
