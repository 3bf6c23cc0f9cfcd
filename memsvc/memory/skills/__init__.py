"""Procedural memory: skills, the steps to follow."""
