"""The rules of `lowering`, one file per family of ATen operations. Importing this package registers them all."""

from protocol.program.capture.ops import contractions, losses, pointwise, reductions, scatter, views

__all__ = ["contractions", "losses", "pointwise", "reductions", "scatter", "views"]
