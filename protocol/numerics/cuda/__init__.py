"""CUDA: the same bits by Triton kernels, arithmetic.md section 8.

| module | what it gives |
|---|---|
| `product` | products of int8 slices with one rounding in registers: kernels for `kernels.dispatch` |
| `fused` | functions of elements and rows: what `kernels.fused` gives on a CPU |
| `hashing` | SHA-256 tensor roots, computed where the tensors are |
| `launch` | the one door to Triton |
| `device` | the Triton code itself; imported only by those that run it |

Nothing here imports Triton before a tensor on a GPU asks for it. What has run where is in docs/decisions/039-cuda.md.
"""
