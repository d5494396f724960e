"""The arithmetic every party must agree on, bit for bit (arithmetic.md), on torch tensors.

Pure functions of tensors: no programs, trees or chain. A module imports only from its row and the rows above:

| modules | what they hold |
|---|---|
| `errors`, `types`, `shapes`, `reference`, `elementary` | types, plain-integer reference, operation lists |
| `elementwise`, `rows`, `reductions`, `indexing`, `elementary_blocks`, `torch_operations`, `philox_torch` | torch |
| `kernels`, `cuda` | faster implementations of the same bits, their self-tests and their dispatch |
| `operations`, `sums`, `contract`, `philox`, `elementary_torch` | functions for programs, using kernels |
| `self_check` | checks that this machine computes these bits |
"""
