"""Measuring in child processes: one kind compiles candidates, the other one runs them.

What breaks, hangs or aborts there costs its candidate and nothing else. They are talked to by
lines of JSON on standard input and output; kernels travel as text, arrays and executables as files.
"""

from .measurer import Candidate, Measurer
from .runner import LocalRunner, Measured, Program, Reference, Runner

__all__ = ["Candidate", "LocalRunner", "Measured", "Measurer", "Program", "Reference", "Runner"]
