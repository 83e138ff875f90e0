"""What SIGTERM and Ctrl-C do to work; the loop's tests have what they do to a run."""

import signal
import threading

import pytest

from bertkit.base.errors import StoppedError
from bertkit.base.signals import (
    STOP_SIGNALS,
    catch_stop_signals,
    delay_stop_signals,
    interruptible,
    stop_at_once,
)


@pytest.fixture(autouse=True)
def _handlers_are_put_back():
    before = [signal.getsignal(each) for each in STOP_SIGNALS]
    yield
    assert [signal.getsignal(each) for each in STOP_SIGNALS] == before


def stop_twice(number: int) -> None:
    """The first signal is a request, the second one ends the outer block."""
    with stop_at_once(lambda: "at once"), catch_stop_signals() as stop:
        signal.raise_signal(number)
        assert stop.is_set
        signal.raise_signal(number)
        pytest.fail("the second one was not heard")


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_ends_the_block_with_the_description(number):
    def work():
        with stop_at_once(lambda: "one thing done"):
            signal.raise_signal(number)
            pytest.fail("it went on")

    with pytest.raises(StoppedError, match="one thing done"):
        work()


def swallow(number: int) -> None:
    """What torch does where it is interrupted while it is imported."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        raise RecursionError("half imported") from None


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_ends_the_block_though_a_library_makes_an_error_of_it(number):
    with (
        pytest.raises(StoppedError, match="one thing done"),
        stop_at_once(lambda: "one thing done"),
    ):
        swallow(number)


def test_ctrl_c_is_an_interruption_though_a_library_makes_an_error_of_it():
    with pytest.raises(KeyboardInterrupt), interruptible():
        swallow(signal.SIGINT)
    with pytest.raises(RecursionError), interruptible():
        raise RecursionError


def test_a_host_that_ignores_ctrl_c_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_delayed_signal_is_heard_after_the_block(number):
    done = []

    def work():
        with stop_at_once(lambda: "one thing done"):
            with delay_stop_signals():
                signal.raise_signal(number)
                done.append("the block")
            pytest.fail("it went on")

    with pytest.raises(StoppedError, match="one thing done"):
        work()
    assert done == ["the block"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_outer_block(number):
    with pytest.raises(StoppedError, match="at once"):
        stop_twice(number)


@pytest.mark.parametrize("first", STOP_SIGNALS)
def test_a_terminal_that_is_closed_may_say_so_again(first):
    with stop_at_once(lambda: "at once"), catch_stop_signals() as stop:
        signal.raise_signal(first)
        signal.raise_signal(signal.SIGHUP)
        assert stop.is_set


def test_a_second_hangup_does_not_disturb_what_the_first_one_ends():
    done = []

    def work():
        with stop_at_once(lambda: "at once"):
            try:
                signal.raise_signal(signal.SIGHUP)
            finally:
                signal.raise_signal(signal.SIGHUP)
                done.append("cleaned up")

    with pytest.raises(StoppedError, match="at once"):
        work()
    assert done == ["cleaned up"]


@pytest.mark.parametrize(
    "block", [catch_stop_signals, delay_stop_signals, lambda: stop_at_once(str)]
)
def test_a_hangup_that_is_ignored_stays_ignored(block):
    """`nohup` runs a command so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with block() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert stop is None or not stop.is_set
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_work_that_is_done_before_a_stop_has_its_result():
    with catch_stop_signals() as stop:
        assert stop.run(lambda: 5) == 5
        signal.raise_signal(signal.SIGTERM)
        assert stop.run(lambda: pytest.fail("it began")) is None


def test_a_stop_ends_work_that_changes_nothing():
    def work():
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("it went on")

    with catch_stop_signals() as stop:
        assert stop.run(work) is None
        assert stop.is_set


@pytest.fixture
def signal_while_installing(monkeypatch):
    """The first handler that is set hears its signal before the next one is set."""
    install, sent = signal.signal, []

    def install_and_signal(number, handler):
        before = install(number, handler)
        if not sent:
            sent.append(number)
            signal.raise_signal(number)
        return before

    monkeypatch.setattr(signal, "signal", install_and_signal)


@pytest.mark.usefixtures("signal_while_installing")
def test_a_signal_before_all_handlers_are_set_is_a_request():
    with catch_stop_signals() as stop:
        assert stop.is_set


@pytest.mark.usefixtures("signal_while_installing")
def test_a_signal_before_all_handlers_are_set_ends_the_block():
    with pytest.raises(StoppedError, match="at once"), stop_at_once(lambda: "at once"):
        pytest.fail("it went on")


@pytest.mark.parametrize("block", [catch_stop_signals, lambda: stop_at_once(str)])
def test_a_signal_that_a_host_program_handles_stays_with_it(monkeypatch, block):
    taken = []
    with monkeypatch.context() as patches:
        patches.setattr(signal, "getsignal", {signal.SIGINT: signal.SIG_IGN}.get)
        patches.setattr(signal, "signal", lambda *arguments: taken.append(arguments))
        with block():
            pass
    assert [number for number, _ in taken] == [signal.SIGINT, signal.SIGINT]
    assert taken[-1] == (signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("block", [catch_stop_signals, delay_stop_signals, interruptible])
def test_nothing_is_replaced_outside_the_main_thread(block):
    found = []

    def work():
        with block():
            found.extend(map(signal.getsignal, STOP_SIGNALS))

    before = list(map(signal.getsignal, STOP_SIGNALS))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == before
