"""Operators of detection: boxes, and what is read in them."""
