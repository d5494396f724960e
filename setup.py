"""What of the package is compiled: protocol/numerics/kernels/native and protocol/commitments/native, both optional.

No -march: the library picks its instruction set at run time. Contraction into fused multiply-adds and fast-math would
change bits, so both are off by name, whatever Python's own flags say.
"""

import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

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
    *("elements_body", "fused", "fused_body", "lists", "mode", "places", "problem", "quantise", "scalar"),
    *("schedule", "scratch", "sets", "slices", "sums", "tile", "variant", "variant_body"),
)

# Newer compilers may call an older assembler, which then knows no tiles.
TILES = '__attribute__((target("amx-int8"))) void f() { asm volatile("tdpbssd %tmm0, %tmm1, %tmm2"); }\n'


class Build(build_ext):
    """Leaves out what the machine's tools cannot build, instead of all of the library."""

    def build_extension(self, ext: Extension) -> None:
        if ext.name.startswith("protocol.numerics") and not self._builds(TILES):
            ext.define_macros = [*ext.define_macros, ("ASSAY_NO_AMX", None)]
        super().build_extension(ext)

    def _builds(self, source: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "tried.cpp")
            file.write_text(source)
            try:
                return bool(self.compiler.compile([str(file)], output_dir=folder))
            except CompileError:
                return False


setup(
    cmdclass={"build_ext": Build},
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
    ],
)
