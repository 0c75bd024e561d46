"""Sums over nodes of which nobody sees a part: keys, masks, and who is trusted with what.

To check it: this file for what each node sends in a round, ``distributed/_shares.py`` for its
noise. A mask is the key stream of ChaCha20 (RFC 8439) under a key that HKDF (RFC 5869) derives
from an X25519 exchange (RFC 7748); all three are those of the package ``cryptography``.
"""

import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from skdp._validation import is_whole, short_repr
from skdp.exceptions import DistributedError

_KEY = 32  # bytes
_SPARSE = 64  # nodes from which on each has pads with some others only

THREATS = {
    "each node, and whoever carries the messages": "the noisy sum of each round, who answered, "
    "and numbers of rows",
    "nodes that collude, with those that drop out at most as many as are tolerated": "the same, "
    "and their own rows and shares of the noise; the shares of the others carry the guarantee",
    "who records all messages without a key": "uniform numbers, and what opens their sum",
    "who swaps keys on the way": "nothing where node_keys pins them; without it that is not "
    "noticed, and all parts can be read with a share of the noise only",
    "more colluding nodes than are tolerated": "parts and sums with less noise than is claimed",
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
        curator's by the root of ``n / (n - tolerated)``. Less than half of the nodes: two sets of
        nodes that could each open a round then have one in common, which answers one of them only.

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

    In a round each node sends its masked part once. When these have come, each that is among them
    sends what opens its own mask, and the keys that it shares with nodes which have not answered:
    of each node either is ever known. Where fewer answer than is tolerated, nothing is opened, and
    the round stays charged. From 64 nodes on each node shares masks with ``2 ceil(log2(n))``
    others, in an order that nobody knows before all have committed themselves.

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

    def check(self, n_nodes: int) -> None:
        """Check the parameters for a network.

        Parameters
        ----------
        n_nodes : int
        """
        value: Any = self.tolerates
        is_share = isinstance(value, Real) and not isinstance(value, bool)
        is_share = is_share and (is_whole(value) or 0.0 <= value < 1.0)
        if not is_share or not 0 <= 2 * self.n_tolerated(n_nodes) < n_nodes:
            raise ValueError(
                "tolerates must be a share of the nodes or a whole number of them, which rounded "
                f"up is less than half; got {short_repr(value)} for {n_nodes} nodes."
            )
        if self.node_keys is not None and len(self.node_keys) != n_nodes:
            raise ValueError(
                f"node_keys must have one fingerprint for each of {n_nodes} nodes; got "
                f"{len(self.node_keys)}."
            )

    def check_keys(self, mine: list[int], topology: Any) -> None:
        """Check the private keys of the nodes of a process.

        Parameters
        ----------
        mine : list of int

        topology : Topology
        """
        _private_keys(self, mine, topology)

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


def _key(secret: bytes, salt: bytes, *info: Any) -> bytes:
    text = "skdp secure sums 1|" + "|".join(map(str, info))
    return HKDF(algorithm=SHA256(), length=_KEY, salt=salt, info=text.encode()).derive(secret)


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

    Each fit has another salt, to which each node has contributed. So no pad comes twice, whether
    or not keys are those of earlier fits.

    Parameters
    ----------
    trust : SecureSums

    engine : Engine
        Open.

    topology : Topology
    """

    def __init__(self, trust: SecureSums, engine: Any, topology: Any) -> None:
        self.mine, n_nodes = engine.mine.tolist(), topology.n_nodes
        self.n_nodes = n_nodes
        private = _private_keys(trust, self.mine, topology)
        told = [one.public_key().public_bytes_raw() + os.urandom(_KEY) for one in private]
        everyone = _words_of(engine.collect(_as_words(told)))
        # Committed before anybody knows the salt that follows.
        public = [X25519PublicKey.from_public_bytes(one[:_KEY]) for one in everyone]
        if trust.node_keys is not None:
            pinned = _in_order(trust.node_keys, topology)
            for node, (one, known) in enumerate(zip(public, pinned, strict=True)):
                if _fingerprint(one) != known:
                    raise DistributedError(
                        f"The key of node {topology.name(node)!r} is not the one that node_keys "
                        "pins: somebody has changed a message, or the key is a new one."
                    )
        self.salt = hashlib.sha256(b"".join(everyone)).digest()
        self.neighbours = _neighbours(n_nodes, self.salt)
        self._secrets = {
            (i, j): own.exchange(public[j])
            for i, own in zip(self.mine, private, strict=True)
            for j in self.neighbours[i]
        }
        self._seeds = {i: os.urandom(_KEY) for i in self.mine}
        self._opened = 0  # rounds for which a set of nodes was settled
        self._masked = 0

    def _pair(self, i: int, j: int, number: int) -> bytes:
        first, second = min(i, j), max(i, j)
        return _key(self._secrets[i, j], self.salt, "pair", first, second, number)

    def _self(self, i: int, number: int) -> bytes:
        return _key(self._seeds[i], self.salt, "self", i, number)

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
        sent = np.empty((len(parts), len(parts[0])), dtype=np.uint64)
        for place, (i, part) in enumerate(zip(self.mine, parts, strict=True)):
            total = part.view(np.uint64) + pad(self._self(i, number), len(part))
            for j in self.neighbours[i]:
                shared = pad(self._pair(i, j, number), len(part))
                total = total + shared if i < j else total - shared
            sent[place] = total
        return sent.view(np.int64)

    def openings(self, number: int, answered: np.ndarray) -> np.ndarray:
        """Keys that the nodes here tell when it is settled who has answered, once a round.

        Parameters
        ----------
        number : int

        answered : ndarray of bool, shape (n_nodes,)

        Returns
        -------
        ndarray of int64, shape (n_nodes_here, 4 * (1 + n_neighbours))
            Of each node that has answered its own key, and those that it shares with neighbours
            that have not, in their places; zeros elsewhere.
        """
        if number != self._opened:
            raise RuntimeError(
                "number must be the next round: one set of nodes is opened a round."
            )
        self._opened += 1
        told = []
        for i in self.mine:
            keys = [self._self(i, number) if answered[i] else bytes(_KEY)]
            for j in self.neighbours[i]:
                is_told = answered[i] and not answered[j]
                keys.append(self._pair(i, j, number) if is_told else bytes(_KEY))
            told.append(b"".join(keys))
        return _as_words(told)

    def sum(self, sent: np.ndarray, openings: np.ndarray, answered: np.ndarray) -> np.ndarray:
        """The sum of the parts of those who answered, which is all that messages tell.

        Parameters
        ----------
        sent : ndarray of int64, shape (n_nodes, size)

        openings : ndarray of int64, shape (n_nodes, 4 * (1 + n_neighbours))

        answered : ndarray of bool, shape (n_nodes,)

        Returns
        -------
        ndarray of int64, shape (size,)
        """
        size = sent.shape[1]
        total = sent.view(np.uint64)[answered].sum(axis=0, dtype=np.uint64)
        for i in np.flatnonzero(answered).tolist():
            keys = openings[i].astype("<i8").tobytes()
            total = total - pad(keys[:_KEY], size)
            for place, j in enumerate(self.neighbours[i], start=1):
                if not answered[j]:
                    shared = pad(keys[_KEY * place : _KEY * (place + 1)], size)
                    total = total - shared if i < j else total + shared
        return total.view(np.int64)


def _private_keys(trust: SecureSums, mine: list[int], topology: Any) -> list[X25519PrivateKey]:
    if trust.private_keys is None:
        if trust.node_keys is not None:
            raise ValueError(
                "private_keys must have the keys of the nodes of this process where node_keys "
                "pins them; got None."
            )
        return [X25519PrivateKey.generate() for _ in mine]
    found = []
    for node in mine:
        name = topology.name(node)
        text = trust.private_keys.get(name)
        try:
            found.append(X25519PrivateKey.from_private_bytes(bytes.fromhex(text)))
        except (TypeError, ValueError):
            raise ValueError(
                f"private_keys must have 64 hexadecimal digits for node {name!r}."
            ) from None
    return found


def _in_order(node_keys: Any, topology: Any) -> Iterable[Any]:
    if not isinstance(node_keys, Mapping):
        return node_keys
    return [node_keys.get(topology.name(node)) for node in range(topology.n_nodes)]


def _neighbours(n_nodes: int, salt: bytes) -> list[list[int]]:
    """Nodes that each node shares pads with: all, or those near it on a circle of random order."""
    if n_nodes < _SPARSE:
        return [[j for j in range(n_nodes) if j != i] for i in range(n_nodes)]
    reach = math.ceil(math.log2(n_nodes))
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
