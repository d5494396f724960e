"""Triton kernels for CUDA that give the same bits as on a CPU: arithmetic.md section 8.

| module | contents |
|---|---|
| `product` | products of int8 slices with one rounding in registers: kernels for `kernels.dispatch` |
| `fused` | functions of elements, rows and lanes: the counterpart of `kernels.fused` on a CPU |
| `hashing` | SHA-256 tensor roots, computed on the device |
| `launch` | starts kernels; no other module outside `device` imports Triton |
| `device` | a folder with the Triton code itself; outside the folder only `launch` imports this code |
| `generate` | writes device/lists.py |

Triton is imported only when a kernel is started or compiled. docs/decisions/039-cuda.md says which kernels
ran on which GPUs.
"""
