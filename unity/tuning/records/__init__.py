"""What tuning found out, kept in a file: trials of candidates, the best of them, and forms."""

from .record import Best, FormRecord, Record, Trial, now
from .store import Records, joined, merge, prune

__all__ = ["Best", "FormRecord", "Record", "Records", "Trial", "joined", "merge", "now", "prune"]
