"""Benches: each `python -m bench.NAME [--json]` prints a table and, with --json, one JSON object.

Figures are ratios against floors measured in the same run; nothing in here is an assertion on time.
"""
