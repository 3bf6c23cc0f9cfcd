"""The storage room: the truth on disk, behind the protocols of `memsvc.storage.engine`."""
