"""Streams of messages: state of the learner, and updates from messages alone."""

from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._random._source import NoiseSource, noise_source, seed_sequence
from skdp._recording import with_progress
from skdp._validation import TargetRange, finite, positive_int, short_repr
from skdp.learner import (
    StatedGuarantee,
    check_unchanged,
    frozen_params,
    has_begun,
    unchanged_on_error,
)
from skdp.linear_model._mutual_information._channels import CHANNELS, Channel, Values
from skdp.linear_model._mutual_information._parameters import check_parameters
from skdp.local._ogd import OGDState, learn_value, mean_played, played, run_noised
from skdp.rows._inputs import checked_array

_BLOCK = 1 << 22  # numbers in memory beside the input
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class MessageStream:
    """What is kept between calls, all of it released or public.

    Parameters
    ----------
    params : dict
        Parameters of the estimator when the stream began.

    channel : Channel

    state : OGDState

    noise : NoiseSource

    iterates : tuple of ndarray
        Weights played, if they are kept.

    charged : bool
        Whether the ledger has paid for records.
    """

    params: dict = field(repr=False)
    channel: Channel
    state: OGDState = field(repr=False)
    noise: NoiseSource = field(repr=False)
    iterates: tuple = field(repr=False)
    charged: bool

    @classmethod
    def begin(cls, model, n_features):
        """Stream of the parameters of an estimator, before the first message."""
        positive_int(n_features=n_features)
        size = int(n_features) + bool(model.fit_intercept)
        noise_state, directions = None, np.random.default_rng()
        if model.random_state is not None:
            noise_state, directions = map(
                np.random.default_rng, seed_sequence(model.random_state).spawn(2)
            )
        kind = CHANNELS[model.feedback, model.perturbation]
        channel = kind.plan(model, size, directions)
        noise = noise_source(noise_state)
        return cls(frozen_params(model), channel, OGDState.zeros(size), noise, (), False)

    @property
    def targets(self):
        """Public range of the target."""
        return TargetRange(*self.channel.device.y_bounds)

    @property
    def n_features(self):
        """Of rows, without the constant."""
        return self.channel.size - bool(self.params["fit_intercept"])

    def advance(self, X, targets):
        """Play both parties, each record once, after the ledger has paid."""
        channel, state, kept = self.channel, self.state, []
        length = max(1, min(_BLOCK_ROWS, _BLOCK // channel.size))
        starts = range(0, X.shape[0], length)
        for start in with_progress(starts, "contributions", len(starts), of="rows"):
            block = slice(start, start + length)
            rows = channel.device._rows(X[block])
            keep = self.to_keep(len(rows))
            state = channel.run(rows, targets[block], state, self.noise, keep)
            kept.append(keep)
        keep = np.concatenate(kept) if self.params["keep_iterates"] else None
        stream = self.continued(channel.without_question(), state, keep)
        return replace(stream, charged=True)

    def to_keep(self, n):
        """Where to write the weights that are played; None if nobody asked."""
        return np.empty((n, self.channel.size)) if self.params["keep_iterates"] else None

    def continued(self, channel, state, kept):
        """Stream after more messages."""
        iterates = self.iterates if kept is None else (*self.iterates, kept)
        return replace(self, channel=channel, state=state, iterates=iterates)

    def fitted(self):
        """Attributes that follow from what the learner holds."""
        channel, state = self.channel, self.state
        chosen = mean_played(state, channel.projection)
        targets, n_features = self.targets, self.n_features
        return dict(
            coef_=targets.half / channel.device.x_norm * chosen[:n_features],
            intercept_=targets.middle
            + targets.half * channel.device.constant * float(chosen[n_features:].sum()),
            weights_=played(state, channel.projection),
            exploration_=float(channel.projection.explorations(state.time, 1)[0]),
            noise_scale_=channel.device.scale,
            n_samples_seen_=state.time,
            guarantee_=channel.guarantee,
            _stream=self,
        )


class Learner(StatedGuarantee):
    """Mixin: updates from messages of devices."""

    feedback: str
    perturbation: str
    fit_intercept: bool
    n_features_in_: int
    _stream: MessageStream

    def partial_fit_noised(self, Z):
        """Continue the stream as the learner alone, from messages of devices.

        Parameters
        ----------
        Z : array-like of shape (n_messages, n_features + fit_intercept)
            Noisy gradients, each taken at the ``weights_`` of its time; zeros before the first.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If messages are values, with ``feedback="bandit"`` and ``perturbation="scalar"``; use
            `ask` and `tell` instead.
        """
        with unchanged_on_error(self, fresh=not has_begun(self)):
            check_parameters(self)
            if self.feedback == "bandit" and self.perturbation == "scalar":
                raise ValueError(
                    "perturbation must be 'vector' for vector messages with feedback='bandit'; "
                    "pass values to tell; got 'scalar'."
                )
            Z = checked_array(Z, name="Z", accept_sparse=False)
            stream = self._learner(Z.shape[1] - bool(self.fit_intercept))
            channel, state = stream.channel, stream.state
            n_messages, size = Z.shape
            if size != channel.size:
                raise ValueError(
                    f"Z must have {channel.size} columns, one per weight; got {size}."
                )
            keep = stream.to_keep(n_messages)
            limit = channel.largest(state.time, n_messages)[:, np.newaxis]
            Z = np.ascontiguousarray(np.clip(Z, -limit, limit))
            state = run_noised(Z, state, channel.projection, keep=keep)
            self._store(stream.continued(channel, state, keep), fresh=not has_begun(self))
        return self

    def ask(self, n_features=None):
        """Return the point at which the next user evaluates the loss, for ``feedback="bandit"``.

        Parameters
        ----------
        n_features : int, default=None
            Number of features; required to start a stream.

        Returns
        -------
        ndarray of shape (n_features + fit_intercept,)
            Point, which stays the same until `tell` is called.
        """
        with unchanged_on_error(self, fresh=not has_begun(self)):
            check_parameters(self)
            if self.feedback != "bandit" or self.perturbation != "scalar":
                raise ValueError(
                    "feedback must be 'bandit' and perturbation must be 'scalar' to use ask; "
                    f"got {short_repr(self.feedback)} and {short_repr(self.perturbation)}."
                )
            if n_features is None and not has_begun(self):
                raise ValueError("n_features must be given to start a stream; got None.")
            if has_begun(self) and n_features not in (None, self.n_features_in_):
                raise ValueError(
                    f"n_features must be None or {self.n_features_in_} in this stream; "
                    f"got {short_repr(n_features)}."
                )
            stream = self._learner(n_features)
            channel = stream.channel.with_question(stream.state.time)
            self._store(replace(stream, channel=channel), fresh=not has_begun(self))
        direction, distance = channel.question
        return played(stream.state, channel.projection) + distance * direction

    def tell(self, value):
        """Update the model with the noisy value at the point returned by `ask`.

        Parameters
        ----------
        value : float
            Noisy value from :class:`~skdp.local.ValuePrivatizer`, minus the middle of the range.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        finite(value=value)
        stream, channel, state = self._stream, self._stream.channel, self._stream.state
        if not isinstance(channel, Values) or channel.question is None:
            raise ValueError("ask must be called before tell.")
        with unchanged_on_error(self, fresh=not has_begun(self)):
            check_unchanged(self, stream.params)
            direction, distance = channel.question
            limit = float(channel.largest(state.time, 1)[0])
            value = max(-limit, min(limit, float(value)))
            weights, theta = played(state, channel.projection), state.theta.copy()
            share = float(channel.projection.shares(state.time, 1)[0])
            learn_value(value, direction, distance, theta)
            state = OGDState(theta, state.total + share * weights, state.time + 1)
            keep = stream.to_keep(1)
            if keep is not None:
                keep[0] = weights + distance * direction
            self._store(stream.continued(channel.without_question(), state, keep), fresh=False)
        return self

    def _learner(self, n_features):
        """Stream of the learner alone, which reads no data and charges nothing."""
        if has_begun(self):
            check_unchanged(self, self._stream.params)
            return self._stream
        stream = MessageStream.begin(self, n_features)
        self.n_features_in_ = int(n_features)
        return stream

    def _store(self, stream, *, fresh):
        fitted = stream.fitted()
        fitted["guarantee_"] = self._stated(fitted["guarantee_"], fresh=fresh)
        for name, value in fitted.items():
            setattr(self, name, value)
