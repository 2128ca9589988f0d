"""Passes over quantized programs: which products stay in integers, and what is around them."""
