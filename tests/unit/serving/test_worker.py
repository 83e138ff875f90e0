"""A model's thread: what is computed together, refused, dropped, and survived."""

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from bertkit.base.errors import InputError
from bertkit.base.settings import Settings
from bertkit.inference.pipeline import NamedInput, Pipeline, WindowSize
from bertkit.serving.errors import FailedError, LongTextError, OverloadError, UnreadableError
from bertkit.serving.settings import LimitSettings
from bertkit.serving.worker import PIECE_TOKENS, Work, Worker


@dataclass(eq=False)
class Upper(Pipeline[str, str]):
    """Writes texts in capitals, in batches that it remembers; it stops where it is told to wait."""

    options: Settings = field(default_factory=Settings)
    batches: list[list[str]] = field(default_factory=list)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    has_begun: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def build(cls, opened, loading):
        raise NotImplementedError

    def encode_window(self, inputs: list[NamedInput]) -> list[str]:
        for named in inputs:
            if named.value == "bad":
                raise InputError(f"{named.name} is bad")
        return [named.value for named in inputs]

    def size(self, encoded):
        return WindowSize(sum(map(len, encoded)), sum(len(one) > 5000 for one in encoded))

    def compute_window(self, encoded):
        self.batches.append(list(encoded))
        self.has_begun.set()
        assert self.may_go_on.wait(60)
        if "poison" in encoded:
            raise RuntimeError("no such kernel")
        return [one.upper() for one in encoded]


def use(test, **limits):
    """Run a test with a worker in an event loop."""
    batch_tokens = limits.pop("batch_tokens", 10_000)

    async def run():
        worker = Worker("m", LimitSettings(**limits), batch_tokens=batch_tokens)
        try:
            await asyncio.wait_for(test(worker), 60)
        finally:
            worker.close()

    asyncio.run(run())


def ask(worker, pipeline, inputs, client="a", *, truncates=True):
    future = asyncio.get_running_loop().create_future()
    work = Work(pipeline, inputs, client, truncates, future)
    return work, asyncio.ensure_future(worker.compute(work))


async def hold(worker, upper):
    """A first request, in whose batch the model waits for `may_go_on`."""
    _, first = ask(worker, upper, ["first"])
    await asyncio.to_thread(upper.has_begun.wait, 60)
    return first


def test_what_came_meanwhile_is_computed_together():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        others = [ask(worker, upper, [f"text {n}", "x"], f"client {n}") for n in range(3)]
        await asyncio.sleep(0)
        upper.may_go_on.set()
        assert await first == ["FIRST"]
        assert [await task for _, task in others] == [[f"TEXT {n}", "X"] for n in range(3)]
        assert [work.num_tokens for work, _ in others] == [7, 7, 7]
        assert len(upper.batches) == 2

    use(check)


def test_what_is_refused_refuses_nobody_else():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        _, bad = ask(worker, upper, ["fine", "bad"])
        _, long = ask(worker, upper, ["x" * 5001], truncates=False)
        _, good = ask(worker, upper, ["good"])
        await asyncio.sleep(0)
        upper.may_go_on.set()
        with pytest.raises(UnreadableError, match="text 2 is bad"):
            await bad
        with pytest.raises(LongTextError, match="truncate: true"):
            await long
        assert await good == ["GOOD"]
        await first

    use(check)


def test_what_fails_fails_alone():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        _, poison = ask(worker, upper, ["poison"])
        _, good = ask(worker, upper, ["good"])
        await asyncio.sleep(0)
        upper.may_go_on.set()
        with pytest.raises(FailedError, match="the model failed"):
            await poison
        assert await good == ["GOOD"]
        await first
        assert await ask(worker, upper, ["later"])[1] == ["LATER"]

    use(check)


def test_a_request_whose_client_left_costs_nothing():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        _, left = ask(worker, upper, ["left"])
        _, good = ask(worker, upper, ["good"])
        await asyncio.sleep(0)
        left.cancel()
        upper.may_go_on.set()
        assert await good == ["GOOD"]
        await first
        assert upper.batches == [["first"], ["good"]]
        assert worker.num_works == 0

    use(check)


def test_a_long_request_is_cut_and_a_short_one_passes_between():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        texts = ["x" * 2 * PIECE_TOKENS] * 6  # each half a piece, by its characters
        _, long = ask(worker, upper, texts)
        _, short = ask(worker, upper, ["short"], "b")
        await asyncio.sleep(0)
        upper.may_go_on.set()
        await first
        assert await short == ["SHORT"]
        assert await long == [text.upper() for text in texts]
        assert "short" in upper.batches[1] + upper.batches[2]
        assert all(len(batch) <= 3 for batch in upper.batches)

    use(check, batch_tokens=PIECE_TOKENS)


def test_too_many_requests_are_refused_at_the_door():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        _, second = ask(worker, upper, ["second"])
        await asyncio.sleep(0)
        _, third = ask(worker, upper, ["third"])
        with pytest.raises(OverloadError, match="2 requests wait already") as caught:
            await third
        assert caught.value.retry_after == 1
        upper.may_go_on.set()
        assert [await first, await second] == [["FIRST"], ["SECOND"]]

    use(check, max_concurrent_requests=2)


def test_what_would_wait_too_long_is_refused_at_the_door():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        worker.tokens_per_second = 10.0
        _, second = ask(worker, upper, ["x" * 398])  # 101 tokens: ten seconds
        await asyncio.sleep(0)
        with pytest.raises(OverloadError, match="take 10 s") as caught:
            await ask(worker, upper, ["third"])[1]
        assert caught.value.retry_after == 6
        upper.may_go_on.set()
        await first
        await second

    use(check, max_wait=4)


def test_different_options_are_computed_apart_and_take_turns():
    async def check(worker):
        upper, other = Upper(), Upper()
        other.may_go_on.set()
        first = await hold(worker, upper)
        tasks = [ask(worker, one, ["text"])[1] for one in (upper, other, upper, other)]
        await asyncio.sleep(0)
        upper.may_go_on.set()
        assert [await task for task in (first, *tasks)] == [["FIRST"], *[["TEXT"]] * 4]
        assert (len(upper.batches), len(other.batches)) == (2, 1)

    use(check)


def test_functions_run_in_the_models_thread():
    async def check(worker):
        _, task = ask(worker, lambda text: (text, threading.current_thread().name), ["a", "b"])
        assert await task == [("a", "model m"), ("b", "model m")]

    use(check)
