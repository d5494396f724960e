"""Measures what exactness costs in quality: compares training with float32, and measures the bias of
rounding. The page also shows the errors of elementary functions, from tests/vectors.

`python -m benchmarks.quality` measures and writes docs/numerics.json, docs/numerics.md and docs/figures/.
With `--page` it measures nothing, and writes the page and its figures from the numbers that are kept. With
`--convolutions` it measures only the bits of convolutions, which needs timm and torchvision. Speed is
measured elsewhere, except for convolutions.
"""
