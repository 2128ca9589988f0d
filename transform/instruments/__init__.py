"""What looks on while a pipeline runs: timing, printing, verification, numeric checks."""

from .dump_ir import DumpIR
from .numeric import NumericCheck, bisect
from .printing import Print
from .timing import Timing
from .verification import Verify

__all__ = ["DumpIR", "NumericCheck", "Print", "Timing", "Verify", "bisect"]
