"""A model's thread: what is computed together, refused, dropped, and survived."""

import asyncio
import gc
import inspect
import threading
import weakref
from dataclasses import dataclass, field

import pytest

from bertkit.base.errors import InputError
from bertkit.base.settings import Settings
from bertkit.inference.pipeline import NamedInput, Pipeline
from bertkit.inference.stream import TextCounts
from bertkit.serving.errors import ServingError
from bertkit.serving.settings import LimitSettings
from bertkit.serving.sharing.fair_queue import MOST_TOKENS, FairQueue, ModelRequest, estimate_tokens
from bertkit.serving.sharing.worker import PIECE_TOKENS, Worker, has_failed


class Panic(BaseException):
    """What code in another language may raise."""


@dataclass(eq=False)
class Upper(Pipeline[str, str]):
    """Writes texts in capitals, in batches that it remembers; it may wait until it may go on."""

    options: Settings = field(default_factory=Settings)
    batches: list[list[str]] = field(default_factory=list)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    has_begun: threading.Event = field(default_factory=threading.Event)
    problem: BaseException = field(default_factory=lambda: RuntimeError("no such kernel"))
    room: int = 1000

    @classmethod
    def build(cls, opened, loading):
        raise NotImplementedError

    @classmethod
    def open(cls, **options):
        """One that waits for nothing."""
        upper = cls(**options)
        upper.may_go_on.set()
        return upper

    def encode_window(self, inputs: list[NamedInput]) -> list[str]:
        for named in inputs:
            if named.value == "bad":
                raise InputError(f"{named.name} is bad")
        return [named.value for named in inputs]

    def count(self, encoded, computed=None):
        num_cut = sum(len(one) > 5000 for one in encoded)
        return TextCounts(tokens=sum(map(len, encoded)), truncated=num_cut)

    def compute_window(self, encoded):
        self.batches.append(list(encoded))
        self.has_begun.set()
        assert self.may_go_on.wait(60)
        if "poison" in encoded:
            raise self.problem
        if len(encoded) > self.room:
            raise MemoryError
        return [one.upper() for one in encoded]

    async def release(self):
        """Compute what waits by then."""
        await asyncio.sleep(0)
        self.may_go_on.set()


def with_worker(note=lambda *_: None, *, batch_tokens=10_000, is_deterministic=False, **limits):
    """Run a test with a worker in an event loop, and with the fixtures that it names."""

    def decorate(test):
        async def run(**fixtures):
            worker = Worker(
                "m",
                LimitSettings(**limits),
                batch_tokens=batch_tokens,
                is_deterministic=is_deterministic,
            )
            worker.start(note)
            try:
                await asyncio.wait_for(test(worker, **fixtures), 60)
            finally:
                assert worker.close(60)

        def run_test(**fixtures):
            asyncio.run(run(**fixtures))

        _, *parameters = inspect.signature(test).parameters.values()
        run_test.__signature__ = inspect.Signature(parameters)
        return run_test

    return decorate


def ask(worker, pipeline, inputs, client="a", **options):
    request = ModelRequest(pipeline, inputs, client, **options)
    return asyncio.ensure_future(worker.compute(request))


async def hold(worker, **options):
    """A pipeline in whose first batch the model waits for `may_go_on`, and its request."""
    upper = Upper(**options)
    first = ask(worker, upper, ["first"])
    await asyncio.to_thread(upper.has_begun.wait, 60)
    return upper, first


@with_worker()
async def test_what_came_meanwhile_is_computed_together(worker):
    upper, first = await hold(worker)
    others = [ModelRequest(upper, [f"text {n}", "x"], f"client {n}") for n in range(3)]
    tasks = [asyncio.ensure_future(worker.compute(one)) for one in others]
    await upper.release()
    assert await first == ["FIRST"]
    assert await asyncio.gather(*tasks) == [[f"TEXT {n}", "X"] for n in range(3)]
    assert [request.num_tokens for request in others] == [7, 7, 7]
    assert len(upper.batches) == 2


@with_worker()
async def test_what_is_refused_refuses_nobody_else(worker):
    upper, first = await hold(worker)
    bad = ask(worker, upper, ["fine", "bad"])
    long = ask(worker, upper, ["x" * 5001], truncates=False)
    good = ask(worker, upper, ["good"])
    await upper.release()
    with pytest.raises(ServingError, match="text 2 is bad"):
        await bad
    with pytest.raises(ServingError, match="truncate: true"):
        await long
    assert await asyncio.gather(first, good) == [["FIRST"], ["GOOD"]]


@pytest.mark.parametrize("problem", [RuntimeError("no such kernel"), MemoryError(), Panic()])
@with_worker()
async def test_what_fails_fails_alone(worker, problem):
    """A batch that fails is tried in halves."""
    upper, first = await hold(worker, problem=problem)
    texts = ["poison", *"abcdefg"]
    tasks = [ask(worker, upper, [text]) for text in texts]
    await upper.release()
    await first
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert has_failed(found[0])
    assert found[1:] == [[text.upper()] for text in texts[1:]]
    assert sorted(map(len, upper.batches)) == [1, 1, 1, 2, 2, 4, 4, 8]
    assert await ask(worker, upper, ["later"]) == ["LATER"]


@with_worker()
async def test_what_lacks_memory_together_is_computed_in_parts(worker):
    upper, first = await hold(worker, room=2)
    tasks = [ask(worker, upper, [text]) for text in "abcde"]
    await upper.release()
    await first
    assert await asyncio.gather(*tasks) == [["A"], ["B"], ["C"], ["D"], ["E"]]
    assert worker.num_failures == 0


@with_worker()
async def test_a_request_whose_client_left_costs_nothing(worker):
    upper, first = await hold(worker)
    left, good = (ask(worker, upper, [text]) for text in ("left", "good"))
    await asyncio.sleep(0)
    left.cancel()
    await upper.release()
    assert await good == ["GOOD"]
    await first
    assert upper.batches == [["first"], ["good"]]
    assert worker.num_requests == 0


@with_worker()
async def test_what_waits_of_a_client_that_left_keeps_nobody_waiting(worker):
    upper, first = await hold(worker)
    worker.tokens_per_second[Upper] = 100.0
    left = [ask(worker, one, ["x" * 7000] * 4, "greedy") for one in (upper, Upper())]
    await asyncio.sleep(0)
    with pytest.raises(ServingError):
        await ask(worker, upper, ["x" * 4000], "greedy")
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert not worker.queues
    second = ask(worker, upper, ["x" * 4000], "greedy")
    await upper.release()
    assert await asyncio.gather(first, second) == [["FIRST"], ["X" * 4000]]


@with_worker(batch_tokens=PIECE_TOKENS)
async def test_a_long_request_is_cut_and_a_short_one_passes_between(worker):
    upper, first = await hold(worker)
    texts = ["x" * 2 * PIECE_TOKENS] * 6  # each half a piece, by its characters
    long, short = ask(worker, upper, texts), ask(worker, upper, ["short"], "b")
    await upper.release()
    await first
    assert await short == ["SHORT"]
    assert await long == [text.upper() for text in texts]
    assert "short" in upper.batches[1] + upper.batches[2]
    assert all(len(batch) <= 3 for batch in upper.batches)


@with_worker(max_concurrent_requests=2)
async def test_too_many_requests_are_refused_at_the_door(worker):
    upper, first = await hold(worker)
    second = ask(worker, upper, ["second"])
    await asyncio.sleep(0)
    with pytest.raises(ServingError, match="2 requests wait already") as caught:
        await ask(worker, upper, ["third"])
    assert caught.value.headers["retry-after"] == "1"
    await upper.release()
    assert await asyncio.gather(first, second) == [["FIRST"], ["SECOND"]]


@with_worker(max_requests_per_client=1)
async def test_one_client_may_be_limited_alone(worker):
    upper, first = await hold(worker)
    with pytest.raises(ServingError, match="1 requests of yours wait already"):
        await ask(worker, upper, ["second"])
    other = ask(worker, upper, ["other"], "b")
    await upper.release()
    assert await asyncio.gather(first, other) == [["FIRST"], ["OTHER"]]
    assert await ask(worker, upper, ["third"]) == ["THIRD"]


@with_worker()
async def test_the_log_says_what_failed_and_where_but_not_the_text(worker, caplog):
    upper = Upper.open(problem=RuntimeError("can't compute 'poison'"))
    with pytest.raises(ServingError):
        await ask(worker, upper, ["poison"])
    assert "failed: RuntimeError at test_worker.py:" in caplog.text
    assert "poison" not in caplog.text


@with_worker(max_wait=4)
async def test_what_would_wait_too_long_is_refused_at_the_door(worker):
    upper, first = await hold(worker)
    worker.tokens_per_second[Upper] = 10.0
    second = ask(worker, upper, ["x" * 398])  # 101 tokens: ten seconds
    await asyncio.sleep(0)
    with pytest.raises(ServingError, match="take 10 s") as caught:
        await ask(worker, upper, ["third"])
    assert caught.value.headers["retry-after"] == "6"
    await upper.release()
    await asyncio.gather(first, second)


@with_worker(max_wait=4)
async def test_the_batch_that_is_computed_is_waited_for_too(worker):
    upper = Upper()
    worker.tokens_per_second[Upper] = 100.0
    first = ask(worker, upper, ["x" * 3996] * 2)  # two pieces in a batch: 20 s
    await asyncio.to_thread(upper.has_begun.wait, 60)
    with pytest.raises(ServingError, match="the requests that wait already take"):
        await ask(worker, upper, ["second"], "other")
    await upper.release()
    await first
    assert await ask(worker, upper, ["third"]) == ["THIRD"]


@with_worker(max_wait=4)
async def test_a_client_waits_for_its_own_requests_and_not_for_all_of_anothers(worker):
    upper, first = await hold(worker)
    worker.tokens_per_second[Upper] = 100.0
    long = ask(worker, upper, ["x" * 7000] * 2, "greedy")  # 35 s
    await asyncio.sleep(0)
    short = ask(worker, upper, ["short"], "other")
    await asyncio.sleep(0)
    with pytest.raises(ServingError, match="the requests that wait already take 35 s"):
        await ask(worker, upper, ["more"], "greedy")
    await upper.release()
    assert await short == ["SHORT"]
    await asyncio.gather(first, long)


@with_worker(timeout=5)
async def test_what_can_not_be_computed_in_time_is_refused_at_the_door(worker):
    worker.tokens_per_second[Upper] = 10.0
    with pytest.raises(ServingError, match="takes about 100 s, and it may take 5 s"):
        await ask(worker, Upper(), ["x" * 3992])
    with pytest.raises(ServingError, match="takes about 100 s"):
        await ask(worker, Upper(), ["a"], written_tokens=999)
    with pytest.raises(InputError, match="more than about 65,536 tokens"):
        await ask(worker, Upper(), ["x" * 4 * MOST_TOKENS])
    assert worker.num_requests == 0


@with_worker()
async def test_different_options_are_computed_apart_and_take_turns(worker):
    (upper, first), other = await hold(worker), Upper.open()
    tasks = [ask(worker, one, ["text"]) for one in (upper, other, upper, other)]
    await upper.release()
    assert await asyncio.gather(first, *tasks) == [["FIRST"], *[["TEXT"]] * 4]
    assert (len(upper.batches), len(other.batches)) == (2, 1)


@with_worker(timeout=5)
async def test_functions_run_in_the_models_thread_and_tell_nothing_of_others(worker):
    task = ask(worker, lambda text: (text, threading.current_thread().name), ["a", "b"])
    assert await task == [("a", "model m"), ("b", "model m")]
    assert not worker.tokens_per_second
    assert await ask(worker, len, ["x" * 100_000]) == [100_000]


@with_worker()
async def test_failures_in_a_row_are_counted(worker):
    upper = Upper.open()
    for number in range(1, 4):
        with pytest.raises(ServingError):
            await ask(worker, upper, ["poison"])
        assert worker.num_failures == number
    with pytest.raises(ServingError):  # says nothing of the model
        await ask(worker, upper, ["bad"])
    assert worker.num_failures == 3
    await ask(worker, upper, ["good"])
    assert worker.num_failures == 0


def fail_to_count(*batch):
    raise ValueError("no such label")


@with_worker(fail_to_count)
async def test_what_counts_batches_may_fail(worker):
    upper = Upper.open()
    assert await ask(worker, upper, ["one"]) == ["ONE"]
    assert await ask(worker, upper, ["two"]) == ["TWO"]


@with_worker()
async def test_a_failure_of_the_thread_is_told_to_all_who_wait_and_it_goes_on(
    worker, monkeypatch, caplog
):
    upper, first = await hold(worker)
    tasks = [ask(worker, upper, [text], text) for text in "ab"]
    await asyncio.sleep(0)
    with monkeypatch.context() as broken:
        broken.setattr(FairQueue, "pop", lambda queue: {}["no such turn"])
        upper.may_go_on.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
    assert list(map(has_failed, found)) == [True] * 2
    assert await first == ["FIRST"]
    assert await ask(worker, upper, ["later"]) == ["LATER"]
    assert "the thread of a model failed: KeyError at test_worker.py:" in caplog.text


def test_a_loop_that_is_closed_ends_the_thread():
    async def leave():
        worker = Worker("m", LimitSettings(), batch_tokens=10)
        worker.start()
        upper, _ = await hold(worker)
        return worker, upper

    worker, upper = asyncio.run(leave())
    assert not worker.close(0.01)
    upper.may_go_on.set()
    assert worker.close(60)


@with_worker()
async def test_a_thread_that_waits_holds_no_pipeline(worker):
    upper = Upper.open()
    kept = weakref.ref(upper)
    left = ask(worker, upper, ["left"])
    left.cancel()
    assert await ask(worker, upper, ["text"]) == ["TEXT"]
    del upper, left
    while kept() is not None:
        gc.collect()
        await asyncio.sleep(0.01)


@with_worker()
async def test_pipelines_that_only_the_queue_knows_stay_apart(worker):
    upper, first = await hold(worker)
    tasks = [ask(worker, Upper.open(), [f"text {number}"]) for number in range(20)]
    await upper.release()
    await first
    assert await asyncio.gather(*tasks) == [[f"TEXT {number}"] for number in range(20)]


@with_worker(is_deterministic=True)
async def test_with_deterministic_each_input_is_computed_alone(worker):
    upper, first = await hold(worker)
    tasks = [ask(worker, upper, ["a", "b"]), ask(worker, upper, ["c"])]
    await upper.release()
    await first
    assert await asyncio.gather(*tasks) == [["A", "B"], ["C"]]
    assert all(len(batch) == 1 for batch in upper.batches)


@with_worker()
async def test_speed_is_that_of_a_kind_of_pipeline_and_not_of_small_or_refused_batches(worker):
    """Small ones take as long as larger ones, and what is refused could never show that."""
    upper = Upper.open()
    with pytest.raises(ServingError):
        await ask(worker, upper, ["bad"])
    for _ in range(3):
        await ask(worker, upper, ["a"])
    assert not worker.tokens_per_second
    await ask(worker, upper, ["x" * 4500])
    assert list(worker.tokens_per_second) == [Upper]
    worker.tokens_per_second[Upper] = 1e9
    await ask(worker, upper, ["a"])
    assert worker.tokens_per_second[Upper] == 1e9
    await ask(worker, upper, ["x" * 4500])
    assert worker.tokens_per_second[Upper] < 1e9
    slow = worker.tokens_per_second[Upper] = 0.1  # the least that lets a text of one letter in
    await ask(worker, upper, ["a"])
    assert worker.tokens_per_second[Upper] > slow


@with_worker()
async def test_a_work_that_goes_on_is_not_refused_and_what_it_read_costs_nothing(worker):
    upper = Upper.open()
    request = ModelRequest(upper, ["x" * 400], "a", written_tokens=7)
    assert await worker.compute(request) == ["X" * 400]
    queued, begun = request.queued, request.begun
    worker.tokens_per_second[Upper] = 1e-9
    with pytest.raises(ServingError):
        await ask(worker, upper, ["x"])
    assert [piece.cost for piece in request.cut(PIECE_TOKENS)] == [7]
    assert await worker.compute(request) == ["X" * 400]
    assert (request.queued, request.begun) == (queued, begun)
    assert request.num_tokens == 800


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


@with_worker()
async def test_who_asks_with_many_options_gets_no_more_than_others(worker):
    upper, first = await hold(worker)
    order = []

    class Ordered(Upper):
        def compute_window(self, encoded):
            order.extend(encoded)
            return encoded

    many = [ask(worker, Ordered(), [f"many {n}"], "a") for n in range(20)]
    few = ask(worker, Ordered(), ["few"], "b")
    await upper.release()
    await asyncio.gather(first, few, *many)
    assert order.index("few") <= 1
