"""Whole small training runs on different machines of one kind: instruction sets, threads, kernels. One hash.

`runs` says what is trained, `train` is one run as a separate process, `test_matrix` starts them; `test_cuda` trains
on a GPU, in one process. Models are captured once and travel as bundles: initial weights come from torch's own
generator, which is not the same on every machine.
"""
