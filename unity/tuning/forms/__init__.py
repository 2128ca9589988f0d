"""The forms of a program's calls: which is fastest is measured in front of its schedules."""

from .search import FormSearch

__all__ = ["FormSearch"]
