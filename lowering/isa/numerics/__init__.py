"""How instructions add: models of the tensor cores' sums, bit for bit, as pure functions on numpy arrays.

``accumulate(a, b, c, model("sm_90", "float16", "float16", "float32", 16))`` is what an H100 gives.  Values come
decoded, as float64; registers, layouts and instructions may not enter.
"""

from .evaluate import accumulate
from .formats import FORMATS, Format, bits, drop_to_tfloat32
from .lookup import NUMERICS, check_numerics, model
from .record import Model

__all__ = [
    "FORMATS",
    "NUMERICS",
    "Format",
    "Model",
    "accumulate",
    "bits",
    "check_numerics",
    "drop_to_tfloat32",
    "model",
]
