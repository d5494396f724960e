"""What of the package is compiled: protocol/numerics/kernels/native and protocol/commitments/native, both optional.

No -march: the library picks its instruction set at run time. Contraction into fused multiply-adds and fast-math would
change bits, so both are off by name, whatever Python's own flags say.

The libraries hold neither symbols for a debugger nor a path of the machine that built them: two builds of one source by
one compiler are equal, byte for byte, wherever they are made.
"""

import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

CONTRACTS = "protocol/chain/contracts"
NATIVE = "protocol/numerics/kernels/native"
FILES = (
    "product",
    "fused",
    "attention",
    "channels",
    "convolution",
    "lanes",
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
    *("convolution_depthwise", "convolution_phases", "convolution_positions", "convolution_shared"),
    *("convolution_weights", "depthwise_body", "divide"),
    *("elements_body", "fused", "fused_body", "lanes", "lanes_body", "lists", "mode", "places", "problem"),
    *("quantise", "scalar", "schedule", "scratch", "sets", "slices", "sums", "tile"),
    *("variant", "variant_body"),
)

REPRODUCIBLE = ["-g0", f"-ffile-prefix-map={Path.cwd()}=."]
STRIPPED = ["-s"] if sys.platform == "linux" else []

# Newer compilers may call an older assembler, which then knows no tiles.
TILES = '__attribute__((target("amx-int8"))) void f() { asm volatile("tdpbssd %tmm0, %tmm1, %tmm2"); }\n'


class Build(build_ext):
    """Compiles files side by side; leaves out what the machine's tools cannot build, instead of all of the library."""

    def build_extension(self, ext: Extension) -> None:
        if ext.name.startswith("protocol.numerics") and not self._builds(TILES):
            ext.define_macros = [*ext.define_macros, ("ASSAY_NO_AMX", None)]
        one_by_one = self.compiler.compile

        def side_by_side(sources: list[str], **options: object) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return [
                    done
                    for found in pool.map(lambda file: one_by_one([file], **options), sources)
                    for done in found
                ]

        self.compiler.compile = side_by_side
        try:
            super().build_extension(ext)
        finally:
            self.compiler.compile = one_by_one

    def _builds(self, source: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "tried.cpp")
            file.write_text(source)
            try:
                return bool(self.compiler.compile([str(file)], output_dir=folder))
            except CompileError:
                return False


class Modules(build_py):
    """Refuses to build a package without the contracts, which would install and then not work."""

    def run(self) -> None:
        if not self.editable_mode and not Path(CONTRACTS, "TaskMarket.json").is_file():
            sys.exit(
                f"{CONTRACTS}: expected the contract data that the package holds, got none; run `make contracts`"
            )
        super().run()


setup(
    cmdclass={"build_ext": Build, "build_py": Modules},
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
                *REPRODUCIBLE,
            ],
            extra_link_args=["-fopenmp", *STRIPPED],
            language="c++",
            optional=True,  # no compiler, no OpenMP: the package works without
        ),
        Extension(
            "protocol.commitments._native",
            sources=["protocol/commitments/native/sha256.cpp"],
            extra_compile_args=["-std=c++17", "-O3", "-fvisibility=hidden", *REPRODUCIBLE],
            extra_link_args=STRIPPED,
            language="c++",
            optional=True,
        ),
    ],
)
