"""Sites that answer messages of a server, one step of a fit at a time, and may be started again.

A fit calls its engine for one step after the other. Here a site runs its fit anew for each
message: steps whose results are known are not sent again, and at the first other one the fit
stops, for what this site sends is kept and returned. So a site needs no process that stays, and
one that was killed goes on where it was.
"""

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from skdp._validation import positive_int
from skdp.engines._local import LocalEngine
from skdp.engines._mpi import digest_of, entries_of, what_differs
from skdp.exceptions import DistributedError

Reply = dict[str, Any]
_KEY = 32  # bytes


class Waiting(BaseException):
    """The fit waits for others; it is no error, and nothing but `answer` may catch it."""

    def __init__(self, step: int, message: bytes) -> None:
        super().__init__(step)
        self.step, self.message = step, message


class SiteLog:
    """What a site keeps between messages: results of steps, its own messages, and a key.

    Privacy: results are released or public, or masked; own messages are what was sent. The key is
    private, and opens nothing without the messages of others.

    Parameters
    ----------
    folder : path-like, default=None
        Where it is kept, so that a site that was killed goes on; None keeps it in ``entries``.

    entries : dict of bytes, default=None
        What was kept before.
    """

    def __init__(self, folder: Any = None, entries: Mapping[str, bytes] | None = None) -> None:
        self.entries = dict(entries or {})
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in self.folder.iterdir():
                if path.suffix == ".step":
                    self.entries[path.stem] = path.read_bytes()

    def put(self, name: str, value: bytes) -> bytes:
        """Keep something, on disk before this returns."""
        self.entries[name] = value
        if self.folder is not None:
            draft = self.folder / f"{name}.draft"
            with open(draft, "wb", opener=_private) as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.folder / f"{name}.step")
        return value

    def get(self, name: str) -> bytes | None:
        """What was kept under a name."""
        return self.entries.get(name)

    @property
    def n_results(self) -> int:
        """Steps whose results are known, from the first on."""
        count = 0
        while f"result-{count}" in self.entries:
            count += 1
        return count

    def result(self, step: int) -> list[bytes | None]:
        """Message of each node at a step; None of those that did not send any."""
        return unpacked(self.entries[f"result-{step}"])


def _private(path: Any, flags: int) -> int:
    return os.open(path, flags, 0o600)


def packed(messages: list[bytes | None]) -> bytes:
    """Messages of all nodes as one."""
    lengths = [-1 if one is None else len(one) for one in messages]
    head = json.dumps(lengths).encode()
    parts = [len(head).to_bytes(8, "big"), head, *(one for one in messages if one is not None)]
    return b"".join(parts)


def unpacked(text: bytes) -> list[bytes | None]:
    """Inverse of `packed`."""
    start = 8 + int.from_bytes(text[:8], "big")
    found = list[bytes | None]()
    for length in json.loads(text[8:start]):
        if length < 0:
            found.append(None)
        else:
            found.append(text[start : start + length])
            start += length
    return found


class SiteEngine:
    """Engine of one site, which stops the fit where others have to be heard.

    Parameters
    ----------
    node : int
        Number of the site among all.

    n_nodes : int

    log : SiteLog
    """

    is_distributed = True
    # A fit runs again and again: what a node releases alone would have noise several times.
    runs_again = True

    def __init__(self, node: int, n_nodes: int, log: SiteLog) -> None:
        self.node, self.n_nodes, self.log = node, n_nodes, log
        self.mine = self.heard = np.array([node])
        self._step, self._tokens = 0, list[Any]()

    def __deepcopy__(self, memo: object = None) -> "SiteEngine":
        return self

    __sklearn_clone__ = __deepcopy__

    def __reduce__(self) -> tuple:
        # The log has the key of this site, which no model may carry away.
        return LocalEngine, ()

    def open(self, topology: Any, width: int) -> None:
        """See `Engine.open`."""
        if topology.n_nodes != self.n_nodes:
            raise ValueError(
                f"n_nodes must be the number of sites, {self.n_nodes}; got {topology.n_nodes}."
            )

    def close(self) -> None:
        """See `Engine.close`."""

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """See `Engine.exchange`; sites have no links but to the server."""
        raise NotImplementedError("sites of a relay exchange sums only")

    def collect(self, values: np.ndarray) -> np.ndarray:
        """See `Engine.collect`."""
        everyone, answered = self._gathered(values)
        if not answered.all():
            missing = np.flatnonzero(~answered).tolist()
            raise DistributedError(f"Nodes {missing} have not answered, and all are needed here.")
        return everyone

    def collect_some(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for a step that nodes may miss; and who has answered."""
        return self._gathered(values)

    def agree(self, error: BaseException | None, token: object = None) -> None:
        """See `Engine.agree`; tokens are compared with the next step."""
        if error is not None:
            raise error
        if token is not None:
            told = entries_of(token)
            self._tokens.append({"": ("", digest_of(token).hex())} if told is None else told)

    def secret(self) -> bytes:
        """Random bytes that stay the same for this fit."""
        return self.log.get("key") or self.log.put("key", os.urandom(_KEY))

    @property
    def has_charged(self) -> bool:
        """Whether the ledger of this site was charged before."""
        return self.log.get("charged") is not None

    def charged(self) -> None:
        """Note that it was."""
        self.log.put("charged", b"1")

    def _gathered(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step, tokens = self._step, self._tokens
        self._step, self._tokens = step + 1, []
        if step >= self.log.n_results:
            message = self.log.get(f"own-{step}")
            if message is None:
                values = np.ascontiguousarray(values)
                message = self.log.put(f"own-{step}", _encoded(tokens, values))
            raise Waiting(step, message)
        messages = self.log.result(step)
        own = self.log.get(f"own-{step}")
        if own is not None and messages[self.node] not in (own, None):
            raise DistributedError("A message of this site came back changed.")
        found = [None if one is None else _decoded(one) for one in messages]
        known = {i: one for i, one in enumerate(found) if one is not None}
        _compare({i: tokens for i, (tokens, _) in known.items()}, self.n_nodes)
        first = next(iter(known.values()))[1]
        everyone = np.zeros((self.n_nodes, *first.shape[1:]), dtype=first.dtype)
        for i, (_, part) in known.items():
            if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
                raise DistributedError(f"Node {i} has sent numbers of another shape.")
            everyone[i] = part[0]
        answered = np.array([i in known for i in range(self.n_nodes)])
        return everyone, answered


def _encoded(tokens: list[Any], values: np.ndarray) -> bytes:
    head = json.dumps(tokens).encode()
    body = io.BytesIO()
    np.save(body, values, allow_pickle=False)
    return len(head).to_bytes(8, "big") + head + body.getvalue()


def _decoded(message: bytes) -> tuple[list[Any], np.ndarray]:
    start = 8 + int.from_bytes(message[:8], "big")
    try:
        tokens = json.loads(message[8:start])
        values = np.load(io.BytesIO(message[start:]), allow_pickle=False)
    except ValueError:
        raise DistributedError("A message cannot be read: it is of another version.") from None
    return tokens, values


def _compare(tokens: dict[int, list[Any]], n_nodes: int) -> None:
    """Raise where nodes have other public tokens, and name what differs."""
    for place in range(max(map(len, tokens.values()))):
        told = [tokens.get(node, [])[place : place + 1] for node in range(n_nodes)]
        difference = what_differs([own[0] if own else {} for own in told], "node", "at")
        if difference:
            raise DistributedError(
                "All sites must call fit with the same parameters, features and classes; "
                f"{difference}."
            )


@dataclass
class Site:
    """One site: what it answers to messages of the server.

    Parameters
    ----------
    node, n_nodes : int

    learn : callable
        ``learn(engine)`` fits a model with that engine, and returns it.

    finish : callable, default=None
        ``finish(model)`` is called once the model is there.

    log : SiteLog

    Attributes
    ----------
    failed : Exception or None
        What the fit raised; others learn its type.
    """

    node: int
    n_nodes: int
    learn: Callable[[Any], Any]
    finish: Callable[[Any], Any] | None = None
    log: SiteLog = field(default_factory=SiteLog)
    failed: Exception | None = None

    def answer(self, message: Mapping[str, Any]) -> Reply:
        """Take up new results, and go on with the fit until others have to be heard.

        Parameters
        ----------
        message : mapping
            Results of steps from ``first`` on, and the number ``known`` of those that the server
            has.

        Returns
        -------
        dict
            ``node``, and what it is about: a message of a ``step``, ``done``, the type of an
            ``error``, or from which step on results are ``missing``. Those that a new server lacks
            are ``ahead``, from the step on of which it was told.
        """
        reply: Reply = {"node": self.node}
        first, known = int(message["first"]), self.log.n_results
        if first > known:
            return {**reply, "missing": known}
        for step, text in enumerate(message["results"], start=first):
            if step >= known:
                self.log.put(f"result-{step}", text)
        n_server = int(message["known"])
        if self.log.n_results > n_server:  # the server was killed, and this site was not
            steps = range(n_server, self.log.n_results)
            reply["ahead"] = [self.log.entries[f"result-{step}"] for step in steps]
            reply["ahead of"] = n_server
        if self._has_lost(step := self.log.n_results):
            # It may have sent another message for this step, with the same masks.
            self.log.put(f"skip-{step}", b"1")
        if self.log.get(f"skip-{step}") is not None:
            return {**reply, "step": step, "message": None}
        try:
            model = self.learn(SiteEngine(self.node, self.n_nodes, self.log))
        except Waiting as wait:
            return {**reply, "step": wait.step, "message": wait.message}
        except Exception as error:
            self.failed = error
            return {**reply, "error": type(error).__name__}
        if self.log.get("done") is None:
            if self.finish is not None:
                self.finish(model)
            self.log.put("done", b"1")
        return {**reply, "done": True}

    def _has_lost(self, step: int) -> bool:
        """Whether messages of this site are among the results that it does not know of."""
        log = self.log
        if log.get("begun") is None:
            log.put("begun", b"1")
            return any(log.result(i)[self.node] is not None for i in range(step))
        return False


class Relay:
    """What the server does: it passes on messages of steps, and sees nothing else.

    Parameters
    ----------
    n_nodes : int

    least : int, default=None
        Sites that a step needs at least; None needs all. Which steps may miss any, the sites know.
    """

    def __init__(self, n_nodes: int, least: int | None = None) -> None:
        positive_int(n_nodes=n_nodes)
        self.n_nodes = n_nodes
        self.least: int = n_nodes if least is None else least
        self.results = list[bytes]()
        self.have = [0] * n_nodes  # results that each site has
        self.done = set[int]()
        self._heard: dict[int, bytes | None] = {}

    def message_for(self, node: int) -> dict[str, Any]:
        """What a site is sent next."""
        first = self.have[node]
        return {"first": first, "known": len(self.results), "results": self.results[first:]}

    @property
    def wanted(self) -> list[int]:
        """Sites that have not yet answered in this step."""
        return [i for i in range(self.n_nodes) if i not in self._heard and i not in self.done]

    def take(self, reply: Mapping[str, Any]) -> None:
        """Take up an answer; one that is late, or comes twice, changes nothing.

        Raises
        ------
        DistributedError
            If a site has failed.
        """
        node = int(reply["node"])
        if not 0 <= node < self.n_nodes:
            raise DistributedError(f"There is no node {node} among {self.n_nodes}.")
        if "ahead" in reply and not self._heard:
            # Another site may have told the same.
            self.results.extend(reply["ahead"][len(self.results) - int(reply["ahead of"]) :])
        if "error" in reply:
            raise DistributedError(
                f"An error occurred at node {node} ({reply['error']}); that site reports it."
            )
        if "missing" in reply:
            self.have[node] = min(self.have[node], int(reply["missing"]))
            return
        if reply.get("done"):
            self.done.add(node)
            return
        step = int(reply["step"])
        self.have[node] = max(self.have[node], step)
        if step == len(self.results) and node not in self._heard:
            self._heard[node] = reply["message"]

    @property
    def has_heard(self) -> bool:
        """Whether any site has answered in this step."""
        return bool(self._heard)

    @property
    def is_complete(self) -> bool:
        """Whether all have answered in this step."""
        return not self.wanted and bool(self._heard)

    def close(self) -> None:
        """Settle who has answered in this step, once.

        Raises
        ------
        DistributedError
            If they are too few.
        """
        messages = [self._heard.get(node) for node in range(self.n_nodes)]
        n_answered = sum(one is not None for one in messages)
        if n_answered < self.least:
            raise DistributedError(
                f"{n_answered} of {self.n_nodes} sites have answered in step {len(self.results)}, "
                f"which takes {self.least}. What they were charged stays charged."
            )
        self.results.append(packed(messages))
        self._heard = {}
