"""The arithmetic every party must agree on, bit for bit (arithmetic.md), on torch tensors.

Pure functions of tensors; no program, no tree, no chain. A module imports only its own row and those above it:

| modules | what they hold |
|---|---|
| `types`, `shapes`, `reference`, `elementary` | types; shapes; the meanings in plain integers; lists of functions |
| `elementwise`, `rows`, `reductions`, `indexing`, `elementary_blocks`, `torch_operations`, `philox_torch` | torch |
| `kernels`, `cuda` | faster implementations of the same bits, their self-tests and their dispatch |
| `operations`, `sums`, `contract`, `philox`, `elementary_torch` | what programs call: a kernel where one may be used |
| `self_check` | whether this machine computes these bits at all |
"""
