"""Overload: heavy calls that come when the queue is full are refused at once, others are answered."""

from __future__ import annotations

import threading

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memsvc.app import Service
from memsvc.config import Settings
from memsvc.errors import Overloaded
from memsvc.service.admission import HEAVY, RETRY_FIRST_US, RETRY_SPREAD_US, Admission, CallPool
from memsvc.service.auth.rules import RULES
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb
from memsvc.v1 import memory_service_pb2_grpc as rpc

LIMIT_S = 30


def outcome(admission: Admission) -> int:
    """0 for a taken call, else the wait."""
    try:
        admission.check()
    except Overloaded as error:
        return error.retry_us
    return 0


def outcomes(queue_max: int, calls: int) -> list[int]:
    """What calls get that come while the only thread is busy, and then one that comes when it is free."""
    busy, free = threading.Event(), threading.Event()
    admission = Admission(lambda: 0.5)
    with CallPool(1, queue_max) as pool:
        pool.submit(lambda: (busy.set(), free.wait(LIMIT_S)))
        assert busy.wait(LIMIT_S)
        waiting = [pool.submit(outcome, admission) for _ in range(calls)]
        free.set()
        got = [one.result(LIMIT_S) for one in waiting]
        return [*got, pool.submit(outcome, admission).result(LIMIT_S)]


def test_who_comes_to_a_full_queue_is_late_and_nobody_else():
    wait_us = RETRY_FIRST_US + RETRY_SPREAD_US // 2
    assert outcomes(queue_max=3, calls=6) == [0, 0, 0, wait_us, wait_us, wait_us, 0]


def test_without_a_limit_nobody_is_late():
    assert outcomes(queue_max=0, calls=300) == [0] * 301


def test_heavy_calls_have_rows():
    assert set(RULES) >= HEAVY


def test_an_overloaded_server_refuses_recalls_and_answers_the_rest(tmp_path, fresh_id):
    settings = Settings(
        data_dir=tmp_path, listen="127.0.0.1:0", worker_threads=1, admission_queue_max=2, latency_budget_ms=20_000
    )
    running = Service(settings)
    try:
        running.start()
        with grpc.insecure_channel(running.server.address, [("grpc.enable_http_proxy", 0)]) as channel:
            stub, owners = rpc.MemoryServiceStub(channel), pb.Owners(user_id=fresh_id())
            busy, free = threading.Event(), threading.Event()
            running.server._pool.submit(lambda: (busy.set(), free.wait(LIMIT_S)))
            assert busy.wait(LIMIT_S)
            recalls = [stub.Recall.future(spb.RecallRequest(owners=owners, query="tea")) for _ in range(8)]
            lists = [stub.List.future(spb.ListRequest(owners=owners)) for _ in range(8)]
            while running.server._pool._work_queue.qsize() < 16:
                assert not free.wait(0.01)
            free.set()
            assert all(one.result(LIMIT_S).memories == [] for one in lists)
            refused = [one.exception(LIMIT_S) for one in recalls]
            assert sum(error is None for error in refused) <= 2
            error = next(error for error in refused if error is not None)
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
            found = rpc_status.from_call(error).details
            assert any(detail.Unpack(info) for detail in found)
            assert any(detail.Unpack(retry) for detail in found)
            assert info.reason == "OVERLOADED"
            assert RETRY_FIRST_US <= retry.retry_delay.ToMicroseconds() <= RETRY_FIRST_US + RETRY_SPREAD_US
            assert stub.Recall(spb.RecallRequest(owners=owners, query="tea")).hits == []
    finally:
        running.close()
