"""What looks on while a pipeline runs: timing, printing, verification, numeric checks."""

from .numeric import NumericCheck, bisect
from .printing import Print
from .timing import Timing
from .trace import Trace
from .verification import Verify

__all__ = ["NumericCheck", "Print", "Timing", "Trace", "Verify", "bisect"]
