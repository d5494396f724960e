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
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from protocol.numerics.kernels import native
from protocol.program.library.lanes import BLOCKS
from tests.fuzz import layers, recorded
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


class Plant(NamedTuple):
    """A planted error: the file, its right line, the wrong one, the source to recompile, what the driver or
    the sanitizers report, and the calls.
    """

    file: str
    right: str
    wrong: str
    source: str
    report: str
    calls: Callable[[], list[bytes]]
    number: int = 0
    """Which occurrence of the right line is replaced, counted from 0."""


def products() -> list[bytes]:
    return recorded.products(Random("sanitized products 0"), 80, 8_000)


def sliced() -> list[bytes]:
    return products() if "amx" in native.variants() else []


def attentions() -> list[bytes]:
    return layers.attentions(Random("planted attention"), 5)


def convolutions() -> list[bytes]:
    return layers.convolutions(Random("planted convolutions"), 20)


def lone_convolutions() -> list[bytes]:
    return layers.convolutions(Random("planted convolutions"), 20, alone=True)


def channels() -> list[bytes]:
    return layers.channels(Random("planted channels"), 20)


def functions() -> list[bytes]:
    return recorded.fused(Random("planted functions"), 6)


def elements() -> list[bytes]:
    return recorded.elements(Random("planted elements"), 3)


def cells() -> list[bytes]:
    return recorded.cells(Random("planted cells"), 8)


def lanes() -> list[bytes]:
    return [c for block in (1, 8) for c in layers.lanes(Random("planted lanes"), 4, block)]


def words() -> list[bytes]:
    return recorded.random_words(Random("planted words"), 10)


def hashes() -> list[bytes]:
    return layers.hashes(Random("planted hashes"))


BEYOND, OTHER_MODE = "heap-buffer-overflow", "of another floating-point mode"
PORTABLE = "variant_portable.cpp"
PLANTS = {
    "a term beyond an odd number": Plant(
        "variant_body.h",
        "if (!whole_strip || k + 1 == s.terms) {",
        "if (!whole_strip) {",
        PORTABLE,
        BEYOND,
        products,
    ),
    "a strip beyond the last row": Plant(
        "variant_body.h",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows;",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows + 8;",
        PORTABLE,
        BEYOND,
        products,
    ),
    "a square that overflows": Plant(
        "variant_body.h",
        "return static_cast<uint32_t>(q * q);",
        "return static_cast<uint32_t>(q * q * 64);",
        PORTABLE,
        "signed integer overflow",
        products,
    ),
    "digits of a strip beyond the last row": Plant(
        "variant_amx.cpp",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows;",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows + 8;",
        "variant_amx.cpp",
        BEYOND,
        sliced,
    ),
    "digits of terms beyond a row's last": Plant(
        "variant_amx.cpp",
        "if (count < SLICE_TERMS) std::memcpy(edge",
        "if (count < 2) std::memcpy(edge",
        "variant_amx.cpp",
        BEYOND,
        sliced,
    ),
    "a key beyond a mask's last": Plant(
        "attention.cpp",
        "(row[n - 1] != 0) == hides",
        "(row[n] != 0) == hides",
        "attention.cpp",
        BEYOND,
        attentions,
    ),
    "a query beyond the last": Plant(
        "attention.cpp",
        "for (int64_t i = 0; i < M_; ++i)\n                f_.integers",
        "for (int64_t i = 0; i <= M_; ++i)\n                f_.integers",
        "attention.cpp",
        BEYOND,
        attentions,
    ),
    "a row of results beyond a panel's last": Plant(
        "convolution_positions.h",
        "end = std::min(first + PANEL_X, m), plane",
        "end = first + PANEL_X, plane",
        "convolution.cpp",
        BEYOND,
        lone_convolutions,
    ),
    "a gradient of weights beyond a panel's last": Plant(
        "convolution_weights.h",
        "for (int row = 0; row < rows; ++row)",
        "for (int row = 0; row < PANEL_X; ++row)",
        "convolution.cpp",
        BEYOND,
        lone_convolutions,
    ),
    "a sample beyond the last": Plant(
        "convolution_weights.h",
        "const float *high = 2 * couple + 1 < p.samples ? low + channels * whole : nullptr;",
        "const float *high = low + channels * whole;",
        "convolution.cpp",
        BEYOND,
        convolutions,
    ),
    "an element beyond a channel's last": Plant(
        "channels_body.h",
        "for (int64_t i = 0; i < count; ++i) sum += fixed30(term(i), s);",
        "for (int64_t i = 0; i <= count; ++i) sum += fixed30(term(i), s);",
        PORTABLE,
        BEYOND,
        channels,
    ),
    "an element beyond a row's last": Plant(
        "fused_body.h",
        "for (int64_t i = 0; i < columns; ++i) to[i] = g[i] * y[i];",
        "for (int64_t i = 0; i <= columns; ++i) to[i] = g[i] * y[i];",
        PORTABLE,
        BEYOND,
        functions,
    ),
    "an exponential beyond a row's last": Plant(
        "fused_body.h",
        "for (int64_t i = 0; i < n; ++i) powers[i] = list_exp(from[start + i] - largest);",
        "for (int64_t i = 0; i < BLOCK; ++i) powers[i] = list_exp(from[start + i] - largest);",
        PORTABLE,
        BEYOND,
        functions,
    ),
    "a word beyond the last": Plant(
        "philox.cpp",
        "rest < 4 * LANES ? static_cast<int>(rest) : 4 * LANES;",
        "rest < 2 ? static_cast<int>(rest) : 4 * LANES;",
        "philox.cpp",
        BEYOND,
        words,
    ),
    "a word beyond a part's last": Plant(
        "philox.cpp",
        "fill(part, start, start + count, start);",
        "fill(part, start, start + count + 1, start);",
        "philox.cpp",
        BEYOND,
        words,
    ),
    "an operand beyond the last": Plant(
        "elements_body.h",
        "for (int64_t i = 0; i < n; ++i) to[i] = paired",
        "for (int64_t i = 0; i <= n; ++i) to[i] = paired",
        PORTABLE,
        BEYOND,
        elements,
    ),
    "an operand beyond a single one": Plant(
        "elements_body.h",
        "paired<WHICH>(X_ONE ? x0 : x[i], ",
        "paired<WHICH>(x[i], ",
        PORTABLE,
        BEYOND,
        elements,
    ),
    "bytes as far apart as numbers": Plant(
        "fused.cpp",
        "assay::LE ? 1 : sizeof(float);",
        "assay::LE ? 4 : sizeof(float);",
        "fused.cpp",
        BEYOND,
        elements,
    ),
    "a condition beyond the last": Plant(
        "elements_body.h",
        "canonical(condition[i] ? a : b)",
        "canonical(condition[i + 1] ? a : b)",
        PORTABLE,
        BEYOND,
        elements,
    ),
    "a gate beyond a row's last": Plant(
        "fused_body.h",
        "k < count; ++k) block[k] = canonical(x[k] + product[k]);",
        "k < BLOCK; ++k) block[k] = canonical(x[k] + product[k]);",
        PORTABLE,
        BEYOND,
        cells,
    ),
    "a gate's gradient beyond a row's last": Plant(
        "fused_body.h",
        "for (int64_t k = 0; k < count; ++k) {\n                const float dh",
        "for (int64_t k = 0; k <= count; ++k) {\n                const float dh",
        PORTABLE,
        BEYOND,
        cells,
    ),
    "a number beyond a group's last": Plant(
        "lanes_body.h",
        "for (int64_t i = 0; i < size; ++i) kept[i] = canonical(decay",
        "for (int64_t i = 0; i <= size; ++i) kept[i] = canonical(decay",
        PORTABLE,
        BEYOND,
        lanes,
    ),
    "an index where no block has one": Plant(
        "lanes_body.h",
        "if (t.block > 1) t.index",
        "if (t.block > 0) t.index",
        PORTABLE,
        "null pointer",
        lanes,
    ),
    "a place beyond a block's last": Plant(
        "lanes_body.h",
        "if (place(own, k) < t.block) {",
        "if (place(own, k) < 256) {",
        PORTABLE,
        BEYOND,
        lanes,
    ),
    "a message's place beyond a block's last": Plant(
        "lanes_body.h",
        "if (place(inbox[w], k) < t.block)",
        "if (place(inbox[w], k) < 256)",
        PORTABLE,
        "out of bounds for type",
        lanes,
    ),
    "a byte beyond a row's last": Plant(
        "sha256.cpp",
        "std::memcpy(end + 1, row + l * width, width);",
        "std::memcpy(end + 1, row + l * width, width + 1);",
        "sha256.cpp",
        BEYOND,
        hashes,
    ),
    "a piece beyond a row's last": Plant(
        "sha256.cpp",
        "for (int64_t at = 0; at < width; at += PIECE) {",
        "for (int64_t at = 0; at <= width; at += PIECE) {",
        "sha256.cpp",
        BEYOND,
        hashes,
    ),
    **{
        f"its caller's mode in {file} of {source}, {number}": Plant(
            file,
            "const Mode mode;",
            "",
            source,
            OTHER_MODE,
            calls,
            number,
        )
        for file, source, count, calls in (
            ("attention.cpp", "attention.cpp", 2, attentions),
            ("convolution_positions.h", "convolution.cpp", 1, convolutions),
            ("convolution_weights.h", "convolution.cpp", 1, convolutions),
            ("divide.h", "channels.cpp", 1, channels),
            ("divide.h", "fused.cpp", 1, elements),
            ("divide.h", "lanes.cpp", 1, lanes),
        )
        for number in range(count)
    },
}


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
