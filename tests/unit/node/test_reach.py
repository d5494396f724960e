"""Which addresses given by strangers may be contacted. This depends both on the text of an address and on
what its name resolves to.
"""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from protocol.node.addresses import Address
from protocol.node.reach import OutOfReach, Reach

AT_HOME = Reach()
ELSEWHERE = Reach(this_machine=False)
PRIVATE = [
    "http://10.0.0.1",
    "http://172.16.0.1",
    "http://192.168.1.5:8700",
    "http://100.64.0.1",
    "http://169.254.169.254",
    "http://[fd00::1]",
    "http://[fe80::1]",
    "http://[::ffff:10.0.0.1]",
    "http://[::ffff:127.0.0.1]",
    "http://[64:ff9b::a00:1]",  # NAT64 of 10.0.0.1
    "http://[64:ff9b:1::808:808]",  # a network's own NAT64
    "http://[2002:a00:1::1]",  # 6to4 of 10.0.0.1
    "http://[::10.0.0.1]",
    "http://[::8.8.8.8]",
    "http://[fec0::1]",
    "http://[ff02::1]",
    "http://[ff0e::1]",
    "http://[::ffff:224.0.0.1]",
    "http://224.0.0.1",
]
PUBLIC = [
    "http://8.8.8.8",
    "http://[2606:4700::1111]",
    "http://[::ffff:8.8.8.8]",
    "http://[64:ff9b::808:808]",
    "http://[2002:808:808::1]",
]
HERE = ["http://127.0.0.1:8701", "http://127.8.8.8", "http://[::1]:8701"]


@pytest.mark.parametrize("url", [*PRIVATE, "http://0.0.0.0", "https://0.0.0.0", "http://[::]"])
def test_a_private_address_is_refused(url: str) -> None:
    with pytest.raises(OutOfReach):
        AT_HOME.permit(Address.parse(url))


@pytest.mark.parametrize("url", PUBLIC)
def test_an_address_on_the_internet_is_allowed(url: str) -> None:
    assert ELSEWHERE.permit(Address.parse(url)) is not None


@pytest.mark.parametrize("url", HERE)
def test_this_machine_is_for_development_chains(url: str) -> None:
    assert AT_HOME.permit(Address.parse(url)) is None
    with pytest.raises(OutOfReach, match="on the internet"):
        ELSEWHERE.permit(Address.parse(url))


@pytest.mark.parametrize("name", ["localhost", "solver.localhost", "solver.example"])
def test_what_a_name_leads_to_is_asked(name: str) -> None:
    permit = ELSEWHERE.permit(Address.parse(f"http://{name}"))
    assert permit is not None
    permit([ip_address("8.8.8.8")])
    for private in ("127.0.0.1", "::1", "10.0.0.1"):
        with pytest.raises(OutOfReach, match=private):
            permit([ip_address("8.8.8.8"), ip_address(private)])


@pytest.mark.parametrize("url", ["https://10.0.0.1", "https://solver.example", "https://127.0.0.1"])
def test_https_is_free_for_nobody_there_has_a_strangers_certificate(url: str) -> None:
    assert ELSEWHERE.permit(Address.parse(url)) is None


@pytest.mark.parametrize(
    ("allowed", "url", "free"),
    [
        ("http://10.0.0.1:8700/", "http://10.0.0.1:8700/tasks/1", True),
        ("http://10.0.0.1:8700", "http://10.0.0.1:8700", True),
        ("http://10.0.0.1", "http://10.0.0.1:80/tasks/1", True),
        ("http://10.0.0.1/a/", "http://10.0.0.1/a/tasks/1", True),
        ("http://10.0.0.1/a", "http://10.0.0.1/ab", False),
        ("http://10.0.0.1:8700/", "http://10.0.0.1:8701/tasks/1", False),
        ("http://10.0.0.1/", "http://10.0.0.10/", False),
        ("http://127.0.0.1:8701/", "http://127.0.0.1:8701/tasks/1", True),
        ("file:///srv", "http://10.0.0.1/srv", False),
    ],
)
def test_an_operator_allows_what_lies_below_an_address(allowed: str, url: str, free: bool) -> None:
    reach, address = Reach((allowed,), this_machine=False), Address.parse(url)
    if free:
        assert reach.permit(address) is None
    else:
        with pytest.raises(OutOfReach):
            reach.permit(address)


@pytest.mark.parametrize("url", [*PRIVATE, *HERE])
def test_what_an_operator_names_itself_may_be_anywhere(url: str) -> None:
    assert Reach(this_machine=False, anywhere=True).permit(Address.parse(url)) is None
