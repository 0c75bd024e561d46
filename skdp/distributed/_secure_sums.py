"""Sums over nodes of which nobody sees a part: keys, masks, and who is trusted with what.

To check it: this file for what each node sends in a round, ``distributed/_shares.py`` for its
noise. A mask is the key stream of ChaCha20 (RFC 8439) under a key that HKDF (RFC 5869) derives
from an X25519 exchange (RFC 7748), of the package ``cryptography``; the two steps of HKDF are two
calls of Python's ``hmac``.
"""

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from skdp._validation import is_whole, short_repr
from skdp.exceptions import DistributedError

_KEY = 32  # bytes
_SPARSE = 64  # nodes from which on each has pads with some others only
_LIMIT_RARE = 60.0  # binary logarithm of one over the probability that nodes are cut off
_LIMIT_SUM = 2.0**61  # beyond which no sum of parts is

THREATS = {
    "whoever carries or records the messages, without a key": "uniform numbers, numbers of rows, "
    "who answered, and the noisy sums",
    "processes that collude, whose nodes and those that drop out are together at most as many as "
    "are tolerated; one curious process is the least of these": "the same, their own rows and "
    "shares of the noise; the shares of the others carry the guarantee",
    "whoever tells nodes different things about who has answered": "uniform numbers",
    "who swaps keys on the way": "nothing where node_keys pins them; without it all parts, with a "
    "share of the noise only",
    "more colluding or missing nodes than are tolerated": "sums with less noise than is claimed",
    "nodes that lie about their rows, their shares or their masks": "no promise: the sum is "
    "wrong, and the noise may be less by their shares",
}


@dataclass(frozen=True)
class SecureSums:
    """Trust nobody with a part of a sum: what leaves a node is masked, and only sums are opened.

    Each node adds a share of the noise to its part of a sum, and masks of which only the sum over
    all nodes is known. The sum then has the noise of one curator, however many nodes there are.

    Parameters
    ----------
    tolerates : float or int, default=0.1
        How many nodes may drop out or collude, both together: a share of the nodes, rounded up,
        or a number. The noise is loud enough without their shares, so that it is louder than a
        curator's by the root of ``n / (n - tolerated)``. A process knows the shares of its nodes:
        several processes need at least as many as one of them runs.

    node_keys : sequence or mapping of str, default=None
        Fingerprints of the nodes' public keys, in their order or by their names, as `make_key`
        returns them and as they were compared over another channel. None takes the keys that
        arrive: whoever can change messages could then read all parts.

    private_keys : mapping of str, default=None
        Private keys of the nodes of this process, by number or name, where ``node_keys`` pins
        theirs. None makes new ones for each fit. They are in no pickle and no representation.

    Notes
    -----
    A record changes the part of one node. So the sensitivity of the sum is that of one part.

    In a round each node sends its masked part once. When it is settled whose have come, each of
    these sends what opens the sum, under masks that cancel only if all were told the same: no mask
    of a single node is ever known. Where more are missing than is tolerated, nothing is opened,
    and the round stays charged. From 64 nodes on each node shares masks with some others only:
    twice ``log2(n)`` or more, so many that others cut no nodes off but with a probability of
    2**-60, in an order that nobody knows before all have committed themselves.

    References
    ----------
    Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal and Seth, "Practical secure
    aggregation for privacy-preserving machine learning", CCS 2017, without its secret sharing:
    who answers in the first half of a round has to answer in the second. Bell, Bonawitz, Gascón,
    Lepoint and Raykova, "Secure single-server aggregation with (poly)logarithmic overhead",
    CCS 2020, for masks among few. Kairouz, Liu and Steinke, "The distributed discrete Gaussian
    mechanism for federated learning with secure aggregation", ICML 2021.

    Examples
    --------
    >>> from skdp.distributed import SecureSums
    >>> trust = SecureSums(tolerates=0.1)
    >>> trust.n_tolerated(64)
    7
    >>> private, fingerprint = SecureSums.make_key()
    >>> len(private), len(fingerprint)
    (64, 64)
    """

    tolerates: Any = 0.1
    node_keys: Any = None
    private_keys: Any = field(default=None, repr=False, compare=False)

    def n_tolerated(self, n_nodes: int) -> int:
        """Nodes that may be missing or collude, among so many.

        Parameters
        ----------
        n_nodes : int

        Returns
        -------
        int
        """
        return self.tolerates if is_whole(self.tolerates) else math.ceil(self.tolerates * n_nodes)

    @staticmethod
    def make_key() -> tuple[str, str]:
        """Make a key pair for a node.

        Returns
        -------
        private : str
            64 hexadecimal digits, which stay at the node.

        fingerprint : str
            Of the public key, for ``node_keys`` of all nodes.
        """
        private = X25519PrivateKey.generate()
        return private.private_bytes_raw().hex(), _fingerprint(private.public_key())

    @property
    def threats(self) -> dict[str, str]:
        """What whom is told, and what is not promised."""
        return dict(THREATS)

    def assumption(self, n_nodes: int) -> str:
        """What a guarantee rests on, in words.

        Parameters
        ----------
        n_nodes : int

        Returns
        -------
        str
        """
        most = self.n_tolerated(n_nodes)
        told = f"secure sums: at most {most} of {n_nodes} nodes drop out or collude"
        return told if self.node_keys is not None else f"{told}, and nobody swaps keys"

    def check(self, n_nodes: int) -> None:
        """Check the parameters for a network.

        Parameters
        ----------
        n_nodes : int
        """
        value: Any = self.tolerates
        is_share = isinstance(value, Real) and not isinstance(value, bool)
        is_share = is_share and (is_whole(value) or 0.0 <= value < 1.0)
        if not is_share or not 0 <= self.n_tolerated(n_nodes) < n_nodes:
            raise ValueError(
                "tolerates must be a share of the nodes or a whole number of them, which rounded "
                f"up is less than their number; got {short_repr(value)} for {n_nodes} nodes."
            )
        keys: Any = self.node_keys
        if keys is None:
            if self.private_keys is not None:
                raise ValueError(
                    "node_keys must pin the keys of all nodes where private_keys are given: "
                    "others would not notice another key; got None."
                )
            return
        told = list(keys.values()) if isinstance(keys, Mapping) else keys
        if not isinstance(told, list | tuple) or len(set(map(_plain_key, told))) != n_nodes:
            raise ValueError(
                f"node_keys must have a fingerprint of its own for each of {n_nodes} nodes, in a "
                f"list or by their names; got {short_repr(keys)}."
            )

    def check_process(self, engine: Any, topology: Any) -> None:
        """Check what a process has: its keys, and so few nodes that it may be curious.

        Parameters
        ----------
        engine : Engine
            Open.

        topology : Topology
        """
        mine = engine.mine.tolist()
        if engine.is_distributed and len(mine) > self.n_tolerated(topology.n_nodes):
            raise ValueError(
                f"tolerates must be at least {len(mine)}, the number of nodes of this process: it "
                f"knows their shares of the noise; got {short_repr(self.tolerates)}."
            )
        if self.node_keys is None:
            return
        pinned = list(_in_order(self.node_keys, topology))
        private = _private_keys(self, mine, topology, engine.secret())
        for node, one in zip(mine, private, strict=True):
            if _fingerprint(one.public_key()) != pinned[node]:
                raise ValueError(
                    "private_keys must be those whose fingerprints are in node_keys; got "
                    f"another one for node {topology.name(node)!r}."
                )

    def public_value(self) -> tuple:
        """What all processes must have in common."""
        keys = self.node_keys
        keys = sorted(keys.items()) if isinstance(keys, Mapping) else keys
        return "SecureSums", float(self.tolerates), keys if keys is None else list(keys)

    def __deepcopy__(self, memo: object = None) -> "SecureSums":
        return self

    __sklearn_clone__ = __deepcopy__

    def __reduce__(self) -> tuple:
        return SecureSums, (self.tolerates, self.node_keys)


def _fingerprint(public: X25519PublicKey) -> str:
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()


def _extracted(secret: bytes, salt: bytes) -> bytes:
    """First step of HKDF with SHA-256, once for all keys of a secret."""
    return hmac.digest(salt, secret, "sha256")


def _key(extracted: bytes, *info: Any) -> bytes:
    """Second step of HKDF, for 32 bytes."""
    text = "skdp secure sums 1|" + "|".join(map(str, info))
    return hmac.digest(extracted, text.encode() + b"\x01", "sha256")


def pad(key: bytes, size: int) -> np.ndarray:
    """Uniform numbers modulo 2**64: the key stream of ChaCha20 from its start.

    Privacy: a key must be used once.

    Parameters
    ----------
    key : bytes
        32 of them.

    size : int

    Returns
    -------
    ndarray of unsigned 64-bit integers, shape (size,)
    """
    encryptor = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * size)), dtype="<u8")


class Session:
    """Keys of the nodes of this process for one fit.

    Each node contributes to the salt of a fit, and refuses one without its own contribution. So no
    pad comes twice, whether or not keys are those of earlier fits.

    Parameters
    ----------
    trust : SecureSums

    engine : Engine
        Open.

    topology : Topology

    Attributes
    ----------
    told : ndarray of int64, shape (n_nodes_here, 8)
        Public keys and contributions of the nodes here, for all others.

    commitments : ndarray of int64, shape (n_nodes_here, 4)
        Digests of these, which come before where the salt decides who shares pads with whom.
    """

    def __init__(self, trust: SecureSums, engine: Any, topology: Any) -> None:
        self.mine, self.n_nodes = engine.mine.tolist(), topology.n_nodes
        self._trust, self._topology = trust, topology
        secret = engine.secret()
        self._private = _private_keys(trust, self.mine, topology, secret)
        own = [
            one.public_key().public_bytes_raw() + _of_node(secret, "contribution", node)
            for node, one in zip(self.mine, self._private, strict=True)
        ]
        self._own = own
        self.told = _as_words(own)
        self.commitments = _as_words([hashlib.sha256(one).digest() for one in own])
        self.reach = _reach(self.n_nodes, trust.n_tolerated(self.n_nodes))
        self._opened = self._masked = 0

    def meet(self, told: np.ndarray, commitments: np.ndarray | None = None) -> None:
        """Take up what all nodes have told.

        Parameters
        ----------
        told : ndarray of int64, shape (n_nodes, 8)

        commitments : ndarray of int64, shape (n_nodes, 4), default=None

        Raises
        ------
        DistributedError
            If a key is not the one that is pinned, or a message is not what was sent.
        """
        everyone = _words_of(told)
        if commitments is not None:
            digests = _words_of(commitments)
            if digests != [hashlib.sha256(one).digest() for one in everyone]:
                raise DistributedError("A node has told another key than it committed itself to.")
        if [everyone[i] for i in self.mine] != self._own:
            raise DistributedError(
                "The key of a node here came back changed: somebody has changed or repeated "
                "messages."
            )
        try:
            public = [X25519PublicKey.from_public_bytes(one[:_KEY]) for one in everyone]
            self._pinned(public)
            self.salt = hashlib.sha256(b"".join(everyone)).digest()
            self.neighbours = _neighbours(self.n_nodes, self.salt, self.reach)
            self._secrets = {
                (i, j): _extracted(own.exchange(public[j]), self.salt)
                for i, own in zip(self.mine, self._private, strict=True)
                for j in self.neighbours[i]
            }
        except ValueError:
            raise DistributedError("The key of a node is no key of X25519.") from None
        # A fit that is run again has the same masks for the numbers that it has sent.
        self._seeds = {
            i: _extracted(one.private_bytes_raw(), self.salt)
            for i, one in zip(self.mine, self._private, strict=True)
        }

    def _pinned(self, public: list[X25519PublicKey]) -> None:
        if self._trust.node_keys is None:
            return
        pinned = _in_order(self._trust.node_keys, self._topology)
        for node, (one, known) in enumerate(zip(public, pinned, strict=True)):
            if _fingerprint(one) != known:
                raise DistributedError(
                    f"The key of node {self._topology.name(node)!r} is not the one that node_keys "
                    "pins: somebody has changed a message, or the key is a new one."
                )

    def _pair(self, i: int, j: int, *info: Any) -> bytes:
        first, second = min(i, j), max(i, j)
        return _key(self._secrets[i, j], "pair", first, second, *info)

    def masked(self, number: int, parts: Sequence[np.ndarray]) -> np.ndarray:
        """What the nodes here send in a round, modulo 2**64.

        Parameters
        ----------
        number : int
            Of the round, each once.

        parts : sequence of ndarray of int64, shape (size,)
            With the noise of each node.

        Returns
        -------
        ndarray of int64, shape (n_nodes_here, size)
        """
        if number != self._masked:
            raise RuntimeError("number must be the next round: a pad is used once.")
        self._masked += 1
        self._size = len(parts[0])
        sent = [
            part.view(np.uint64) + self._own_pad(i, number) + self._shared(i, self._all, number)
            for i, part in zip(self.mine, parts, strict=True)
        ]
        return np.stack(sent).view(np.int64)

    @property
    def _all(self) -> np.ndarray:
        return np.ones(self.n_nodes, dtype=bool)

    def _own_pad(self, i: int, number: int) -> np.ndarray:
        return pad(_key(self._seeds[i], "self", i, number), self._size)

    def _shared(self, i: int, among: np.ndarray, *info: Any) -> np.ndarray:
        """Sum of the pads that a node has in common with some neighbours, which subtract them."""
        total = np.zeros(self._size, dtype=np.uint64)
        for j in self.neighbours[i]:
            if among[j]:
                shared = pad(self._pair(i, j, *info), self._size)
                total = total + shared if i < j else total - shared
        return total

    def openings(self, number: int, answered: np.ndarray) -> np.ndarray:
        """What the nodes here tell when it is settled who has answered, once a round.

        Each tells the sum of its own pad and of those that it shares with nodes which have not
        answered, under other pads that depend on who has. So they add up to what opens the sum
        where all are told the same, and to nothing otherwise; no pad of a single node is told.

        Parameters
        ----------
        number : int

        answered : ndarray of bool, shape (n_nodes,)

        Returns
        -------
        ndarray of int64, shape (n_nodes_here, size)
            Zeros for nodes that have not answered.
        """
        if number != self._opened:
            raise RuntimeError(
                "number must be the next round: one set of nodes is opened in each."
            )
        self._opened += 1
        whom = hashlib.sha256(np.packbits(answered).tobytes()).hexdigest()
        told = np.zeros((len(self.mine), self._size), dtype=np.uint64)
        for place, i in enumerate(self.mine):
            if answered[i]:
                told[place] = self._own_pad(i, number) + self._shared(i, ~answered, number)
                told[place] += self._shared(i, answered, number, "open", whom)
        return told.view(np.int64)

    def sum(self, sent: np.ndarray, openings: np.ndarray, answered: np.ndarray) -> np.ndarray:
        """The sum of the parts of those who answered, which is all that messages tell.

        Parameters
        ----------
        sent, openings : ndarray of int64, shape (n_nodes, size)

        answered : ndarray of bool, shape (n_nodes,)

        Returns
        -------
        ndarray of int64, shape (size,)

        Raises
        ------
        DistributedError
            If it cannot be a sum of parts: nodes were told different things.
        """
        masked, pads = (each.view(np.uint64)[answered].sum(axis=0) for each in (sent, openings))
        total = (masked - pads).view(np.int64)
        if (np.abs(total.astype(np.float64)) > _LIMIT_SUM).any():
            raise DistributedError(
                "The masks do not cancel: nodes were told different things about who answered, or "
                "a message was changed. Nothing can be read, and the round stays charged."
            )
        return total


def _of_node(secret: bytes, what: str, node: int) -> bytes:
    """Random bytes of a node, the same ones when a fit runs again for the same messages."""
    return hashlib.sha256(secret + f"{what} {node}".encode()).digest()


def _private_keys(
    trust: SecureSums, mine: list[int], topology: Any, secret: bytes
) -> list[X25519PrivateKey]:
    if trust.private_keys is not None and not isinstance(trust.private_keys, Mapping):
        raise ValueError(
            "private_keys must be a mapping from nodes of this process to their keys."
        )
    if trust.private_keys is None:
        if trust.node_keys is not None:
            raise ValueError(
                "private_keys must have the keys of the nodes of this process where node_keys "
                "pins them; got None."
            )
        seeds = [_of_node(secret, "key", node) for node in mine]
        return list(map(X25519PrivateKey.from_private_bytes, seeds))
    found = []
    for node in mine:
        name = topology.name(node)
        text = trust.private_keys.get(name, trust.private_keys.get(node))
        if text is None:
            raise ValueError(
                f"private_keys must have a key for each node of this process; node {name!r} has "
                "none."
            )
        try:
            found.append(X25519PrivateKey.from_private_bytes(bytes.fromhex(_plain_key(text))))
        except (TypeError, ValueError):
            raise ValueError(
                f"private_keys must have 64 hexadecimal digits for node {name!r}."
            ) from None
    return found


def _in_order(node_keys: Any, topology: Any) -> Iterable[Any]:
    if not isinstance(node_keys, Mapping):
        return list(map(_plain_key, node_keys))
    names = [topology.name(node) for node in range(topology.n_nodes)]
    strange = [name for name in node_keys if name not in names]
    if strange:
        raise ValueError(
            f"node_keys must name the nodes, {short_repr(names)}; got {short_repr(strange[0])}."
        )
    return [_plain_key(node_keys[name]) for name in names]


def _plain_key(text: Any) -> str:
    """A key as it was made, from a file or a telephone call."""
    return str(text).strip().lower()


def _reach(n_nodes: int, n_tolerated: int) -> int | None:
    """Neighbours on either side of a circle of random order; None where all are neighbours.

    Where as many nodes in a row are missing or collude, others could be cut off; that any are has
    a probability of less than 2**-60.
    """
    if n_nodes < _SPARSE:
        return None
    bad = max(n_tolerated, 1)
    reach = math.ceil((_LIMIT_RARE + math.log2(n_nodes)) / math.log2(n_nodes / bad))
    reach = max(reach, math.ceil(math.log2(n_nodes)))
    return reach if 2 * reach < n_nodes - 1 else None


def _neighbours(n_nodes: int, salt: bytes, reach: int | None) -> list[list[int]]:
    """Nodes that each node shares pads with: all, or those near it on a circle of random order."""
    if reach is None:
        return [[j for j in range(n_nodes) if j != i] for i in range(n_nodes)]
    ranks = [hashlib.sha256(salt + i.to_bytes(8, "big")).digest() for i in range(n_nodes)]
    order = sorted(range(n_nodes), key=ranks.__getitem__)
    found = [[0]] * n_nodes
    for place, node in enumerate(order):
        steps = [step for step in range(-reach, reach + 1) if step]
        found[node] = sorted(order[(place + step) % n_nodes] for step in steps)
    return found


def _as_words(told: Sequence[bytes]) -> np.ndarray:
    rows = [np.frombuffer(one, dtype="<i8") for one in told]
    return np.stack(rows).astype(np.int64)


def _words_of(rows: np.ndarray) -> list[bytes]:
    return [row.astype("<i8").tobytes() for row in rows]
