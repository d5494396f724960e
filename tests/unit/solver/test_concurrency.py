"""Turns and budgets by themselves, without a server."""

from __future__ import annotations

import asyncio

import pytest

from protocol.node.http_clients import client_of, share_of
from solver.concurrency import Budget, Busy, OneAtATime


def test_answers_on_their_way_are_bounded() -> None:
    budget = Budget(most=16)
    budget.take(10, "first")
    with pytest.raises(Busy):
        budget.take(1, "first")  # more than its eighth
    budget.take(2, "second")
    budget.take(4)
    for share in (None, "third"):
        with pytest.raises(Busy):
            budget.take(1, share)
    budget.give_back(10, "first")
    budget.take(1, "first")
    budget.take(1, "first")
    budget.take(1)


@pytest.mark.parametrize("share", [None, "an address"])
def test_one_answer_is_sent_however_large(share: str | None) -> None:
    budget = Budget(most=1)
    budget.take(1_000, share)
    with pytest.raises(Busy):
        budget.take(1, share)
    budget.give_back(1_000, share)
    budget.take(1_000, share)


def test_shares_have_their_turns_in_order_and_each_its_own_places() -> None:
    async def order() -> list[str]:
        turns, found, go = OneAtATime(waiting=2), list[str](), asyncio.Event()

        async def ask(share: str) -> None:
            try:
                async with turns.turn(share):
                    await go.wait()
                    found.append(share)
            except Busy:
                found.append(f"{share} is refused")

        async with asyncio.TaskGroup() as group:
            for share in "aaaabbcb":
                group.create_task(ask(share))
            gone = group.create_task(ask("d"))
            while turns.waiting < 6:
                await asyncio.sleep(0)
            gone.cancel()
            go.set()
        async with turns.turn():
            assert turns.waiting == 0
        return found

    assert asyncio.run(order()) == ["a is refused", "b is refused", *"abcaba"]


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ("aaab", ["a is refused", *"aab"]),  # the newest of the share with most
        ("aabb", ["b is refused", *"aab"]),  # nobody has two more than b
        ("abcd", ["d is refused", *"abc"]),
        ("aaaa", ["a is refused", *"aaa"]),
    ],
)
def test_when_all_places_are_taken_a_share_gives_one_to_a_share_with_fewer(
    shares: str, found: list[str]
) -> None:
    async def order() -> list[str]:
        turns, found, go = OneAtATime(most=3), list[str](), asyncio.Event()

        async def ask(share: str) -> None:
            try:
                async with turns.turn(share):
                    found.append(share)
            except Busy:
                found.append(f"{share} is refused")

        async def hold() -> None:
            async with turns.turn():
                await go.wait()

        async with asyncio.TaskGroup() as group:
            for client in (hold(), *map(ask, shares)):
                group.create_task(client)
            while not found:
                await asyncio.sleep(0)
            assert turns.waiting == 3
            go.set()
        async with turns.turn():
            assert turns.waiting == 0
        return [found[0], *sorted(found[1:])]

    assert asyncio.run(order()) == found


def test_many_networks_of_one_site_have_turns_and_places_as_one() -> None:
    async def order() -> list[str]:
        turns, found, go = OneAtATime(most=4), list[str](), asyncio.Event()

        async def ask(host: str) -> None:
            try:
                async with turns.turn(share_of(client_of(host))):
                    await go.wait()
                    found.append(host)
            except Busy:
                found.append(f"{host} is refused")

        async with asyncio.TaskGroup() as group:
            for host in (*(f"2001:db8:1:{number}::1" for number in range(6)), "192.0.2.7", "2001:db8:2::1"):
                group.create_task(ask(host))
            while len(found) < 3:
                await asyncio.sleep(0)
            go.set()
        return found

    refused = [f"2001:db8:1:{number}::1 is refused" for number in (5, 1, 2)]
    answered = ["2001:db8:1:0::1", "192.0.2.7", "2001:db8:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"]
    found = asyncio.run(order())
    assert sorted(found[:3]) == sorted(refused)
    assert found[3:] == answered


def test_a_client_that_goes_when_it_loses_its_place_passes_no_turn_on() -> None:
    async def ask() -> None:
        turns, found = OneAtATime(most=2), list[str]()

        async def wait(share: str) -> None:
            async with turns.turn(share):
                found.append(share)

        async with turns.turn("b"):
            stays, gone = (asyncio.create_task(wait("a")) for _ in range(2))
            while turns.waiting < 2:
                await asyncio.sleep(0)
            other = asyncio.create_task(wait("c"))
            await asyncio.sleep(0)  # c has the place; a runs next
            gone.cancel()
            await asyncio.wait([gone])
            assert gone.cancelled()
            assert (found, turns.waiting) == ([], 2)
        await asyncio.gather(stays, other)
        assert found == ["a", "c"]

    asyncio.run(ask())


def test_a_turn_is_passed_on_by_a_client_that_goes_when_it_comes() -> None:
    async def ask() -> None:
        turns = OneAtATime()

        async def wait() -> None:
            async with turns.turn("a"):
                raise AssertionError("it has gone")

        async with turns.turn("b"):
            gone = asyncio.create_task(wait())
            while turns.waiting < 1:
                await asyncio.sleep(0)
        gone.cancel()
        async with asyncio.timeout(5), turns.turn("c"):
            assert gone.cancelled()

    asyncio.run(ask())
