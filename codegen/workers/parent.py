"""A child that ends with its parent, even where it never gets to read that nobody asks any more.

What a child runs may hang, at real-time priority, too: it would go on for ever if its parent was
killed meanwhile. Linux ends it then. Elsewhere it ends when it has answered.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_SET_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of Linux: the signal that is sent when the thread that started us ends."""


def end_with(parent: int) -> None:
    """End this process when its parent ends, or at once if that is gone.

    Args:
        parent: The process that started it.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_SET_SIGNAL, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    try:
        os.kill(parent, 0)  # no signal: it may have ended before anyone would have told
    except ProcessLookupError:
        os._exit(1)
