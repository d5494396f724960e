"""Kernels of the exact product: several ways to one set of bits, arithmetic.md section 8.

`choice.kernel_for` gives the fastest that this machine runs, that ASSAY_KERNELS allows and that has passed its
self-test in this process. Nothing outside `numerics` needs to know which one that is.
"""
