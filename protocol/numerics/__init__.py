"""The arithmetic every party must agree on, bit for bit (arithmetic.md), on torch tensors.

Pure functions of tensors; no program, no tree, no chain. `reference` holds the same meanings in plain integers.
"""
