"""What of the package is compiled: protocol/numerics/kernels/native and protocol/commitments/native, both optional.

No -march: the library picks its instruction set at run time. Contraction into fused multiply-adds and fast-math would
change bits, so both are off by name, whatever Python's own flags say.
"""

from setuptools import Extension, setup

NATIVE = "protocol/numerics/kernels/native"
FILES = (
    "product",
    "fused",
    "attention",
    "channels",
    "convolution",
    "philox",
    "slices",
    "variant_amx",
    "variant_avx512vnni",
    "variant_avx2",
    "variant_baseline",
    "variant_portable",
)
HEADERS = (
    *("attention", "channels", "channels_body", "convolution", "convolution_body"),
    *("convolution_positions", "convolution_shared", "convolution_weights", "divide"),
    *("elements_body", "fused", "fused_body", "lists", "mode", "problem", "quantise", "scalar"),
    *("schedule", "scratch", "sets", "slices", "sums", "tile", "variant", "variant_body"),
)

setup(
    ext_modules=[
        Extension(
            "protocol.numerics.kernels._native",
            sources=[f"{NATIVE}/{name}.cpp" for name in FILES],
            depends=[f"{NATIVE}/{name}.h" for name in HEADERS],
            extra_compile_args=[
                "-std=c++17",
                "-O3",
                "-fopenmp",
                "-fno-fast-math",
                "-ffp-contract=off",
                "-fno-math-errno",
                "-fno-trapping-math",
                "-fvisibility=hidden",
            ],
            extra_link_args=["-fopenmp"],
            language="c++",
            optional=True,  # no compiler, no OpenMP: the package works without
        ),
        Extension(
            "protocol.commitments._native",
            sources=["protocol/commitments/native/sha256.cpp"],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden"],
            language="c++",
            optional=True,
        ),
    ]
)
