"""Sums of products: matmul in its layouts, attention, and caches of its keys and values."""
