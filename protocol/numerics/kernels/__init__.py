"""Kernels: several implementations of one set of bits, arithmetic.md section 8.

| modules | what they hold |
|---|---|
| `base`, `float64`, `int8`, `compiled` | products |
| `convolution`, `attention`, `fused`, `channels`, `philox` | the other functions of the compiled library (`native`) |
| `*shape_classes` | which calls take the same path through a kernel |
| `*self_test` | what a kernel must compute before it is used |
| `*dispatch` | which kernel a process uses: the fastest that runs here, that ASSAY_KERNELS allows and that has passed |
| `lists` | writes native/lists.h |

Kernels import `elementwise`, `rows` and `reductions`, which call no kernel; self-tests import kernels; dispatch imports
both. `contract`, `operations`, `sums`, `elementary_torch` and `philox` above this package call dispatch.
"""
