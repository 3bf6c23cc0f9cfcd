"""Secrets: what must not reach the store is found, and refused or redacted.

Purpose: the public names of the filter. `filter` has `find`, `apply` and `Policy`; the detectors stand beside it:
`keys` (by shape), `words` and `values` (by label), `numbers` and `ids` (by check digit), over the folded text of
`text`.

Threading: pure functions over immutable tables.

Rejected: detect-secrets (half of its detectors need files, word boundaries that Chinese does not have, and it brings an
HTTP client); its patterns were a starting point.
"""

from memsvc.memory.sensitive.filter import Action, Policy, apply, find, redact
from memsvc.memory.sensitive.text import Finding, Kind

__all__ = ["Action", "Finding", "Kind", "Policy", "apply", "find", "redact"]
