"""Nodes that fail, lag, lose data or change chains: the next node is asked, and another chain is not
accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from eth_account import Account

from protocol.chain.accounts import development_account
from protocol.chain.chains import Finality, chain_of
from protocol.chain.client import Client, connect
from protocol.chain.connection import BATCH, Connection
from protocol.chain.deploy import deploy
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import (
    ChainReset,
    ChainTableError,
    NotMined,
    Reverted,
    RpcRefused,
    RpcUnavailable,
)
from protocol.chain.events import Follower
from protocol.chain.fees import Call
from protocol.chain.market import Market
from protocol.chain.rpc import _weight
from protocol.chain.transactions import Sender, Sending
from protocol.chain.views import TaskStatus
from tests.chain.conftest import QUICK
from tests.chain.rpc_proxy import RpcProxy
from tests.chain.sending import NOWHERE, after, is_replaced

pytestmark = pytest.mark.chain


@pytest.fixture
def near(chain: Devnet) -> Iterator[RpcProxy]:
    with RpcProxy(chain.url) as made:
        yield made


@pytest.fixture
def far(chain: Devnet) -> Iterator[RpcProxy]:
    with RpcProxy(chain.url) as made:
        yield made


@pytest.fixture
def both(near: RpcProxy, far: RpcProxy) -> Iterator[Connection]:
    connection = Connection((near.url, far.url))
    yield connection
    connection.close()


@pytest.fixture
def alone(near: RpcProxy) -> Iterator[Connection]:
    connection = Connection(near.url)
    yield connection
    connection.close()


def test_the_next_node_is_asked_when_one_fails(near: RpcProxy, far: RpcProxy, both: Connection) -> None:
    head = both.block()
    assert not far.asked
    near.faults.down = True
    assert both.block() == head
    assert both.url == far.url
    far.faults.down, near.faults.down = True, False
    assert both.block() == head
    near.faults.down = True
    with pytest.raises(RpcUnavailable):
        both.request("eth_chainId", attempts=1)


def test_what_one_node_does_not_have_another_is_asked_for(
    chain: Devnet, near: RpcProxy, both: Connection
) -> None:
    chain.mine(3)
    head = both.block()
    near.faults.stale_share = 1.0
    assert both.block(head.hash) == head
    assert both.code(NOWHERE, head.hash) == b""


def test_the_node_that_is_ahead_is_taken(
    chain: Devnet, near: RpcProxy, far: RpcProxy, both: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protocol.chain.rpc.COMPARE_SECONDS", 0.0)
    near.faults.stale_share, near.faults.stale_blocks = 1.0, 3
    chain.mine(4)
    assert both.block().number == chain.connection.block().number
    assert both.url == far.url


def test_a_head_never_goes_back_because_a_node_is_behind(
    chain: Devnet, near: RpcProxy, alone: Connection
) -> None:
    chain.mine(3)
    head = alone.block().number
    near.faults.stale_share = 0.3
    assert [alone.block().number for _ in range(20)] == [head] * 20
    near.faults.stale_share = 1.0
    assert alone.block().number == head - 2, "what is seen again and again is a shorter chain"


def test_a_transaction_goes_to_every_node(
    chain: Devnet, near: RpcProxy, far: RpcProxy, both: Connection
) -> None:
    near.faults.lose_broadcasts = True
    both.close()  # the next question opens sockets again
    before = chain.connection.balance(NOWHERE)
    patient = replace(QUICK, look_again=600.0)  # no second broadcast, however slow the machine is
    with Sender(both, development_account(4, chain.chain_id), patient) as sender:
        sender.send(Call(NOWHERE, b"", "transfer", 7))
    assert chain.connection.balance(NOWHERE) - before == 7
    assert near.asked["eth_sendRawTransaction"] == far.asked["eth_sendRawTransaction"] == 1


@pytest.mark.parametrize("known", ["already known", "ALREADY_EXISTS: already known"])
def test_a_node_that_has_a_transaction_outweighs_one_that_refuses_it(known: str) -> None:
    has = RpcRefused("broadcast", known, "none needed")
    refuses = RpcRefused("broadcast", "the method is disabled", "use another node")
    silent = RpcUnavailable("broadcast", TimeoutError())
    for answers in permutations((has, refuses, silent)):
        assert min(answers, key=_weight) is has


def test_a_transaction_that_the_only_node_throws_away_is_handed_over_again(
    chain: Devnet, near: RpcProxy, alone: Connection
) -> None:
    near.faults.lose_broadcasts = True
    with Sender(alone, development_account(4, chain.chain_id), Sending(timeout=0.1, poll=0.02)) as sender:
        with pytest.raises(NotMined):
            sender.send(Call(NOWHERE, b"", "transfer", 7), "pay")
        near.faults.lose_broadcasts = False
        assert sender.recover() == 1
        sender.sending = QUICK
        receipt = sender.send(Call(NOWHERE, b"", "transfer", 7), "pay")
        assert [entry.hash for entry in sender.journal.of_intent("pay")] == [receipt.transaction]
        assert sender.recover() == 0


@pytest.mark.parametrize("outage", [True, False])
def test_another_chain_behind_the_same_address_is_refused(
    near: RpcProxy, alone: Connection, outage: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage or an unnoticed restart, the chain id is the same but the genesis block differs."""
    monkeypatch.setattr("protocol.chain.rpc.RECHECK_SECONDS", 0.0)
    alone.block()
    with Devnet(block_time=None) as other:
        assert other.connection.genesis != alone.genesis
        other.mine(200)
        near.upstream = other.url
        if outage:
            near.faults.down = True
            with pytest.raises(RpcUnavailable):
                alone.request("eth_chainId", attempts=1)
            near.faults.down = False
        else:
            near.hang_up()
        with pytest.raises(ChainReset, match=r"another one of the same id, .*: it was reset"):
            alone.balance(NOWHERE)


def test_another_chain_behind_one_address_leaves_the_others(
    chain: Devnet, near: RpcProxy, far: RpcProxy, both: Connection
) -> None:
    both.block()
    near.faults.down = True
    both.block()
    near.faults.down, near.faults.chain_id = False, 5
    far.faults.drop_share = 0.2
    assert {both.request("eth_chainId", attempts=5) for _ in range(20)} == {hex(chain.chain_id)}


def test_a_node_that_is_behind_hides_no_event(
    chain: Devnet, near: RpcProxy, deployed: Deployment, alone: Connection, client: Client
) -> None:
    """For blocks that it does not have yet, a node returns no events and no error. The follower finds all
    events nevertheless.
    """
    client.token.mint(client.address, 100)
    client.token.approve(client.vault.address, 100)
    follower = Follower(alone, {client.vault.address: client.vault.contract}, deployed.block)
    near.faults.stale_share = 0.3
    found: list[int] = []
    for amount in range(1, 9):
        client.vault.deposit(amount)
        events = follower.poll().events
        found += [event.arguments["amount"] for event in events if event.name == "Deposited"]
    chain.mine(3)
    near.faults.stale_share = 0.0
    found += [event.arguments["amount"] for event in follower.poll().events if event.name == "Deposited"]
    assert found == list(range(1, 9))


def test_calls_of_one_view_are_of_one_block(chain: Devnet, client: Client) -> None:
    connection = client.connection
    before = client.token.balance_of(client.address)
    with connection.view() as block:
        client_of_another = connect(chain.url, client.deployment, "dev:6", sending=QUICK)
        with client_of_another:
            client_of_another.token.mint(client.address, 5)
        assert client.token.balance_of(client.address) == before
        assert connection.block() == block
    assert client.token.balance_of(client.address) == before + 5


def test_nothing_is_asked_twice_of_one_block(
    chain: Devnet, near: RpcProxy, alone: Connection, client: Client
) -> None:
    market = Market(client.market.contract, client.market.address, alone, None)

    def asked(look: Callable[[], object]) -> int:
        before = near.asked["eth_call"]
        with alone.view():
            look()
        return near.asked["eth_call"] - before

    def numbers() -> None:
        assert market.tasks() == market.tasks()
        assert market.statuses([1, 2, 3]) == [TaskStatus.NONE] * 3

    assert asked(numbers) == 4
    assert asked(numbers) == 0, "in another view of the same block"
    before = near.requests
    assert asked(lambda: market.statuses(range(2 * BATCH))) == 2 * BATCH - 3
    assert near.requests - before == 1 + 2, "the head, and so many batches"
    chain.mine()
    assert asked(numbers) == 4
    before = near.asked["eth_call"]
    assert market.tasks() == market.tasks() == 0
    assert near.asked["eth_call"] - before == 2, "outside of a view it is asked"


def test_what_is_refused_ahead_is_refused_when_it_is_asked(client: Client) -> None:
    with client.connection.view():
        client.market.ahead([1])
        with pytest.raises(Reverted, match="UnknownTask"):
            client.market.task(1)


@pytest.fixture(scope="module")
def young_deployment(young: Devnet, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(tmp_path_factory.mktemp("deployer")))
        with Sender(young.connection, development_account(0, young.chain_id), QUICK) as sender:
            return deploy(sender)


@pytest.mark.parametrize(
    ("finality", "depth"), [("latest", 0), (0, 0), (3, 3), ("safe", 32), ("finalized", 64)]
)
def test_a_receipt_is_final_as_deep_as_the_setting_says(
    young: Devnet, young_deployment: Deployment, finality: Finality, depth: int
) -> None:
    chain = young
    with connect(chain.url, young_deployment, "dev:5", sending=QUICK, finality=finality) as own:
        receipt = own.token.mint(own.address, 1)
        if depth:
            chain.mine(depth - 1)
            assert not own.is_final(receipt)
            chain.mine()
        assert own.is_final(receipt)
        # Now there is another block at that height, and the transaction must be sent again.
        chain.connection.request("anvil_reorg", depth + 1, [])
        assert not own.is_final(receipt)


def test_a_time_is_final_once_a_later_block_is(chain: Devnet) -> None:
    time = chain.connection.block().time
    assert chain.connection.is_final_at(time), "every block of a development chain is final"
    deep = Connection(chain.url, finality=2)
    for is_final in (False, False, False, True):
        assert deep.is_final_at(time) is is_final
        chain.skip(1)


def test_chains_are_told_apart_by_their_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    assert (chain_of(1).block_time, chain_of(1).fees, chain_of(1).finality) == (12, "eip1559", "finalized")
    assert chain_of(61).fees == "legacy"
    assert chain_of(999_999) == chain_of(999_998)
    own = tmp_path / "chains.toml"
    entry = 'name = "x"\nblock_time = 0.5\nfees = "legacy"\nreorg_depth = 2\nfinality = {}\n'
    own.write_text("[999999]\n" + entry.format(5))
    assert (chain_of(999_999).block_time, chain_of(999_999).finality) == (0.5, 5)
    assert chain_of(1).name == "Ethereum"
    for wrong in ("[999999]\n" + entry.format('"soon"'), "no table", "[999999]\nname = 1\n"):
        own.write_text(wrong)
        with pytest.raises(ChainTableError):
            chain_of(999_999)


def test_the_time_between_blocks_is_measured_where_the_table_has_none() -> None:
    """The measured time is the usual interval between blocks; outliers do not change it."""
    with Devnet(block_time=None, chain_id=999_999) as devnet:
        time = devnet.connection.block().time
        for seconds in (12, 12, 12, 3_600, 12, 24, 12, 12):
            time += seconds
            devnet.connection.request("evm_setNextBlockTimestamp", hex(time))
            devnet.mine()
        assert devnet.connection.chain.block_time is None
        assert devnet.connection.block_time == 12


@pytest.mark.parametrize(
    ("chain_id", "hardfork", "fees", "block_time"),
    [(31337, "prague", "eip1559", 1), (61, "berlin", "legacy", 13)],
)
def test_two_unlike_chains_are_sent_to_in_their_own_way(
    chain_id: int, hardfork: str, fees: str, block_time: int
) -> None:
    """One chain has a base fee and fast blocks, the other has gas prices and slow blocks. On both, each
    transaction arrives once.
    """
    with Devnet(block_time=None, chain_id=chain_id, hardfork=hardfork) as devnet:
        connection = devnet.connection
        assert (connection.chain.fees, connection.block_time) == (fees, block_time)
        account = Account.create()
        connection.request("anvil_setBalance", account.address, hex(10**20))
        patience = Sending.on(connection)
        assert patience.replace_after >= 5 * block_time
        with Sender(connection, account, Sending(timeout=30, poll=0.02, replace_after=0.1)) as sender:
            receipt = sender.send(Call(NOWHERE, b"", "transfer", 3), "first")
            sent = connection.request("eth_getTransactionByHash", receipt.transaction)
            assert ("maxFeePerGas" in sent) == (fees == "eip1559")
            connection.request("evm_setAutomine", False)
            miner = after(lambda: is_replaced(sender, "second"), devnet.mine)
            replaced = sender.send(Call(NOWHERE, b"", "transfer", 4), "second")
            miner.join()
            connection.request("evm_setAutomine", True)
            assert replaced.transaction != sender.journal.of_intent("second")[0].hash
            devnet.mine()
            connection.request("anvil_reorg", 2, [])
            assert sender.recover() == 1
            sender.send(Call(NOWHERE, b"", "transfer", 4), "second")
            assert connection.balance(NOWHERE) == 7


def test_logs_are_asked_for_in_ranges_that_the_node_takes(
    chain: Devnet, near: RpcProxy, alone: Connection, deployed: Deployment, client: Client
) -> None:
    client.token.mint(client.address, 100)
    client.token.approve(client.vault.address, 100)
    client.vault.deposit(1)
    chain.mine(40)
    client.vault.deposit(2)
    near.faults.logs_range = 5
    follower = Follower(alone, {client.vault.address: client.vault.contract}, deployed.block)
    events = follower.poll().events
    assert [event.arguments["amount"] for event in events if event.name == "Deposited"] == [1, 2]
    near.faults.error = "too many requests"
    with pytest.raises(RpcRefused, match="too many requests"):
        follower.poll()
