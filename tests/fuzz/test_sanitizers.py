"""The compiled libraries under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer, with random
calls.

The sources are built again with the sanitizers and a driver (native/driver.cpp) that needs neither Python nor
torch. It allocates buffers of exactly their size and runs every instruction set on one thread and on two. It
makes every call from a thread that flushes subnormals and rounds upward, and from one in the default mode.
Planted errors in every group of functions show that errors are detected.

ThreadSanitizer is not used. libgomp is not built with it, so it does not see libgomp's barriers and reports a
race for every value that one thread packs and another multiplies. Comparisons of one thread with two, here
and in test_products.py, show that no result depends on the number of threads.
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
from protocol.program.library.lanes import BLOCKS
from tests.fuzz import layers, recorded
from tests.fuzz.plants import (
    OTHER_MODE,
    PLANTS,
    attentions,
    cells,
    channels,
    convolutions,
    elements,
    functions,
    hashes,
    lanes,
    products,
    words,
)
from tests.fuzz.recorded import Kind

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1_800)]

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "protocol" / "numerics" / "kernels" / "native"
HASHER = ROOT / "protocol" / "commitments" / "native" / "sha256.cpp"
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
    """The C++ compiler. Skips the test if there is none, or no compiled library to take results from."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    if found is None:
        pytest.skip("no C++ compiler")
    if native.library() is None:
        pytest.skip("no compiled library to take the right results from")
    return found


def compiled(cxx: str, sources: Path, names: Iterable[str], folder: Path, flags: Iterable[str]) -> list[Path]:
    """Compile the sources to object files, two at a time."""
    folder.mkdir(parents=True, exist_ok=True)

    elsewhere = {DRIVER.name: DRIVER, HASHER.name: HASHER}

    def one(name: str) -> Path:
        source = sources / name if (sources / name).is_file() else elsewhere[name]
        made = run([cxx, *flags, f"-I{sources}", "-c", source, "-o", folder / f"{name}.o"])
        assert made.returncode == 0, made.stderr
        return folder / f"{name}.o"

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, names))


def library_sources() -> list[str]:
    return sorted(path.name for path in SOURCES.glob("*.cpp"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Object files of the libraries and of the driver, with the sanitizers."""
    cxx, folder = compiler(), tmp_path_factory.mktemp("sanitized")
    tiny = folder / "tiny.cpp"
    tiny.write_text("int main() { return 0; }\n")
    ready = run([cxx, *FLAGS, *SANITIZERS, tiny, "-o", folder / "tiny"])
    if ready.returncode != 0 or run([folder / "tiny"], **ENVIRONMENT).returncode != 0:
        pytest.skip("the compiler has no address and undefined-behaviour sanitizers that run here")
    names = [*library_sources(), HASHER.name, DRIVER.name]
    return compiled(cxx, SOURCES, names, folder, (*FLAGS, *SANITIZERS))


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


@pytest.mark.parametrize("seed", range(2))
def test_operations_on_elements_read_and_write_what_is_theirs(
    driver: Path, tmp_path: Path, seed: int
) -> None:
    passes(driver, recorded.elements(Random(f"sanitized elements {seed}"), 12), tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_lstm_cells_read_and_write_what_is_theirs(driver: Path, tmp_path: Path, seed: int) -> None:
    passes(driver, recorded.cells(Random(f"sanitized cells {seed}"), 20), tmp_path)


@pytest.mark.parametrize("block", BLOCKS)
def test_lanes_read_and_write_what_is_theirs(driver: Path, tmp_path: Path, block: int) -> None:
    passes(driver, layers.lanes(Random(f"sanitized lanes {block}"), 20, block), tmp_path)


def test_random_words_stay_in_their_place(driver: Path, tmp_path: Path) -> None:
    passes(driver, recorded.random_words(Random("sanitized words"), 40), tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_convolutions_read_and_write_what_is_theirs(driver: Path, tmp_path: Path, seed: int) -> None:
    passes(driver, layers.convolutions(Random(f"sanitized convolutions {seed}"), 25), tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_attention_reads_and_writes_what_is_its_own(driver: Path, tmp_path: Path, seed: int) -> None:
    passes(driver, layers.attentions(Random(f"sanitized attention {seed}"), 5), tmp_path)


def test_batch_norm_reads_and_writes_what_is_its_own(driver: Path, tmp_path: Path) -> None:
    passes(driver, layers.channels(Random("sanitized channels"), 40), tmp_path)


def test_the_hasher_reads_and_writes_what_is_its_own(driver: Path, tmp_path: Path) -> None:
    calls = layers.hashes(Random("sanitized hashes"))
    if not calls:
        pytest.skip("this processor has no instructions for SHA-256")
    passes(driver, calls, tmp_path)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_error_is_seen(built: list[Path], tmp_path: Path, plant: str) -> None:
    p = PLANTS[plant]
    calls = p.calls()
    if not calls:
        pytest.skip("this processor does not run what it is planted in")
    shutil.copytree(SOURCES, tmp_path / "planted")
    shutil.copy(HASHER, tmp_path / "planted")
    body = tmp_path / "planted" / p.file
    before, *after = body.read_text().split(p.right)
    assert len(after) > p.number
    after[p.number] = p.wrong + after[p.number]
    for k in range(len(after)):
        after[k] = after[k] if k == p.number else p.right + after[k]
    body.write_text(before + "".join(after))
    (changed,) = compiled(
        compiler(), tmp_path / "planted", [p.source], tmp_path / "objects", (*FLAGS, *SANITIZERS)
    )
    planted = linked([changed if path.name == changed.name else path for path in built], tmp_path / "driver")
    (tmp_path / "calls").write_bytes(b"".join(calls))
    done = run([planted, tmp_path / "calls"], **ENVIRONMENT)
    assert done.returncode not in (0, 2)
    assert p.report in done.stderr, done.stderr[-4000:]
    assert p.report == OTHER_MODE or p.file in done.stderr


def test_calls_of_every_kind_are_made() -> None:
    made = (products(), functions(), elements(), cells(), lanes(), words(), attentions(), convolutions())
    kinds = {Kind(int.from_bytes(c[:8], "little")) for calls in (*made, channels()) for c in calls}
    hashed = {Kind.SHA256, Kind.SHA256_SALTED}
    assert kinds | hashed == set(Kind)
    assert {Kind(int.from_bytes(c[:8], "little")) for c in hashes()} in (hashed, set())


def test_a_wrong_bit_is_seen(driver: Path, tmp_path: Path) -> None:
    calls = recorded.random_words(Random("a wrong bit"), 2)
    calls[-1] = calls[-1][:-4] + bytes([calls[-1][-4] ^ 1]) + calls[-1][-3:]
    (tmp_path / "calls").write_bytes(b"".join(calls))
    done = run([driver, tmp_path / "calls"], **ENVIRONMENT)
    assert done.returncode == 1
    assert f"call {len(calls) - 1} of kind 11: wrong bits from" in done.stderr
