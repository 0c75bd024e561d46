"""What users of a stream send, and how the learner learns from it: one class a kind of message.

A channel joins the promise of a message (`skdp.learner`), the device that keeps it
(`skdp.local`) and the learner's steps (`skdp.linear_model.papers`). Its numbers are public.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from skdp._grid import UP
from skdp._validation import is_auto, short_repr
from skdp.linear_model._mutual_information import _theory as theory
from skdp.linear_model._mutual_information._parameters import (
    averaging_power,
    device_options,
    lipschitz_of,
    row_norm_of,
    slope_of,
)
from skdp.local import GradientPrivatizer, OnePointPrivatizer, ValuePrivatizer
from skdp.local._messages import (
    GradientMessages,
    OnePointMessages,
    ValueMessages,
    bandit_noise,
    nats_of,
)
from skdp.local._ogd import (
    LazyProjection,
    learn_from_value,
    learn_from_vector,
    run_bandit,
    run_full,
)
from skdp.privacy import MutualInformationPrivacy


@dataclass(frozen=True)
class Channel(ABC):
    """Public numbers of a stream.

    Parameters
    ----------
    size : int
        Number of weights.

    device : GradientPrivatizer, ValuePrivatizer or OnePointPrivatizer

    guarantee : MutualInformationPrivacy

    projection : LazyProjection

    energy : float
        Bound on the mean squared norm of a message; on that times the square of the exploration
        where there is one.
    """

    size: int
    device: Any
    guarantee: MutualInformationPrivacy
    projection: LazyProjection
    energy: float

    @classmethod
    @abstractmethod
    def plan(cls, model, size, directions):
        """Channel of the parameters of an estimator; a generator draws directions."""

    @abstractmethod
    def run(self, rows, targets, state, source, keep):
        """Play both parties; the next state."""

    @abstractmethod
    def largest(self, time, n_messages):
        """Bound on coordinates that only broken or hostile devices exceed, one a message."""

    @abstractmethod
    def regret_terms(self, time):
        """Energies of all messages up to a time, and what each round loses beside."""

    def without_question(self):
        """The same, and no point has been asked for."""
        return self

    def _reach(self):
        """What the noise of a device does not exceed."""
        return 64.0 * self.device.scale * (1.0 if self.device.noise == "gaussian" else self.size)


@dataclass(frozen=True)
class Gradients(Channel):
    """Users send gradients."""

    @classmethod
    def plan(cls, model, size, directions):
        lipschitz, radius = lipschitz_of(model), float(model.radius)
        messages = GradientMessages.plan(
            nats_of(model.mi_budget, model.unit),
            noise=model.noise,
            size=size,
            lipschitz=lipschitz,
            contributions=int(model.contributions_per_user),
        )
        if not 1e-50 <= messages.scale <= 1e50:  # only of the user's own norms
            raise ValueError(
                "gradient_norm must leave the noise a scale between 1e-50 and 1e50; with "
                f"mi_budget={short_repr(model.mi_budget)} got {short_repr(model.gradient_norm)}."
            )
        bounds = dict(radius=radius, lipschitz=lipschitz, noise_energy=messages.energy)
        step = partial(theory.anytime_full_steps, **bounds)
        if model.horizon is not None:
            step = theory.full_step(int(model.horizon), **bounds)
        return cls(
            size,
            GradientPrivatizer(
                messages.scale,
                gradient_norm=model.gradient_norm,
                n_weights=size,
                **device_options(model),
            ),
            messages.guarantee,
            _projection(model, step),
            lipschitz**2 + messages.energy,
        )

    def run(self, rows, targets, state, source, keep):
        noise, slope = self.device._grid_noise(self.size), self.device.slope
        return run_full(
            rows, targets, state, self.projection, slope, noise=noise, source=source, keep=keep
        )

    def largest(self, time, n_messages):
        return np.full(n_messages, self.device.lipschitz + self._reach())

    def regret_terms(self, time):
        return self.energy, 0.0


@dataclass(frozen=True)
class _Asking(Channel):
    """Users send what the loss at one point was.

    Parameters
    ----------
    lipschitz : float
        Largest slope of a loss.

    directions : Generator
    """

    lipschitz: float
    directions: np.random.Generator = field(repr=False)

    def asked_for(self, n):
        """Uniform directions, a little shorter than 1 so that bounds survive rounding."""
        vectors = self.directions.standard_normal((n, self.size))
        return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) * UP)

    def regret_terms(self, time):
        distances = self.projection.explorations(0, time)
        return self.energy / distances**2, 2.0 * self.lipschitz * distances

    def _run(self, rows, targets, state, keep, sender, learn):
        return run_bandit(
            rows,
            targets,
            state,
            self.projection,
            self.device.slope,
            sender=sender,
            learn=learn,
            directions=self.asked_for,
            keep=keep,
        )


@dataclass(frozen=True)
class Values(_Asking):
    """Users send values.

    Parameters
    ----------
    question : (ndarray, float) or None
        Direction and distance from the weights of the point that was asked for.
    """

    question: tuple[np.ndarray, float] | None = field(default=None, repr=False)

    @classmethod
    def plan(cls, model, size, directions):
        value_range, projection, energy = _explored(model, size, "scalar")
        messages = ValueMessages.plan(
            nats_of(model.mi_budget, model.unit),
            noise=model.noise,
            value_range=value_range,
            contributions=int(model.contributions_per_user),
        )
        device = ValuePrivatizer(messages.scale, value_range=value_range, **device_options(model))
        return cls(
            size, device, messages.guarantee, projection, energy, lipschitz_of(model), directions
        )

    def run(self, rows, targets, state, source, keep):
        sender = partial(self.device._sender, random_state=source)
        return self._run(rows, targets, state, keep, sender, learn_from_value)

    def largest(self, time, n_messages):
        return np.full(n_messages, self.device.half_range + self._reach())

    def with_question(self, time):
        """The same, and a point has been asked for."""
        if self.question is not None:
            return self
        distance = float(self.projection.explorations(time, 1)[0])
        return replace(self, question=(self.asked_for(1)[0], distance))

    def without_question(self):
        return replace(self, question=None)


@dataclass(frozen=True)
class OnePoints(_Asking):
    """Users send one-point gradients."""

    @classmethod
    def plan(cls, model, size, directions):
        value_range, projection, energy = _explored(model, size, "vector")
        messages = OnePointMessages.plan(
            nats_of(model.mi_budget, model.unit),
            noise=model.noise,
            size=size,
            contributions=int(model.contributions_per_user),
        )
        options = dict(value_range=value_range, **device_options(model))
        device = OnePointPrivatizer(messages.scale, **options)
        return cls(
            size, device, messages.guarantee, projection, energy, lipschitz_of(model), directions
        )

    def run(self, rows, targets, state, source, keep):
        send = partial(self.device._send, random_state=source)
        return self._run(rows, targets, state, keep, lambda n: send, learn_from_vector)

    def largest(self, time, n_messages):
        distances = self.projection.explorations(time, n_messages)
        return self.size * self.device.value_range / (2.0 * distances) * (1.0 + self._reach())


# By feedback and perturbation; the second is for values only.
CHANNELS: dict[tuple[str, str], type[Channel]] = {
    ("full", "scalar"): Gradients,
    ("full", "vector"): Gradients,
    ("bandit", "scalar"): Values,
    ("bandit", "vector"): OnePoints,
}


def _explored(model, size, perturbation):
    """Range of the losses that are asked for, the learner's steps and distances, and energy."""
    nats, slope = nats_of(model.mi_budget, model.unit), slope_of(model)
    horizon = None if model.horizon is None else int(model.horizon)
    radius, lipschitz = float(model.radius), lipschitz_of(model)
    relative = bandit_noise(
        dimension=size, nats=nats, perturbation=perturbation, noise=model.noise
    )
    value_range, _ = theory.bandit_range(
        slope.value,
        dimension=size,
        relative_noise=relative,
        radius=radius,
        lipschitz=lipschitz,
        row_norm=row_norm_of(model),
        horizon=horizon,
    )
    amplitude = theory.bandit_amplitude(
        dimension=size, value_range=value_range, relative_noise=relative
    )
    bounds = dict(radius=radius, lipschitz=lipschitz, amplitude=amplitude)
    if horizon is None:
        step = partial(theory.anytime_bandit_steps, **bounds)
        projection = _projection(
            model, step, partial(theory.anytime_bandit_explorations, **bounds)
        )
    else:
        exploration = float(theory.bandit_exploration(horizon, **bounds))
        step = theory.bandit_step(
            horizon, radius=radius, amplitude=amplitude, exploration=exploration
        )
        projection = _projection(model, step, exploration)
    return value_range, projection, amplitude**2


def _projection(model, automatic, exploration=0.0):
    """The learner's numbers, with the steps of the theory or the user's."""
    step = automatic if is_auto(model.step) else float(model.step)
    return LazyProjection(float(model.radius), step, exploration, averaging_power(model))
