"""Sites that answer a server's messages, one step of a fit at a time, and can be restarted.

A fit calls its engine step by step. Here a site reruns its fit for each message. Steps with known
results are not sent again. At the first new step, the message of this site is stored and
returned, and the fit stops. A site therefore needs no permanent process, and a killed site
resumes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp._validation import positive_int
from skdp.engines._kept import (
    KeepingEngine,
    SiteLog,
    as_array,
    as_bytes,
    digest_of,
    entries_of,
    packed,
    what_differs,
)
from skdp.engines._local import NEVER, LocalEngine
from skdp.exceptions import DistributedError

Reply = dict[str, Any]


class Waiting(BaseException):
    """The fit waits for others; it is no error, and nothing but `answer` may catch it."""

    def __init__(self, step: int, message: bytes) -> None:
        super().__init__(step)
        self.step, self.message = step, message


class SiteEngine(KeepingEngine):
    """Engine of one site, which stops the fit where others have to be heard.

    Parameters
    ----------
    node : int
        Number of the site among all.

    n_nodes : int

    log : SiteLog
    """

    is_distributed = True
    # The server could say that another site has the same ledger.
    shares_ledgers = False
    log: SiteLog

    def __init__(self, node: int, n_nodes: int, log: SiteLog) -> None:
        self.node, self.n_nodes, self.log = node, n_nodes, log
        self.mine = self.heard = np.array([node])
        self._step, self._tokens = 0, list[Any]()
        self._begin()

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
        edges = topology.edges
        neighbours = edges[(edges == self.node).any(axis=1)].ravel()
        self.heard = np.union1d(self.mine, neighbours)
        self._last = np.zeros((len(self.heard), width))
        self.ages = None

    def close(self) -> None:
        """See `Engine.close`."""

    def exchange(self, messages: np.ndarray) -> np.ndarray:
        """See `Engine.exchange`; all messages are passed on by the server."""
        everyone, answered = self._gathered(messages)
        answered[self.node] = True
        everyone[self.node] = messages[0]
        come = answered[self.heard]
        self._last[come] = everyone[self.heard][come]
        ages = np.full(len(come), NEVER) if self.ages is None else self.ages
        self.ages = np.where(come, 0, ages + 1)
        return self._last

    def collect(self, values: np.ndarray) -> np.ndarray:
        """See `Engine.collect`."""
        everyone, answered = self._gathered(values)
        if not answered.all():
            missing = np.flatnonzero(~answered).tolist()
            raise DistributedError(
                f"Nodes {missing} have not answered; this step requires all nodes."
            )
        return everyone

    def collect_some(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for a step that nodes may miss; and who has answered."""
        return self._gathered(values)

    def agree(self, error: BaseException | None, token: object = None) -> None:
        """See `Engine.agree`; tokens are compared with the next step."""
        if error is not None:
            raise error
        self._check_is_same(token)
        if token is not None:
            told = entries_of(token)
            self._tokens.append({"": ("", digest_of(token).hex())} if told is None else told)

    def _gathered(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step, tokens = self._step, self._tokens
        self._step, self._tokens = step + 1, []
        if step >= self.log.n_results:
            message = self.log.get(f"own-{step}")
            if message is None:
                message = self.log.put(f"own-{step}", _encoded(tokens, values))
            raise Waiting(step, message)
        messages = self.log.result(step)
        own = self.log.get(f"own-{step}")
        if own is not None and messages[self.node] not in (own, None):
            raise DistributedError("A message of this site was changed by the server.")
        found = [None if one is None else _decoded(one) for one in messages]
        known = {i: one for i, one in enumerate(found) if one is not None}
        _compare({i: tokens for i, (tokens, _) in known.items()}, self.n_nodes)
        first = next(iter(known.values()))[1]
        everyone = np.zeros((self.n_nodes, *first.shape[1:]), dtype=first.dtype)
        for i, (_, part) in known.items():
            if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
                raise DistributedError(f"Node {i} has sent an array of another shape.")
            everyone[i] = part[0]
        answered = np.array([i in known for i in range(self.n_nodes)])
        return everyone, answered


def _encoded(tokens: list[Any], values: np.ndarray) -> bytes:
    head = json.dumps(tokens).encode()
    return len(head).to_bytes(8, "big") + head + as_bytes(values)


def _decoded(message: bytes) -> tuple[list[Any], np.ndarray]:
    start = 8 + int.from_bytes(message[:8], "big")
    try:
        tokens = json.loads(message[8:start])
        values = as_array(message[start:])
    except ValueError:
        raise DistributedError("A message cannot be read: it has another version.") from None
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
        own = f"{self.node} of {self.n_nodes}".encode()
        if self.log.get("node") not in (None, own):
            self.failed = ValueError(
                "checkpoint must be a folder of this site only; got that of another site."
            )
            return {**reply, "error": "ValueError"}
        if self.log.get("node") is None:
            self.log.put("node", own)
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
            # What it has sent is not what it would send now, and its noise would be drawn again.
            self.log.put("lost", b"1")
        if self.log.get("lost") is not None:
            return {**reply, "step": step, "message": None}
        if self.log.get("done") is not None:
            return {**reply, "done": True}
        try:
            model = self.learn(SiteEngine(self.node, self.n_nodes, self.log))
        except Waiting as wait:
            return {**reply, "step": wait.step, "message": wait.message}
        except Exception as error:
            self.failed = error
            return {**reply, "error": type(error).__name__}
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
            raise DistributedError(f"There is no node {node} among {self.n_nodes} nodes.")
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
    def is_over(self) -> bool:
        """Whether enough sites are done, and all others are silent for good."""
        others = range(self.n_nodes) if self.done else ()
        silent = all(self._heard.get(i, b"") is None for i in others if i not in self.done)
        return silent and len(self.done) >= self.least

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
                f"which requires {self.least}. All charges stay in the ledgers."
            )
        self.results.append(packed(messages))
        self._heard = {}
