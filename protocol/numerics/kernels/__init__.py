"""Kernels: several implementations with the same bits, arithmetic.md section 8.

| modules | contents |
|---|---|
| `base`, `float64`, `int8`, `compiled` | products |
| `convolution`, `attention`, `fused`, `channels`, `philox` | the other functions of the compiled library (`native`) |
| `*shape_classes` | classes of calls that take the same path through a kernel |
| `*self_test` | tests that a kernel must pass before it is used |
| `*dispatch` | choose the fastest kernel that runs here, that ASSAY_KERNELS allows and that has passed |
| `lists` | writes native/lists.h |

Kernels and self-tests import only those modules of `numerics` that call no kernel, such as `elementwise` and
`rows`. Dispatch modules import both kernels and self-tests. The modules `contract`, `operations`, `sums`,
`elementary_torch` and `self_check` of `numerics` call dispatch modules. The module `numerics.philox` calls
the kernel `philox` directly, because that kernel contains its self-test.
"""
