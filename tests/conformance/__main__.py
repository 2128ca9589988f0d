"""``python -m tests.conformance [PREFIX] [-v] [--compiled]``: ONNX's backend tests.

Without a prefix the result is stored, which the floor is read from. A line is printed for each case
that does not pass, those of one reason together; with ``-v`` all of their names.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict

from .suite import RESULTS, Status, by_compiler, by_interpreter, every_case, status_of


def main() -> None:
    """Run what is asked for."""
    prefix = next((a for a in sys.argv[1:] if not a.startswith("-")), "")
    compiled = "--compiled" in sys.argv
    found: dict[Status, list[str]] = {"passed": [], "other": [], "failed": [], "unsupported": []}
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for name, case in sorted(every_case().items()):
        if not name.startswith(prefix):
            continue
        status, why = status_of(case, by_compiler if compiled else by_interpreter)
        found[status].append(name)
        if status != "passed":
            reasons[f"{status}: {why[:200]}"].append(name)
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(names)} {reason}: {' '.join(names if '-v' in sys.argv else names[:3])}")
    if not prefix and not compiled:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(", ".join(f"{len(names)} {status}" for status, names in found.items()))


if __name__ == "__main__":
    main()
