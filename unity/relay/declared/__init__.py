"""Declared types (lists, trees) in scripts: values of them, and programs that take such values."""
