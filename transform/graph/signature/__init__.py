"""Passes that change what graph functions take and give."""
