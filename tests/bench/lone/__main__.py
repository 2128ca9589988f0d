"""``python -m tests.bench.lone``: operators alone, of fixed sizes and with one axis unknown.

As `tests.bench.forms` measures them; ``lone.json`` keeps the rows.
"""

from __future__ import annotations

from pathlib import Path

from tests.bench.forms import main

from .shapes import LONE

if __name__ == "__main__":
    main(LONE, "tests.bench.lone", Path(__file__).with_name("lone.json"), __doc__)
