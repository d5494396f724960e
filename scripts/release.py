"""Builds a release into build/release: sdist, wheel, the lock of exact versions, contract artefacts and
SHA256SUMS. `make release` runs it.

Everything is built in a copy of the committed files, so that nothing else is included. All timestamps are the
time of the last commit. Two builds of one commit with the same tools are therefore byte-identical, in any
folder.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts import contract_data

REPOSITORY = contract_data.REPOSITORY
LOCK = "requirements.lock"
"""The file of exact versions of the wheel's dependencies. An installation and the image use it."""
SUMS = "SHA256SUMS"
OUTPUTS = [
    "abi",
    "evm.bytecode.object",
    "evm.deployedBytecode.object",
    "evm.deployedBytecode.immutableReferences",
]


def main() -> None:
    """Build into the folder given by --out."""
    options = argparse.ArgumentParser(description="Build a release.")
    options.add_argument("--out", type=Path, default=REPOSITORY / "build" / "release")
    options.add_argument("--forge", default=os.environ.get("FORGE", "forge"))
    asked = options.parse_args()
    for path in release(asked.out.resolve(), asked.forge):
        print(path)


def release(out: Path, forge: str) -> list[Path]:
    """Build a release of the last commit, and return its files, SHA256SUMS last. The files are written to the
    folder `out`, where they replace an earlier release. End the program if `out` holds anything else.
    """
    require_replaceable(out)
    time = int(command(["git", "log", "-1", "--format=%ct"], REPOSITORY))
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch) / "assay", Path(scratch) / "release"
        made.mkdir()
        committed(source)
        shutil.copyfile(source / LOCK, made / LOCK)
        (source / "node_modules").symlink_to(REPOSITORY / "node_modules")
        command([forge, "build", "contracts/src"], source)
        compiled = source / "build" / "contracts" / "out"
        contract_data.write(compiled, source / "protocol" / "chain" / "contracts")
        (source / "node_modules").unlink()
        python_packages(source, made, time)
        version = next(made.glob("*.whl")).name.split("-")[1]
        archive(made / f"assay-contracts-{version}.tar.gz", contract_files(compiled), time)
        files = sorted(made.iterdir())
        lines = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        # First, so that a release whose copying was interrupted is known for one.
        (out / SUMS).write_text("".join(lines))
        return [*(Path(shutil.copyfile(path, out / path.name)) for path in files), out / SUMS]


def require_replaceable(out: Path) -> None:
    """Ends the program unless `out` does not exist, is an empty folder, or holds only a release: SHA256SUMS,
    and files that it names.
    """
    sums = out / SUMS
    named = {line.partition("  ")[2] for line in sums.read_text().splitlines()} if sums.is_file() else set()
    others = {path.name for path in out.iterdir()} - named - {SUMS} if out.is_dir() else set()
    if others or (out.exists() and not out.is_dir()):
        sys.exit(
            f"--out {out}: expected a new or empty folder or an earlier release, whose files are deleted, "
            f"got {min(others) if others else 'a file'}; name another folder, or empty this one"
        )


def committed(folder: Path) -> None:
    """Extract the files of the last commit into a new folder."""
    folder.mkdir()
    made = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(made)) as files:
        files.extractall(folder, filter="data")


def python_packages(source: Path, out: Path, time: int) -> None:
    """Build the sdist, and the wheel from the sdist."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "PYTHONHASHSEED": "0"}
    hook = "import setuptools.build_meta as build; print(build.build_sdist('dist'))"
    command([sys.executable, "-c", hook], source, environment)
    (sdist,) = (source / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as files:
        contents = {
            entry.name: reader.read()
            for entry in files.getmembers()
            if entry.isfile() and (reader := files.extractfile(entry)) is not None
        }
        files.extractall(source / "unpacked", filter="data")
    archive(out / sdist.name, contents, time)
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    command([*wheel, "--wheel-dir", str(out), "."], next((source / "unpacked").iterdir()), environment)


def contract_files(compiled: Path) -> dict[str, bytes]:
    """Contents by file name: package data of all contracts, the standard JSON input of each deployed one,
    and the compiler's version.
    """
    files = {}
    for name, document in contract_data.documents(compiled).items():
        files[f"data/{name}.json"] = _text(document)
    for name in contract_data.DEPLOYED:
        files[f"standard-json/{name}.json"] = _text(standard_json(name, compiled, compiled.parents[2]))
    (version,) = {
        contract_data.artifact(compiled, name)["metadata"]["compiler"]["version"]
        for name in contract_data.DEPLOYED
    }
    files["COMPILER"] = f"solc {version}\n".encode()
    return files


def standard_json(name: str, compiled: Path, root: Path) -> dict[str, Any]:
    """The input for solc (--standard-json), sources included, that reproduces a contract's code.

    Code that solc generates from the IR depends on the numbering of syntax nodes, and therefore on all files
    of one run of solc. Forge puts all files that have the same settings into one run, so the input contains
    all of those files. `root` contains the sources that the artifacts' metadata names.
    """
    artifacts = {name: contract_data.artifact(compiled, name) for name in contract_data.DEPLOYED}
    settings = _settings(artifacts[name])
    together = [made for made in artifacts.values() if _settings(made) == settings]
    sources = sorted({path for made in together for path in made["metadata"]["sources"]})
    ((file, contract),) = artifacts[name]["metadata"]["settings"]["compilationTarget"].items()
    return {
        "language": "Solidity",
        "sources": {path: {"content": _source(root, path)} for path in sources},
        "settings": settings | {"outputSelection": {file: {contract: OUTPUTS}}},
    }


def _settings(artifact: Mapping[str, Any]) -> dict[str, Any]:
    found = artifact["metadata"]["settings"]
    return {key: value for key, value in found.items() if key != "compilationTarget"}


def archive(path: Path, files: Mapping[str, bytes], time: int) -> None:
    """Write a .tar.gz whose bytes depend only on the files and the time."""
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as out,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), time, 0o644
            out.addfile(entry, io.BytesIO(content))


def command(line: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output. If the command fails, end this program with that output."""
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"{' '.join(line)}: expected exit status 0, got {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def _source(root: Path, name: str) -> str:
    base = REPOSITORY if name.startswith("node_modules/") else root
    return (base / name).read_text()


def _text(document: Any) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


if __name__ == "__main__":
    main()
