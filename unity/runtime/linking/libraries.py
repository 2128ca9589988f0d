"""Libraries that Unity itself describes: where they are, so that nothing need be registered."""

from __future__ import annotations

from collections.abc import Mapping

from unity.runtime.linking.foreign_library import ForeignLibrary, PackageFiles, ThreadControl

OPENBLAS = ForeignLibrary(
    "openblas",
    (  # the package scipy-openblas64, then what numpy was delivered with
        PackageFiles("scipy_openblas64", "lib", "*openblas*"),
        PackageFiles("numpy", "../numpy.libs", "*openblas*"),
    ),
    forms=("scipy_{}64_", "{}64_", "{}"),
    threads=ThreadControl("openblas_get_num_threads", "openblas_set_num_threads"),
    hint="numpy from PyPI brings it; or pip install scipy-openblas64",
)

LIBRARIES: Mapping[str, ForeignLibrary] = {OPENBLAS.name: OPENBLAS}
