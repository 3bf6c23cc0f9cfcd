"""Working memory: open sessions, what they are about, and what becomes of them.

Purpose: `sessions` holds the open ones, `session` is one of them as a value, `state` and `dialogue` what it is about,
`summary` what was said before its window; `consolidation` and `episode` are its end.

Threading: see `sessions`; everything else here is immutable values and pure functions.

Rejected: sessions as memories in the store (a turn would cost an fsync and leave traces in the change log).
"""
