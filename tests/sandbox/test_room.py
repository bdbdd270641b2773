from __future__ import annotations

import asyncio

import pytest

from rstar2cli.sandbox.room import NoRoom, Room


def test_all_or_none() -> None:
    room = Room(3)
    room.take(2)
    with pytest.raises(NoRoom):
        room.take(2)
    assert room.taken == 2
    room.take()
    room.give_back()
    assert room.taken == 2


def test_those_in_line_come_first_and_in_order() -> None:
    async def run() -> list[int]:
        room, order = Room(1), []
        room.take()

        async def stand(number: int) -> None:
            await room.wait(30)
            order.append(number)
            room.give_back()

        line = [asyncio.create_task(stand(number)) for number in range(5)]
        await asyncio.sleep(0.01)
        assert room.waiting == 5
        room.give_back()
        await asyncio.gather(*line)
        assert room.taken == 0 and room.waiting == 0
        return order

    assert asyncio.run(run()) == [0, 1, 2, 3, 4]


def test_nobody_is_refused_for_one_who_left() -> None:
    async def run() -> None:
        room = Room(1)
        room.take()
        with pytest.raises(NoRoom):
            await room.wait(0.01)
        left = asyncio.create_task(room.wait(30))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0)
        room.give_back()
        room.take()
        assert room.taken == 1

    asyncio.run(run())
