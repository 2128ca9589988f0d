"""Winograd's convolutions: a contraction between transforms of tiles."""
