"""The files in docs/operating match the commands: units, Dockerfile and compose file.

systemd also checks the units if it is installed. Docker is not needed: hadolint checks the Dockerfile.
"""

from __future__ import annotations

import os
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


NODE = 10_001
"""The user id and group id that the tests run a node under: the same as in the container image
(docs/operating/Dockerfile).
"""


@pytest.fixture
def node_home(tmp_path: Path) -> Path:
    """An empty home folder. It belongs to the user NODE if root runs the test, otherwise to the present user.
    Beside it lies a deployment file that only the present user may read.
    """
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (tmp_path / "31337.json").touch(mode=0o600)
    (tmp_path / "31337.json").write_text("{}")
    if os.geteuid() == 0:
        os.chown(home, NODE, NODE)
    return home


def test_a_container_takes_a_deployment_file_that_its_user_may_not_read(node_home: Path) -> None:
    lines = [
        shlex.split(line) for line in PAGE.read_text().splitlines() if line.startswith("docker compose run")
    ]
    (words,) = (line for line in lines if line[-1] == "31337.json")
    assert (words[-2], "-T" in words) == ("<", True)
    inside = words[words.index("solver") + 1 : -2]
    user, groups = (NODE, [NODE]) if os.geteuid() == 0 else (None, None)
    with (node_home.parent / "31337.json").open("rb") as given:
        subprocess.run(
            inside, stdin=given, cwd=node_home, user=user, group=user, extra_groups=groups, check=True
        )
    assert_taken(node_home)


@pytest.mark.skipif(os.geteuid() != 0, reason="sudo is left out of the page's lines, so they need root")
def test_a_units_user_gets_a_deployment_file_that_it_may_not_read(node_home: Path) -> None:
    folder, file = (line for line in PAGE.read_text().splitlines() if "/var/lib/assay/deployments" in line)
    for line in (folder, file):
        words = shlex.split(line.replace("/var/lib/assay", str(node_home)))
        assert words[:2] == ["sudo", "install"], "only root may read the file and write the folder"
        command = [str(NODE) if word == "assay" else word for word in words[1:]]
        subprocess.run(command, cwd=node_home.parent, check=True)
    assert_taken(node_home)


def assert_taken(home: Path) -> None:
    """Check that the deployment file is in its place, belongs to the home folder's owner, and is open to
    nobody else.
    """
    folder = home / "deployments"
    file = folder / "31337.json"
    assert file.read_text() == "{}"
    assert {path.stat().st_uid for path in (folder, file)} == {home.stat().st_uid}
    assert [path.stat().st_mode & 0o777 for path in (folder, file)] == [0o700, 0o600]


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
