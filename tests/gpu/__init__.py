"""Tests that CUDA computes the CPU's bits: on a GPU, if there is one, and with Triton's interpreter.

`make test-gpu` installs Triton and runs the tests marked `gpu`; `make test-heavy` runs those that need Triton
but no GPU; `make test` runs the few that need neither. Nothing here needs more than torch, numpy, Triton and
pytest, so `python -m benchmarks.cuda --all` runs the tests unchanged on a GPU machine.
"""
