"""What waits is taken fairly between clients, and short requests pass long ones."""

from dataclasses import dataclass

from bertkit.serving.fair_queue import MAX_CLIENTS, FairClock, FairQueue


@dataclass
class Waiting:
    client: str
    cost: int
    cost_so_far: int
    name: str = ""


def push_long(queue, client, num_pieces, cost=100):
    for number in range(1, num_pieces + 1):
        queue.push(Waiting(client, cost, number * cost, f"{client}{number}"))


def take_all(queue):
    return [queue.pop().name for _ in range(len(queue))]


def test_one_client_is_served_in_order():
    queue = FairQueue()
    push_long(queue, "a", 4)
    assert (len(queue), queue.estimate(10_000)) == (4, 400)
    assert take_all(queue) == ["a1", "a2", "a3", "a4"]
    assert (len(queue), queue.estimate(10_000)) == (0, 0)


def test_two_clients_take_turns_however_much_one_has_sent():
    queue = FairQueue()
    push_long(queue, "a", 4)
    push_long(queue, "b", 2)
    assert take_all(queue) == ["a1", "b1", "a2", "b2", "a3", "a4"]


def test_a_short_request_passes_the_rest_of_a_long_one_of_the_same_client():
    queue = FairQueue()
    push_long(queue, "a", 4)
    queue.push(Waiting("a", 10, 10, "short"))
    assert take_all(queue) == ["short", "a1", "a2", "a3", "a4"]


def test_who_comes_later_doesnt_catch_up():
    queue = FairQueue()
    push_long(queue, "a", 8)
    first = [queue.pop().name for _ in range(4)]
    push_long(queue, "b", 4)
    assert first == ["a1", "a2", "a3", "a4"]
    assert sorted(take_all(queue)[:4]) == ["a5", "a6", "b1", "b2"]


def test_many_short_requests_of_a_client_dont_stop_its_long_one_forever():
    queue = FairQueue()
    push_long(queue, "a", 1, cost=1000)
    taken = []
    for number in range(300):
        queue.push(Waiting("a", 10, 10, f"short{number}"))
        taken.append(queue.pop().name)
    assert "a1" in taken


def test_queues_that_share_a_clock_are_fair_together():
    clock = FairClock()
    queues = [FairQueue(clock) for _ in range(4)]
    for queue in queues[:3]:
        push_long(queue, "a", 2)
    push_long(queues[3], "b", 3)
    taken = []
    while waiting := [queue for queue in queues if queue]:
        taken.append(min(waiting, key=FairQueue.find_time).pop().name)
    assert [name[0] for name in taken] == ["a", "b", "a", "b", "a", "b", "a", "a", "a"]


def test_times_of_clients_that_left_are_forgotten():
    clock = FairClock()
    queue = FairQueue(clock)
    for number in range(3 * MAX_CLIENTS):
        queue.push(Waiting(f"client {number}", 1, 1))
        queue.pop()
    assert len(clock._times) <= MAX_CLIENTS + 1


def test_clients_that_come_anew_do_not_keep_others_from_their_turn():
    queue, taken = FairQueue(), []
    push_long(queue, "a", 2)
    for number in range(20):
        queue.push(Waiting(f"new {number}", 100, 100, f"new{number}"))
        queue.push(Waiting(f"newer {number}", 100, 100, f"newer{number}"))
        taken.append(queue.pop().name)
    assert "a2" in taken


def test_what_is_served_before_a_client_is_no_more_of_anothers_than_of_its_own():
    queue = FairQueue()
    push_long(queue, "a", 8)
    push_long(queue, "b", 1, cost=50)
    assert [queue.find_cost(name) for name in ("a", "b", "c")] == [800, 50, 0]
    assert queue.estimate(10) == 20
    assert queue.estimate(60) == 110
    assert queue.estimate(1000) == 850
