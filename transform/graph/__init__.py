"""Passes over graph functions, from A-normal form to planned memory: one pass a file."""
