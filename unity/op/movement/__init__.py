"""Operators that move elements and compute none: views, copies, joins, pads, slices."""
