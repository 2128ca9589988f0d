"""Passes, pipelines and what looks on; `pipeline("cpu")` is the default one as data."""

from .passes import Context, Instrument, Pass, Pipeline, map_functions
from .pipeline import Precision, pipeline

__all__ = [
    "Context",
    "Instrument",
    "Pass",
    "Pipeline",
    "Precision",
    "map_functions",
    "pipeline",
]
