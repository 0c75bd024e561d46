"""Secure sums over nodes that hide each part: keys, masks and the trust model.

To check the claim, read this file for the messages of a node in a round, and
``distributed/_shares.py`` for its noise. A mask is the key stream of ChaCha20 (RFC 8439) under a
key that HKDF (RFC 5869) derives from an X25519 exchange (RFC 7748), of the package
``cryptography``. The two steps of HKDF are two calls of Python's ``hmac``.
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
    """Secure aggregation: nodes send masked values, and only sums over all nodes are revealed.

    Each node adds a share of the noise and masks to its part of a sum. Only the sum of the masks
    over all nodes is revealed. The sum then has the noise of one curator, for any number of nodes.

    Parameters
    ----------
    tolerates : float or int, default=0.1
        Number of nodes that may drop out or collude, in total: a fraction of the nodes, rounded
        up, or an integer. The noise is sufficient without their shares, so its scale exceeds that
        of a curator by a factor of the square root of ``n / (n - tolerated)``. A process knows
        the shares of its nodes: with several processes, the value must be at least the number of
        nodes of one process.

    node_keys : sequence or mapping of str, default=None
        Fingerprints of the nodes' public keys, in node order or by name, as returned by
        `make_key` and verified over another channel. None accepts any received keys: an attacker
        who can change messages could then read all parts.

    private_keys : mapping of str, default=None
        Private keys of the nodes of this process, by number or name, for nodes pinned by
        ``node_keys``. None generates new keys for each fit. Pickles and representations do not
        contain them.

    Notes
    -----
    A record changes the part of one node. The sensitivity of the sum is therefore that of one
    part.

    In each round, a node sends its masked part once. When the set of answers is final, each of
    these nodes sends the values that open the sum, under masks that cancel only if all nodes were
    given the same set. No mask of a single node is ever revealed. If more nodes are missing than
    tolerated, nothing is opened, and the round stays charged. From 64 nodes on, each node shares
    masks with only some others: at least twice ``log2(n)``, enough that others isolate nodes with
    probability at most 2**-60, in an order unknown until all nodes have committed.

    References
    ----------
    Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal and Seth, "Practical secure
    aggregation for privacy-preserving machine learning", CCS 2017, without its secret sharing:
    a node that answers in the first half of a round must answer in the second. Bell, Bonawitz,
    Gascón, Lepoint and Raykova, "Secure single-server aggregation with (poly)logarithmic
    overhead", CCS 2020, for masks among few. Kairouz, Liu and Steinke, "The distributed
    discrete Gaussian mechanism for federated learning with secure aggregation", ICML 2021.

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
        """Return the number of nodes that may be missing or collude.

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
        """Generate a key pair for a node.

        Returns
        -------
        private : str
            Private key of 64 hexadecimal digits, which must stay at the node.

        fingerprint : str
            Fingerprint of the public key, for ``node_keys`` of all nodes.
        """
        private = X25519PrivateKey.generate()
        return private.private_bytes_raw().hex(), _fingerprint(private.public_key())

    @property
    def threats(self) -> dict[str, str]:
        """Threat model: information visible to each party, and the limits of the guarantee."""
        return dict(THREATS)

    def assumption(self, n_nodes: int) -> str:
        """Return a text with the trust assumption of the guarantee.

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
                "tolerates must be a fraction or a number of nodes and, rounded up, less than "
                f"n_nodes; got {short_repr(value)} for {n_nodes} nodes."
            )
        keys: Any = self.node_keys
        if keys is None:
            if self.private_keys is not None:
                raise ValueError(
                    "node_keys must pin the keys of all nodes if private_keys are given; got None."
                )
            return
        told = list(keys.values()) if isinstance(keys, Mapping) else keys
        if not isinstance(told, list | tuple) or len(set(map(_plain_key, told))) != n_nodes:
            raise ValueError(
                f"node_keys must have a distinct fingerprint for each of {n_nodes} nodes, in a "
                f"list or by name; got {short_repr(keys)}."
            )

    def check_process(self, engine: Any, topology: Any) -> None:
        """Check the keys of a process, and that ``tolerates`` covers its nodes.

        Parameters
        ----------
        engine : Engine
            Open engine.

        topology : Topology
        """
        mine = engine.mine.tolist()
        if engine.is_distributed and len(mine) > self.n_tolerated(topology.n_nodes):
            raise ValueError(
                f"tolerates must be at least {len(mine)}, the number of nodes of this process, "
                f"which knows their shares of the noise; got {short_repr(self.tolerates)}."
            )
        if self.node_keys is None:
            return
        pinned = list(_in_order(self.node_keys, topology))
        private = _private_keys(self, mine, topology, engine.secret())
        for node, one in zip(mine, private, strict=True):
            if _fingerprint(one.public_key()) != pinned[node]:
                raise ValueError(
                    "private_keys must match the fingerprints in node_keys; got "
                    f"another key for node {topology.name(node)!r}."
                )

    def public_value(self) -> tuple:
        """Return the value that must be equal in all processes."""
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
                raise DistributedError("The key of a node differs from the one it committed to.")
        if [everyone[i] for i in self.mine] != self._own:
            raise DistributedError(
                "The key of a local node was returned changed: messages were changed or repeated."
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
            raise DistributedError("The key of a node is not an X25519 key.") from None
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
                    f"The key of node {self._topology.name(node)!r} is not the one in node_keys: "
                    "a message was changed, or the key is new."
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
            raise RuntimeError("number must be the next round: each round opens one set of nodes.")
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
                "The masks do not cancel: nodes received different sets of answers, or a message "
                "was changed. Nothing can be read, and the round stays charged."
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
                "private_keys must have the keys of the nodes of this process if node_keys is "
                "given; got None."
            )
        seeds = [_of_node(secret, "key", node) for node in mine]
        return list(map(X25519PrivateKey.from_private_bytes, seeds))
    found = []
    for node in mine:
        name = topology.name(node)
        text = trust.private_keys.get(name, trust.private_keys.get(node))
        if text is None:
            raise ValueError(
                f"private_keys must have a key for each node of this process; got none for node "
                f"{name!r}."
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
