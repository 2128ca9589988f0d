"""What is tuned: the distinct kernels of a program, each with what it counts for."""

from .task import Task, tasks_of

__all__ = ["Task", "tasks_of"]
