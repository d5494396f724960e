"""Checks a CUDA device. It compares the bits of results with those of the CPU, compares the speed of exact
products and steps with that of float32, and runs the tests. It installs nothing.

Run `python3 -m benchmarks.cuda --all` in a checkout on a GPU machine with torch, triton, numpy and pytest. It
writes one JSON file.

| module | what it is |
|---|---|
| `__main__` | the order of the parts, their time, and the file |
| `child` | one part in its own process, so that no part can stop another |
| `cells` | one value, or the error that occurred instead |
| `machine` | the device and the versions |
| `native` | builds the compiled CPU kernels if there is a compiler |
| `self_tests` | results of every kernel's self-test |
| `bits` | state roots of training runs, CUDA against CPU |
| `times` | times of products and steps, also as rows of the table of `python -m benchmarks` |
| `tiles` | tile sizes of the Triton product |
| `lanes` | times of emitting and absorbing messages, relative to an inner step |
| `models` | the models that `bits` trains |
| `outcomes` | a pytest plugin: the outcome of each test as it ends |
"""
