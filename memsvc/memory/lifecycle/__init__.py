"""Forgetting: how well a memory is remembered (`retention`), and what follows from it (`lifecycle`)."""
