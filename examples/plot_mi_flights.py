"""
Local privacy for flight delays
===============================

An airport wants to predict the arrival delay of a flight from information at take-off. Airlines do
not share their delays, and there is no trusted aggregator. So each flight is a *user* with one
record. Its device sends one message: a gradient plus noise, and the noise dominates. From 100,000
such messages, `~skdp.linear_model.MIPrivateSGDRegressor` still learns to predict.

The flights are simulated. The example takes about five seconds.
"""

# %%
# A year of flights
# -----------------
# Flights are late in the evening and on bad days, and pilots make up a few minutes in the air. At
# take-off, a device knows the departure delay, the time of day and the distance. After landing, it
# knows the arrival delay, which is the target.

import textwrap
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import skdp
from skdp.linear_model import MIPrivateSGDRegressor

skdp.set_config(known_seeds=True)  # only for the figure: a known seed makes the noise known

n_flights = 100_000
rng = np.random.default_rng(0)
time = np.sort(rng.uniform(0.0, 365.0, n_flights))  # in days
minute = 360.0 + 960.0 * rng.beta(1.1, 1.2, n_flights)  # of the day
distance = rng.choice([200.0, 500.0, 750.0, 1000.0, 1400.0, 2475.0], n_flights)

day = time.astype(int)
how_bad = rng.gamma(1.0, 1.0, 365)[day]
is_late = rng.random(n_flights) < 0.15 + 0.25 * (minute - 360.0) / 960.0
departure = rng.normal(-4.0, 4.0, n_flights)
departure += is_late * rng.gamma(0.8, 35.0, n_flights) * (0.4 + 0.6 * how_bad)
gained = 4.0 + 0.003 * distance
arrival = departure - gained - rng.normal(0.0, 16.0, n_flights)
print(f"{n_flights} flights, {np.mean(arrival > 15):.0%} of them more than 15 minutes late")

# %%
# Public settings
# ---------------
# Everything here is public: round numbers that suit any airport and do not come from the flights.
#
# - The arrival delay is clipped to the range from one hour early, more than a flight can make up,
#   to three hours late.
# - The departure delay is scaled by the same bounds. If a flight arrives as late as it departed,
#   the weight is 1; a ``radius`` of 1.5 leaves some room.
# - Hour and distance change the delay by only a few minutes. They get a small scale, because all
#   columns share the norm of a row, and the departure delay needs most of it.

y_bounds, unit = (-60.0, 180.0), 0.25


def scaled(values, low, high):
    """Map public bounds to [-1, 1]."""
    return np.clip((2 * values - low - high) / (high - low), -1, 1)


angle = 2 * np.pi * minute / 1440  # of the hand of a clock
X = np.column_stack(
    [
        scaled(departure, *y_bounds),
        unit * np.cos(angle),
        unit * np.sin(angle),
        unit * scaled(distance, 0, 5000),
    ]
)
late = np.clip(arrival, *y_bounds)
public = {"x_norm": np.sqrt(1 + 2 * unit**2), "radius": 1.5, "y_bounds": y_bounds}

# %%
# The first day, message by message
# ---------------------------------
# The learner has no argument for records: it knows the number of columns and receives messages.
# The device of a flight knows its own record, the public settings and the weights it receives. The
# budget is 0.1 nats, a bound on the average information of a message about the record. The
# guarantee also states the worst case.

learner = MIPrivateSGDRegressor(mi_budget=0.1, **public)
device = learner.privatizer(n_features=X.shape[1])
weights = np.zeros(X.shape[1] + 1)
for i in np.flatnonzero(day == 0):
    message = device.release(weights, X[i], arrival[i])  # on the device of flight i
    learner.partial_fit_noised([message])  # at the learner
    weights = learner.weights_  # sent to the next flight
print(
    f"{learner.n_samples_seen_} messages, each a gradient of norm {device.lipschitz:.2f} at most"
)
print(f"plus noise. The last one: {np.round(message, 1)}")
print(textwrap.fill(str(learner.guarantee_), 80))

# %%
# A whole year with several budgets
# ---------------------------------
# ``partial_fit`` simulates both parties. Each day is predicted before it is learned, so every
# score is for new flights. (Scores use exact delays, only for the figure.) One learner has a
# budget so large that there is almost no noise. The best constant is the median of all delays,
# which is unknown in advance.

budgets, no_noise = [0.001, 0.01, 0.1, 1.0], 100.0
starts = np.searchsorted(day, np.arange(366))
rest = slice(starts[1], None)
constant = np.abs(late - np.median(late[rest]))
models, errors = {}, {}
for nats in [*budgets, no_noise]:
    model = MIPrivateSGDRegressor(mi_budget=nats, random_state=1, **public)
    predictions = np.full(n_flights, np.nan)
    for start, stop in pairwise(starts.tolist()):
        if start:
            predictions[start:stop] = model.predict(X[start:stop])
        model.partial_fit(X[start:stop], arrival[start:stop])
    models[nats], errors[nats] = model, np.abs(predictions - late)

print("  nats  epsilon at delta=1e-6  mean error in minutes")
for nats in budgets:
    epsilon = models[nats].guarantee_.epsilon_at(1e-6)
    print(f"{nats:6g} {epsilon:22.2f} {errors[nats][rest].mean():22.2f}")
print(f"almost no noise {errors[no_noise][rest].mean():36.2f}")
print(f"best constant {constant[rest].mean():38.2f}")

# %%
# Error and budget
# ----------------
# Top: the mean error against the budget. The label of a point is the worst case for one flight:
# local differential privacy with this :math:`\varepsilon` at :math:`\delta = 10^{-6}`. Bottom: the
# weekly error over the year. Learning with a small budget takes longer: the smallest budget takes
# a month to beat the best constant, and the largest takes a few days to approach the error without
# noise.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 7.5), layout="constrained")
colors = {nats: f"C{i}" for i, nats in enumerate(budgets)} | {no_noise: "0.35"}
markers = dict(zip(budgets, "osD^", strict=True))
means = [errors[nats][rest].mean() for nats in budgets]
top.plot(budgets, means, "-", color="k", label="private")
for nats, mean in zip(budgets, means, strict=True):
    top.plot(nats, mean, markers[nats], color=colors[nats], ms=8, zorder=3)
    text = rf"$\varepsilon={models[nats].guarantee_.epsilon_at(1e-6):.2g}$"
    top.annotate(text, (nats, mean), xytext=(6, 8), textcoords="offset points")
top.axhline(errors[no_noise][rest].mean(), color=colors[no_noise], ls="--", label="no noise")
top.axhline(constant[rest].mean(), color="0.6", ls=":", label="best constant")
top.set(xscale="log", xlim=(7e-4, 2.2), xlabel="mutual information of a flight, in nats")
top.set(ylabel="mean error, minutes", title=f"{n_flights:,} simulated flights")
top.set(ylim=(0, 1.15 * max(constant[rest].mean(), *means)))
top.legend(frameon=False, loc="lower left")

weeks = [(d, slice(starts[d], starts[min(d + 7, 365)])) for d in range(1, 359, 7)]
curves = [(f"{nats:g} nats", markers[nats] + "-", colors[nats], errors[nats]) for nats in budgets]
curves.append(("no noise", "--", colors[no_noise], errors[no_noise]))
curves.append(("best constant", ":", "0.6", constant))
for label, style, color, error in curves:
    weekly = [error[week].mean() for _, week in weeks]
    bottom.plot([d + 3.5 for d, _ in weeks], weekly, style, color=color, ms=4, label=label)
bottom.set(xlabel="day of the year", ylabel="mean error, minutes", ylim=(0, None))
bottom.legend(frameon=False, ncols=3)
plt.show()

# %%
# Next steps: :doc:`/mi_regression` has recipes; :doc:`/mi_regression_theory` explains the
# guarantee of a nat and applies the same learner to 327,346 real flights.
