"""Small training runs have one hash under all instruction sets, numbers of threads and kernels.

`runs` defines the runs, `train` executes some in a separate process, `test_matrix` starts those processes.
`test_cuda` trains on a GPU, in the process of the tests. Models are captured once and passed on as bundles,
because initial weights come from torch's generator, which is not the same on every machine.
"""
