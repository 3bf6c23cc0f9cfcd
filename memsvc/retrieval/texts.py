"""What of a memory can be found by words: the indexed text, and the terms of an exact fact.

Purpose: one truth for every index of words. All functions depend on the memory alone, so that a version's words can be
taken out of the counts again when it is replaced.

Threading: pure functions.

Rejected: storing these texts with the memory (a better rule would need a rewrite of the store, here a rebuild).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memsvc.model import Event, Memory, speaker_of
from memsvc.retrieval.lexical import Analysis, analyze
from memsvc.retrieval.mentions import key_term, value_term

# Words that people use for a type of event; summaries say what happened and rarely what it was.
TYPE_WORDS = {
    "error": "报错 错误 异常 失败 故障 error failure exception",
    "recovery": "恢复 解决 修复 recovered fixed resolved solved",
    "feedback": "反馈 意见 feedback",
    "task_start": "任务开始 开始任务 task started begin",
    "task_end": "任务完成 任务结束 task finished completed done",
}


def indexed_text(memory: Memory) -> str:
    """The text whose words find a memory: speaker, content, subject and tags, and what an event holds beside them."""
    parts = [speaker_of(memory), memory.content, memory.subject, *memory.tags]
    if memory.event is not None:
        event = memory.event
        parts += [event.event_type, TYPE_WORDS.get(event.event_type, ""), *event_texts(event)]
    return "\n".join(part for part in parts if part)


def event_texts(event: Event) -> list[str]:
    """Participants and the text and number values of the payload, at any depth, in order."""
    return [*event.participants, *_scalars(event.payload)]


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield str(value)
    else:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _scalars(item)


def analysis_of(memory: Memory) -> Analysis:
    """The index terms of a memory; an exact fact has those of its key and value beside those of its words."""
    analysis = analyze(indexed_text(memory))
    if memory.fact is None:
        return analysis
    terms = [key_term(memory.fact.key), value_term(memory.fact.value)]
    return Analysis(analysis.counts | {term: 1 for term in terms if term}, analysis.length)
