"""Measures what exactness costs in quality: compares exact training with training in float32, and measures
the bias of rounding. The page docs/numerics.md shows the results, and also the errors of elementary
functions, from tests/vectors.

`python -m benchmarks.quality` measures, and writes docs/numerics.json, the page and docs/figures/. With
`--page` it measures nothing, and writes the page and its figures from the numbers in docs/numerics.json. With
`--convolutions` it measures only which bits convolutions need, and how long they take; this needs timm and
torchvision. All other speeds are measured elsewhere.
"""
