"""Stages over the same rows: softmax and the norms."""
