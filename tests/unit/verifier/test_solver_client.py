"""The client of a solver's service, against servers that are slow, wrong or absent, or that send too much."""

from __future__ import annotations

import gzip
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import httpcore
import pytest

from protocol.node.addresses import parsed
from protocol.node.reach import Reach
from tests.timing import require_quick
from tests.unit.node.servers import Handler, answers, serving
from tests.unit.solver import tiny
from verifier.solver_client import Shapes, SolverClient

PATIENCE = 0.5
"""Seconds that a client waits for a solver that is too slow."""
PLENTY = 60.0
"""Seconds that a client waits for a solver that answers at once; enough on any machine."""
FAILURES = 2
"""After this many failures in a row, a solver is not asked for a while, because each failure may take the
whole patience.
"""
ROOTS = [sha256(bytes([i])).digest() for i in range(tiny.SEGMENTS + 1)]
WEIGHTS = bytes(tiny.WEIGHTS.nbytes)


def client(url: str, patience: float = PLENTY, reach: Reach | None = None) -> SolverClient:
    shapes = Shapes(tiny.step_program(), tiny.SEGMENTS, tiny.STEPS)
    return SolverClient(parsed(url), tiny.TASK, shapes, patience, reach or Reach())


def require_silence(url: str) -> None:
    """Assert that a client with `PATIENCE` gets no answer, in time."""

    def asked() -> None:
        assert client(url, PATIENCE).segment_roots() is None

    require_quick(4 * PATIENCE, asked)


def test_roots_are_cut_into_hashes() -> None:
    with serving(answers(b"".join(ROOTS))) as server:
        assert client(server.url).segment_roots() == ROOTS
    assert server.targets == [f"/tasks/{tiny.TASK}/segments"]


def test_fewer_segment_roots_are_an_answer_for_they_are_those_of_a_progress() -> None:
    with serving(answers(b"".join(ROOTS[:2]))) as server:
        assert client(server.url).segment_roots() == ROOTS[:2]


def test_a_frames_path_is_sent_and_its_size_is_that_of_the_callee() -> None:
    call = next(n for n, i in enumerate(tiny.step_program().program.instructions) if i.op.label == "call")
    leaves = tiny.half().trace_leaves
    with serving(answers(bytes(32 * leaves))) as server:
        roots = client(server.url).trace_roots(2, 3, (call,))
    assert roots == [bytes(32)] * leaves
    assert server.targets == [f"/tasks/{tiny.TASK}/segments/2/steps/3/trace?path={call}"]


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each tensor a separate group."""
    monkeypatch.setattr("protocol.commitments.groups.GROUP_TENSORS", 1)


def test_small_tensors_of_a_checkpoint_are_one_question() -> None:
    with serving(answers(WEIGHTS + b"four")) as server:
        assert client(server.url).checkpoint(1) == [WEIGHTS, b"four"]
    assert server.targets == [f"/tasks/{tiny.TASK}/checkpoints/1/groups/0"]


@pytest.mark.usefixtures("apart")
def test_a_checkpoint_is_one_question_for_each_group() -> None:
    def talk(connection: socket.socket, target: str) -> None:
        body = WEIGHTS if target.endswith("/0") else bytes(4)
        answers(body)(connection, target)

    with serving(talk) as server:
        assert client(server.url).checkpoint(1) == [WEIGHTS, bytes(4)]


@pytest.mark.usefixtures("apart")
def test_a_busy_solver_is_asked_again_for_the_group_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("verifier.solver_client.BUSY_SECONDS", 0.01)
    busy = 3

    def talk(connection: socket.socket, target: str) -> None:
        nonlocal busy
        if target.endswith("/0"):
            answers(WEIGHTS)(connection, target)
        elif busy:
            busy -= 1
            answers(b"", "503 Service Unavailable", "retry-after: 5")(connection, target)
        else:
            answers(bytes(4))(connection, target)

    with serving(talk) as server:
        assert client(server.url).checkpoint(1) == [WEIGHTS, bytes(4)]
    base = f"/tasks/{tiny.TASK}/checkpoints/1/groups"
    assert server.targets == [f"{base}/0", *[f"{base}/1"] * 4]


def test_a_solver_that_is_always_busy_takes_no_more_time_than_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("verifier.solver_client.BUSY_SECONDS", 0.01)
    with serving(answers(b"", "503 Service Unavailable")) as server:
        require_silence(server.url)


def test_what_can_be_demanded_in_a_game_is_asked_of_a_busy_solver_once() -> None:
    with serving(answers(b"", "503 Service Unavailable")) as server:
        assert client(server.url).step_roots(1) is None
    assert server.targets == [f"/tasks/{tiny.TASK}/segments/1/steps"]


def trickles(connection: socket.socket, _target: str) -> None:
    """Sends one byte of headers every tenth of a second, for ever."""
    while True:
        connection.sendall(b"h")
        time.sleep(0.1)


def trickles_a_body(connection: socket.socket, _target: str) -> None:
    """Begins a right answer, then sends one byte every tenth of a second."""
    connection.sendall(f"HTTP/1.1 200 OK\r\ncontent-length: {32 * len(ROOTS)}\r\n\r\n".encode())
    while True:
        connection.sendall(b"h")
        time.sleep(0.1)


def floods(connection: socket.socket, _target: str) -> None:
    """Sends a body without a length and without an end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(bytes(65_536))


def says_nothing(connection: socket.socket, _target: str) -> None:
    """Reads the request and sends nothing until the client ends the connection."""
    connection.settimeout(PLENTY)
    connection.recv(1)


HOSTILE: dict[str, Handler] = {
    "trickled headers": trickles,
    "trickled body": trickles_a_body,
    "endless body": floods,
    "silence": says_nothing,
    "too long": answers(b"".join(ROOTS) + bytes(32)),
    "half a root": answers(bytes(33)),
    "shorter than announced": answers(bytes(32), length=64),
    "a redirect": answers(b"", "302 Found", "location: http://127.0.0.1:1/"),
    "not here": answers(bytes(32), "404 Not Found"),
    "compressed": answers(gzip.compress(bytes(128)), "200 OK", "content-encoding: gzip"),
    "no HTTP": lambda connection, _target: connection.sendall(b"SSH-2.0-OpenSSH\r\n"),
    "cut off": lambda connection, _target: connection.close(),
}


@pytest.mark.parametrize("talk", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_answer_is_no_answer_and_comes_in_time(talk: Handler) -> None:
    with serving(talk) as server:
        require_silence(server.url)


@pytest.mark.parametrize("length", [0, 31, 32 * tiny.STEPS, 32 * (tiny.STEPS + 2)])
def test_step_roots_of_another_number_are_refused(length: int) -> None:
    with serving(answers(bytes(length))) as server:
        assert client(server.url).step_roots(1) is None


def test_a_solver_that_wastes_time_is_not_asked_again_for_a_while() -> None:
    with serving(says_nothing) as server:
        asked = client(server.url, PATIENCE)
        for _ in range(FAILURES):
            assert asked.segment_roots() is None
        assert asked.step_roots(1) is None
    assert f"/tasks/{tiny.TASK}/segments/1/steps" not in server.targets
    assert len(server.targets) <= FAILURES


def dawdles(connection: socket.socket, target: str) -> None:
    """Sends each group within the client's patience, but takes longer for both groups together."""
    time.sleep(0.6 * PATIENCE)
    answers(WEIGHTS if target.endswith("/0") else bytes(4))(connection, target)


@pytest.mark.usefixtures("apart")
def test_a_checkpoint_has_one_patience_for_all_its_tensors() -> None:
    with serving(dawdles) as server:
        asked = client(server.url, PATIENCE)
        for _ in range(FAILURES):
            assert asked.checkpoint(1) is None
        assert asked._resting(), "a tensor that came does not make up for one that did not"


@pytest.mark.usefixtures("apart")
def test_a_checkpoint_that_is_served_fast_enough_for_its_size_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("verifier.solver_client.LEAST_RATE", 40)  # 30 seconds for the 1,204 bytes
    with serving(dawdles) as server:
        assert client(server.url, PATIENCE).checkpoint(1) == [WEIGHTS, bytes(4)]


@pytest.mark.usefixtures("apart")
def test_each_tensor_of_a_checkpoint_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifier.solver_client.TENSOR_SECONDS", 15.0)
    with serving(dawdles) as server:
        assert client(server.url, PATIENCE).checkpoint(1) == [WEIGHTS, bytes(4)]


def test_a_late_word_that_there_is_nothing_wastes_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifier.solver_client.LEAST_RATE", 4)  # 32 seconds for the roots

    def late(connection: socket.socket, target: str) -> None:
        time.sleep(1.2 * PATIENCE)
        answers(b"", "404 Not Found")(connection, target)

    with serving(late) as server:
        asked = client(server.url, PATIENCE)
        for _ in range(FAILURES):
            assert asked.segment_roots() is None
        assert asked._resting()
        assert len(server.targets) == FAILURES


def test_a_solver_that_has_not_got_it_is_asked_again() -> None:
    with serving(answers(b"", "404 Not Found")) as server:
        asked = client(server.url)
        for _ in range(FAILURES + 2):
            assert asked.segment_roots() is None
        assert len(server.targets) == FAILURES + 2


def test_without_an_address_nothing_is_asked() -> None:
    assert client("http://user:secret@127.0.0.1").segment_roots() is None
    assert client("https://xn--a/").segment_roots() is None


def leads_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Resolve all names to these addresses."""

    def found(_host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def connections(listening: socket.socket) -> int:
    """Accept all waiting connections, and return their number."""
    listening.setblocking(False)
    found = 0
    while True:
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return found
        found += 1


@pytest.mark.parametrize(
    ("host", "leads"),
    [
        ("127.0.0.1", None),
        ("localhost", None),
        ("[::ffff:127.0.0.1]", None),
        ("0.0.0.0", None),
        ("10.0.0.1", None),
        ("169.254.169.254", None),
        ("[fd00::1]", None),
        ("solver.example", ("127.0.0.1",)),
        ("solver.example", ("10.0.0.1",)),
        ("solver.example", ("8.8.8.8", "127.0.0.1")),
    ],
)
def test_an_address_in_ones_own_network_is_refused_without_a_connection(
    host: str, leads: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine's address is refused too, unless the chain is a development chain."""
    opened: list[object] = []
    if leads is not None:
        leads_to(monkeypatch, *leads)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", lambda *given: opened.append(given))
        asked = client(f"http://{host}:{port}", reach=Reach(this_machine=False))
        assert asked.segment_roots() is None
        assert asked.checkpoint(1) is None
        assert (opened, connections(listening)) == ([], 0)


def test_a_listening_port_of_this_machine_hears_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert client(url, PATIENCE, Reach(this_machine=False)).segment_roots() is None
        assert connections(listening) == 0
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(client(url).segment_roots)
            listening.settimeout(PLENTY)
            listening.accept()[0].close()  # the parties of a development chain share a machine
            assert asked.result() is None
        assert connections(listening) == 0


def test_a_name_that_leads_elsewhere_after_its_check_is_connected_to_what_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request looks the name up only once, and connects only to the addresses that it has checked. The name
    leads elsewhere after that.
    """
    connected: list[str] = []

    async def refuse(_backend: object, host: str, *_: object) -> None:
        connected.append(host)
        leads_to(monkeypatch, "127.0.0.1")
        raise httpcore.ConnectError

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", refuse)
    leads_to(monkeypatch, "8.8.8.8", "8.8.4.4")
    asked = client("http://solver.example:8701")
    assert asked.segment_roots() is None
    assert connected == ["8.8.8.8", "8.8.4.4"]
    assert asked.segment_roots() is None
    assert connected == ["8.8.8.8", "8.8.4.4"], "where it leads now nobody is asked"


def test_an_operator_may_allow_servers_in_its_own_network() -> None:
    with serving(answers(b"".join(ROOTS))) as server:
        allowed = Reach((server.url + "/",), this_machine=False)
        assert client(server.url, reach=allowed).segment_roots() == ROOTS
