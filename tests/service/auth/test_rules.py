"""Every call of the contract has a row in the table, and every row a call."""

from __future__ import annotations

import importlib
import pkgutil

import memsvc.v1
from memsvc.service.auth.rules import RULES, AdminRule, Rule


def calls():
    """service/call -> descriptor, of every proto of the contract."""
    found = {}
    for module in pkgutil.iter_modules(memsvc.v1.__path__):
        if module.name.endswith("_pb2"):
            file = importlib.import_module(f"memsvc.v1.{module.name}").DESCRIPTOR
            for service in file.services_by_name.values():
                found.update({f"{service.name}/{method.name}": method for method in service.methods})
    return found


def test_every_call_has_a_row_and_every_row_a_call():
    assert set(RULES) == set(calls())
    assert len(RULES) > 50


def test_rows_fit_their_requests():
    for name, method in calls().items():
        row, fields = RULES[name], method.input_type.fields_by_name
        if isinstance(row, Rule):
            assert row.needs, name
            assert fields["owners"].message_type.name == "Owners", name
        assert isinstance(row, AdminRule) == name.startswith("AdminService/"), name
        of_session = name.startswith("SessionService/") or name == "ContextService/AssembleContext"
        assert not isinstance(row, Rule) or (row.whose is not None) == of_session, name
