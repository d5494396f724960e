"""The driver of the sanitizers (native/driver.cpp) declares and calls every function that the compiled libraries
share with Python or with each other. Needs no compiler.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.fuzz.recorded import Kind

ROOT = Path(__file__).parents[2]
NATIVE = (ROOT / "protocol/numerics/kernels/native", ROOT / "protocol/commitments/native")
DRIVER = Path(__file__).with_name("native") / "driver.cpp"
EXPORT = re.compile(r'(?:ASSAY_EXPORT|visibility\("default"\)\)\)) [^(;]*?\b(assay_\w+)\(')
DEFINITION = re.compile(r"^\S.*?\b(assay_\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
LEFT_OUT = {
    "assay_version": "returns a constant",
    "assay_sha256_supported": "asks the processor; takes no arguments and no memory",
}


def without_comments(source: str) -> str:
    return re.sub(r"//.*", "", source)


def functions() -> set[str]:
    """Every function named assay_… that a source file defines, exported or not."""
    sources = [without_comments(path.read_text()) for folder in NATIVE for path in folder.glob("*.cpp")]
    exported, defined = ({n for text in sources for n in form.findall(text)} for form in (EXPORT, DEFINITION))
    assert exported <= defined
    assert {"assay_product", "assay_convolution", "assay_keep_some", *LEFT_OUT} <= defined
    return defined


def test_the_driver_declares_and_calls_every_function() -> None:
    driver = without_comments(DRIVER.read_text())
    declarations, code = driver.split("namespace {", 1)
    declared, called = (set(re.findall(r"\b(assay_\w+)\(", text)) for text in (declarations, code))
    assert declared == called == functions() - LEFT_OUT.keys()


def test_kinds_have_the_drivers_numbers() -> None:
    text = DRIVER.read_text()
    (names,) = re.findall(r"enum Kind \{(.*?), KINDS \};", text, re.DOTALL)
    (results,) = re.findall(r"RESULTS\[KINDS\] = \{(.*?)\};", text, re.DOTALL)
    assert names.replace(",", " ").split() == [kind.name for kind in Kind]
    assert len(results.split(",")) == len(Kind)
