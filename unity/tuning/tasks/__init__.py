"""What is tuned: the distinct kernels of a program, each with what it counts for."""

from .at_sizes import at_sizes
from .task import Task, tasks_of

__all__ = ["Task", "at_sizes", "tasks_of"]
