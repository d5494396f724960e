"""What exactness costs in quality: training beside plain float32, the bias cases, the elementary functions' errors.

`python -m benchmarks.quality` measures and writes docs/numerics.json, docs/numerics.md and docs/figures/; with
`--page` only the page, from the measured numbers. Speed is measured elsewhere.
"""
