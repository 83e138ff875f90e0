"""What waits is taken fairly between clients, and short requests pass long ones."""

from dataclasses import dataclass

from bertkit.serving.fair_queue import FairQueue


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
    assert (len(queue), queue.cost) == (4, 400)
    assert take_all(queue) == ["a1", "a2", "a3", "a4"]
    assert (len(queue), queue.cost) == (0, 0)


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
