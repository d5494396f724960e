"""The quality cost of exactness: training compared with float32, bias cases, and elementary functions'
errors.

`python -m benchmarks.quality` measures and writes docs/numerics.json, docs/numerics.md and docs/figures/.
With `--page` it only writes the page from the measured numbers. With `--convolutions` it only measures the
bits of convolutions, which needs timm and torchvision. Speed is measured elsewhere, except for convolutions.
"""
