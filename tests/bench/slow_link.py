#!/usr/bin/env python3
"""A port of this machine that leads to another one as a slow link does: each way takes DELAY ms and carries RATE Mbit/s.

    tests/bench/slow_link.py TO_PORT [--delay 10] [--rate 100]    # prints its own port; 10 ms each way: 20 ms there and back"""

import argparse
import asyncio
import collections
import time


async def carry(reader, writer, delay, rate):
    """What has come by `t` is on the link when the link is free, and arrives `delay` after its last bit was sent."""
    waiting, more = collections.deque(), asyncio.Event()

    async def deliver():
        while True:
            while not waiting:
                more.clear()
                await more.wait()
            due, data = waiting.popleft()
            await asyncio.sleep(max(0, due - time.monotonic()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    delivery, free = asyncio.create_task(deliver()), 0.0
    try:
        while True:
            data = await reader.read(1500)
            free = max(free, time.monotonic()) + len(data) * 8 / rate
            waiting.append((free + delay, data))
            more.set()
            if not data:
                break
            await asyncio.sleep(max(0, free - time.monotonic() - 0.05))  # a queue of 50 ms at most
        await delivery
    except ConnectionError:
        writer.close()


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("to", type=int)
    parser.add_argument("--delay", type=float, default=10, help="ms, each way")
    parser.add_argument("--rate", type=float, default=100, help="Mbit/s, each way")
    given = parser.parse_args()
    link = given.delay / 1e3, given.rate * 1e6

    async def come(reader, writer):
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", given.to)
        await asyncio.gather(carry(reader, there_writer, *link), carry(there_reader, writer, *link))

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
