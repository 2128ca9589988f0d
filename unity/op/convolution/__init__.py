"""Operators of sliding windows: convolutions in their layouts, and pools."""
