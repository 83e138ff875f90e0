"""What waits is taken fairly between clients, and short requests pass long ones."""

from bertkit.serving.sharing.fair_queue import (
    MAX_CLIENTS,
    FairClock,
    FairQueue,
    ModelRequest,
    RequestPiece,
)


def push(queue, client, name="", cost=10):
    queue.push(RequestPiece(ModelRequest(len, [name], client), slice(0, 1), cost, cost))


def push_long(queue, client, num_pieces, cost=100):
    """Let a request wait whose pieces are named a1, a2, …; return it."""
    request = ModelRequest(len, [f"{client}{number + 1}" for number in range(num_pieces)], client)
    for number in range(num_pieces):
        queue.push(RequestPiece(request, slice(number, number + 1), cost, (number + 1) * cost))
    return request


def pop(queue):
    return queue.pop().inputs[0]


def take_all(queue):
    names = []
    while queue:
        names.append(pop(queue))
    return names


def test_two_clients_take_turns_however_much_one_has_sent():
    queue = FairQueue(FairClock())
    push_long(queue, "a", 4)
    push_long(queue, "b", 2)
    assert take_all(queue) == ["a1", "b1", "a2", "b2", "a3", "a4"]
    assert queue.estimate(10_000) == 0


def test_a_short_request_passes_the_rest_of_a_long_one_of_the_same_client():
    queue = FairQueue(FairClock())
    push_long(queue, "a", 4)
    push(queue, "a", "short")
    assert take_all(queue) == ["short", "a1", "a2", "a3", "a4"]


def test_who_comes_later_doesnt_catch_up():
    queue = FairQueue(FairClock())
    push_long(queue, "a", 8)
    first = [pop(queue) for _ in range(4)]
    push_long(queue, "b", 4)
    assert first == ["a1", "a2", "a3", "a4"]
    assert sorted(take_all(queue)[:4]) == ["a5", "a6", "b1", "b2"]


def test_many_short_requests_of_a_client_dont_stop_its_long_one_forever():
    queue = FairQueue(FairClock())
    push_long(queue, "a", 1, cost=1000)
    taken = []
    for number in range(300):
        push(queue, "a", f"short{number}")
        taken.append(pop(queue))
    assert "a1" in taken


def test_queues_that_share_a_clock_are_fair_together():
    clock = FairClock()
    queues = [FairQueue(clock) for _ in range(4)]
    for queue in queues[:3]:
        push_long(queue, "a", 2)
    push_long(queues[3], "b", 3)
    taken = []
    while waiting := [queue for queue in queues if queue]:
        taken.append(pop(min(waiting, key=FairQueue.find_time)))
    assert [name[0] for name in taken] == ["a", "b", "a", "b", "a", "b", "a", "a", "a"]


def test_times_of_clients_that_left_are_forgotten():
    clock = FairClock()
    queue = FairQueue(clock)
    for number in range(3 * MAX_CLIENTS):
        push(queue, f"client {number}", cost=1)
        queue.pop()
    assert len(clock.times) <= MAX_CLIENTS + 1


def test_clients_that_come_anew_do_not_keep_others_from_their_turn():
    queue, taken = FairQueue(FairClock()), []
    push_long(queue, "a", 2)
    for number in range(20):
        push(queue, f"new {number}", cost=100)
        push(queue, f"newer {number}", cost=100)
        taken.append(pop(queue))
    assert "a2" in taken


def test_what_is_served_before_a_client_is_no_more_of_anothers_than_of_its_own():
    queue = FairQueue(FairClock())
    push_long(queue, "a", 8)
    push_long(queue, "b", 1, cost=50)
    assert [queue.costs[name] for name in ("a", "b", "c")] == [800, 50, 0]
    assert queue.estimate(10) == 20
    assert queue.estimate(60) == 110
    assert queue.estimate(1000) == 850


def test_what_is_removed_costs_its_client_nothing():
    queue = FairQueue(FairClock())
    gone = push_long(queue, "a", 4)
    push(queue, "a", "stays", cost=50)
    push_long(queue, "b", 2)
    assert pop(queue) == "stays"
    assert queue.remove(gone)
    push(queue, "a", "later")
    assert queue.costs["a"] == 10
    assert take_all(queue) == ["b1", "later", "b2"]
    only = push_long(queue, "c", 3)
    assert not queue.remove(only)
    assert not queue
    assert queue.clock.num_waiting == 0


def test_clients_whose_requests_are_done_leave_nothing_behind():
    queue = FairQueue(FairClock())
    push_long(queue, "a", 2)  # so that the queue stays
    for number in range(3):
        request = ModelRequest(len, ["one"], f"client {number}")
        queue.push(RequestPiece(request, slice(0, 1), 10, 10))
        while pop(queue) != "one":
            push_long(queue, "a", 1)
        assert queue.remove(request)
    assert queue.waiting.keys() == {"a"}


def test_a_client_that_the_clock_forgets_keeps_its_place():
    queue = FairQueue(FairClock())
    push(queue, "earlier", cost=1_000_000)
    queue.pop()
    for number in range(MAX_CLIENTS - 2):
        push(queue, f"client {number}", cost=20)
    for _ in range(MAX_CLIENTS - 2):
        queue.pop()
    push(queue, "a", "a", cost=2048)
    for _ in range(50):
        push(queue, "b", "b", cost=30)
    push(queue, "a", "a", cost=2048)
    for _ in range(3):
        push(queue, "c", "c", cost=30)
    assert "c" in take_all(queue)[3:8]
