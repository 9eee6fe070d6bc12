"""The measured clients: one process each, asked in turn, so that all of them meet the same machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peers import ROOT, Peer, cli_path

HERE = Path(__file__).parent
PATIENCE = 600.0  # seconds; a client that takes longer is given up


class Gone(RuntimeError):
    """A client ended, or could not do what was asked; the message says why."""


class Client:
    """A process that runs ``harness.py`` with one driver."""

    def __init__(self, peer: Peer, port: int) -> None:
        self.peer, self.port = peer, port
        environment = {**os.environ, "PYDANTIC_AI_NO_BANNER": "1", "OPENAI_API_KEY": "x"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if peer.kind == "ours":
            environment["PYTHONPATH"] = str(ROOT)
        if path := cli_path():
            environment["COPILOT_CLI_PATH"] = path
        interpreter = sys.executable if peer.kind == "ours" else str(peer.python())
        command = [interpreter, str(HERE / "harness.py"), peer.driver, str(port)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
        )
        self.complaints: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()
        self.opened = self._answer()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.complaints = [*self.complaints[-20:], line.strip()]

    def ask(self, order: dict[str, Any]) -> dict[str, float]:
        """Have one thing measured."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Gone(f"{self.peer.name} ended: {' '.join(self.complaints[-1:])}") from error
        return self._answer()

    def _answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        try:
            for line in self.process.stdout:
                if line.startswith("RESULT "):
                    result: dict[str, Any] = json.loads(line[7:])
                    if "error" in result:
                        raise Gone(f"{self.peer.name}: {result['error']}")
                    return result
        finally:
            timer.cancel()
        raise Gone(f"{self.peer.name} ended: {' '.join(self.complaints[-1:])}")

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def clients(peers: Sequence[Peer], skipped: dict[str, str]) -> Iterator[dict[str, Client]]:
    """A model server and the clients that can run here; who cannot is noted in `skipped`."""
    pipe = subprocess.PIPE
    server = subprocess.Popen([sys.executable, str(HERE / "server.py")], stdin=pipe, stdout=pipe, text=True)
    found: dict[str, Client] = {}
    try:
        assert server.stdout is not None and server.stdin is not None
        port = int(server.stdout.readline())
        for peer in peers:
            if reason := None if peer.kind == "ours" else peer.missing():
                skipped[peer.name] = reason
                continue
            try:
                found[peer.name] = Client(peer, port)
            except Gone as error:
                skipped[peer.name] = str(error)
        yield found
    finally:
        for client in found.values():
            client.close()
        server.stdin.close()
        server.terminate()
        server.wait()


def alternate(
    found: dict[str, Client],
    order: dict[str, Any],
    rounds: int,
    skipped: dict[str, str],
    only: Sequence[str] = (),
    rivals: int | None = None,
) -> dict[str, list[dict[str, float]]]:
    """Ask every client in turn, `rounds` times; one that fails falls out, and `skipped` says why.

    Rivals, which cost several times as much, take part in the first `rivals` rounds.
    """
    results: dict[str, list[dict[str, float]]] = {name: [] for name in found if not only or name in only}
    for turn in range(rounds):
        for name in list(results):
            if rivals is not None and turn >= rivals and found[name].peer.kind not in ("ours", "limit"):
                continue
            try:
                results[name].append(found[name].ask(order))
            except Gone as error:
                skipped[f"{name}, {order['do']}"] = str(error)
                del results[name]
        if sys.stderr.isatty():
            print(f"\r  {order} {turn + 1}/{rounds}\033[K", end="\r", file=sys.stderr, flush=True)
    return results
