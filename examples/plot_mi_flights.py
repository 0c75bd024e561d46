"""
Flights that tell nobody how late they were
===========================================

How late a flight arrives is to be predicted when it takes off. Each flight is a user who trusts
nobody: its device adds noise to a gradient before anything leaves, and the learner sees noise
with a little signal in it, three hundred thousand times.
`~skdp.linear_model.MIPrivateSGDRegressor` is both parties, which this example first plays apart.
"""

# %%
# The flights from New York City in 2013, if the environment variable ``SKDP_DATA`` names a folder
# that has them, and a simulation of the same columns otherwise. Flights come in the order of the
# timetable.

import os
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import skdp
from skdp.linear_model import MIPrivateSGDRegressor

skdp.set_config(known_seeds=True)  # for the figure: whoever knows a seed knows the noise


def simulated_flights(n_flights=327_000, seed=0):
    """A year of flights: late ones in the evening, and some minutes made up in the air."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0.0, 365.0, n_flights))
    minute = 360.0 + 960.0 * rng.beta(1.1, 1.2, n_flights)
    distance = rng.choice([200.0, 500.0, 750.0, 1000.0, 1400.0, 2475.0], n_flights)
    bad_days = np.repeat(rng.gamma(1.0, 1.0, 365), 1)[times.astype(int)]
    late = rng.random(n_flights) < 0.15 + 0.25 * (minute - 360.0) / 960.0
    departure = np.where(late, rng.gamma(0.8, 35.0, n_flights) * (0.4 + 0.6 * bad_days), 0.0)
    departure += rng.normal(-4.0, 4.0, n_flights)
    season = np.cos(2 * np.pi * times / 365)
    gained = 5.0 + 0.001 * distance - 2.0 * season + rng.normal(0.0, 16.0, n_flights)
    return pd.DataFrame(
        {
            "dep_delay": departure,
            "arr_delay": departure - gained,
            "year_day": times,
            "minute": minute,
            "distance": distance,
        }
    )


def real_flights(path):
    """The table of the R package nycflights13, without flights that did not arrive as planned."""
    table = pd.read_csv(path).dropna(subset=["arr_delay"])
    departure = table.dep_time // 100 * 60 + table.dep_time % 100
    minute = (departure - table.dep_delay) % 1440
    day = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_year
    table = table.assign(minute=minute, year_day=day - 1 + minute / 1440)
    return table.sort_values("year_day", kind="stable", ignore_index=True)


path = Path(os.environ.get("SKDP_DATA", ".")) / "nycflights13" / "flights.csv.gz"
source = "New York City" if path.exists() else "simulated"
flights = real_flights(path) if path.exists() else simulated_flights()
print(f"{source}: {len(flights)} flights")

# %%
# All that is set here is public: round numbers that would do for any airport. Other scalings were
# tried on these flights for the sake of the example; on private ones that would cost budget.
#
# - The target is between an hour early, more than a flight can make up, and three hours late, when
#   the rules on waiting aboard apply. Delays beyond are clipped.
# - The delay on departure is mapped to [-1, 1] by the same bounds. "It arrives as late as it
#   departed" is then a weight of 1.
# - Season, hour and distance change what is made up on the way, a matter of minutes. They
#   come in small units: columns that are shorter than 1/4 leave nearly all of the norm of a
#   row, and so of the signal, to the delay.
# - The radius leaves room for a weight of about 1 and some more.

y_bounds = (-60.0, 180.0)
unit = 0.25


def scaled(values, low, high):
    """Map public bounds to [-1, 1]."""
    return np.clip((2 * np.asarray(values, dtype=float) - low - high) / (high - low), -1, 1)


def clock(values, period):
    """Where the hand of a clock points."""
    angles = 2 * np.pi * np.asarray(values, dtype=float) / period
    return np.column_stack([np.cos(angles), np.sin(angles)])


X = np.column_stack(
    [
        scaled(flights.dep_delay, *y_bounds),
        unit * clock(flights.minute, 1440),
        unit * clock(flights.year_day, 365),
        unit * scaled(flights.distance, 0, 5000),
    ]
)
y = flights.arr_delay.to_numpy(dtype=float)
late = np.clip(y, *y_bounds)
public = {"x_norm": np.sqrt(1 + 3 * unit**2), "radius": 1.5, "y_bounds": y_bounds}

# %%
# The first day, with the two parties apart. The learner knows the number of features, and what
# it gets is vectors of noise; a device knows its own flight, public numbers, and the
# weights that it is sent. It needs numpy only.

budget = 0.1
learner = MIPrivateSGDRegressor(mi_budget=budget, **public)
device = learner.privatizer(n_features=X.shape[1])
weights = np.zeros(X.shape[1] + 1)
day = flights.year_day.to_numpy() // 1
first_day = np.flatnonzero(day == 0)
for i in first_day:
    message = device.release(weights, X[i], y[i])  # on the device of flight i
    learner.partial_fit_noised(message[np.newaxis])  # at the learner
    weights = learner.weights_  # sent to the next flight
print(f"{learner.n_samples_seen_} messages, the last one {np.round(message, 1)}")
print(f"of gradients of norm {device.lipschitz:.2f} at most")
print(learner.guarantee_)

# %%
# The same by ``partial_fit``, which plays both parties, for the whole year and several budgets.
# Each day is predicted before it is learned. The learner without privacy is the same one with a
# budget so high that there is no noise to speak of. The best constant is the median of all
# delays, which no one knows in advance.

budgets, no_noise = [0.001, 0.01, 0.1, 1.0], 100.0
starts = np.searchsorted(day, np.arange(366))
rest = slice(starts[1], None)


def in_advance(model):
    """Predictions for each day by what was learned on the days before."""
    predictions = np.full(len(y), np.nan)
    for start, stop in pairwise(starts.tolist()):
        if start:
            predictions[start:stop] = model.predict(X[start:stop])
        model.partial_fit(X[start:stop], y[start:stop])
    return predictions


def scores(predictions):
    """Mean absolute error in minutes and R^2, from the second day on."""
    error = (predictions - late)[rest]
    r2 = 1 - np.mean(error**2) / np.var(late[rest])
    return f"{np.mean(np.abs(error)):8.2f} {r2:8.3f}"


models, predictions = {}, {}
print("  nats     mu  epsilon at delta=1e-6   minutes      R^2")
for nats in [*budgets, no_noise]:
    models[nats] = MIPrivateSGDRegressor(mi_budget=nats, random_state=1, **public)
    predictions[nats] = in_advance(models[nats])
    guarantee = models[nats].guarantee_
    named = f"{nats:6g} {guarantee.local.mu:6.3f} {guarantee.epsilon_at(1e-6):22.2f}"
    print(f"{named if nats in budgets else 'no noise':36s} {scores(predictions[nats])}")
print(f"{'best constant':36s} {scores(np.median(late[rest]))}")

# %%
# Other channels, each with 0.1 nats. Noise with a spherical law (``"k_norm"``) makes the
# local differential privacy pure. With ``feedback="bandit"`` a device sends how large the loss
# is at one point near the weights, and nothing about its direction. Noise on that number is
# much less than noise on the vector that the paper makes of it.

channels = {
    "gradient, K-norm noise": {"noise": "k_norm"},
    "value": {"feedback": "bandit"},
    "value as a vector": {"feedback": "bandit", "perturbation": "vector"},
}
for name, channel in channels.items():
    model = MIPrivateSGDRegressor(mi_budget=budget, random_state=1, **channel, **public)
    print(f"{name:36s} {scores(in_advance(model))}  {model.guarantee_.epsilon_at(1e-6):.2f}")

# %%
# Top: the errors against the budget, with the local differential privacy that comes with
# each. Mutual information is an average over flights; :math:`\varepsilon` is a promise to each
# one. Bottom: the errors along the year, a week at a time. Smaller budgets learn for longer,
# and after that all of them suffer from the same weeks of bad weather.

errors = {nats: np.abs(values - late) for nats, values in predictions.items()}
constant = np.abs(late - np.median(late[rest]))
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 7.5), layout="constrained")
colors = {nats: f"C{i}" for i, nats in enumerate(budgets)} | {no_noise: "0.35"}
means = [errors[nats][rest].mean() for nats in budgets]
top.plot(budgets, means, "o-", color="k", label="private")
for nats, mean in zip(budgets, means, strict=True):
    epsilon = models[nats].guarantee_.epsilon_at(1e-6)
    top.plot(nats, mean, "o", color=colors[nats], ms=8, zorder=3)
    text = rf"$\varepsilon={epsilon:.2g}$"
    top.annotate(text, (nats, mean), xytext=(6, 8), textcoords="offset points")
top.axhline(errors[no_noise][rest].mean(), color=colors[no_noise], ls="--", label="without noise")
top.axhline(constant[rest].mean(), color="0.6", ls=":", label="best constant")
top.set(xscale="log", xlim=(7e-4, 2.2), xlabel="mutual information of a flight, in nats")
top.set(ylabel="mean absolute error, minutes", title=f"flights, {source}")
top.set(ylim=(0, 1.15 * constant[rest].mean()))
top.legend(frameon=False, loc="lower left")

weeks = [slice(starts[d], starts[min(d + 7, 365)]) for d in range(1, 359, 7)]
days = [d + 3.5 for d in range(1, 359, 7)]
for nats, error in errors.items():
    label, style = (f"{nats:g} nats", "-") if nats in budgets else ("without noise", "--")
    weekly = [error[week].mean() for week in weeks]
    bottom.plot(days, weekly, style, color=colors[nats], lw=1.5, label=label)
weekly = [constant[week].mean() for week in weeks]
bottom.plot(days, weekly, ":", color="0.6", label="best constant")
bottom.set(xlabel="day of the year", ylabel="mean absolute error, minutes", ylim=(0, None))
bottom.legend(frameon=False, ncols=3)
plt.show()
