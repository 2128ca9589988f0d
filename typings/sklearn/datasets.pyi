"""What the tutorials use of scikit-learn, typed."""

import numpy as np
import numpy.typing as npt

class Bunch:
    images: npt.NDArray[np.float64]
    target: npt.NDArray[np.int64]

def load_digits() -> Bunch: ...
