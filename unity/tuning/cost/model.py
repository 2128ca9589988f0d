"""Cost models: what candidates should take, told by their features, better with each measurement.

`LearnedModel` fits gradient-boosted trees to what measurements were off the estimate, in logarithms
and relative to what is usual of each kernel: so candidates of one kernel are ranked, and what was
learned of others (kept in the records) serves a new one. Without `xgboost-cpu`, or before anything
was measured, the estimate alone counts. After AutoTVM and Ansor.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from logging import getLogger
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError

from .features import FEATURES, Features

Scores = npt.NDArray[np.float64]
log = getLogger("unity")
_PRIOR = FEATURES.index("seconds")
_LEAST = 8
"""Measurements before a model is fitted."""
_OPTIONS = {
    "max_depth": 4, "eta": 0.05, "subsample": 0.5, "colsample_bytree": 0.4, "min_child_weight": 8.0,
    "nthread": 1, "verbosity": 0,
}  # fmt: skip
_OTHERS, _ENOUGH = 0.5, 32
"""How much counts what was learned of other kernels alone, and how many measurements of a kernel
let all count: over 17 operators, each held out, the ranks' correlation is 0.77 with half of the
correction, 0.76 with a quarter and 0.71 with none (medians of three seeds; AMD Zen 3)."""
_FAR_OFF = 2.0
"""Binary orders of magnitude that are learned of at most: what is further off was disturbed."""
_ROUNDS = 200
"""Small trees of part of what is known each: kernels are few, and unlike each other."""


class CostModel(Protocol):
    """Ranks candidates."""

    def add(self, kernel: str, row: Features, seconds: float) -> None:
        """Learn what a candidate of a kernel took, in any unit that its others are told in."""
        ...

    def predict(self, kernel: str, rows: Sequence[Features]) -> Scores:
        """Logarithms (base 2) of nanoseconds that candidates should take, up to a constant."""
        ...


class PriorModel:
    """The estimate alone: nothing is learned."""

    def add(self, kernel: str, row: Features, seconds: float) -> None:
        """Nothing."""

    def predict(self, kernel: str, rows: Sequence[Features]) -> Scores:
        """The estimates."""
        del kernel
        return np.asarray([row[_PRIOR] for row in rows], np.float64)


class LearnedModel:
    """Boosted trees on top of the estimate.

    Args:
        seed: Of the trees.

    Raises:
        UnityError: `xgboost-cpu` is not installed.
    """

    def __init__(self, seed: int = 0) -> None:
        if find_spec("xgboost") is None:
            raise UnityError(
                "a learned cost model needs xgboost",
                hint="pip install 'unity-mlc[tune]', or: pip install xgboost-cpu",
            )
        self._seed = seed
        self._kernels: list[str] = []
        self._rows: list[Features] = []
        self._seconds: list[float] = []
        self._model: Any = None
        self._fitted = 0

    def add(self, kernel: str, row: Features, seconds: float) -> None:
        """Keep a measurement; the trees are fitted again when they are asked next."""
        self._kernels.append(kernel)
        self._rows.append(row)
        self._seconds.append(seconds)

    def predict(self, kernel: str, rows: Sequence[Features]) -> Scores:
        """The estimates, corrected by what was learned: mostly where it is of the kernel itself."""
        prior = np.asarray([row[_PRIOR] for row in rows], np.float64)
        self._fit()
        if self._model is None or not rows:
            return prior
        data = import_module("xgboost").DMatrix(np.stack(rows))
        off: npt.NDArray[np.float32] = self._model.predict(data)
        own = min(1.0, self._kernels.count(kernel) / _ENOUGH)
        return prior + (_OTHERS + (1.0 - _OTHERS) * own) * off.astype(np.float64)

    def _fit(self) -> None:
        count = len(self._rows)
        if count < _LEAST or count == self._fitted:
            return
        rows = np.stack(self._rows)
        taken = np.log2(np.asarray(self._seconds) * 1e9)
        off = taken - rows[:, _PRIOR]
        names = np.asarray(self._kernels)
        weights = np.ones(count)
        for name in set(self._kernels):
            here = names == name
            off[here] -= np.median(off[here])  # what is off by the same everywhere changes no rank
            best = taken[here].min()
            weights[here] = 0.25 + 2.0 ** -np.minimum(taken[here] - best, 4.0)
        off = np.clip(off, -_FAR_OFF, _FAR_OFF)
        xgboost: Any = import_module("xgboost")  # a second, which short sessions do without
        data = xgboost.DMatrix(rows, label=off, weight=weights)
        self._model = xgboost.train({**_OPTIONS, "seed": self._seed}, data, _ROUNDS)
        self._fitted = count


def cost_model(seed: int = 0) -> CostModel:
    """The learned model, where it is installed; else the estimate."""
    try:
        return LearnedModel(seed)
    except UnityError as error:
        log.info("candidates are ranked by estimate: %s", error.message)
        return PriorModel()
