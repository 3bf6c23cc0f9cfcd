"""Tokens for tests, and calls of the contract by their names in the table of rules for those that walk all of them."""

from __future__ import annotations

import importlib
import pkgutil
from typing import ClassVar

import grpc
import pytest
from google.protobuf.message import Message
from refusals import header

import memsvc.v1
from memsvc.service.auth.tokens import Wanted

_FILES = [
    importlib.import_module(f"memsvc.v1.{module.name}").DESCRIPTOR
    for module in pkgutil.iter_modules(memsvc.v1.__path__)
    if module.name.endswith("_pb2")
]
METHODS = {
    f"{service.name}/{method.name}": method
    for file in _FILES
    for service in file.services_by_name.values()
    for method in service.methods
}


class Wire:
    """A channel on which calls are made by name. `methods`: service/call -> descriptor, of the whole contract."""

    methods: ClassVar = METHODS

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def call(self, name, request, metadata=None):
        """The answer to a message, or to fields of one; the first answer of a stream. Raises RpcError."""
        method = self.methods[name]
        kind, answer = method.input_type._concrete_class, method.output_type._concrete_class
        arguments = {"request_serializer": kind.SerializeToString, "response_deserializer": answer.FromString}
        path = f"/{method.containing_service.full_name}/{method.name}"
        message = request if isinstance(request, Message) else kind(**request)
        if not method.server_streaming:
            return self._channel.unary_unary(path, **arguments)(message, metadata=metadata, timeout=60)
        stream = self._channel.unary_stream(path, **arguments)(message, metadata=metadata, timeout=60)
        try:
            return next(stream)
        finally:
            stream.cancel()

    def outcome(self, name, request, metadata=None):
        """The answer, or the error."""
        try:
            return self.call(name, request, metadata), None
        except grpc.RpcError as error:
            return None, error


@pytest.fixture(scope="session")
def make_wire():
    """Wire of a channel."""
    return Wire


@pytest.fixture(scope="session")
def issue(service):
    """Issues a token: issue(user_ids=..., grants=...) -> metadata of a call."""

    def make(**fields):
        token, _ = service.tokens.issue(Wanted(**fields), "local")
        return header(token)

    return make


@pytest.fixture
def user(fresh_id):
    """A user of the test's own."""
    return fresh_id()
