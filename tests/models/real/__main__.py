"""``python -m tests.models.real [KEY ...] [--threads N]``: real models beside onnxruntime.

Each runs in a process of its own (`compared`). Without keys the result is stored in
``results.json``, with the processor and what does not compile or agree, and why.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any

from tests.bench.machine import machine

from .models import MANIFEST, RealModel, real_models

RESULTS = MANIFEST.with_name("results.json")
AGREES = 1e-4
"""Relative to the largest number of an output."""
QUANTIZED = 0.05
"""The same where activations are quantized as they come; all labels must be equal then."""


def main() -> None:
    """Run what is asked for."""
    words = sys.argv[1:]
    threads = int(words[words.index("--threads") + 1]) if "--threads" in words else 1
    keys = [w for w in words if not w.startswith("--") and not w.isdigit()]
    models = real_models()
    unknown = [key for key in keys if key not in models]
    if unknown:
        sys.exit(f"there is no model {', '.join(unknown)}; there are {', '.join(models)}")
    found = {key: _line(models[key], threads) for key in keys or models}
    ratios = [r for of in found.values() for r, _ in of.get("ratios", ())]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0
    print(f"geometric mean of latency ratios: {mean:.2f} over {len(ratios)}")
    if not keys:
        load = round(os.getloadavg()[2], 1)  # beside how much else this was measured
        stored = {
            "machine": machine(),
            "load": load,
            "threads": threads,
            "mean": round(mean, 2),
            "models": found,
        }
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


def _line(model: RealModel, threads: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.models.real.compared", model.key, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        said = next((i for i, x in enumerate(lines) if "Error" in x), -1)
        result: dict[str, Any] = {"fails": " ".join(lines[said:])[:400]}
    else:
        result = json.loads(done.stdout.splitlines()[-1])
    verdict = "fails" if "fails" in result else "agrees" if _agrees(model, result) else "differs"
    print(f"{model.key}: {verdict} {json.dumps(result)}", flush=True)
    return {"verdict": verdict, **result}


def _agrees(model: RealModel, result: dict[str, Any]) -> bool:
    if model.quantized:
        return bool(result["error"] <= QUANTIZED and result["labels"] == 1)
    return bool(result["error"] <= AGREES)


if __name__ == "__main__":
    main()
