"""What a statement says: its terms as concepts, its numbers, names, negations and cues, read without a model.

Purpose: `analyze_claim` turns a text into a `Claim` once; `conflict.decide` then compares claims pair by pair for some
microseconds each. A term knows its kind (words), whether it stands in the topic, the value or a condition of the
statement, and whether it is denied. English and Chinese give the same concepts.

Threading: pure functions over tables that are built at import; share claims freely.

Rejected: a parser (a hundred times the cost, and memories are short and elliptic); word vectors per term (the pair's
cosine already has the whole meaning); the index terms of retrieval.lexical (bigrams, made to be found, hold no roles).
"""

from __future__ import annotations

import re
import unicodedata

import msgspec

from memsvc.memory.conflict.cues import cues_of
from memsvc.memory.conflict.labels import identifiers, labels
from memsvc.memory.conflict.lexicon import Group, Term, Zone
from memsvc.memory.conflict.reader import TERMS_MAX, Reader
from memsvc.model import MemoryType

__all__ = ["Claim", "Group", "Term", "Zone", "analyze_claim", "normal_subject"]

TEXT_MAX_CHARS = 600  # what is beyond is not a statement; its cosine and words would match anything
STATEMENT_MAX_CHARS = 140  # Han characters count twice; a longer text says many things, and none of it is judged
SENTENCES_MAX = 2
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s)|[。！？；]|\n")
_ADDITIVE = frozenset("like have eat drink supports know suffer plays visited allergy speak also".split())
_HAN_RUNS = re.compile(r"[\u3400-\u9fff]+")
_CALLED = re.compile(r"[\W_]+")


class Claim(msgspec.Struct, frozen=True):
    """What a statement says. `key` is the text without case, space and punctuation; `subject` is normalised alike.

    `odd` is whether an odd number of negations is in it; `additive` whether its verb takes many values at a time
    (liking, having); `labels` the identifiers and numbers that name what it is about; `content` the concepts that weigh
    something; `weight` the sum of the terms' weights; `cues` the bits of cues.Cue as a plain integer; `chinese` whether
    its grammar is (names and tools in Latin letters don't change that); `long` whether it is more than one statement
    can be.
    """

    key: str
    subject: str
    type: MemoryType
    terms: dict[str, Term]
    cues: int
    odd: bool
    weight: float
    chinese: bool
    long: bool
    additive: bool
    content: frozenset[str]
    labels: frozenset[str]


def analyze_claim(content: str, type: MemoryType, subject: str = "") -> Claim:
    """Reads a statement; any text is accepted, only the first TEXT_MAX_CHARS count. Costs some 30 to 60 us."""
    text = unicodedata.normalize("NFKC", content[:TEXT_MAX_CHARS])
    lowered = text.lower()
    reader = Reader(text if len(text) == len(lowered) else lowered, lowered)
    reader.read()
    han = sum(map(len, _HAN_RUNS.findall(lowered)))
    terms = reader.terms
    cannot = terms.get("allow")
    if cannot is not None and cannot.denied and "allergy" in terms:
        reader.odd = not reader.odd  # "can't eat it, allergic" says no more than "allergic"
        terms = {concept: term._replace(denied=False) for concept, term in terms.items()}
    return Claim(
        key=_CALLED.sub("", lowered),
        subject=normal_subject(subject),
        type=type,
        terms=terms,
        cues=int(cues_of(lowered)),
        odd=reader.odd,
        weight=sum([term.weight for term in terms.values()]),
        chinese=han >= 2,
        long=_is_long(content, han) or len(terms) >= TERMS_MAX,
        additive="favorite" not in terms and not _ADDITIVE.isdisjoint(terms),
        content=frozenset([concept for concept, term in terms.items() if term.weight >= 0.5]),
        labels=labels(lowered) | identifiers(lowered),
    )


def _is_long(content: str, han: int) -> bool:
    """Whether a text is more than one statement: too many characters, or more than SENTENCES_MAX sentences."""
    if len(content) + han > STATEMENT_MAX_CHARS:
        return True
    return len(_SENTENCE_ENDS.findall(content.rstrip(" .!?。！？；\n"))) >= SENTENCES_MAX


def normal_subject(subject: str) -> str:
    """A subject key without case and with `/` between its parts: `Report.format` and `report/format` are one."""
    return "/".join(part for part in _CALLED.split(unicodedata.normalize("NFKC", subject).casefold()) if part)
