"""What tuning found out, kept in a file: trials of candidates, and the best of them."""

from .record import Best, Record, Trial, now
from .store import Records, merge, prune

__all__ = ["Best", "Record", "Records", "Trial", "merge", "now", "prune"]
