"""The tokenizer of a model: texts to token ids. The only home of the tokenizers library.

Purpose: `open_tokenizer` reads a model's tokenizer.json. A plain Unigram is run over a dictionary of our own, anything
else by the library.

Threading: the functions that it returns may be called from any thread.

Rejected: the library's own Unigram (its trie of 250,000 pieces takes 295 MB and most of a second to load).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

import msgspec
from tokenizers import Tokenizer

from memsvc.errors import ModelCorrupt

UNKNOWN_PENALTY = 10.0  # below the rarest piece, as in sentencepiece
WORD_CACHE_ENTRIES = 8192
WORD_CACHE_CHARS = 32

Encode = Callable[[str, bool], list[int]]


class _Unigram:
    """A Unigram tokenizer over a plain dict: the library's ids, with its normaliser, splitter and template.

    Best paths follow the library's order and ties exactly: float64 scores, the first of equals wins. `shell` is the
    tokenizer without its vocabulary.
    """

    def __init__(self, shell: Tokenizer, vocabulary: list[tuple[str, float]], unk_id: int) -> None:
        self._normalizer, self._splitter = shell.normalizer, shell.pre_tokenizer
        self._special: list[int] = shell.encode("").ids
        self._ids = {piece: i for i, (piece, _) in enumerate(vocabulary)}
        self._scores = array("d", (score for _, score in vocabulary))
        self._unk_id = unk_id
        self._unk_score = min(self._scores) - UNKNOWN_PENALTY
        self._longest = max(map(len, self._ids))
        self._short_word = lru_cache(WORD_CACHE_ENTRIES)(self._best_path)

    def encode(self, text: str, special: bool) -> list[int]:
        ids: list[int] = []
        for word, _ in self._splitter.pre_tokenize_str(self._normalizer.normalize_str(text)):
            ids += self._short_word(word) if len(word) <= WORD_CACHE_CHARS else self._best_path(word)
        return [*self._special[:1], *ids, *self._special[1:]] if special else ids

    def _best_path(self, word: str) -> list[int]:
        """Ids of the word's most probable pieces; a run of unknown characters is one id."""
        size, ids, scores, longest = len(word), self._ids, self._scores, self._longest
        best = [-inf] * (size + 1)
        best[0] = 0.0
        step = [(0, 0)] * (size + 1)  # where the best piece that ends here begins, and its id
        for start in range(size):
            here = best[start]
            for end in range(start + 1, min(start + longest, size) + 1):
                piece = ids.get(word[start:end])
                if piece is not None:
                    score = here + scores[piece]
                elif end == start + 1:
                    piece, score = self._unk_id, here + self._unk_score
                else:
                    continue
                if score > best[end]:
                    best[end], step[end] = score, (start, piece)
        path: list[int] = []
        at = size
        while at > 0:
            at, piece = step[at]
            if piece != self._unk_id or path[-1:] != [piece]:
                path.append(piece)
        return path[::-1]


def open_tokenizer(path: Path) -> tuple[Encode, bool]:
    """A function of a text and "with special tokens?" to token ids; and whether tokens never cross white space, so that
    the counts of a text's parts add up to its own. Raises ModelCorrupt for a file that can't be read.
    """
    try:
        description = msgspec.json.decode(path.read_bytes())
        model = description["model"]
        plain = not model.get("byte_fallback") and not description.get("added_tokens")
        if model.get("type") == "Unigram" and plain and description["normalizer"] and description["pre_tokenizer"]:
            vocabulary, unk_id = model["vocab"], model["unk_id"]
            model |= {"vocab": [["unknown", 0.0]], "unk_id": 0}
            shell = Tokenizer.from_str(json.dumps(description))
            encode = _Unigram(shell, vocabulary, unk_id).encode
            return encode, _splits_at_space(description["pre_tokenizer"]) and encode("a\nb", False) == encode(
                "a b", False
            )
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelCorrupt(f"{path} can't be loaded: {error}", file=str(path)) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode_by_library(text: str, special: bool) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=special).ids
        return ids

    return encode_by_library, False


def _splits_at_space(pre_tokenizer: dict[str, Any]) -> bool:
    """Whether a pre-tokenizer of the file cuts at every blank."""
    return any(
        part["type"] == "WhitespaceSplit" or (part["type"] == "Metaspace" and part.get("split", True))
        for part in pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    )
