"""Searching the spaces of one kernel: which candidates are measured next."""

from .search import PATIENCE, Fast, Proposal, Search
from .strategies import STRATEGIES, Strategy, strategy

__all__ = ["PATIENCE", "STRATEGIES", "Fast", "Proposal", "Search", "Strategy", "strategy"]
