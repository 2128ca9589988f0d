"""Searching the spaces of one kernel: which candidates are measured next."""

from .search import Proposal, Search
from .strategies import STRATEGIES, Strategy, strategy

__all__ = ["STRATEGIES", "Proposal", "Search", "Strategy", "strategy"]
