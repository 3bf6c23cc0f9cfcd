"""Scores the funnel on a file of labelled messages: keep, noise, types, layers, contents, cost; by class.

`python -m bench.funnel_score --data FILE` prints one JSON object; `score(rows, funnel)` is what other benches call.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsvc.memory.funnel import Candidate, Decision, Funnel, Message, Stage, Verdict

SAID_US = 1_741_600_000_000_000  # 2025-03-10: labelled messages carry no time
TIMED_ROUNDS = 5


def message_of(row: dict[str, Any]) -> tuple[Message, list[Message]]:
    """The message of a row, and its context as history (an agent answers a user, everyone else an agent)."""
    message = Message(row["speaker"], row["text"], int(row.get("time_us", SAID_US)))
    before = "user" if row["speaker"] == "agent" else "tool" if row["speaker"] == "tool" else "agent"
    return message, [Message(before, row["context"], message.time_us)] if row.get("context") else []


def holds(candidate: Candidate, gold: dict[str, Any]) -> int:
    """How many of the strings that the memory must contain are there, whatever their case."""
    content = candidate.content.lower()
    return sum(text.lower() in content for text in gold.get("content_must_contain", ()))


def assign(candidates: tuple[Candidate, ...], gold: list[dict[str, Any]]) -> list[Candidate | None]:
    """The best one-to-one assignment of candidates to gold memories: by containment, then by type."""
    slots: list[Candidate | None] = [*candidates[:6], *[None] * len(gold)]
    best: tuple[float, list[Candidate | None]] = (-1.0, [None] * len(gold))
    for order in itertools.permutations(range(len(slots)), len(gold)):
        chosen = [slots[place] for place in order]
        worth = 0.0
        for candidate, wanted in zip(chosen, gold, strict=True):
            if candidate is not None:
                worth += 1 + 10 * holds(candidate, wanted) + 5 * (candidate.type.name.lower() == wanted["type"])
        if worth > best[0]:
            best = (worth, chosen)
    return best[1]


def class_of(row: dict[str, Any]) -> str:
    """The label's class, or keep:TYPE+TYPE / noise:SPEAKER."""
    if "class" in row:
        return str(row["class"])
    return (
        "keep:" + "+".join(memory["type"] for memory in row["memories"]) if row["keep"] else f"noise:{row['speaker']}"
    )


def score(rows: list[dict[str, Any]], funnel: Funnel) -> dict[str, Any]:
    """All figures of the funnel's bars, the mistakes by row id, and a confusion by class."""
    verdicts = []
    for row in rows:
        message, history = message_of(row)
        verdicts.extend(funnel.judge([message], history))
    kept = np.array([verdict.decision == Decision.KEPT for verdict in verdicts])
    truth = np.array([bool(row["keep"]) for row in rows])
    hits = int((kept & truth).sum())
    result: dict[str, Any] = {
        "messages": len(rows),
        "precision": _share(hits, int(kept.sum())),
        "recall": _share(hits, int(truth.sum())),
        "f1": _share(2 * hits, int(kept.sum() + truth.sum())),
        "noise_dropped": _share(int((~kept & ~truth).sum()), int((~truth).sum())),
        "stage": dict(Counter(verdict.stage.name for verdict in verdicts)),
        "staged": sum(verdict.decision == Decision.STAGED for verdict in verdicts),
        "wrong": [(row.get("id", row["text"][:60]), verdict.stage.name, verdict.reason, verdict.score)
                  for row, verdict, k, t in zip(rows, verdicts, kept, truth, strict=True) if k != t],
    }  # fmt: skip
    result |= _of_kept(rows, verdicts)
    by_class: dict[str, Counter[str]] = {}
    for row, verdict in zip(rows, verdicts, strict=True):
        by_class.setdefault(class_of(row), Counter())[verdict.decision.name.lower()] += 1
    result["by_class"] = {name: dict(counts) for name, counts in sorted(by_class.items())}
    return result


def _of_kept(rows: list[dict[str, Any]], verdicts: list[Verdict]) -> dict[str, Any]:
    types = layers = stables = contents = total = strings_in = strings = 0
    confusion: Counter[str] = Counter()
    missing = []
    for row, verdict in zip(rows, verdicts, strict=True):
        if not row["keep"] or verdict.decision != Decision.KEPT:
            continue
        for wanted, candidate in zip(row["memories"], assign(verdict.candidates, row["memories"]), strict=True):
            total += 1
            found = "none" if candidate is None else candidate.type.name.lower()
            confusion[f"{wanted['type']}->{found}"] += 1
            musts = wanted.get("content_must_contain", [])
            joined = "\n".join(c.content for c in verdict.candidates).lower()
            inside = sum(text.lower() in joined for text in musts)
            strings, strings_in = strings + len(musts), strings_in + inside
            contents += inside == len(musts)
            right = found == wanted["type"]
            types += right
            layer_right = candidate is not None and candidate.layer.name.lower() == wanted["layer"]
            layers += layer_right
            stables += candidate is not None and candidate.stable == wanted.get("stable", candidate.stable)
            if inside < len(musts) or not right or not layer_right:
                missing.append(
                    (row.get("id", row["text"][:60]), wanted["type"], found, layer_right, inside == len(musts))
                )
    return {
        "memories": total,
        "type": _share(types, total),
        "layer": _share(layers, total),
        "stable": _share(stables, total),
        "content": _share(contents, total),
        "content_strings": _share(strings_in, strings),
        "type_confusion": dict(confusion),
        "memories_wrong": missing,
    }


def cost(rows: list[dict[str, Any]], funnel: Funnel, embed: Any) -> dict[str, float]:
    """Milliseconds: rules and signals a message; the whole funnel against embedding what reached stage 3.

    Each round is timed against its own floor; the least of the rounds counts. `embed` must not cache.
    """
    pairs = [message_of(row) for row in rows]
    messages = [message for message, _ in pairs]
    verdicts = funnel.judge(messages)
    floor_texts = [m.content[:600] for m, v in zip(messages, verdicts, strict=True) if v.stage == Stage.MODEL]
    signals_ms, whole_ms, floor_ms = [], [], []
    for _ in range(TIMED_ROUNDS):
        start = time.perf_counter()
        for message, history in pairs:
            funnel.stages([message], history)
        signals_ms.append((time.perf_counter() - start) * 1000 / len(pairs))
        start = time.perf_counter()
        embed(floor_texts)
        floor_ms.append((time.perf_counter() - start) * 1000)
        start = time.perf_counter()
        funnel.judge(messages)
        whole_ms.append((time.perf_counter() - start) * 1000)
    return {
        "rules_signals_ms": round(min(signals_ms), 4),
        "reached_model": len(floor_texts),
        "whole_ms": round(min(whole_ms), 1),
        "embed_floor_ms": round(min(floor_ms), 1),
        "whole_over_embed": round(min(whole_ms) / max(1e-9, min(floor_ms)), 3),
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="")
    arguments = parser.parse_args()
    from memsvc.app import open_model

    model = open_model(arguments.model)

    def embed(texts: list[str]) -> NDArray[np.float32]:
        return model.embed_passages(texts)

    fresh = itertools.count()

    def uncached(texts: list[str]) -> NDArray[np.float32]:
        return model.embed_passages([f"{text} {next(fresh)}" for text in texts])

    with arguments.data.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    funnel = Funnel(embed)
    print(
        json.dumps(score(rows, funnel) | {"cost": cost(rows, Funnel(uncached), uncached)}, ensure_ascii=False, indent=1)
    )


if __name__ == "__main__":
    main()
