"""Secrets are found beside any neighbour, talk about secrets is not, and nothing of a value leaves with the error."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsvc.errors import ConfigInvalid, InvalidArgument, SensitiveContent
from memsvc.memory.sensitive import Action, Finding, Kind, Policy, apply, find, redact

sys.path.insert(0, str(Path(__file__).parent))  # the samples beside this file, in pytest's importlib mode
import sensitive_samples as samples

REJECT = Policy()
REDACT = Policy.parse(dict.fromkeys(Kind, "redact"))
RNG = random.Random(20)
KEY = samples.vendor_key(RNG, "github")
MOBILE = "138" + "0013" + "8000"
CARD = samples.with_luhn("4" + "1" * 14)
CN_ID = samples.cn_id(RNG)
JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0In0", samples.drawn(RNG, samples.URLSAFE, 43)))
PEM = (
    "-----BEGIN {0}PRIVATE KEY{1}-----\n" + samples.drawn(RNG, samples.ALNUM, 64) + "\n-----END {0}PRIVATE KEY{1}-----"
)


def kinds(text: str) -> set[str]:
    return {finding.kind for finding in find(text)}


# The bars -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_recall_on_drawn_secrets(seed):
    texts = list(samples.positives(random.Random(seed)))
    missed = [(kind, text) for kind, text, _ in texts if kind not in kinds(text)]
    assert len(texts) >= 300
    assert len(missed) <= 0.005 * len(texts), missed


@pytest.mark.parametrize("seed", range(5))
def test_a_finding_covers_the_whole_value(seed):
    for _, text, value in samples.positives(random.Random(seed)):
        if value and find(text):
            start = text.index(value)
            covered = {i for f in find(text) for i in range(f.start, f.end)}
            assert covered.issuperset(range(start, start + len(value))), text


def test_hard_negatives_pass():
    texts = samples.negatives()
    assert len(texts) >= 300
    assert [(text, find(text)) for text in texts if find(text)] == []


@pytest.mark.parametrize("seed", range(20))
def test_wrong_check_digits_pass(seed):
    rng = random.Random(seed)
    number = samples.card(rng)
    wrong = number[:-1] + str((int(number[-1]) + 1 + seed % 9) % 10)
    for text in (samples.cn_id(rng, right=False), wrong):
        assert find(f"编号 {text} 是工单") == []
        assert find(f"number {text}") == []


# Shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "])
def test_private_keys(label):
    pem = PEM.format(label, "")
    assert find(f"私钥如下：{pem}记好") == [Finding(Kind.PRIVATE_KEY, 5, 5 + len(pem))]
    assert kinds(json.dumps({"key": pem})) == {"private_key"}
    assert kinds(pem[:90]) == {"private_key"}, "a key that is cut off is one too"


def test_pgp_and_raw_private_keys():
    assert kinds(PEM.format("PGP ", " BLOCK")) == {"private_key"}
    assert kinds("钱包私钥 0x" + samples.drawn(RNG, samples.HEX, 64)) == {"private_key"}
    assert kinds("PrivateKey = " + samples.drawn(RNG, samples.ALNUM, 43) + "=") == {"private_key"}


def test_jwt_is_more_specific_than_the_header_around_it():
    assert kinds(f"Authorization: Bearer {JWT}") == {"jwt"}
    assert find(f"登录态{JWT}先存着") == [Finding(Kind.JWT, 3, 3 + len(JWT))]


def test_cloud_secret_beside_its_id():
    secret = samples.drawn(RNG, samples.ALNUM, 40)
    text = f"{samples.vendor_key(RNG, 'aws')} / {secret}"
    assert [text[f.start : f.end] for f in find(text)][-1] == secret
    assert find(f"checksum {samples.drawn(RNG, samples.HEX, 40)}") == []


def test_connection_string_finding_is_the_password_alone():
    text = "postgres://app:" + "s3cr3tPw9" + "@db.internal:5432/orders"
    assert redact(text) == "postgres://app:[REDACTED:password]@db.internal:5432/orders"


@pytest.mark.parametrize(
    "glue", ["我的{}是", "。{}，", "「{}」", "（{}）", "key是{}啊", "\n{}\n", '"{}"', "\u3000{}\u3000", "\\n{}"]
)
def test_values_glued_to_other_characters(glue):
    for value in (KEY, JWT, CARD, CN_ID, MOBILE):
        text = glue.format(value)
        assert [text[f.start : f.end] for f in find(text)] == [value]


def test_full_width_and_invisible_characters():
    wide = "".join(chr(ord(c) + 0xFEE0) for c in MOBILE)
    assert find(f"手机{wide}。") == [Finding(Kind.PHONE, 2, 13)]
    for gap in ("\u200b", "\u2060", "\ufeff", "\u00ad"):
        text = f"手机{MOBILE[:5]}{gap}{MOBILE[5:]}！"
        assert find(text) == [Finding(Kind.PHONE, 2, 14)]
        assert redact(text) == "手机[REDACTED:phone]！"
    assert kinds("".join(chr(ord(c) + 0xFEE0) for c in KEY)) == {"api_key"}
    assert kinds("Token：" + "\u200d".join(KEY)) == {"api_key"}


def test_a_letter_that_grows_in_lower_case_shifts_nothing():
    text = "İİİ password: " + "hunter2" + "x"
    assert [text[f.start : f.end] for f in find(text)] == ["hunter2x"]


# Policy ---------------------------------------------------------------------------------------------------------


def test_policy_parses_json_and_mappings():
    for value in ('{"phone": "redact", "jwt": "allow"}', b'{"phone": "redact", "jwt": "allow"}'):
        policy = Policy.parse(value)
        assert policy == Policy.parse({"phone": "redact", "jwt": "allow"})
        assert policy.action(Kind.PHONE) == Action.REDACT
        assert policy.action(Kind.JWT) == Action.ALLOW
        assert policy.action(Kind.PASSWORD) == Action.REJECT
    assert Policy.parse("") == Policy.parse({}) == Policy.parse("{}") == Policy()


@pytest.mark.parametrize(
    "value",
    [
        "{", "[]", "null", "1", '"redact"', '{"phone": null}', '{"phone": "Redact"}', '{"phone": ["redact"]}', "phone",
        '{"phones": "redact"}', '{"phone": "redact", "phone": "allow"}', "[" * 100_000, b"\xff\xfe", '{"phone": {}}',
        {"phone": 1}, {"phone": True}, {1: "redact"}, {"": "redact"}, 7, None, ["phone"], [["phone", "redact"]],
    ],
)  # fmt: skip
def test_a_malformed_policy_fails_closed(value):
    with pytest.raises(ConfigInvalid):
        Policy.parse(value)


# Apply ----------------------------------------------------------------------------------------------------------


def test_rejection_names_kinds_and_places_never_values():
    value = {"content": f"call {MOBILE}", "tags": ["ok", f"t:{KEY}"], "n": {"deep": [{"x": CARD}]}}
    with pytest.raises(SensitiveContent) as caught:
        apply(value, REJECT, "memory")
    error = caught.value
    assert isinstance(error, InvalidArgument)
    assert error.reason == "SENSITIVE_CONTENT"
    assert error.metadata["kinds"] == "api_key,bank_card,phone"
    assert error.metadata["positions"] == "memory.content:5-16,memory.tags[1]:2-42,memory.n.deep[0].x:0-16"
    assert (error.field, error.metadata["count"]) == ("memory.content", "3")
    said = error.message + repr(error.metadata) + repr(error.args)
    assert not any(secret in said for secret in (MOBILE, KEY, CARD))


def test_redaction_reaches_everything_and_keeps_the_shape():
    value = {
        "a": [1, 2.5, None, True, f"键{KEY}"],
        f"k {KEY}": (f"手机{MOBILE}",),
        "phone": int(MOBILE),
        "card": float(CARD),
        "tool_calls": [{"name": "deploy", "arguments": json.dumps({"token": KEY})}],
        "password": "sun" + "flower",
        "plain": {"count": 3},
    }
    clean = apply(value, REDACT, "m")
    assert clean == {
        "a": [1, 2.5, None, True, "键[REDACTED:api_key]"],
        "k [REDACTED:api_key]": ("手机[REDACTED:phone]",),
        "phone": "[REDACTED:phone]",
        "card": "[REDACTED:bank_card]",
        "tool_calls": [{"name": "deploy", "arguments": '{"token": "[REDACTED:api_key]"}'}],
        "password": "[REDACTED:password]",
        "plain": {"count": 3},
    }
    assert apply(clean, REJECT, "m") == clean


def test_a_secret_key_is_not_in_the_error_and_two_do_not_collide():
    other = samples.vendor_key(RNG, "github")
    with pytest.raises(SensitiveContent) as caught:
        apply({KEY: {"phone": MOBILE}}, REJECT, "m")
    assert KEY not in repr(caught.value.metadata) + str(caught.value)
    assert sorted(apply({KEY: 1, other: 2, "[REDACTED:api_key]": 3}, REDACT, "m").values()) == [1, 2, 3]


@pytest.mark.parametrize(
    "value",
    [
        {"order_id": int(MOBILE)}, {"size_bytes": int(MOBILE)}, {"ts": 1_700_000_000_000},
        {"updated_at": 1_700_000_000},
        {"lat": 31.230416}, {"tokens": 15234},
        {"max_tokens": 4096}, {"password_min_length": 12}, {"n": 10**30},
        {"token_type": "bearer"}, {"x": float("nan")}, {"": ""},
        {"session_id": "550e8400-e29b-41d4-a716-446655440000"},
        {"user": "id 7"}, {"password": ""}, {"password": None}, {"password": "****"}, {"key": "user.language"},
        {"x": -1.0, "y": 1e300},
    ],
)  # fmt: skip
def test_harmless_metadata_is_untouched(value):
    assert apply(value, REJECT, "m") is not value
    assert repr(apply(value, REJECT, "m")) == repr(value)


@pytest.mark.parametrize(
    "value",
    [{"phone": 2125550187}, {"mobilePhone": int(MOBILE)}, {"phones": [int(MOBILE)]}, {"x": int(CARD)}, {"x": CN_ID},
     {"dbPassword": "sun" + "flower"},
     {"password": 73051846}, {"api_key": samples.drawn(RNG, samples.HEX, 32)}, {"密码": "abc" + "d1234"}],
)  # fmt: skip
def test_the_key_says_what_the_value_is(value):
    with pytest.raises(SensitiveContent):
        apply(value, REJECT, "m")


def test_policy_is_per_kind():
    text = f"{MOBILE} {KEY}"
    assert apply(text, Policy.parse({"phone": "redact", "api_key": "allow"}), "c") == f"[REDACTED:phone] {KEY}"
    with pytest.raises(SensitiveContent) as caught:
        apply(text, Policy.parse({"phone": "redact"}), "c")
    assert caught.value.metadata["kinds"] == "api_key"


def test_positions_are_bounded():
    with pytest.raises(SensitiveContent) as caught:
        apply([MOBILE] * 500, REJECT, "m")
    assert caught.value.metadata["count"] == "500"
    assert len(caught.value.metadata["positions"]) < 1000


def test_an_unknown_type_is_refused():
    with pytest.raises(TypeError, match="m holds a bytes"):
        apply(b"x", REJECT, "m")


# Properties -----------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [KEY, JWT, CARD, CN_ID, MOBILE, PEM.format("", ""),
     "password", "密码", "是", "=", ": ", '"', "'", "`", " is ", "to ", "key", "token", "Bearer ",

     "-----BEGIN PRIVATE KEY-----", "://", "@", "eyJ", ".",
     "+1 ", "电话", "ssn ", "[REDACTED:phone]", "[REDACTED:", "\u200b", "１", "－", "\n", "(", "sk-", "a1B2", "hunter2"]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=12).map("".join))


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_findings_are_sorted_within_the_text_and_apart(text):
    last = 0
    for finding in find(text):
        assert last <= finding.start < finding.end <= len(text)
        last = finding.end


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_redacted_text_has_no_findings_and_redacts_to_itself(text):
    clean = redact(text)
    assert find(clean) == []
    assert redact(clean) == clean


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_redacted_values_pass_the_strictest_policy(value):
    clean = apply(value, REDACT, "m")
    again = apply(clean, REJECT, "m")
    assert again == clean
    assert Counter(type(again).__name__) == Counter(type(clean).__name__)


UNITS = (
    "a", "0", "1 ", "password ", "password is ",
    "密码", "密码是", "eyJ", "eyJaaaaaaa.", "sk-", "-----BEGIN PRIVATE KEY-----\n",
    "://a:", "a:b@", "key=",
    "13800138000", "+1-212-555-0187 ", "phone 12345678 ", "authorization: bearer ",
    "login with ", "mysql -p",
    "curl ", 'password="', "\u200b", "１",
    "一二三", "-", "[REDACTED:api_key]", "ssn 536-90-4399 ",
    "password for ", "aB3/x9+Q", "M", "(", "0123456789abcdef", " ", "a_", "is the password ",
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_work_grows_linearly_with_hostile_text(unit):
    """Counted in calls of Python code, which a busy machine does not change; what `re` does inside is bounded above."""
    small, large = (_calls(unit * (size // len(unit))) for size in (2_000, 16_000))
    assert large <= 12 * small + 2_000


def _calls(text: str) -> int:
    count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        find(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", UNITS)
def test_a_quarter_of_a_megabyte_of_anything_ends(unit):
    find(unit * (250_000 // len(unit)))
