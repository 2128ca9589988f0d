"""``python -m tests.bench.attention``: attention in every layout, of fixed and unknown sizes.

As `tests.bench.forms` measures it, with torch's own attention as one more peer; ``attention.json``
keeps the rows.
"""

from __future__ import annotations

from pathlib import Path

from tests.bench.forms import main

from .works import ATTENTION

if __name__ == "__main__":
    main(ATTENTION, "tests.bench.attention", Path(__file__).with_name("attention.json"), __doc__)
