from collections.abc import Callable
from types import TracebackType

from . import ModulePassManager

class _Library:
    LLVMPY_GetBufferStart: Callable[[int], int]
    LLVMPY_GetBufferSize: Callable[[int], int]
    LLVMPY_DisposeMemoryBuffer: Callable[[int], None]
    LLVMPY_DisposeNewModulePassManger: Callable[[ModulePassManager], None]

lib: _Library

class OutputString:
    def __enter__(self) -> OutputString: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
