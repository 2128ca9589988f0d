"""Passes that make one operator, or one kernel, of a group."""
