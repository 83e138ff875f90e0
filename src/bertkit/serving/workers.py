"""Several processes that serve the same models on one port, and the one that keeps them running."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from bertkit.base.errors import BertkitError, StoppedError
from bertkit.base.parts import count_cores, thread_variables
from bertkit.base.progress import announce
from bertkit.base.signals import HANGUPS, STOP_SIGNALS, find_handlers, handled_by
from bertkit.serving.server import RELOAD_SIGNALS, ModelServer, bind, name_models, run_server
from bertkit.serving.settings import ServeSettings

RESTART_SECONDS = 1.0  # without an event, before workers that ended are started again
READY = b"ready"  # what a worker writes, or its number when its models were loaded again
# Signals that a terminal sends to the whole process group come to workers as SIGTERM, and once.
BLOCKED = (signal.SIGINT, *HANGUPS, *RELOAD_SIGNALS)


def serve(models: Sequence[str], settings: ServeSettings) -> None:
    """Serve models until a signal ends it; what is running is finished."""
    named = name_models(models)
    if settings.workers == 1:
        server = ModelServer(named, settings)
        run_server(server, server.run())
        return
    with bind(settings) as place:
        Workers(named, settings, place).run()


class Workers:
    """Processes that share a socket; one that ends is started again."""

    def __init__(
        self, models: Mapping[str, str], settings: ServeSettings, place: socket.socket
    ) -> None:
        self._what = models, settings, place
        self._settings = settings
        self._processes: dict[int, BaseProcess] = {}
        self._ended: list[int] = []
        self._reading, self._writing = get_context("spawn").Pipe(duplex=False)
        self._is_ready = self._is_stopping = self._is_killed = False
        threads = thread_variables(max(1, count_cores() // settings.workers))
        os.environ.update({name: os.environ.get(name, count) for name, count in threads.items()})

    def run(self) -> None:
        """Start the workers, and wait for their end.

        The others are started when the first is ready: models that can't be loaded are told once.
        """
        before = find_handlers((*STOP_SIGNALS, *RELOAD_SIGNALS))
        handlers = dict.fromkeys(STOP_SIGNALS, self._stop)
        with handled_by(handlers | dict.fromkeys(RELOAD_SIGNALS, self._reload), before):
            self._start(1)
            while self._processes or (self._ended and not self._is_stopping):
                self._wait()
        if self._is_killed:
            raise StoppedError("the server was ended before the running requests were answered")

    def _wait(self) -> None:
        """Wait until a worker is ready or has ended, or it is time to start some again."""
        numbers = {one.sentinel: number for number, one in self._processes.items()}
        events = wait([self._reading, *numbers], RESTART_SECONDS if self._ended else None)
        for event in events:
            if isinstance(event, int):
                self._note_end(numbers[event])
            elif (message := self._reading.recv_bytes()) != READY:
                self._reload(by=int(message))  # let the others do what one of them did
            elif not self._is_ready and not self._is_stopping:
                self._is_ready = True
                for number in range(2, self._settings.workers + 1):
                    self._start(number)
        while not events and self._ended and not self._is_stopping:
            self._start(self._ended.pop())

    def _start(self, number: int) -> None:
        errand = (*self._what, number, self._writing)
        process = get_context("spawn").Process(target=run_worker, args=errand)
        resource_tracker.ensure_running()  # its start lets SIGINT through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
        try:
            process.start()
        finally:
            self._processes[number] = process
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if self._is_stopping:
            process.terminate()

    def _note_end(self, number: int) -> None:
        """Remember a worker that has ended by itself; end if none was ever ready."""
        process = self._processes.pop(number)
        process.join()
        if self._is_stopping:
            return
        if not self._is_ready:
            sys.exit(process.exitcode if process.exitcode and process.exitcode > 0 else 1)
        announce(f"worker {number} ended by itself, and is started again")
        self._ended.append(number)

    def _stop(self, number: int, _: Any) -> None:
        if self._is_stopping and number in HANGUPS:  # a terminal that closes often hangs up twice
            return
        self._is_killed = self._is_stopping
        for process in list(self._processes.values()):
            if process.pid is not None:
                (process.kill if self._is_killed else process.terminate)()
        self._is_stopping = True

    def _reload(self, *_: object, by: int = 0) -> None:
        """Let all workers load their models again, but for one that has done so."""
        for number, process in list(self._processes.items()):
            if number != by and process.pid is not None:
                os.kill(process.pid, signal.SIGUSR1)


def run_worker(
    models: Mapping[str, str],
    settings: ServeSettings,
    place: socket.socket,
    number: int,
    writing: Connection,
) -> None:
    """Serve models in this process until it is told to end, or its parent is gone."""

    def tell(line: str) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, RELOAD_SIGNALS)
        announce(f"{line} (worker {number} of {settings.workers})")
        writing.send_bytes(READY)

    async def load_and_serve() -> None:
        """Serve once all is loaded: until then other workers take the connections."""
        await server.service.load()
        loop, parent = asyncio.get_running_loop(), parent_process()
        assert parent is not None

        def end() -> None:
            loop.remove_reader(parent.sentinel)
            server.stop()

        loop.add_reader(parent.sentinel, end)
        await server.run(tell)

    try:
        server = ModelServer(models, settings, place, str(number))
        server.service.tell_others = lambda: writing.send_bytes(b"%d" % number)
        run_server(server, load_and_serve())
    except BertkitError as error:
        announce(f"bertkit: {error}")
        sys.exit(error.exit_code)
