"""FactService over the wire: typed values, versions, conditional puts, mentions in Match and Recall, isolation."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memsvc.v1 import fact_service_pb2 as fpb
from memsvc.v1 import fact_service_pb2_grpc as rpc
from memsvc.v1 import memory_pb2 as pb
from memsvc.v1 import memory_service_pb2 as spb


def as_value(value: Any) -> struct_pb2.Value:
    holder = struct_pb2.Struct()
    holder.update({"v": value})
    return holder.fields["v"]


@pytest.fixture(scope="module")
def facts(channel: grpc.Channel) -> rpc.FactServiceStub:
    return rpc.FactServiceStub(channel)


@pytest.fixture(scope="module")
def put(facts: rpc.FactServiceStub) -> Callable[..., fpb.FactServicePutResponse]:
    def call(whom: pb.Owners, key: str, value: Any, **fields: Any) -> fpb.FactServicePutResponse:
        return facts.Put(fpb.FactServicePutRequest(owners=whom, key=key, value=as_value(value), **fields))

    return call


@pytest.fixture(scope="module")
def match(facts: rpc.FactServiceStub) -> Callable[..., list[str]]:
    """Keys of the facts that a text mentions."""

    def call(whom: pb.Owners, query: str, **fields: Any) -> list[str]:
        answer = facts.Match(fpb.FactServiceMatchRequest(owners=whom, query=query, **fields))
        return [fact.key for fact in answer.facts]

    return call


def refused(call: Callable[[], object], code: grpc.StatusCode) -> dict[str, str]:
    """ErrorInfo of the refusal: its metadata with its reason."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.code() == code, caught.value.details()
    for detail in rpc_status.from_call(caught.value).details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return {**info.metadata, "reason": info.reason}
    raise AssertionError("no ErrorInfo")


def exact_keys(response: spb.RecallResponse) -> list[str]:
    """Keys of the facts that came by exact mention, which must be the first hits."""
    exact = [hit for hit in response.hits if spb.RECALL_PATH_EXACT in hit.paths]
    assert list(response.hits[: len(exact)]) == exact
    assert all(hit.components.exact > 0 for hit in exact)
    return [hit.memory.fact.key for hit in exact]


@pytest.mark.parametrize(
    "value", ["CNY", "", "with \x00 nul", 1, -2.5, 1e300, True, False, None, [1, "a", None], {"a": {"b": [True]}}, {}]
)
def test_a_value_keeps_its_type(facts, put, owners, value):
    done = put(owners, "k", value)
    assert done.changed
    assert done.fact.version == 1
    (read,) = facts.Get(fpb.FactServiceGetRequest(owners=owners, keys=["k"])).facts
    assert read.value == as_value(value)
    assert not put(owners, "k", value).changed


def test_equal_is_typed(put, owners):
    for version, value in enumerate([1, True, "1", "true", False, 0, None, "", [], {}, [1], [True]], start=1):
        assert put(owners, "k", value).fact.version == version
    assert not put(owners, "k", [True]).changed


def test_versions_history_and_delete(facts, put, owners):
    for value in ("CNY", "CNY", "USD"):
        put(owners, "default_currency", value, reason=f"now {value}")
    done = facts.Delete(fpb.FactServiceDeleteRequest(owners=owners, key="default_currency"))
    assert done.deleted
    assert done.at.sequence == 3
    assert not facts.Get(fpb.FactServiceGetRequest(owners=owners, keys=["default_currency"])).facts
    assert not facts.Delete(fpb.FactServiceDeleteRequest(owners=owners, key="default_currency")).deleted
    again = put(owners, "default_currency", "USD")
    assert again.changed
    assert again.fact.version == 4
    assert not again.fact.deleted
    history = facts.History(fpb.FactServiceHistoryRequest(owners=owners, key="default_currency")).facts
    assert [(f.version, f.value.string_value, f.deleted) for f in history] == [
        (4, "USD", False),
        (3, "USD", True),
        (2, "USD", False),
        (1, "CNY", False),
    ]
    assert len({f.memory_id for f in history}) == 1


def test_conditional_put(facts, put, owners):
    put(owners, "k", "a", if_version=0)
    info = refused(lambda: put(owners, "k", "b", if_version=0), grpc.StatusCode.ABORTED)
    assert (info["reason"], info["version"]) == ("ETAG_MISMATCH", "1")
    assert put(owners, "k", "b", if_version=1).fact.version == 2
    refused(lambda: put(owners, "k", "b", if_version=1), grpc.StatusCode.ABORTED)
    delete = fpb.FactServiceDeleteRequest(owners=owners, key="k", if_version=1)
    assert refused(lambda: facts.Delete(delete), grpc.StatusCode.ABORTED)["version"] == "2"
    delete.if_version = 2
    assert facts.Delete(delete).deleted
    assert refused(lambda: put(owners, "k", "c", if_version=3), grpc.StatusCode.ABORTED)["version"] == "0"
    assert put(owners, "k", "c", if_version=0).fact.version == 4


def test_one_of_many_conditional_puts_wins(facts, put, owners):
    put(owners, "counter", 0)
    barrier, won, lost = threading.Barrier(8), [], []

    def race(number: int) -> None:
        barrier.wait()
        try:
            won.append(put(owners, "counter", number, if_version=1).fact.value.number_value)
        except grpc.RpcError as error:
            lost.append(error.code())

    threads = [threading.Thread(target=race, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert lost == [grpc.StatusCode.ABORTED] * 7
    (fact,) = facts.Get(fpb.FactServiceGetRequest(owners=owners, keys=["counter"])).facts
    assert (fact.version, fact.value.number_value) == (2, won[0])


def test_a_replay_returns_the_first_answer(put, owners):
    request_id = str(uuid.uuid4())
    first = put(owners, "k", "a", request_id=request_id)
    put(owners, "k", "b")
    assert put(owners, "k", "a", request_id=request_id) == first
    info = refused(lambda: put(owners, "k", "c", request_id=request_id), grpc.StatusCode.INVALID_ARGUMENT)
    assert info["reason"] == "REQUEST_ID_REUSED"


def test_keys_are_normalised_and_keep_their_case(facts, put, owners):
    put(owners, "  ｋｅｙ ", 1)
    put(owners, "KEY", 2)
    read = facts.Get(fpb.FactServiceGetRequest(owners=owners, keys=["KEY", "key", "ｋｅｙ", "Key"])).facts
    assert [(f.key, f.value.number_value) for f in read] == [("KEY", 2), ("key", 1)]


def test_what_is_refused_names_its_field(facts, put, owners):
    bad = grpc.StatusCode.INVALID_ARGUMENT
    assert refused(lambda: put(owners, " ", 1), bad)["field"] == "key"
    assert refused(lambda: put(owners, "k" * 257, 1), bad)["field"] == "key"
    assert refused(lambda: put(owners, "k", "x" * 16_383), bad)["field"] == "value"
    put(owners, "k", "x" * 16_382)
    assert refused(lambda: put(owners, "k", float("nan")), bad)["field"] == "value"
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    assert refused(lambda: put(owners, "k", deep), bad)["field"] == "value"
    unset = fpb.FactServicePutRequest(owners=owners, key="k")
    assert refused(lambda: facts.Put(unset), bad)["field"] == "value"
    assert refused(lambda: put(owners, "k", 1, reason="r" * 1025), bad)["field"] == "reason"
    assert refused(lambda: put(pb.Owners(), "k", 1), bad)["field"] == "owners"
    many = fpb.FactServiceGetRequest(owners=owners, keys=["k"] * 1001)
    assert refused(lambda: facts.Get(many), bad)["field"] == "keys"
    unknown = fpb.FactServiceHistoryRequest(owners=owners, key="never")
    refused(lambda: facts.History(unknown), grpc.StatusCode.NOT_FOUND)


def test_secrets_are_refused_in_key_and_value(put, owners):
    bad = grpc.StatusCode.INVALID_ARGUMENT
    assert refused(lambda: put(owners, "db_password", "hunter2-Zq81!"), bad)["reason"] == "SENSITIVE_CONTENT"
    assert refused(lambda: put(owners, "sk-ant-api03-" + "aB3" * 31, 1), bad)["reason"] == "SENSITIVE_CONTENT"


HOSTILE = [
    "a=b",
    "a|b",
    "%",
    "%s%n",
    "💡",
    "💡 idea",
    "a/b\\c",
    "'; drop",
    "a\tb",
    "_",
    "..",
    "::",
    "\u202eabc",
    "x" * 256,
]


def test_hostile_keys_are_keys(facts, put, owners):
    for number, key in enumerate(HOSTILE):
        put(owners, key, number)
    read = facts.Get(fpb.FactServiceGetRequest(owners=owners, keys=HOSTILE)).facts
    assert [(f.key, f.value.number_value) for f in read] == [(key, n) for n, key in enumerate(HOSTILE)]
    listed = facts.List(fpb.FactServiceListRequest(owners=owners)).facts
    assert [f.key for f in listed] == sorted(HOSTILE)
    assert [f.key for f in facts.List(fpb.FactServiceListRequest(owners=owners, key_prefix="%")).facts] == ["%", "%s%n"]


def test_list_pages_over_scopes_while_facts_are_put(facts, put, fresh_id):
    both = pb.Owners(user_id=fresh_id(), project_id=fresh_id())
    for number in range(25):
        put(both, f"key{number:02}", number)
        put(both, f"key{number:02}", "p", scope=pb.SCOPE_PROJECT)
    facts.Delete(fpb.FactServiceDeleteRequest(owners=both, key="key07"))
    seen, token = [], ""
    while True:
        page = facts.List(fpb.FactServiceListRequest(owners=both, key_prefix="key", page_size=7, page_token=token))
        seen += [(f.key, f.namespace.scope) for f in page.facts]
        put(both, f"aaa{len(seen)}", 1)
        put(both, f"key{len(seen)}behind", 1) if len(seen) == 7 else None
        token = page.next_page_token
        if not token:
            break
    expected = [(f"key{n:02}", s) for n in range(25) for s in (pb.SCOPE_USER, pb.SCOPE_PROJECT)]
    expected.remove(("key07", pb.SCOPE_USER))
    assert [one for one in seen if "behind" not in one[0]] == expected
    assert len(set(seen)) == len(seen)
    bad = fpb.FactServiceListRequest(owners=both, page_token="%%")
    assert refused(lambda: facts.List(bad), grpc.StatusCode.INVALID_ARGUMENT)["field"] == "page_token"


def test_get_goes_from_the_narrowest_scope_to_global(facts, put, fresh_id):
    whom = pb.Owners(user_id=fresh_id(), project_id=fresh_id(), agent_id=fresh_id(), session_id=fresh_id())
    scopes = [pb.SCOPE_SESSION, pb.SCOPE_AGENT, pb.SCOPE_USER, pb.SCOPE_PROJECT]
    for scope in reversed(scopes):
        put(whom, "language", str(scope), scope=scope)
    read = facts.Get(fpb.FactServiceGetRequest(owners=whom, keys=["language"])).facts
    assert [f.namespace.scope for f in read] == scopes


def test_recall_finds_a_mention_first_and_without_a_vector(put, recall, remember, owners):
    for number in range(30):
        remember(owners, f"the currency of payment {number} was a default choice")
    put(owners, "user:1001 default_currency", "CNY")
    put(owners, "user:1002 default_currency", "EUR")
    for query in ("default currency of user:1001", "DEFAULT_CURRENCY, for user:1001?", "why CNY?", "用CNY付款"):
        answer = recall(owners, query, top_k=3, latency_budget={"nanos": 1000})
        assert exact_keys(answer)[:1] == ["user:1001 default_currency"], query
    hit = recall(owners, "default currency of user:1001").hits[0]
    assert (hit.components.vector, hit.memory.fact.value.string_value) == (0.0, "CNY")
    assert hit.memory.content == "user:1001 default_currency = CNY"


def test_a_memory_with_the_same_words_lends_a_fact_no_vector(put, recall, remember, owners):
    remember(owners, "editor = vim")
    put(owners, "editor", "vim")
    hits = recall(owners, "which program do I write code with").hits
    facts = [hit for hit in hits if hit.memory.HasField("fact")]
    assert all(hit.components.vector == 0.0 and spb.RECALL_PATH_VECTOR not in hit.paths for hit in facts)


def test_filters_statuses_time_and_top_k_hold_for_mentions(facts, put, recall, owners):
    put(owners, "tab_width", "four spaces")
    then_us = time.time_ns() // 1000
    put(owners, "tab_width", "eight spaces")
    as_of = {"seconds": then_us // 10**6, "nanos": then_us % 10**6 * 1000}
    past = recall(owners, "four spaces", as_of=as_of)
    assert exact_keys(past) == ["tab_width"]
    assert past.hits[0].memory.version == 1
    assert exact_keys(recall(owners, "four spaces")) == []
    assert exact_keys(recall(owners, "eight spaces")) == ["tab_width"]
    assert exact_keys(recall(owners, "tab width", filter=pb.Filter(types=[pb.MEMORY_TYPE_RULE]))) == []
    assert exact_keys(recall(owners, "tab width", filter=pb.Filter(subjects=["tab_width"]))) == ["tab_width"]
    put(owners, "tab_style", "soft")
    assert len(recall(owners, "tab width tab style", top_k=1).hits) == 1
    facts.Delete(fpb.FactServiceDeleteRequest(owners=owners, key="tab_width"))
    assert not [hit for hit in recall(owners, "tab width").hits if hit.memory.subject == "tab_width"]
    assert exact_keys(recall(owners, "tab width", include_inactive=True)) == ["tab_width"]


def test_nobody_meets_the_facts_of_another(put, match, recall, fresh_id):
    alice, bob = pb.Owners(user_id=fresh_id()), pb.Owners(user_id=fresh_id())
    put(alice, "favourite_colour", "turquoise")
    assert match(alice, "favourite colour") == ["favourite_colour"]
    assert match(bob, "favourite colour turquoise") == []
    assert not recall(bob, "favourite colour turquoise").hits


def test_match_in_order_of_first_mention(facts, put, match, owners):
    put(owners, "region", "Shanghai")
    put(owners, "currency", "CNY")
    put(owners, "默认语言", "中文")
    assert match(owners, "Pay in cny, in the region Shanghai") == ["currency", "region"]
    assert match(owners, "请问默认语言是什么") == ["默认语言"]
    assert match(owners, "回答用中文，货币 CNY") == ["默认语言", "currency"]
    facts.Delete(fpb.FactServiceDeleteRequest(owners=owners, key="currency"))
    assert match(owners, "currency CNY") == []
    assert match(owners, "") == []
    long = fpb.FactServiceMatchRequest(owners=owners, query="x" * 8193)
    assert refused(lambda: facts.Match(long), grpc.StatusCode.INVALID_ARGUMENT)["field"] == "query"


def test_update_of_a_fact_belongs_to_its_service_and_forget_works(stub, facts, put, owners):
    memory_id = put(owners, "k", "value one").fact.memory_id
    update = spb.UpdateRequest(owners=owners, memory_id=memory_id)
    update.patch.content = "k = other"
    update.update_mask.paths.append("content")
    refused(lambda: stub.Update(update), grpc.StatusCode.INVALID_ARGUMENT)
    stub.Forget(spb.ForgetRequest(owners=owners, memory_ids=[memory_id]))
    assert not facts.Get(fpb.FactServiceGetRequest(owners=owners, keys=["k"])).facts
    assert put(owners, "k", "value one", if_version=0).fact.version == 3
