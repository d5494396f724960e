"""What exactness costs in quality: training beside plain float32, the bias cases, the elementary functions' errors.

`python -m benchmarks.quality` measures and writes docs/numerics.json, docs/numerics.md and docs/figures/; with
`--page` only the page, from the measured numbers. With `--convolutions` it measures the bits of convolutions alone,
which takes timm and torchvision. Speed is measured elsewhere but for those.
"""
