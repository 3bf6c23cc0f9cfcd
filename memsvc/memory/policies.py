"""Which tenant lets which secrets in: the setting `sensitive_policy`, read once at start.

Purpose: one policy per tenant, and one for all others. What can't be read refuses the start: it fails closed.

Threading: immutable.

Rejected: a policy in the store (whoever may write memories could switch the filter off).
"""

from __future__ import annotations

import json

from memsvc.errors import ConfigInvalid
from memsvc.memory.sensitive import Policy

DEFAULT_KEY = "*"


class Policies:
    """See the module. `text` is JSON such as `{"*": {"phone": "redact"}, "acme": {}}`; empty: reject everything."""

    def __init__(self, text: str = "") -> None:
        tenants: object = {}
        if text.strip():
            try:
                tenants = json.loads(text)
            except ValueError as error:
                raise ConfigInvalid(
                    'sensitive_policy is not JSON; write one such as {"*": {"phone": "redact"}}',
                    setting="sensitive_policy",
                ) from error
        if not isinstance(tenants, dict) or not all(isinstance(policy, dict) for policy in tenants.values()):
            raise ConfigInvalid(
                'sensitive_policy maps tenants ("*" for all others) to policies, such as {"*": {"phone": "redact"}}',
                setting="sensitive_policy",
            )
        self._policies = {tenant: Policy.parse(policy) for tenant, policy in tenants.items()}
        self._default = self._policies.get(DEFAULT_KEY, Policy())

    def of(self, tenant: str) -> Policy:
        """The tenant's policy."""
        return self._policies.get(tenant, self._default)
