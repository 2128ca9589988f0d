"""Primitives that move a block to where its result is made or read."""
