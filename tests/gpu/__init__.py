"""Tests that CUDA computes the CPU's bits: on a GPU, if there is one, and with Triton's interpreter.

`make test-gpu` installs Triton and runs all tests; `make test-heavy` runs those that need Triton but no GPU.
Nothing here needs more than torch, numpy, Triton and pytest, so `python -m benchmarks.cuda --all` runs the
tests unchanged on a GPU machine.
"""
