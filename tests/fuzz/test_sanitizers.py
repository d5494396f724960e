"""The compiled library under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer, driven by the fuzz.

The sources are built once more with the sanitizers and a driver (native/driver.cpp) that knows neither Python nor
torch: buffers of exactly their size, every instruction set, one thread and two. Planted errors show that it sees.

ThreadSanitizer is not among them: it does not know the barriers of libgomp, which is not built with it, and so calls
every value that one thread packs and another multiplies a race. That no result depends on the threads is what the
comparison on one and on two threads says here and in test_products.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from protocol.numerics.kernels import native
from tests.fuzz import recorded

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1_800)]

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "protocol" / "numerics" / "kernels" / "native"
DRIVER = Path(__file__).with_name("native") / "driver.cpp"
FLAGS = (
    *("-std=c++17", "-O1", "-g1", "-fopenmp", "-fno-fast-math", "-ffp-contract=off"),
    *("-fno-math-errno", "-fno-trapping-math"),
)
SANITIZERS = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all")
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "OMP_WAIT_POLICY": "PASSIVE",
}


def run(command: Iterable[object], **environment: str) -> subprocess.CompletedProcess[str]:
    text = [str(part) for part in command]
    return subprocess.run(
        text, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def compiler() -> str:
    """A C++ compiler whose programs run with these sanitizers, or a skip that says what is missing."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    if found is None:
        pytest.skip("no C++ compiler")
    if native.library() is None:
        pytest.skip("no compiled library to take the right results from")
    return found


def compiled(cxx: str, sources: Path, names: Iterable[str], folder: Path, flags: Iterable[str]) -> list[Path]:
    """Object files of some sources, two at a time."""
    folder.mkdir(parents=True, exist_ok=True)

    def one(name: str) -> Path:
        source = DRIVER if name == DRIVER.name else sources / name
        made = run([cxx, *flags, f"-I{sources}", "-c", source, "-o", folder / f"{name}.o"])
        assert made.returncode == 0, made.stderr
        return folder / f"{name}.o"

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, names))


def library_sources() -> list[str]:
    return sorted(path.name for path in SOURCES.glob("*.cpp"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Objects of the library and of the driver with the sanitizers in them."""
    cxx, folder = compiler(), tmp_path_factory.mktemp("sanitized")
    tiny = folder / "tiny.cpp"
    tiny.write_text("int main() { return 0; }\n")
    ready = run([cxx, *FLAGS, *SANITIZERS, tiny, "-o", folder / "tiny"])
    if ready.returncode != 0 or run([folder / "tiny"], **ENVIRONMENT).returncode != 0:
        pytest.skip("the compiler has no address and undefined-behaviour sanitizers that run here")
    return compiled(cxx, SOURCES, [*library_sources(), DRIVER.name], folder, (*FLAGS, *SANITIZERS))


def linked(objects: Iterable[Path], to: Path, flags: Iterable[str] = (*FLAGS, *SANITIZERS)) -> Path:
    made = run([compiler(), *flags, *objects, "-o", to])
    assert made.returncode == 0, made.stderr
    return to


@pytest.fixture(scope="module")
def driver(built: list[Path]) -> Path:
    return linked(built, built[0].with_name("driver"))


def passes(driver: Path, calls: list[bytes], folder: Path) -> None:
    (folder / "calls").write_bytes(b"".join(calls))
    done = run([driver, folder / "calls"], **ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout) == len(calls)


@pytest.mark.parametrize("seed", range(3))
def test_products_read_and_write_what_is_theirs(driver: Path, tmp_path: Path, seed: int) -> None:
    passes(driver, recorded.products(Random(f"sanitized products {seed}"), 80, 8_000), tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_fused_functions_read_and_write_what_is_theirs(driver: Path, tmp_path: Path, seed: int) -> None:
    passes(driver, recorded.fused(Random(f"sanitized functions {seed}"), 25), tmp_path)


def test_random_words_stay_in_their_place(driver: Path, tmp_path: Path) -> None:
    passes(driver, recorded.random_words(Random("sanitized words"), 40), tmp_path)


PLANTS = {
    "a term beyond an odd number": (
        "if (!whole_strip || k + 1 == s.terms) {",
        "if (!whole_strip) {",
        "heap-buffer-overflow",
    ),
    "a strip beyond the last row": (
        "const bool whole_strip = first * PANEL + STRIP <= s.rows;",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows + 8;",
        "heap-buffer-overflow",
    ),
    "a square that overflows": (
        "return (q * q + 3) >> 2;",
        "return (q * q * 64 + 3) >> 8;",
        "signed integer overflow",
    ),
}
"""Line of variant_body.h, what is planted instead of it, and what the sanitizers call it."""


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_error_is_seen(built: list[Path], tmp_path: Path, plant: str) -> None:
    right, wrong, report = PLANTS[plant]
    shutil.copytree(SOURCES, tmp_path / "planted")
    body = tmp_path / "planted" / "variant_body.h"
    assert right in body.read_text()
    body.write_text(body.read_text().replace(right, wrong))
    name = "variant_portable.cpp"
    (changed,) = compiled(
        compiler(), tmp_path / "planted", [name], tmp_path / "objects", (*FLAGS, *SANITIZERS)
    )
    planted = linked([changed if path.name == changed.name else path for path in built], tmp_path / "driver")
    (tmp_path / "calls").write_bytes(b"".join(recorded.products(Random("sanitized products 0"), 80, 8_000)))
    done = run([planted, tmp_path / "calls"], **ENVIRONMENT)
    assert done.returncode not in (0, 2)
    assert report in done.stderr, done.stderr[-4000:]
    assert "variant_body.h" in done.stderr


def test_a_wrong_bit_is_seen(driver: Path, tmp_path: Path) -> None:
    calls = recorded.random_words(Random("a wrong bit"), 2)
    calls[-1] = calls[-1][:-4] + bytes([calls[-1][-4] ^ 1]) + calls[-1][-3:]
    (tmp_path / "calls").write_bytes(b"".join(calls))
    done = run([driver, tmp_path / "calls"], **ENVIRONMENT)
    assert done.returncode == 1
    assert f"call {len(calls) - 1} of kind 11: wrong bits from" in done.stderr
