"""On a CUDA device: bits beside the CPU's, speed beside float32's, and the tests, without anything installed.

`python3 -m benchmarks.cuda --all` runs from a checkout on a GPU machine with torch, triton, numpy and pytest, and
writes one JSON file.

| module | what it is |
|---|---|
| `__main__` | the order of the parts, their time, and the file |
| `child` | one part in its own process, so that no part can stop another |
| `cells` | one value, or the error that came instead |
| `machine` | the device and the versions |
| `native` | the compiled CPU kernels, built where there is a compiler |
| `self_tests` | what every kernel's self-test finds |
| `bits` | state roots of training runs, CPU beside CUDA |
| `times` | products and steps; the rows of `python -m benchmarks` |
| `tiles` | tile sizes of the Triton product |
| `models` | what is trained |
| `outcomes` | a pytest plugin: the outcome of each test as it ends |
"""
