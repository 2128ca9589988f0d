"""How things show themselves in notebooks: tables, notes and programs, in light and dark pages."""

from __future__ import annotations

from .page import Cell, note, page, program, share, table

__all__ = ["Cell", "note", "page", "program", "share", "table"]
