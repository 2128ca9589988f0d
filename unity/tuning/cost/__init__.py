"""What a kernel laid out should take: features, an estimate from them, a learned model."""

from .estimate import estimated_seconds
from .features import FEATURES, features
from .model import CostModel, LearnedModel, PriorModel, cost_model

__all__ = [
    "FEATURES",
    "CostModel",
    "LearnedModel",
    "PriorModel",
    "cost_model",
    "estimated_seconds",
    "features",
]
