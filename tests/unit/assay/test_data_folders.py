"""Folders of images in `ImageFolder`'s order, and text packed into rows of tokens."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from assay import data
from assay.errors import DataError, PackageMissing
from protocol.capture.inputs.dataset import committed

RANDOM = np.random.default_rng(0)


def image(path: Path, height: int = 4, width: int = 6) -> np.ndarray[Any, Any]:
    """Write an image of random colours to a file; returns its pixels, [3, height, width]."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = RANDOM.integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels.transpose(2, 0, 1)


def test_images_come_in_the_order_of_classes_and_names(tmp_path: Path) -> None:
    names = ["b/2.png", "a/z.PNG", "b/10.png", "B/1.png", "a/deep/1.png", "a/b.bmp"]
    pixels = {name: image(tmp_path / name) for name in names}
    (tmp_path / "a" / "notes.txt").write_text("left out")
    (tmp_path / "labels.csv").write_text("left out")
    found = data.images(tmp_path)
    ordered = ["B/1.png", "a/b.bmp", "a/z.PNG", "a/deep/1.png", "b/10.png", "b/2.png"]
    np.testing.assert_array_equal(found["x"], [pixels[name] for name in ordered])
    assert found["y"].tolist() == [0, 1, 1, 1, 2, 2]
    assert (str(found["x"].dtype), str(found["y"].dtype)) == ("uint8", "int64")
    assert committed(found)["x"].shape == (6, 3, 4, 6)


def test_images_are_resized(tmp_path: Path) -> None:
    same = image(tmp_path / "a" / "1.png", 4, 6)
    image(tmp_path / "a" / "2.png", 9, 5)
    Image.new("L", (8, 8), 7).save(tmp_path / "a" / "3.png")
    found = data.images(tmp_path, size=(4, 6))
    np.testing.assert_array_equal(found["x"][0], same)
    assert found["x"].shape == (3, 3, 4, 6)
    assert set(found["x"][2].reshape(-1).tolist()) == {7}


def uneven(folder: Path) -> None:
    image(folder / "a" / "1.png")
    image(folder / "a" / "2.png", 5, 6)


def deep(folder: Path) -> None:
    (folder / "a").mkdir()
    Image.fromarray(np.full((4, 6), 40_000, np.uint16)).save(folder / "a" / "1.png")


def broken(folder: Path) -> None:
    image(folder / "a" / "1.png")
    (folder / "a" / "2.png").write_bytes((folder / "a" / "1.png").read_bytes()[:60])


def other(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "1.png").write_text("%!PS-Adobe-3.0 EPSF-3.0")


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        (uneven, {}, r"2\.png: expected 4 x 6 pixels .*1\.png has, got 5 x 6; resize all by size=\(4, 6\)"),
        (deep, {}, r"1\.png: expected 8 bits, got mode I;16"),
        (broken, {}, r"2\.png: expected an image, got (OSError|SyntaxError)"),
        (other, {}, r"1\.png: expected an image, got UnidentifiedImageError"),
        (uneven, {"size": (4, 0)}, "size: expected a whole number from 1 on, got 0"),
        (uneven, {"size": 4}, r"size: expected \(height, width\), got 4"),
        (uneven, {"size": (4, 4), "most": 95}, "at most 95 bytes when unpacked, got 96; .*resize"),
        (lambda _: None, {}, "expected a folder for each class, got none"),
        (lambda folder: (folder / "a").mkdir(), {}, "a: expected images of a class, got none"),
    ],
)
def test_images_are_refused(
    tmp_path: Path, make: Callable[[Path], None], arguments: dict[str, Any], said: str
) -> None:
    make(tmp_path)
    with pytest.raises(DataError, match=said):
        data.images(tmp_path, **arguments)


def test_a_file_and_nothing_are_no_folder_of_images(tmp_path: Path) -> None:
    image(tmp_path / "1.png")
    for name, said in (("1.png", "got a file"), ("2", "got no such file")):
        with pytest.raises(DataError, match=said):
            data.images(tmp_path / name)


def test_without_pillow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image(tmp_path / "a" / "1.png")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(PackageMissing, match=r"pip install 'assay\[data\]'"):
        data.images(tmp_path)


# ------------------------------------------------------------------ text


def files(folder: Path) -> list[Path]:
    paths = [folder / "b.txt", folder / "a.txt"]
    paths[0].write_bytes(b"hello")
    paths[1].write_bytes("wörld\n".encode())
    return paths


def test_bytes_are_packed_end_to_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = data.text(files(tmp_path), 5)["x"]
    assert found.dtype == np.uint8
    assert found.tobytes() == "hellowörl".encode()
    assert caplog.messages == ["text: the last 2 of 12 tokens do not fill a row of 5 and are left out"]


def test_one_file_of_bytes_is_mapped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = data.text(files(tmp_path)[0], 5)
    assert committed(found)["x"].data_ptr() == found["x"].ctypes.data
    assert isinstance(found["x"], np.memmap)
    assert not caplog.messages


def test_a_tokenizer_makes_tokens_of_text(tmp_path: Path) -> None:
    found = data.text(files(tmp_path), 11, lambda text: [ord(letter) for letter in text])["x"]
    assert found.dtype == np.int32
    assert "".join(map(chr, found[0])) == "hellowörld\n"


@pytest.mark.parametrize(
    ("paths", "length", "tokenizer", "said"),
    [
        ([], 5, None, "at least one file, got none"),
        (["c.txt"], 5, None, "c.txt: .* got no such file"),
        (["."], 5, None, "expected a file, got a folder; name the file itself"),
        (["a.txt"], 0, None, "length: expected a whole number"),
        (["a.txt"], 8, None, "expected 8 tokens, to fill a row, got 7"),
        (["a.txt"], 5, lambda _: ["w"], r"a\.txt: expected a list of integers .* got <U1 \(1,\)"),
        (["a.txt"], 5, lambda _: [-1, 2], r"a\.txt: expected a list of integers .* got from -1 to 2"),
        (["a.txt"], 5, lambda text: text.nothing, r"a\.txt: expected tokens, got AttributeError"),
        (["latin.txt"], 5, list, r"latin\.txt, byte 1: expected UTF-8"),
        (["empty.txt"], 5, None, r"empty\.txt: .* got an empty file"),
    ],
)
def test_text_is_refused(tmp_path: Path, paths: list[str], length: int, tokenizer: Any, said: str) -> None:
    files(tmp_path)
    (tmp_path / "latin.txt").write_bytes("wörld".encode("latin-1"))
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DataError, match=said):
        data.text([tmp_path / path for path in paths], length, tokenizer)
