"""The gRPC server: services, health, reflection, limits of the transport.

Purpose: one place that builds a server, used by `serve`, by the tests and by the benches' echo floor (same settings).

Threading: a thread pool serves unary calls; watch streams have a pool of their own.

Rejected: grpc.aio (measured on this code: plain echo 0.55 ms against 0.44 ms p50, and every engine call would need a
hop to a thread), binding `0.0.0.0` without TLS (refused here), health and reflection behind tokens (probes have none,
and both tell nothing that the public contract does not).
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from memsvc.errors import ConfigInvalid
from memsvc.service.admission import CallPool
from memsvc.service.auth.guard import Guard
from memsvc.service.auth.tls import CertificateFiles
from memsvc.service.memory_servicer import MemoryServicer
from memsvc.v1 import memory_service_pb2, memory_service_pb2_grpc

MESSAGE_MAX_BYTES = 32 * 1024 * 1024
WATCH_POOL_SLACK = 8
STOP_GRACE_S = 5.0

SERVER_OPTIONS: Sequence[tuple[str, int]] = (
    ("grpc.so_reuseport", 0),  # a second server on the port is an error, not half of the traffic
    ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
    ("grpc.max_send_message_length", MESSAGE_MAX_BYTES),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)


def check_listen(listen: str, *, has_tls: bool) -> bool:
    """Whether the address is on loopback. Raises ConfigInvalid unless it is HOST:PORT, and for another than a loopback
    address without TLS.
    """
    host, separator, port = listen.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ConfigInvalid(f"listen {listen!r} is not HOST:PORT", setting="listen")
    host = host.strip("[]")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback and not has_tls:
        raise ConfigInvalid(
            f"listen {listen!r} is not a loopback address: other addresses need --tls-cert FILE and --tls-key FILE "
            "(and each call a token, see `memsvc token create`); or listen on 127.0.0.1 and tunnel",
            setting="listen",
        )
    return loopback


class Served(NamedTuple):
    """A servicer, the generated function that adds it to a server, and the service's full name."""

    servicer: Any
    add: Callable[[Any, Any], None]
    name: str


class GrpcServer:
    """A server on one address. `address` is HOST:PORT after `start`, with the port that was taken."""

    def __init__(
        self,
        memory: MemoryServicer,
        others: Sequence[Served],
        guard: Guard,
        *,
        tls: CertificateFiles | None,
        worker_threads: int,
        admission_queue_max: int,
        watch_streams_max: int,
    ) -> None:
        self._tls = tls
        self._memory = memory
        self._pool = CallPool(worker_threads, admission_queue_max)
        self._watch_pool = ThreadPoolExecutor(watch_streams_max + WATCH_POOL_SLACK, thread_name_prefix="watch")
        self._server = grpc.server(self._pool, options=list(SERVER_OPTIONS))
        watch = functools.partial(memory.Watch)  # an object of this server's own: gRPC reads the pool from it
        watch.experimental_thread_pool = self._watch_pool  # type: ignore[attr-defined]
        memory.Watch = watch  # type: ignore[method-assign]
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(memory, self._server)
        memory.gate = guard.gate(memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name)
        for other in others:
            other.servicer.gate = guard.gate(other.name)
            other.add(other.servicer, self._server)
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._names = [
            memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name,
            *(other.name for other in others),
        ]
        reflection.enable_server_reflection((*self._names, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)
        self.address = ""

    def start(self, listen: str) -> str:
        """Binds and serves; returns HOST:PORT. Raises ConfigInvalid for a bad or taken address, and for TLS files that
        can't be used.
        """
        check_listen(listen, has_tls=self._tls is not None)
        try:
            if self._tls is None:
                port = self._server.add_insecure_port(listen)
            else:
                port = self._server.add_secure_port(listen, self._tls.credentials())
        except RuntimeError as error:
            raise ConfigInvalid(f"can't listen on {listen}: is the port taken?", setting="listen") from error
        self.address = f"{listen.rpartition(':')[0]}:{port}"
        self._server.start()
        self._set_health(health_pb2.HealthCheckResponse.SERVING)
        return self.address

    def _set_health(self, state: int) -> None:
        for name in ("", *self._names):
            self._health.set(name, state)

    def stop(self) -> None:
        """Refuses new calls, ends watches, waits for running calls up to STOP_GRACE_S."""
        self._health.enter_graceful_shutdown()
        self._memory.stop()
        self._server.stop(STOP_GRACE_S).wait()
        self._pool.shutdown(wait=True)
        self._watch_pool.shutdown(wait=True)
