"""Passes, pipelines, backends and what looks on; `pipeline("cpu")` is the default one as data."""

from typing import TYPE_CHECKING

from unity.machine.scope import MemoryScope
from unity.options import Precision

from .backend import Backend, backend_of, register_backend
from .passes import Context, Instrument, Pass, Pipeline, map_functions
from .pipeline import pipeline, standard_pipeline
from .relax_names import finder

__all__ = [
    "Backend",
    "Context",
    "Instrument",
    "MemoryScope",
    "Pass",
    "Pipeline",
    "Precision",
    "backend_of",
    "map_functions",
    "pipeline",
    "register_backend",
    "standard_pipeline",
]
if not TYPE_CHECKING:
    __getattr__ = finder(__name__)
