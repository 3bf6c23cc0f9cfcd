"""Secrets that show by their shape: keys of known vendors, private keys, JWTs, credentials in a URL.

Purpose: a table of prefixes and shapes; no word beside the value is needed.

Threading: pure functions over compiled tables.

Rejected: detect-secrets at run time (importing it takes 0.2 s because of requests; it reads lines of files through a
global settings object, needs word boundaries, so it misses keys glued to Chinese, and knows 25 vendors);
unlabelled high entropy (every digest, id and image is one).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import cache

from memsvc.memory.sensitive.text import Finding, Folded, Kind, is_orderly, is_placeholder, looks_random, starts_freely

# hint (a substring that must be there), shape behind it. Shapes have no nested repeats: each is linear.
# Lengths are lower bounds: a vendor that makes longer keys must not open a hole.
_VENDORS: tuple[tuple[str, str], ...] = (
    ("sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{20,}"),
    ("sk-proj-", r"sk-proj-[A-Za-z0-9_\-]{20,}"),
    ("sk-svcacct-", r"sk-svcacct-[A-Za-z0-9_\-]{20,}"),
    ("sk-or-", r"sk-or-[A-Za-z0-9_\-]{20,}"),
    ("sk-lf-", r"sk-lf-[A-Za-z0-9_\-]{20,}"),
    ("sk_live_", r"sk_live_[A-Za-z0-9]{10,}"),
    ("sk_test_", r"sk_test_[A-Za-z0-9]{10,}"),
    ("rk_live_", r"rk_live_[A-Za-z0-9]{10,}"),
    ("rk_test_", r"rk_test_[A-Za-z0-9]{10,}"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("AKIA", r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ASIA", r"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ABIA", r"ABIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ghp_", r"ghp_[A-Za-z0-9]{20,}"),
    ("gho_", r"gho_[A-Za-z0-9]{20,}"),
    ("ghu_", r"ghu_[A-Za-z0-9]{20,}"),
    ("ghs_", r"ghs_[A-Za-z0-9]{20,}"),
    ("ghr_", r"ghr_[A-Za-z0-9]{20,}"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    ("glpat-", r"glpat-[A-Za-z0-9_\-.]{16,}"),
    ("gldt-", r"gldt-[A-Za-z0-9_\-]{16,}"),
    ("glrt-", r"glrt-[A-Za-z0-9_\-]{16,}"),
    ("glptt-", r"glptt-[A-Za-z0-9_\-]{16,}"),
    ("glcbt-", r"glcbt-[A-Za-z0-9_\-]{16,}"),
    ("gloas-", r"gloas-[A-Za-z0-9_\-]{16,}"),
    ("AIza", r"AIza[A-Za-z0-9_\-]{30,45}(?![A-Za-z0-9_\-])"),
    ("ya29.", r"ya29\.[A-Za-z0-9_\-]{20,}"),
    ("GOCSPX-", r"GOCSPX-[A-Za-z0-9_\-]{20,}"),
    ("1//0", r"1//0[A-Za-z0-9_\-]{30,}"),
    ("xox", r"xox[abceoprs]-[A-Za-z0-9\-]{16,}"),
    ("xapp-", r"xapp-[A-Za-z0-9\-]{20,}"),
    ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/]{20,}"),
    ("/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_\-]{30,}"),
    ("/bot/v2/hook/", r"/open-apis/bot/v2/hook/[A-Za-z0-9\-]{20,}"),
    ("webhook/send?key=", r"webhook/send\?key=[A-Za-z0-9\-]{20,}"),
    ("robot/send?access_token=", r"robot/send\?access_token=[A-Za-z0-9]{20,}"),
    ("hf_", r"hf_[A-Za-z0-9]{20,}"),
    ("npm_", r"npm_[A-Za-z0-9]{24,}"),
    ("pypi-", r"pypi-[A-Za-z0-9_\-]{32,}"),
    ("LTAI", r"LTAI[A-Za-z0-9]{12,28}(?![A-Za-z0-9])"),
    ("AKID", r"AKID[A-Za-z0-9]{13,40}(?![A-Za-z0-9])"),
    ("AKLT", r"AKLT[A-Za-z0-9_\-]{20,}"),
    ("ALTAK", r"ALTAK[A-Za-z0-9\-]{16,}"),
    ("SG.", r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"),
    ("AC", r"AC[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    (":", r"[0-9]{8,10}:[A-Za-z0-9_\-]{34,36}(?![A-Za-z0-9_\-])"),
    ("do", r"do[oprt]_v1_[A-Za-z0-9]{32,}"),
    ("gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    ("xai-", r"xai-[A-Za-z0-9]{20,}"),
    ("pplx-", r"pplx-[A-Za-z0-9]{20,}"),
    ("r8_", r"r8_[A-Za-z0-9]{20,}"),
    ("tgp_v1_", r"tgp_v1_[A-Za-z0-9_\-]{20,}"),
    ("tvly-", r"tvly-[A-Za-z0-9\-]{20,}"),
    ("csk-", r"csk-[A-Za-z0-9]{20,}"),
    ("jina_", r"jina_[A-Za-z0-9_\-]{20,}"),
    ("pcsk_", r"pcsk_[A-Za-z0-9_]{20,}"),
    ("lsv2_", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}"),
    ("dapi", r"dapi[0-9a-f]{32}"),
    ("ATATT3", r"ATATT3[A-Za-z0-9_\-=]{20,}"),
    ("lin_api_", r"lin_api_[A-Za-z0-9]{20,}"),
    ("ntn_", r"ntn_[A-Za-z0-9]{20,}"),
    ("secret_", r"secret_[A-Za-z0-9]{40,}"),
    ("figd_", r"figd_[A-Za-z0-9_\-]{20,}"),
    ("PMAK-", r"PMAK-[A-Za-z0-9\-]{20,}"),
    ("NRAK-", r"NRAK-[A-Z0-9]{20,}"),
    ("glsa_", r"glsa_[A-Za-z0-9_]{20,}"),
    ("glc_", r"glc_[A-Za-z0-9+/=]{20,}"),
    ("sntry", r"sntry[su]_[A-Za-z0-9_=+/]{20,}"),
    ("sbp_", r"sbp_[0-9a-f]{32,}"),
    ("pscale_", r"pscale_(?:pw|tkn|oauth)_[A-Za-z0-9_\-.]{20,}"),
    ("dp.pt.", r"dp\.pt\.[A-Za-z0-9]{20,}"),
    ("hvs.", r"hvs\.[A-Za-z0-9_\-]{20,}"),
    (".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,}"),
    ("nfp_", r"nfp_[A-Za-z0-9]{20,}"),
    ("dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_\-]{20,}"),
    ("rubygems_", r"rubygems_[0-9a-f]{32,}"),
    ("shp", r"shp(?:at|ca|pa|ss)_[A-Za-z0-9]{32}"),
    ("sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_\-]{20,}"),
    ("EAA", r"EAA[A-Za-z0-9]{40,}"),
    ("key-", r"key-[0-9a-z]{32}(?![A-Za-z0-9])"),
    ("-us", r"(?<![0-9a-f])[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    ("rzp_live_", r"rzp_live_[A-Za-z0-9]{14,}"),
    ("phx_", r"phx_[A-Za-z0-9]{20,}"),
    ("HRKU-", r"HRKU-[A-Za-z0-9_\-]{20,}"),
    ("AKCp", r"AKCp[A-Za-z0-9]{40,}"),
    ("sq", r"sq[apu]_[0-9a-f]{40}"),
    ("CCIPAT_", r"CCIPAT_[A-Za-z0-9_]{20,}"),
    ("CFPAT-", r"CFPAT-[A-Za-z0-9_\-]{20,}"),
    ("8Q~", r"(?<![A-Za-z0-9])[A-Za-z0-9]{3}8Q~[A-Za-z0-9_~.\-]{31,34}"),
    ("AccountKey=", r"AccountKey=[A-Za-z0-9+/=]{40,}"),
    ("re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    ("e2b_", r"e2b_[0-9a-f]{32,}"),
    ("vercel_", r"vercel_[A-Za-z0-9_]{20,}"),
    ("napi_", r"napi_[A-Za-z0-9]{32,}"),
    ("pul-", r"pul-[0-9a-f]{40}"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    (".", r"(?<![A-Za-z0-9_\-])[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}(?![A-Za-z0-9_\-])"),
    (".", r"(?<![0-9a-f])[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9_\-.])"),
    ("sk-", r"sk-[A-Za-z0-9_\-]{20,}"),
)
_compiled = cache(re.compile)  # on first use: all of them take 15 ms of a start, a text needs none or one
_LONG_RUN = re.compile(r"[A-Za-z0-9_\-./+=:~]{16}")
_CLOUD_ID = re.compile(r"AKIA|ASIA|LTAI|AKID|AKLT")
_CLOUD_SECRET = re.compile(r"(?<![A-Za-z0-9/+=_\-])[A-Za-z0-9/+]{30,44}=?(?![A-Za-z0-9/+=_\-])")
_CLOUD_SECRET_REACH = 120
_SHARE = 0.12  # of random hexadecimal digits, 47 % differ in class from their neighbour; of dashed words, few do
_PLAIN_SHARE = 0.2

_URL_LOGIN = re.compile(
    r"://([^\s/:@\"'<>?#]{0,80}):([^\s/\"'<>@]{1,100}(?:@[^\s/\"'<>@.:]{1,40}){0,3})@(?=[A-Za-z0-9\[._{$-])"
)
_URL_TOKEN = re.compile(r"://([A-Za-z0-9_\-.~]{16,200})@(?=[A-Za-z0-9])")
_HOST_LOGIN = re.compile(
    r"(?<![A-Za-z0-9_.\-/])[A-Za-z_][A-Za-z0-9_.\-]{0,31}:([^\s:/]{4,64})@(?=(?:[0-9]{1,3}\.){3}[0-9]|localhost)"
)
_DOC_PASSWORDS = frozenset("password passwd pass pwd pw secret mypassword yourpassword pass123word xxx".split())

_PEM = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-[0-9]:")
_PEM_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s\\:,.()]|-(?!-)){0,20000}+")
_PEM_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/]{16}")
_PRIVATE = tuple(
    (hint, re.compile(shape))
    for hint, shape in (
        ("AGE-SECRET-KEY-", r"(?i:AGE-SECRET-KEY-1[0-9A-Z]{40,})"),
        (
            "rivate",
            r"(?i:private[ _]?key)[\"']?\s{0,3}[=:：是为]\s{0,3}[\"']?((?:0x)?[0-9a-fA-F]{64}"
            r"|[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])",
        ),
        (
            "PRIVATE",
            r"(?i:private[ _]?key)[\"']?\s{0,3}[=:：是为]\s{0,3}[\"']?((?:0x)?[0-9a-fA-F]{64}"
            r"|[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])",
        ),
        ("私钥", r"私钥[^\n]{0,8}?[=:：是为]?\s{0,3}((?:0x)?[0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])"),
        ('"kty"', r"\"d\"\s{0,3}:\s{0,3}\"([A-Za-z0-9_\-]{20,})\""),
    )
)
_JWT = re.compile(
    r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt])|(?<=%20)|(?<=%3D))eyJ[A-Za-z0-9_\-]{6,8000}+"
    r"(?:\.eyJ[A-Za-z0-9_\-]{4,20000}+\.([A-Za-z0-9_\-]{10,4000}+)|(?:\.[A-Za-z0-9_\-]{6,20000}+){4})"
)


def find_keys(folded: Folded) -> Iterator[Finding]:
    """Findings by shape, in no order; they may overlap."""
    text = folded.text
    if "BEGIN " in text or "PuTTY-User" in text:
        yield from _pem(folded)
    if "://" in text or "@" in text:
        yield from _logins(folded)
    if _LONG_RUN.search(text) is None:
        return
    yield from _private(folded)
    if "eyJ" in text:
        for token in _JWT.finditer(text):
            if not is_placeholder(token[1] or ""):
                yield folded.finding(Kind.JWT, *token.span())
    yield from _vendor_keys(folded)


def _vendor_keys(folded: Folded) -> Iterator[Finding]:
    text = folded.text
    for hint, shape in _VENDORS:
        if hint not in text:
            continue
        for key in _compiled(shape).finditer(text):
            if starts_freely(text, key.start()) and _is_key(key[0], hint):
                yield folded.finding(Kind.API_KEY, *key.span())
                if _CLOUD_ID.match(key[0]):
                    yield from _cloud_secrets(folded, key.end())


def _is_key(key: str, hint: str) -> bool:
    body = key.removeprefix(hint).rstrip("-_./")
    if len(body) < 8 or is_placeholder(key):
        return False
    if body.isalnum() and body.isupper() and not is_orderly(body):
        return True  # AWS draws from 26 letters and few digits: one in 200 ids has none
    return looks_random(body, _PLAIN_SHARE if hint == "sk-" else _SHARE)


def _cloud_secrets(folded: Folded, start: int) -> Iterator[Finding]:
    """A cloud's secret has no prefix; the id beside it gives it away."""
    for secret in _CLOUD_SECRET.finditer(folded.text, start, start + _CLOUD_SECRET_REACH):
        if looks_random(secret[0], _PLAIN_SHARE) and not re.fullmatch(r"[0-9a-f]+", secret[0]):
            yield folded.finding(Kind.API_KEY, *secret.span())


def _pem(folded: Folded) -> Iterator[Finding]:
    text, at = folded.text, 0
    while header := _PEM.search(text, at):
        body = _PEM_BODY.match(text, header.end())
        at = body.end() if body else header.end()
        if _BASE64_RUN.search(text, header.end(), at) and not is_orderly(text[header.end() : at]):
            end = _PEM_END.match(text, at)
            at = end.end() if end else at
            yield folded.finding(Kind.PRIVATE_KEY, header.start(), at)


def _private(folded: Folded) -> Iterator[Finding]:
    for hint, shape in _PRIVATE:
        if hint in folded.text:
            for key in shape.finditer(folded.text):
                group = 1 if key.re.groups else 0
                if not is_orderly(key[group]):
                    yield folded.finding(Kind.PRIVATE_KEY, *key.span(group))


def _logins(folded: Folded) -> Iterator[Finding]:
    """Passwords between `://user:` and `@host`; the finding is the password, so that a redaction leaves the address."""
    text = folded.text
    if "@" not in text:
        return
    if "://" in text:
        for login in _URL_LOGIN.finditer(text):
            if login[2].lower() not in _DOC_PASSWORDS and not is_placeholder(login[2]):
                yield folded.finding(Kind.PASSWORD, *login.span(2))
        for login in _URL_TOKEN.finditer(text):
            if looks_random(login[1], _PLAIN_SHARE):
                yield folded.finding(Kind.API_KEY, *login.span(1))
    for login in _HOST_LOGIN.finditer(text):
        if login[1].lower() not in _DOC_PASSWORDS and not is_placeholder(login[1]):
            yield folded.finding(Kind.PASSWORD, *login.span(1))


def basic_login(value: str) -> bool:
    """Whether the value is base64 of `user:password`, as in an Authorization header."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, password = plain.partition(b":")
    return bool(user and colon and password) and plain.isascii()
