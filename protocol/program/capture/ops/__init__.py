"""The rules of `lowering`, one file per family of ATen operations. Importing this package registers them all."""

from protocol.program.capture.ops import contractions, losses, pointwise, reductions, views

__all__ = ["contractions", "losses", "pointwise", "reductions", "views"]
