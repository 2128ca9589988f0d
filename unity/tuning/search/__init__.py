"""Searching the spaces of one kernel: which candidates are measured next."""

from .search import Fast, Proposal, Search
from .strategies import STRATEGIES, Strategy, strategy

__all__ = ["STRATEGIES", "Fast", "Proposal", "Search", "Strategy", "strategy"]
