"""Flower apps: a server app that forwards messages, and a client app for each site."""

import time
from collections.abc import Callable
from typing import Any

from skdp._validation import positive, short_repr
from skdp.engines._kept import SiteLog
from skdp.engines._relay import Relay, Site
from skdp.exceptions import DistributedError

_RECORD = "skdp"  # name of what travels
_PAUSE = 0.5  # seconds between looks for sites


def _flower() -> Any:
    try:
        import flwr
        import flwr.app
        import flwr.clientapp
        import flwr.serverapp
    except ImportError as error:
        raise ImportError('Flower is required: pip install "skdp[flower]"') from error
    return flwr


def flower_client(
    learn: Callable[[Any, Any], Any],
    *,
    checkpoint: Any,
    finish: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Return the client app of one site, which is one node of the network.

    Flower restarts the app for each message. ``learn`` therefore runs once per step with the
    messages so far, and stops when it needs messages of other sites. It must load the same rows
    each time.

    Privacy: the site sends only masked, released or public values. The site charges its own
    ledger, independently of the other sites. Flower's own log may contain the type of an error.

    Parameters
    ----------
    learn : callable
        ``learn(engine, context)`` returns a `~skdp.distributed.DistributedDPClassifier` with that
        ``engine`` and ``n_nodes`` sites, fitted to the rows of this site. ``context`` is Flower's,
        with ``node_config`` and ``run_config``.

    checkpoint : path-like
        Folder of this site for one fit. A killed site or run resumes from it with bitwise equal
        results and without another charge. The folder contains results, messages and a key of
        this site, but no rows. The key can remove the masks from this site's messages: keep the
        folder private, and delete it after the fit.

    finish : callable, default=None
        ``finish(model, context)`` is called once after the fit, for example to save the model.

    Returns
    -------
    flwr.clientapp.ClientApp
        App of the site. Its number, from 0, is ``partition-id`` in the node config.
    """
    flwr = _flower()
    app = flwr.clientapp.ClientApp()

    @app.query()
    def answer(message: Any, context: Any) -> Any:
        asked = dict(message.content[_RECORD])
        log = SiteLog(checkpoint)  # waits while another message is answered
        site = Site(
            _number_of(context),
            int(asked["n_nodes"]),
            lambda engine: learn(engine, context),
            None if finish is None else lambda model: finish(model, context),
            log,
        )
        try:
            reply = site.answer({**asked, "results": asked.get("results", [])})
        finally:
            log.close()
        if site.failed is not None:
            paid = "was" if log.get("charged") else "was not"
            print(f"skdp: {site.failed!r}. The ledger of this site {paid} charged.", flush=True)
        told = {name: value for name, value in reply.items() if value is not None}
        content = flwr.app.RecordDict({_RECORD: flwr.app.ConfigRecord(told)})
        return flwr.app.Message(content, reply_to=message)

    return app


def _number_of(context: Any) -> int:
    number = context.node_config.get("partition-id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise ValueError(
            "node-config must have partition-id, the number of the site from 0; got "
            f"{short_repr(number)}."
        )
    return number


def flower_server(n_nodes: int, *, tolerates: int = 0, patience: float = 600.0) -> Any:
    """Return the server app, which forwards the messages of the sites and can read only sums.

    Parameters
    ----------
    n_nodes : int
        Number of sites.

    tolerates : int, default=0
        Number of sites that may be missing in a step, as ``tolerates`` of secure sums.

    patience : float, default=600.0
        Seconds to wait for a site in a step.

    Returns
    -------
    flwr.serverapp.ServerApp
        App without state. If it was killed, sites with checkpoints send the results to a new one.
    """
    flwr = _flower()
    positive(patience=patience)
    app = flwr.serverapp.ServerApp()

    @app.main()
    def main(grid: Any, context: Any) -> None:
        relay = Relay(n_nodes, n_nodes - tolerates)
        run_relay(relay, _Sites(flwr, grid, relay, patience).ask, patience)

    return app


def run_relay(
    relay: Relay,
    ask: Callable[[dict[int, dict[str, Any]]], list[dict[str, Any]]],
    patience: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Pass on messages until all sites are done.

    Parameters
    ----------
    relay : Relay

    ask : callable
        ``ask(messages)`` sends one to each site, by its number, and returns the replies that came.

    patience : float
        Seconds.

    clock : callable, default=time.monotonic
    """
    begun = clock()
    while len(relay.done) < relay.n_nodes:
        wanted = relay.wanted
        for reply in ask({node: relay.message_for(node) for node in wanted}):
            relay.take(reply)
        if relay.is_over:
            return
        is_late = clock() - begun > patience
        if relay.is_complete or (is_late and relay.has_heard):
            relay.close()
            begun = clock()
        elif is_late and len(relay.done) >= relay.least:
            return
        elif is_late:
            raise DistributedError(f"Sites {relay.wanted} have not answered for {patience:g} s.")


class _Sites:
    """Sites by their numbers, which they say with each answer, and Flower's names of them."""

    def __init__(self, flwr: Any, grid: Any, relay: Relay, patience: float) -> None:
        self.flwr, self.grid, self.relay, self.patience = flwr, grid, relay, patience
        self.numbers: dict[int, int] = {}
        self.replaced: set[int] = set()  # names of sites that have started again under another
        self.asked: dict[str, tuple[int, float]] = {}  # messages without an answer

    def ask(self, messages: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
        """Send each site its message, and those that are new one without results."""
        now = time.monotonic()
        # A site that was killed has lost its message, and gets another one.
        busy = {name for name, since in self.asked.values() if now - since < self.patience / 4}
        names = [
            name
            for name in self.grid.get_node_ids()
            if name not in busy | self.replaced and self.numbers.get(name, -1) in {-1, *messages}
        ]
        sent = [self._message_to(name, messages) for name in names]
        told = self.grid.push_messages(sent) if sent else ()
        self.asked.update({one: (name, now) for one, name in zip(told, names, strict=True)})
        replies = self.grid.pull_messages(list(self.asked)) if self.asked else ()
        found = [self._answer(reply) for reply in replies]
        if not found:
            time.sleep(_PAUSE)
        return [answer for answer in found if answer is not None]

    def _message_to(self, name: int, messages: dict[int, dict[str, Any]]) -> Any:
        new = {"first": 0, "known": len(self.relay.results), "results": []}
        number = self.numbers.get(name)
        message = new if number is None else messages[number]
        asked = {**message, "n_nodes": self.relay.n_nodes}
        if not asked["results"]:
            del asked["results"]
        app = self.flwr.app
        content = app.RecordDict({_RECORD: app.ConfigRecord(asked)})
        return app.Message(content, name, "query")

    def _answer(self, reply: Any) -> dict[str, Any] | None:
        name, _ = self.asked.pop(reply.metadata.reply_to_message_id)
        if not reply.has_content():
            return None  # the site was killed, or its app has failed
        told = dict(reply.content[_RECORD])
        number = int(told["node"])
        others = {one for one, of in self.numbers.items() if of == number and one != name}
        if name in self.replaced:
            raise DistributedError(f"Two sites have the same number {number}.")
        self.replaced |= others
        self.numbers[name] = number
        return told
