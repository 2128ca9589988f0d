from io import BytesIO
from types import TracebackType

import numpy as np
import numpy.typing as npt

class Image:
    def convert(self, mode: str) -> Image: ...
    def __array__(self) -> npt.NDArray[np.uint8]: ...
    def __enter__(self) -> Image: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

def open(fp: BytesIO) -> Image: ...
