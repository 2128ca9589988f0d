"""From Python's syntax tree to IR: `parse` for text, `unity.script.decorators` for functions."""
