"""``python -m tests.bench.untuned``: small models of kinds that nobody tuned for, of unknown sizes.

As `tests.bench.forms` measures them; ``untuned.json`` keeps the rows.
"""

from __future__ import annotations

from pathlib import Path

from tests.bench.forms import main

from .models import UNTUNED

if __name__ == "__main__":
    main(UNTUNED, "tests.bench.untuned", Path(__file__).with_name("untuned.json"), __doc__)
