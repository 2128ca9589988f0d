"""``python -m tests.conformance [PREFIX] [-v] [--compiled]``: ONNX's backend tests.

Each case runs in a process of its own (`isolated`), two at a time. Without a prefix the result is
stored, which the floor is read from. A line is printed for each operator and reason for which cases
don't pass; with ``-v`` all of their names. ``--compiled`` compiles what is interpreted otherwise.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict

from .isolated import run_isolated
from .suite import RESULTS, Case, Status, by_compiler, every_case, kind_of, status_of


def main() -> None:
    """Run what is asked for."""
    prefix = next((a for a in sys.argv[1:] if not a.startswith("-")), "")
    compiled = "--compiled" in sys.argv
    cases = every_case()
    names = [name for name in sorted(cases) if name.startswith(prefix)]

    def judge(case: Case) -> tuple[Status, str]:
        return status_of(case, by_compiler if compiled else None)

    judge(cases["test_abs"])  # so that what is imported for it is not imported again for each case
    found: dict[Status, list[str]] = {"passed": [], "other": [], "failed": [], "unsupported": []}
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    reasons: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, status, why in run_isolated(cases, names, judge):
        found[status].append(name)
        kinds[kind_of(name)].update((status, "all"))
        if status != "passed":
            operator = _operator(cases[name], why)
            reasons[operator, f"{status}: {_reason(why)}"].append(name)
    lines = {
        f"{operator}: {reason}": sorted(of)
        for (operator, reason), of in sorted(reasons.items(), key=lambda item: -len(item[1]))
    }
    for line, of in lines.items():
        print(f"{len(of)} {line}: {' '.join(of if '-v' in sys.argv else of[:3])}")
    counts = {kind: f"{of['passed']} of {of['all']}" for kind, of in sorted(kinds.items())}
    if not prefix and not compiled:
        stored: dict[str, object] = {
            "kinds": counts,
            "not passed": {line: len(of) for line, of in lines.items()},
            **{status: sorted(of) for status, of in found.items()},
        }
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
    print(", ".join(f"{kind}: {of}" for kind, of in counts.items()))
    print(", ".join(f"{len(of)} {status}" for status, of in found.items()))


def _operator(case: Case, why: str) -> str:
    """The operator that a case is stopped by, as far as its reason says one; else its only one."""
    said = re.search(r"node '[^']*' \((\w+)\)", why)
    if said:
        return said[1]
    types = {node.op_type for node in case.model.graph.node} - {"Constant"}
    return types.pop() if len(types) == 1 else "(several)"


def _reason(why: str) -> str:
    """A reason without the name of the node."""
    return re.sub(r"^node '[^']*' \(\w+\), ", "", why)[:200]


if __name__ == "__main__":
    main()
