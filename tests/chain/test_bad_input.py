"""Mistakes on the command line or in the settings: each ends with a clear message and an exit code, never
with a traceback.

All commands run in this process. Their chain has the contracts but no task.
"""

from __future__ import annotations

import json
import shutil
import signal
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from protocol.chain.accounts import development_account
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.errors import ExitCode

pytestmark = pytest.mark.chain

NOBODY = "http://127.0.0.1:1"
BAD_CHECKSUM = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92267"
KEY = "ab" * 32
HOPELESS, RETRY = ExitCode.HOPELESS, ExitCode.RETRY


@dataclass(frozen=True)
class Row:
    """A command line, the words that its error output must contain, and its exit code. The test fills in
    `{home}`, `{url}` and `{port}`. `config` is the text of the settings file in the home folder, and `typed`
    is the standard input.
    """

    line: str
    words: str
    code: ExitCode = HOPELESS
    typed: str = ""
    config: str = ""
    environment: dict[str, str] = field(default_factory=dict)


ROWS = [
    # addresses and amounts
    Row("assay mint 0x12 5", "expected 0x and 40 hexadecimal digits"),
    Row(f"assay mint {BAD_CHECKSUM} 5", "its checksum (EIP-55) does not fit"),
    Row(f"assay mint 0x{'0' * 40} 5", "nobody has the key of the zero address"),
    Row(f"assay mint {KEY} 5", "got 64 characters; keys are never given on the command line"),
    Row(f"assay mint 0x{KEY} 5", "got 0x and 64 other characters"),
    Row("assay mint bob 5", "expected a key file that names its address"),
    Row("assay mint dev:99 5", "expected an index below 53, got 99"),
    Row("assay mint dev:3 -5", "-5: expected no negative number here"),
    Row("assay mint dev:3 0", "greater than or equal to 1"),
    Row("assay mint dev:3 1.5", "valid integer"),
    Row("assay mint dev:3 99999999999999999999", "less than or equal to 1000000000000"),
    Row("assay mint dev:3 5 --dev-account 99", "expected an index below 53"),
    Row("assay mint dev:3 5 --account a --dev-account 1", "expected --account or --dev-account, got both"),
    Row("assay fund dev:3 --coin -1", "greater than or equal to 0"),
    Row("assay fund dev:99", "expected an index below 53"),
    Row("assay fund nobody", "assay account list"),
    Row("solver run --stake -5", "setting stake from flag"),
    Row("solver run --stake much", "got 'much'"),
    Row("verifier watch --stake much", "got 'much'"),
    Row("verifier inform 1 0 zz", "salt: expected 64 hexadecimal digits, got 2 characters"),
    # keys without a terminal
    Row("assay account new me", "expected a terminal to ask at, or --password-file"),
    Row("assay account new ../me", "expected 1 to 48 letters, digits, - and _"),
    Row("assay account new me --password-file {home}/none", "expected a readable text file"),
    Row("assay account new me --password-file /dev/null", "expected at least one character"),
    Row(
        "assay account import me",
        "64 hexadecimal digits of a key of secp256k1 on standard input, got nothing",
    ),
    Row("assay account import me", "got 63 other characters", typed=KEY[1:]),
    Row("assay account import me", "got 64 other characters", typed="0" * 64),
    Row("assay account import me", "expected a terminal to ask at, or --password-file", typed=KEY),
    Row(
        "assay account import me --password-file {home}/password",
        "development key 0, which is published",
        typed=bytes(development_account(0, 31337).key).hex(),
    ),
    Row("assay account import me --file {home}/none", "expected a readable file"),
    Row("assay account import me --file {home}/config.toml", "Web3 Secret Storage", config="[assay]\n"),
    Row("assay account export me {home}/key.json", "expected a key file at"),
    Row("assay account passwd me", "create the account first"),
    Row("solver withdraw --account me", "create the account first"),
    # settings, homes and URLs
    Row(
        "assay status",
        "expected tables [assay], [lane], [solver], [verifier], got [asay]; did you mean assay?",
        config="[asay]\n",
    ),
    Row("assay status", "got rpc; remove it", config='rpc = "http://127.0.0.1:8545"\n'),
    Row("solver config show", "got [verifer]; did you mean verifier?", config="[verifer]\nstake = 3\n"),
    Row("assay status", "got acount; did you mean account?", config='[assay]\nacount = "me"\n'),
    Row("verifier resign", "settings file", config="[verifier\n"),
    Row("assay status", "expected a table [assay], got 3", config="assay = 3\n"),
    Row("assay status --home /dev/null/home", "expected a folder at /dev/null/home"),
    Row("solver config show --home {home}/password", "which is not a folder"),
    Row("verifier resign --home /dev/null", "which is not a folder"),
    Row("assay account list --home /proc/assay", "expected a folder at /proc/assay"),
    Row("assay status --rpc htp://127.0.0.1:8545", "expected http:// or https://"),
    Row("solver withdraw --rpc 127.0.0.1:8545", "expected http:// or https:// and a host"),
    Row("verifier resign --rpc ws://127.0.0.1:8545", "ws:// is another scheme"),
    Row("assay status --rpc {url},htp://x", "expected http:// or https://"),
    Row("assay status", "setting rpc from environment", environment={"ASSAY_RPC": "http://:8545"}),
    Row("assay submit {home}/task.toml --bundles-url htp://x", "setting bundles_url from flag"),
    Row("solver run --url ftp://x", "setting url from flag"),
    Row("assay serve --host nohost.invalid", "name another with --host"),
    Row("assay serve --port {port}", "stop the other server or choose another --port", RETRY),
    Row("assay serve --port 99999", "less than or equal to 65535"),
    Row("assay devnet --port {port}", "expected a free port on 127.0.0.1", RETRY),
    # chains and deployments
    Row(f"assay status --rpc {NOBODY}", "expected an Ethereum node at http://127.0.0.1:1", RETRY),
    Row(f"verifier resign --rpc {NOBODY}", "start the node (`assay devnet`)", RETRY),
    Row("assay status --deployment {home}/none.json", "run `assay deploy`, or copy the file"),
    Row("assay status --deployment {home}/newer.json", "got version 99, of a later release; upgrade"),
    Row("solver withdraw --deployment {home}/newer.json", "upgrade"),
    Row("assay status --deployment {home}/older.json", "write it again with `assay deploy`"),
    Row("assay status --deployment {home}/reset.json", "this file is of another chain with the same id"),
    Row("assay deploy --token 0x12", "token of a deployment: expected an address"),
    Row("assay deploy --parameters none", "expected devnet, recommended, or a readable TOML file"),
    Row("assay deploy --check --salt x", "leave --salt out"),
    # tasks
    Row("assay status 7", "UnknownTask(task=7); there is no such task"),
    Row("assay status 0", "greater than or equal to 1"),
    Row("assay status one", "valid integer"),
    Row("assay status 1 --watch --json", "expected --watch or --json, got both"),
    Row("assay result 7 --output {home}/out", "there is no such task"),
    Row("verifier inform 7 0 " + "00" * 32, "there is no such task"),
    Row("assay submit {home}/none.toml", "expected a readable file"),
    Row("assay submit {home}/task.toml", "task.segments"),
    Row("verifier resign --dev-account 9", "`verifier watch` registers an account"),
    Row("assay stauts", "No such command"),
    Row("solver run --stakes 3", "No such option"),
    # studies
    Row("sim run nothing", "`sim list` shows all"),
    Row("sim run baselin", "did you mean baseline"),
    Row("sim run baseline --param stake=-5", "expected 0 to 1,000,000,000 tokens, got -5"),
    Row("sim run baseline --param stakke=5", "did you mean stake"),
    Row("sim replay nothing", "expected honest"),
    Row("sim report {home}/none", "expected a folder of results"),
    Row("sim run baseline --runs -3", "greater than or equal to 1"),
]


@pytest.fixture(scope="module")
def home(deployed: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with the deployment and the files that the rows name."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "deployments").mkdir()
    text = deployed.model_dump_json()
    (folder / "deployments" / f"{deployed.chain_id}.json").write_text(text)
    for name, change in (
        ("newer", {"version": 99, "sharding": True}),
        ("older", {"version": 1}),
        ("reset", {"genesis": "0x" + "00" * 32}),
    ):
        (folder / f"{name}.json").write_text(json.dumps(json.loads(text) | change))
    (folder / "password").write_text("a password\n")
    (folder / "task.toml").write_text('[task]\nname = "x"\nsource = "x.py"\n[terms]\nbudget = 5\n')
    return folder


@pytest.fixture
def environment(home: Path, chain: Devnet, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ASSAY_HOME", str(home))
    monkeypatch.setenv("ASSAY_RPC", chain.url)
    logs = structlog.get_config()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {path for path in home.rglob("*") if path.is_file()}
    yield
    # Undo what commands set up for their process, which is this one.
    structlog.configure(**logs)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for folder in ("journals", "submitted", "bundles", "solver", "verifier"):
        shutil.rmtree(home / folder, ignore_errors=True)
    (home / "config.toml").unlink(missing_ok=True)
    left = {path for path in home.rglob("*") if path.is_file()} - before
    assert not left, "a mistake leaves nothing behind"


def typed(row: Row, home: Path, chain: Devnet) -> Result:
    command, *arguments = row.line.format(home=home, url=chain.url, port=chain.port).split()
    app = import_module(f"{command}.cli").app
    return CliRunner().invoke(app, arguments, input=row.typed, env=row.environment)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("row", ROWS, ids=[f"{row.line} {row.config}".strip()[:70] for row in ROWS])
def test_a_mistake_is_told_clearly(row: Row, home: Path, chain: Devnet) -> None:
    if row.config:
        (home / "config.toml").write_text(row.config)
    done = typed(row, home, chain)
    defect = done.exception is not None and not isinstance(done.exception, SystemExit)
    assert not defect, "".join(traceback.format_exception(done.exception))
    assert (done.exit_code, "Traceback" in done.output) == (int(row.code), False), done.output
    assert row.words in " ".join(done.stderr.split()), done.stderr
    assert KEY not in done.output
    assert "internal error" not in done.output
    assert done.stdout == ""


def test_the_table_has_rows_for_every_command() -> None:
    assert len(ROWS) >= 40
    assert {row.line.split()[0] for row in ROWS} == {"assay", "solver", "verifier", "sim"}
