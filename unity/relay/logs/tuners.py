"""TVM's tuners under their names: nothing is tuned, and each call says what to do instead."""

from __future__ import annotations

from logging import getLogger
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .records import Record, read_log, summary

log = getLogger("unity")
INSTEAD = (
    "kernels are fast without tuning; unity.compile(model, resolve='measure') measures what else "
    "computes each call, and decisions={block: {...}} changes a schedule (exe.rules(kernel) tells)"
)


class History:
    """A log that a script applies around what it builds.

    Attributes:
        records: What it holds.
    """

    def __init__(self, tuner: str, file: object = None) -> None:
        self.records: list[Record] = []
        if isinstance(file, str | Path) and Path(file).is_file():
            self.records = read_log(file)
            log.warning(
                "%s: %s is not applied (%s): %s; records = relay.logs.read_log(%r), then "
                "unity.compile(model, pipeline=relay.logs.applied(relay.logs.measured(model, "
                "records))) takes those of its tile sizes that pay here", tuner, file,
                summary(self.records), INSTEAD, str(file),
            )  # fmt: skip
        elif file is not None:
            log.warning("%s: %s is not applied: %s", tuner, file, INSTEAD)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class _Silent:
    """An object of a tuner: takes all calls, does nothing, and holds nothing."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Silent()

    def __call__(self, *_: object, **__: object) -> _Silent:
        return self

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class Tuner:
    """A tuner of TVM as a namespace.

    Args:
        name: What it is called.
        histories: Its functions that apply a log.
        tasks: Its functions that give the tasks of a model.
        silent: All else that scripts call.
    """

    def __init__(
        self, name: str, histories: tuple[str, ...], tasks: tuple[str, ...], silent: tuple[str, ...]
    ) -> None:
        self._name = name
        self._histories, self._tasks, self._silent = histories, tasks, silent

    def __getattr__(self, name: str) -> Any:
        where = f"{self._name}.{name}"
        if name in self._histories:
            return lambda file=None, *_, **__: History(where, file)
        if name in self._tasks:
            return lambda *_, **__: self._no_tasks(where)
        if name in self._silent:
            log.warning("%s does nothing: %s", where, INSTEAD)
            return _Silent()
        if name in ("task", "tuner", "measure", "record", "relay_integration"):
            return self  # autotvm.task.extract_from_program
        raise AttributeError(f"{self._name} is not known to have {name!r}")

    def _no_tasks(self, where: str) -> Any:
        log.warning("%s gives no tasks: %s", where, INSTEAD)
        return ([], []) if self._name == "auto_scheduler" else []

    def load_from_file(self, file: str) -> list[Record]:
        """The records of a log.

        Raises:
            UnityError: It is none.
        """
        return read_log(file)


autotvm = Tuner(
    "autotvm",
    ("apply_history_best", "apply_graph_best", "ApplyHistoryBest", "FallbackContext"),
    ("extract_from_program", "extract_from_multiple_program"),
    ("LocalBuilder", "LocalRunner", "RPCRunner", "measure_option", "callback", "XGBTuner",
     "GATuner", "RandomTuner", "GridSearchTuner", "pick_best", "create", "get_config",
     "DPTuner", "PBQPTuner", "tophub"),
)  # fmt: skip
auto_scheduler = Tuner(
    "auto_scheduler",
    ("ApplyHistoryBest", "ApplyHistoryBestOrSample"),
    ("extract_tasks",),
    ("TaskScheduler", "TuningOptions", "LocalRunner", "LocalBuilder", "RecordToFile",
     "LocalRPCMeasureContext", "SearchTask", "HardwareParams", "SketchPolicy"),
)  # fmt: skip
meta_schedule = Tuner(
    "meta_schedule",
    ("Database", "database"),
    ("extract_tasks",),
    ("relay_integration", "tune_relay", "TuneConfig", "Runner", "Builder", "Profiler"),
)
