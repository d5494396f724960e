"""`make release`: two builds of a commit are equal, and solc compiles the standard JSON to the code in the
package.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from protocol.chain.abi import contract
from scripts import contract_data
from scripts import release as script
from scripts.contract_data import COMPILED, DEPLOYED
from scripts.release import LOCK, SUMS, archive, release, require_replaceable, standard_json
from tests.toolchain.project import REPOSITORY, make, make_environment
from tests.toolchain.wheel import run

SMALL = ("StakeVault", "Evidence")
"""Contracts that solc compiles in seconds."""


def test_the_target_builds_with_the_native_forge() -> None:
    said = make(REPOSITORY, "release", "--dry-run")
    assert said.returncode == 0, said.stdout
    assert said.stdout.splitlines()[-1] == ".venv/bin/python scripts/release.py"


def test_an_archive_follows_from_its_files_and_its_time(tmp_path: Path) -> None:
    files = {"b/2.txt": b"two", "a.txt": b"one"}
    for name in ("first.tar.gz", "second.tar.gz"):
        archive(tmp_path / name, dict(reversed(files.items())) if name < "s" else files, 1_700_000_000)
    first, second = ((tmp_path / name).read_bytes() for name in ("first.tar.gz", "second.tar.gz"))
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first))) as packed:
        assert [(entry.name, entry.mtime, entry.uid) for entry in packed] == [
            ("a.txt", 1_700_000_000, 0),
            ("b/2.txt", 1_700_000_000, 0),
        ]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the release script so that it needs no compiler: the wheel is empty, and there are no contracts."""
    monkeypatch.setattr(script, "command", lambda *_arguments: "1700000000")
    monkeypatch.setattr(contract_data, "write", lambda *_arguments: None)
    monkeypatch.setattr(script, "contract_files", lambda _compiled: {})
    monkeypatch.setattr(
        script, "python_packages", lambda _source, out, _time: (out / "assay-1-x.whl").touch()
    )


@pytest.mark.usefixtures("quick")
def test_a_release_has_the_lock_and_the_sums_of_all_its_files(tmp_path: Path) -> None:
    committed = ["git", "show", f"HEAD:{LOCK}"]
    lock = subprocess.run(committed, cwd=REPOSITORY, capture_output=True, check=True).stdout
    for _ in range(2):
        files = release(tmp_path / "out", "forge")
        assert sorted(files) == sorted((tmp_path / "out").iterdir())
        assert (tmp_path / "out" / LOCK).read_bytes() == lock
        lines = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files[:-1]]
        assert files[-1].read_text().splitlines() == lines


@pytest.mark.parametrize("name", ["thesis.tex", "folder/file", f"{SUMS}.old"])
def test_a_folder_of_other_files_is_not_emptied(tmp_path: Path, name: str) -> None:
    (tmp_path / SUMS).write_text("00  assay.whl\n")
    (tmp_path / "assay.whl").touch()
    require_replaceable(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(SystemExit, match=f"earlier release, .* got {name.split('/')[0]}; name another"):
        release(tmp_path, "forge")
    assert (tmp_path / name).exists()
    assert (tmp_path / "assay.whl").exists()


def test_a_new_or_an_empty_folder_is_taken_and_a_file_is_not(tmp_path: Path) -> None:
    require_replaceable(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    require_replaceable(tmp_path / "empty")
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="got a file"):
        require_replaceable(tmp_path / "file")


def compiled_from(document: str, name: str) -> str:
    """The creation code that solc compiles from a standard JSON input."""
    solc = [str(REPOSITORY / "scripts" / "solc"), "--standard-json"]
    done = subprocess.run(solc, input=document, capture_output=True, text=True, check=True)
    (file,) = (source for source, made in json.loads(done.stdout)["contracts"].items() if name in made)
    return str(json.loads(done.stdout)["contracts"][file][name]["evm"]["bytecode"]["object"])


@pytest.mark.parametrize("name", SMALL)
def test_standard_json_gives_the_code_of_the_package(name: str) -> None:
    document = json.dumps(standard_json(name, COMPILED, REPOSITORY))
    assert compiled_from(document, name) == contract(name).bytecode.hex()


@pytest.mark.heavy
@pytest.mark.timeout(1_800)
def test_two_releases_are_equal_byte_for_byte(tmp_path: Path) -> None:
    """The releases are built in checkouts at different paths, to show that no path, time or file order
    affects the result.
    """
    outs = []
    for name in ("one", "a-second-and-longer-name"):
        checkout = tmp_path / name / "checkout"
        run(["git", "clone", "--quiet", "--local", str(REPOSITORY), str(checkout)], tmp_path)
        (checkout / "node_modules").symlink_to(REPOSITORY / "node_modules")
        (checkout / ".venv").symlink_to(REPOSITORY / ".venv")
        done = subprocess.run(
            [
                "make",
                "--no-print-directory",
                "--old-file=node_modules/.installed",
                "--old-file=.venv/.installed",
                "release",
            ],
            cwd=checkout,
            env=make_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        outs.append(checkout / "build" / "release")
    first, second = ({path.name: path.read_bytes() for path in sorted(out.iterdir())} for out in outs)
    assert {name.split("-")[0] + Path(name).suffix for name in first if name != LOCK} == {
        "assay.gz",
        "assay.whl",
        "SHA256SUMS",
    }
    assert first[LOCK] == (REPOSITORY / LOCK).read_bytes()
    assert {name for name in first if first[name] != second[name]} == set()
    due = [f"{sha256(data).hexdigest()}  {name}" for name, data in first.items() if name != "SHA256SUMS"]
    assert first["SHA256SUMS"].decode().splitlines() == due

    wheel = next(data for name, data in first.items() if name.endswith(".whl"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as packed:
        data = {Path(name).stem: packed.read(name) for name in packed.namelist() if "/contracts/" in name}
        libraries = [packed.read(name) for name in packed.namelist() if name.endswith(".so")]
    assert len(libraries) == 2
    assert not any(str(tmp_path).encode() in library or b".debug_info" in library for library in libraries)
    contracts = next(data for name, data in first.items() if name.startswith("assay-contracts"))
    with tarfile.open(fileobj=io.BytesIO(contracts)) as packed:
        for name in DEPLOYED:
            reader = packed.extractfile(f"standard-json/{name}.json")
            assert reader is not None
            assert compiled_from(reader.read().decode(), name) == json.loads(data[name])["creation"]
