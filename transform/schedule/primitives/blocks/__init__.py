"""Primitives that change what a block is: its axes, or tiles of it as one."""
