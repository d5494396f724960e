"""The bits of CUDA: on a GPU where there is one, and by Triton's interpreter where Triton is installed.

`make test-gpu` installs Triton and runs all of it. What needs a GPU, or Triton, is skipped elsewhere and says so.
"""
