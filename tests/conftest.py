"""What holds for every test: which ones run, and that each program they build prints back.

And Hypothesis judges values, not the clock: machines that run tests are slow at times.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.costs import Costs, is_of_everything, seconds_of, unknown
from tests.extras import IMPORT_TORCH, may_need, missing, prepare
from tests.print_back import PrintBack
from tests.rotation import LONGEST, rotate
from unity.ir.module import IRModule

settings.register_profile(
    "unity", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile(
    "seeds", settings.get_profile("unity"), derandomize=False, max_examples=500
)

collect_ignore = list(IMPORT_TORCH) if missing(["torch"]) else []

PRINT_BACK = pytest.StashKey[PrintBack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    ours = parser.getgroup("unity")
    ours.addoption("--extras", action="store_true", help="the tests that need torch and packages")
    ours.addoption("--turn", type=int, default=0, help="which cases of rotated tests run")
    ours.addoption("--costs", action="store_true", help="note what tests take in tests/costs.json")
    ours.addoption("--new-seeds", action="store_true", help="random programs nobody has seen")
    ours.addoption("--every-program", action="store_true", help="read back all that is printed")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # while tests are collected
    if config.getoption("--extras") and (names := missing()):
        raise pytest.UsageError(f"--extras without {', '.join(names)}: CONTRIBUTING.md says how")
    os.environ.setdefault("UNITY_COMPILE_PROCESSES", "1")  # tests run side by side already
    settings.load_profile("seeds" if config.getoption("--new-seeds") else "unity")
    if config.getoption("--costs"):
        config.pluginmanager.register(Costs())
    config.stash[PRINT_BACK] = PrintBack(bool(config.getoption("--every-program")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test that needs more, where those alone run."""
    left_out = config.getoption("--extras") and not may_need(collection_path)
    return True if left_out else None


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    others = prepare(items, bool(config.getoption("--extras")))
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]
    by_cost = is_of_everything(config) or config.getoption("--extras")
    rotate(items, int(config.getoption("--turn") or 0), seconds_of() if by_cost else {})


def pytest_collection_finish() -> None:
    """Collect garbage less often, and pass over what thousands of collected tests hold.

    A fifth of the run went there: programs are many small objects without cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def modules_print_back(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> Iterator[None]:
    built: list[IRModule] = []
    freeze = IRModule.__post_init__

    def record(module: IRModule) -> None:
        freeze(module)
        built.append(module)

    with monkeypatch.context() as patch:
        patch.setattr(IRModule, "__post_init__", record)
        yield
    pytestconfig.stash[PRINT_BACK].check(built)


LONG = 5.0  # seconds; on a machine that does nothing else


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name tests that take long and don't say why, or that nobody noted the time of."""
    reports = [r for r in terminalreporter.getreports("passed") if r.when == "call"]
    for report in reports:
        if report.duration > LONG and "long" not in report.keywords:
            terminalreporter.write_line(
                f"{report.nodeid} took {report.duration:.1f} s: make it shorter, or say why it is "
                'not by @pytest.mark.long("...")'
            )
    if is_of_everything(config) and not config.getoption("--costs"):
        took = [(r.nodeid, r.duration) for r in terminalreporter.getreports("passed")]
        if tests := unknown(took, seconds_of(), LONGEST):
            terminalreporter.write_line(
                f"{len(tests)} tests over {LONGEST} s have no row in tests/costs.json and run "
                f"whole each time: run their files with --costs. {' '.join(tests[:5])} ..."
            )
