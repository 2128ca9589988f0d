"""Stages over the same rows: softmax, the norms, and whatever walks a row more than once."""
