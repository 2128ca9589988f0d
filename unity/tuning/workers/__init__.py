"""Measuring in child processes: one kind compiles candidates, the other one runs them.

What breaks, hangs or aborts there costs its candidate and nothing else. They are talked to by
lines of JSON on standard input and output; kernels travel as text, arrays and executables as files.
"""

from .measurer import Candidate, Measured, Measurer

__all__ = ["Candidate", "Measured", "Measurer"]
