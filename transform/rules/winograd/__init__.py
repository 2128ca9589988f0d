"""Winograd's convolutions: a contraction between transforms of tiles, and how many at a time."""
