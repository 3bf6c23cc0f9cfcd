"""Forgetting: what would change now, and doing it.

Purpose: PlanLifecycle and RunLifecycle of AdminService, and what they return.

Threading: as the client.

Rejected: retries (a run that was cut off has done a part; its counts would say less than what happened).
"""

from __future__ import annotations

import datetime as dt

from . import requests
from ._proto import admin_service_pb2 as apb
from ._proto import admin_service_pb2_grpc as rpc
from .core import Core
from .operations import AsyncResource, Call, Resource, async_call, sync_call
from .views import Owned, View

TIMEOUT_S = 60.0  # every memory is looked at


class LifecycleCounts(View[apb.LifecycleCounts]):
    """How many memories a lifecycle run changes."""

    __slots__ = ()
    NAMES = ("seen_count", "faded_count", "archived_count", "expired_count", "proposed_count")

    @property
    def seen_count(self) -> int:
        """Looked at."""
        return self._pb.seen_count

    @property
    def faded_count(self) -> int:
        """Rank lower."""
        return self._pb.faded_count

    @property
    def archived_count(self) -> int:
        """Leave everyday recall; they wake up when the same is said again."""
        return self._pb.archived_count

    @property
    def expired_count(self) -> int:
        """Their expire_time has passed."""
        return self._pb.expired_count

    @property
    def proposed_count(self) -> int:
        """Proposed for the permanent store."""
        return self._pb.proposed_count


class LifecycleStep(Owned[apb.LifecycleStep]):
    """What happens to one memory."""

    __slots__ = ()
    NAMES = ("memory_id", "scope", "owner", "action", "retention", "reason")

    @property
    def memory_id(self) -> str:
        """The memory."""
        return self._pb.memory_id

    id = memory_id

    @property
    def action(self) -> str:
        """fade, archive, expire or propose."""
        return requests.enum_name(apb.LifecycleAction, "LIFECYCLE_ACTION", self._pb.action)

    @property
    def retention(self) -> float:
        """How well it is remembered, 1 to 0."""
        return self._pb.retention

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        return self._pb.reason


class LifecyclePlan(View[apb.PlanLifecycleResponse]):
    """What a run would change."""

    __slots__ = ()
    NAMES = ("counts", "steps")

    @property
    def counts(self) -> LifecycleCounts:
        """All that would happen."""
        return LifecycleCounts(self._pb.counts)

    @property
    def steps(self) -> list[LifecycleStep]:
        """The steps, least remembered first, as many as were asked for."""
        return [LifecycleStep(step) for step in self._pb.steps]


def plan(
    core: Core,
    *,
    all_owners: bool = False,
    max_steps: int = 100,
    at_time: dt.datetime | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Call[LifecyclePlan]:
    """What forgetting would change now, or at `at_time`, for the client's owners or for all namespaces of the store.
    max_steps, at most 10000, bounds the steps that are listed.
    """
    request = requests.encodable(
        lambda: apb.PlanLifecycleRequest(
            owners=None if all_owners else core.owners,
            max_steps=max_steps,
            at_time=None if at_time is None else requests.timestamp(at_time, "at_time"),
        ),
        "the plan",
    )
    return Call(rpc.AdminServiceStub, "PlanLifecycle", request, LifecyclePlan, timeout_s=timeout_s)


def run(core: Core, *, all_owners: bool = False, timeout_s: float = TIMEOUT_S) -> Call[LifecycleCounts]:
    """Fades, archives and expires what is due, and proposes long-lived memories for the permanent store. The server
    also does it by itself, on a schedule. Tried once; after a Timeout a further run does the rest.
    """
    request = apb.RunLifecycleRequest(owners=None if all_owners else core.owners)

    def read(response: apb.RunLifecycleResponse) -> LifecycleCounts:
        core.stored()
        return LifecycleCounts(response.counts)

    return Call(rpc.AdminServiceStub, "RunLifecycle", request, read, timeout_s=timeout_s)


class Lifecycle(Resource):
    """Forgetting, for the operator."""

    plan = sync_call(plan)
    run = sync_call(run)


class AsyncLifecycle(AsyncResource):
    """`Lifecycle` for asyncio."""

    plan = async_call(plan)
    run = async_call(run)
