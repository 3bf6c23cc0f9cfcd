"""The retrieval room: derived, rebuildable indexes and the numeric kernels that answer a recall."""
