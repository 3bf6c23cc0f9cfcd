"""The service room: the gRPC contract on top of `memsvc.memory`; the only place that knows gRPC codes."""
