"""The arithmetic every party must agree on, bit for bit (arithmetic.md), on torch tensors.

Pure functions of tensors; no program, no tree, no chain. A module imports only those above it in this table:

| modules | what they hold |
|---|---|
| `types`, `reference`, `elementary` | value types; the same meanings in plain integers; lists of elementary functions |
| `elementwise`, `rows`, `reductions`, `indexing`, `philox_torch`, `torch_operations`, `elementary_blocks` | torch alone |
| `kernels`, `cuda` | faster implementations of the same bits, their self-tests and their dispatch |
| `operations`, `sums`, `contract`, `philox`, `elementary_torch` | what programs call: a kernel where one may be used |
| `self_check` | whether this machine computes these bits at all |
"""
