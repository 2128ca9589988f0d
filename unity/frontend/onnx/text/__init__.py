"""Nodes that work on words."""
