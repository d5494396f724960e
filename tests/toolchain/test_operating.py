"""The files in docs/operating match the commands: units, Dockerfile and compose file.

systemd also checks the units if it is installed. Docker is not needed: hadolint checks the Dockerfile.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from protocol.errors import ExitCode
from solver.settings import SolverSettings
from tests.toolchain.commands import parsed
from tests.toolchain.project import REPOSITORY
from verifier.settings import VerifierSettings

FOLDER = REPOSITORY / "docs" / "operating"
PAGE = REPOSITORY / "docs" / "guide" / "operate.md"
PARTIES: Mapping[str, type[SolverSettings | VerifierSettings]] = {
    "solver": SolverSettings,
    "verifier": VerifierSettings,
}
HARDENED = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "CapabilityBoundingSet": "",
    "RestrictSUIDSGID": "yes",
    "SystemCallFilter": "@system-service",
    "UMask": "0077",
}


def unit(party: str) -> ConfigParser:
    """A unit's sections. Raises for an invalid line and for a repeated setting."""
    parser = ConfigParser(delimiters="=", comment_prefixes="#", interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string((FOLDER / f"assay-{party}.service").read_text())
    return parser


def compose() -> Any:
    """The parsed compose file."""
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def filled(word: str) -> str:
    """A word of the compose file with a URL in place of each variable."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", r"http://127.0.0.1/\1", word)


def test_an_unknown_option_is_seen() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["/opt/assay/bin/solver", "run", "--acount", "solver"])


@pytest.mark.parametrize("party", PARTIES)
def test_a_unit_starts_a_command_that_there_is(party: str) -> None:
    service = unit(party)["Service"]
    command = shlex.split(service["ExecStart"])
    assert command[0] == f"/opt/assay/bin/{party}"
    given = parsed(command)
    assert (given["account"], given["log_json"], str(given["home"])) == (party, True, "/var/lib/assay")
    credential, file = service["LoadCredential"].split(":")
    assert (str(given["password_file"]), file) == (f"%d/{credential}", f"/etc/assay/{party}-password")


@pytest.mark.parametrize("party", PARTIES)
def test_a_unit_restarts_what_a_restart_may_help(party: str) -> None:
    service = unit(party)["Service"]
    assert service["Restart"] == "on-failure"
    hopeless = {int(ExitCode.HOPELESS), int(ExitCode.FRAUD)}
    assert set(map(int, service["RestartPreventExitStatus"].split())) == hopeless
    assert int(service["SuccessExitStatus"]) == ExitCode.INTERRUPTED
    assert unit(party)["Unit"]["StartLimitIntervalSec"] == "0"


@pytest.mark.parametrize("party", PARTIES)
def test_a_unit_may_write_to_its_own_folder_alone(party: str) -> None:
    service = unit(party)["Service"]
    assert {name: service[name] for name in HARDENED} == HARDENED
    assert service["StateDirectory"].split() == ["assay", "assay/tmp"]
    assert service["Environment"] == "TMPDIR=/var/lib/assay/tmp"
    assert "ReadWritePaths" not in service
    assert "MemoryDenyWriteExecute" not in service, "torch writes its own code"


@pytest.mark.parametrize("party", PARTIES)
def test_systemd_finds_nothing_in_a_unit(party: str, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd here")
    text = (FOLDER / f"assay-{party}.service").read_text()
    copy = tmp_path / f"assay-{party}.service"
    copy.write_text(text.replace("/opt/assay/bin", str(Path(sys.executable).parent)))
    for command in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=20"]):
        done = subprocess.run([program, *command, str(copy)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert command[0] == "security" or done.stderr == ""


def hadolint(file: Path) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("hadolint"))
    return subprocess.run([program, str(file)], capture_output=True, text=True, check=False)


def test_hadolint_finds_nothing_in_the_dockerfile(tmp_path: Path) -> None:
    done = hadolint(FOLDER / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN cd /tmp && pip install assay\n")
    assert hadolint(tmp_path / "Dockerfile").returncode == 1


def test_what_the_image_copies_is_in_its_context() -> None:
    lines = (FOLDER / "Dockerfile").read_text().splitlines()
    copied = [
        word for line in lines if line.startswith("COPY") and "--from" not in line for word in line.split()
    ]
    sources = [word for word in copied if "/" in word and not word.startswith(("/", "./", "--"))]
    sources += [word for word in copied if word.endswith(".lock")]
    let_in = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in let_in
    assert {f"!{source}" for source in sources} == {line for line in let_in if line.startswith("!")}
    assert all(list(REPOSITORY.glob(source)) for source in sources if not source.startswith("build/"))


@pytest.mark.parametrize("party", PARTIES)
def test_a_container_starts_a_command_that_there_is(party: str) -> None:
    service = compose()["services"][party]
    command = [filled(word) for word in service["command"]]
    given = parsed(command)
    assert (command[0], given["account"], given["host"]) == (party, party, "0.0.0.0")
    (secret,) = service["secrets"]
    assert str(given["password_file"]) == f"/run/secrets/{secret}"
    assert secret in compose()["secrets"]
    (volume,) = service["volumes"]
    assert volume.split(":")[0] in compose()["volumes"]
    assert volume.endswith(":/var/lib/assay")
    port = PARTIES[party].model_fields["port"].default
    assert service["ports"] == [f"{port}:{port}"]


@pytest.mark.parametrize("party", PARTIES)
def test_a_container_has_no_more_rights_than_it_needs(party: str) -> None:
    service = compose()["services"][party]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert service["stop_grace_period"] == unit(party)["Service"]["TimeoutStopSec"].replace("min", "m")
    assert not {"privileged", "network_mode", "pid", "cap_add", "user"} & set(service)


@pytest.mark.parametrize("party", PARTIES)
def test_the_health_check_asks_where_the_node_answers(party: str) -> None:
    port = PARTIES[party].MONITOR_PORT
    image = re.search(r"HEALTHZ=(\S+)", (FOLDER / "Dockerfile").read_text())
    assert image is not None
    asked = compose()["services"][party].get("environment", {}).get("HEALTHZ", image[1])
    assert asked == f"http://127.0.0.1:{port}/healthz"


def test_the_page_names_every_file_and_variable() -> None:
    page = PAGE.read_text()
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {
        "Dockerfile",
        "Dockerfile.dockerignore",
        "assay-solver.service",
        "assay-verifier.service",
        "compose.yaml",
        "supervise.sh",
    }
    assert not {name for name in files - {"Dockerfile.dockerignore"} if name not in page}
    variables = set(re.findall(r"\$\{(\w+)", (FOLDER / "compose.yaml").read_text()))
    assert variables == {"RPC_URL", "SOLVER_URL", "VERIFIER_URL"}
    assert not {name for name in variables if name not in page}
