"""A model's thread: what is computed together, refused, dropped, and survived."""

import asyncio
import gc
import threading
import weakref
from dataclasses import dataclass, field

import pytest

from bertkit.base.errors import InputError
from bertkit.base.settings import Settings
from bertkit.inference.pipeline import NamedInput, Pipeline, WindowSize
from bertkit.serving.errors import ServingError
from bertkit.serving.settings import LimitSettings
from bertkit.serving.sharing.fair_queue import FairQueue
from bertkit.serving.sharing.request import MOST_TOKENS, ModelRequest, estimate_tokens
from bertkit.serving.sharing.worker import PIECE_TOKENS, Worker, has_failed


class Panic(BaseException):
    """What code in another language may raise."""


@dataclass(eq=False)
class Upper(Pipeline[str, str]):
    """Writes texts in capitals, in batches that it remembers; it stops where it is told to wait."""

    options: Settings = field(default_factory=Settings)
    batches: list[list[str]] = field(default_factory=list)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    has_begun: threading.Event = field(default_factory=threading.Event)
    problem: BaseException = field(default_factory=lambda: RuntimeError("no such kernel"))
    room: int = 1000

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
            raise self.problem
        if len(encoded) > self.room:
            raise MemoryError
        return [one.upper() for one in encoded]


def use(test, note=lambda *_: None, **limits):
    """Run a test with a worker in an event loop."""
    names = "batch_tokens", "is_deterministic"
    own = {"batch_tokens": 10_000} | {name: limits.pop(name) for name in names if name in limits}

    async def run():
        worker = Worker("m", LimitSettings(**limits), **own)
        worker.start(note)
        try:
            await asyncio.wait_for(test(worker), 60)
        finally:
            assert worker.close(60)

    asyncio.run(run())


def ask(worker, pipeline, inputs, client="a", *, truncates=True):
    request = ModelRequest(pipeline, inputs, client, truncates)
    return request, asyncio.ensure_future(worker.compute(request))


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
        assert [request.num_tokens for request, _ in others] == [7, 7, 7]
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
        with pytest.raises(InputError, match="text 2 is bad"):
            await bad
        with pytest.raises(InputError, match="truncate: true"):
            await long
        assert await good == ["GOOD"]
        await first

    use(check)


@pytest.mark.parametrize("problem", [RuntimeError("no such kernel"), MemoryError(), Panic()])
def test_what_fails_fails_alone(problem):
    async def check(worker):
        upper = Upper(problem=problem)
        first = await hold(worker, upper)
        _, poison = ask(worker, upper, ["poison"])
        _, good = ask(worker, upper, ["good"])
        await asyncio.sleep(0)
        upper.may_go_on.set()
        with pytest.raises(ServingError, match="the model failed"):
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
        assert worker.num_requests == 0

    use(check)


def test_what_waits_of_a_client_that_left_keeps_nobody_waiting():
    async def check(worker):
        upper, other = Upper(), Upper()
        first = await hold(worker, upper)
        worker.tokens_per_second[Upper] = 100.0
        left = [ask(worker, one, ["x" * 7000] * 4, "greedy")[1] for one in (upper, other)]
        await asyncio.sleep(0)
        with pytest.raises(ServingError):
            await ask(worker, upper, ["x" * 4000], "greedy")[1]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        assert not worker.queues
        second = ask(worker, upper, ["x" * 4000], "greedy")[1]
        upper.may_go_on.set()
        assert [await first, await second] == [["FIRST"], ["X" * 4000]]

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
        with pytest.raises(ServingError, match="2 requests wait already") as caught:
            await third
        assert caught.value.headers["retry-after"] == "1"
        upper.may_go_on.set()
        assert [await first, await second] == [["FIRST"], ["SECOND"]]

    use(check, max_concurrent_requests=2)


def test_one_client_may_be_limited_alone():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        with pytest.raises(ServingError, match="1 requests of yours wait already"):
            await ask(worker, upper, ["second"])[1]
        _, other = ask(worker, upper, ["other"], "b")
        upper.may_go_on.set()
        assert [await first, await other] == [["FIRST"], ["OTHER"]]
        assert await ask(worker, upper, ["third"])[1] == ["THIRD"]

    use(check, max_requests_per_client=1)


def test_the_log_says_what_failed_and_where_but_not_the_text(caplog):
    async def check(worker):
        upper = Upper(problem=RuntimeError("can't compute 'poison'"))
        upper.may_go_on.set()
        with pytest.raises(ServingError):
            await ask(worker, upper, ["poison"])[1]

    use(check)
    assert "failed: RuntimeError at test_worker.py:" in caplog.text
    assert "poison" not in caplog.text


def test_what_would_wait_too_long_is_refused_at_the_door():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        worker.tokens_per_second[Upper] = 10.0
        _, second = ask(worker, upper, ["x" * 398])  # 101 tokens: ten seconds
        await asyncio.sleep(0)
        with pytest.raises(ServingError, match="take 10 s") as caught:
            await ask(worker, upper, ["third"])[1]
        assert caught.value.headers["retry-after"] == "6"
        upper.may_go_on.set()
        await first
        await second

    use(check, max_wait=4)


def test_the_batch_that_is_computed_is_waited_for_too():
    async def check(worker):
        upper = Upper()
        worker.tokens_per_second[Upper] = 100.0
        _, first = ask(worker, upper, ["x" * 3996] * 2)  # two pieces in a batch: 20 s
        await asyncio.to_thread(upper.has_begun.wait, 60)
        with pytest.raises(ServingError, match="the requests that wait already take"):
            await ask(worker, upper, ["second"], "other")[1]
        upper.may_go_on.set()
        await first
        _, third = ask(worker, upper, ["third"])
        assert await third == ["THIRD"]

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


def test_a_batch_that_fails_is_tried_in_halves():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        texts = ["poison", *"abcdefg"]
        tasks = [ask(worker, upper, [text])[1] for text in texts]
        await asyncio.sleep(0)
        upper.may_go_on.set()
        await first
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert has_failed(found[0])
        assert found[1:] == [[text.upper()] for text in texts[1:]]
        assert sorted(map(len, upper.batches)) == [1, 1, 1, 2, 2, 4, 4, 8]

    use(check)


def test_what_lacks_memory_together_is_computed_in_parts():
    async def check(worker):
        upper = Upper(room=2)
        first = await hold(worker, upper)
        tasks = [ask(worker, upper, [text])[1] for text in "abcde"]
        await asyncio.sleep(0)
        upper.may_go_on.set()
        await first
        assert await asyncio.gather(*tasks) == [["A"], ["B"], ["C"], ["D"], ["E"]]
        assert worker.num_failures == 0

    use(check)


def test_failures_in_a_row_are_counted():
    async def check(worker):
        upper = Upper()
        upper.may_go_on.set()
        for number in range(1, 4):
            with pytest.raises(ServingError):
                await ask(worker, upper, ["poison"])[1]
            assert worker.num_failures == number
        with pytest.raises(InputError):  # says nothing of the model
            await ask(worker, upper, ["bad"])[1]
        assert worker.num_failures == 3
        await ask(worker, upper, ["good"])[1]
        assert worker.num_failures == 0

    use(check)


def test_what_counts_batches_may_fail():
    def note(*batch):
        raise ValueError("no such label")

    async def check(worker):
        upper = Upper()
        upper.may_go_on.set()
        assert await ask(worker, upper, ["one"])[1] == ["ONE"]
        assert await ask(worker, upper, ["two"])[1] == ["TWO"]

    use(check, note=note)


def test_a_failure_of_the_thread_is_told_to_all_who_wait_and_it_goes_on(monkeypatch, caplog):
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        tasks = [ask(worker, upper, [text], text)[1] for text in "ab"]
        await asyncio.sleep(0)
        with monkeypatch.context() as broken:
            broken.setattr(FairQueue, "pop", lambda queue: {}["no such turn"])
            upper.may_go_on.set()
            found = await asyncio.gather(*tasks, return_exceptions=True)
        assert list(map(has_failed, found)) == [True] * 2
        assert await first == ["FIRST"]
        assert await ask(worker, upper, ["later"])[1] == ["LATER"]

    use(check)
    assert "the thread of a model failed: KeyError at test_worker.py:" in caplog.text


def test_a_loop_that_is_closed_ends_the_thread():
    upper = Upper()

    async def leave():
        worker = Worker("m", LimitSettings(), batch_tokens=10)
        worker.start()
        await hold(worker, upper)
        return worker

    worker = asyncio.run(leave())
    assert not worker.close(0.01)
    upper.may_go_on.set()
    assert worker.close(60)


def test_a_thread_that_waits_holds_no_pipeline():
    async def check(worker):
        upper = Upper()
        upper.may_go_on.set()
        kept = weakref.ref(upper)
        left = ask(worker, upper, ["left"])[1]
        left.cancel()
        assert await ask(worker, upper, ["text"])[1] == ["TEXT"]
        del upper, left
        while kept() is not None:
            gc.collect()
            await asyncio.sleep(0.01)

    use(check)


def test_pipelines_that_only_the_queue_knows_stay_apart():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)

        def ask_one(number):
            other = Upper()
            other.may_go_on.set()
            return ask(worker, other, [f"text {number}"])[1]

        tasks = [ask_one(number) for number in range(20)]
        await asyncio.sleep(0)
        upper.may_go_on.set()
        await first
        assert await asyncio.gather(*tasks) == [[f"TEXT {number}"] for number in range(20)]

    use(check)


def test_with_deterministic_each_input_is_computed_alone():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        tasks = [ask(worker, upper, ["a", "b"])[1], ask(worker, upper, ["c"])[1]]
        await asyncio.sleep(0)
        upper.may_go_on.set()
        await first
        assert await asyncio.gather(*tasks) == [["A", "B"], ["C"]]
        assert all(len(batch) == 1 for batch in upper.batches)

    use(check, is_deterministic=True)


def test_speed_is_that_of_a_kind_of_pipeline_and_not_of_what_was_refused():
    async def check(worker):
        upper = Upper()
        upper.may_go_on.set()
        with pytest.raises(InputError):
            await ask(worker, upper, ["bad"])[1]
        assert not worker.tokens_per_second
        await ask(worker, upper, ["x" * 4500])[1]
        assert list(worker.tokens_per_second) == [Upper]

    use(check)


def test_small_batches_do_not_make_a_model_look_slow():
    """They take as long as larger ones, and a request that is refused could never show that."""

    async def check(worker):
        upper = Upper()
        upper.may_go_on.set()
        for _ in range(3):
            await ask(worker, upper, ["a"])[1]
        assert not worker.tokens_per_second
        worker.tokens_per_second[Upper] = 1e9
        await ask(worker, upper, ["a"])[1]
        assert worker.tokens_per_second[Upper] == 1e9
        await ask(worker, upper, ["x" * 4500])[1]
        assert worker.tokens_per_second[Upper] < 1e9
        slow = worker.tokens_per_second[Upper] = 0.1  # the least that lets a text of one letter in
        await ask(worker, upper, ["a"])[1]
        assert worker.tokens_per_second[Upper] > slow

    use(check)


def test_a_function_tells_nothing_of_others():
    async def check(worker):
        await ask(worker, len, ["a"])[1]
        assert not worker.tokens_per_second
        assert await ask(worker, len, ["x" * 100_000])[1] == [100_000]

    use(check, timeout=5)


def test_a_client_waits_for_its_own_requests_and_not_for_all_of_anothers():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        worker.tokens_per_second[Upper] = 100.0
        _, long = ask(worker, upper, ["x" * 7000] * 2, "greedy")  # 35 s
        await asyncio.sleep(0)
        _, short = ask(worker, upper, ["short"], "other")
        await asyncio.sleep(0)
        with pytest.raises(ServingError, match="the requests that wait already take 35 s"):
            await ask(worker, upper, ["more"], "greedy")[1]
        upper.may_go_on.set()
        assert await short == ["SHORT"]
        await first
        await long

    use(check, max_wait=4)


def test_a_work_that_goes_on_is_not_refused_and_what_it_read_costs_nothing():
    async def check(worker):
        upper = Upper()
        upper.may_go_on.set()
        request = ModelRequest(upper, ["x" * 400], "a", written_tokens=7)
        assert await worker.compute(request) == ["X" * 400]
        queued, begun = request.queued, request.begun
        worker.tokens_per_second[Upper] = 1e-9
        with pytest.raises(ServingError):
            await ask(worker, upper, ["x"])[1]
        assert [piece.cost for piece in request.cut(PIECE_TOKENS)] == [7]
        assert await worker.compute(request) == ["X" * 400]
        assert (request.queued, request.begun) == (queued, begun)
        assert request.num_tokens == 800

    use(check)


def test_what_is_written_counts_too():
    async def check(worker):
        upper = Upper()
        worker.tokens_per_second[Upper] = 10.0
        request = ModelRequest(upper, ["a"], "a", written_tokens=999)
        with pytest.raises(ServingError, match="takes about 100 s"):
            await worker.compute(request)

    use(check, timeout=5)


def test_what_can_not_be_computed_in_time_is_refused_at_the_door():
    async def check(worker):
        upper = Upper()
        worker.tokens_per_second[Upper] = 10.0
        with pytest.raises(ServingError, match="takes about 100 s, and it may take 5 s"):
            await ask(worker, upper, ["x" * 3992])[1]
        with pytest.raises(InputError, match="more than about 65,536 tokens"):
            await ask(worker, upper, ["x" * 4 * MOST_TOKENS])[1]
        assert worker.num_requests == 0

    use(check, timeout=5)


@pytest.mark.parametrize(
    ("value", "num_tokens"),
    [
        ("x" * 40, 12),
        ("ü" * 4, 5),
        ("\u4e2d" * 4, 7),
        ("\ud800", 3),
        ([2, 3000, 3], 3),
        ({"question": "x" * 8, "context": ["y", 3]}, 5),
    ],
)
def test_tokens_are_estimated_by_letters_and_bytes(value, num_tokens):
    assert estimate_tokens(value) == num_tokens


def test_who_asks_with_many_options_gets_no_more_than_others():
    async def check(worker):
        upper = Upper()
        first = await hold(worker, upper)
        order = []

        class Ordered(Upper):
            def compute_window(self, encoded):
                order.extend(encoded)
                return encoded

        many = [ask(worker, Ordered(), [f"many {n}"], "a")[1] for n in range(20)]
        few = ask(worker, Ordered(), ["few"], "b")[1]
        await asyncio.sleep(0)
        upper.may_go_on.set()
        await asyncio.gather(first, few, *many)
        assert order.index("few") <= 1

    use(check)
