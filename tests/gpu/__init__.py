"""The bits of CUDA: on a GPU where there is one, and by Triton's interpreter where Triton is installed.

`make test-gpu` installs Triton and runs all of it; `make test-heavy` runs what needs Triton and no GPU. Nothing here
needs more than torch, numpy, Triton and pytest, so `python -m benchmarks.cuda --all` runs it unchanged on a GPU
machine.
"""
