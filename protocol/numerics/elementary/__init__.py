"""Elementary functions (arithmetic.md section 6). Each is a fixed list of the operations of arithmetic.md
section 2.

Each function is written once, against `Operations`. So the fast, the plain-integer and the traced version
give the same bits by construction. No platform exp, log, tanh, erf, sin, cos, rsqrt, frexp, ldexp or pow is
involved. The measured worst errors over all 2^32 inputs are in `tests/vectors/elementary_errors.json`.
"""

from protocol.numerics.elementary.error_function import erf
from protocol.numerics.elementary.exponential import exp, log
from protocol.numerics.elementary.hyperbolic import sigmoid, tanh
from protocol.numerics.elementary.operations import Operations
from protocol.numerics.elementary.root import rsqrt
from protocol.numerics.elementary.trigonometric import cos, sin

__all__ = ["Operations", "cos", "erf", "exp", "log", "rsqrt", "sigmoid", "sin", "tanh"]
