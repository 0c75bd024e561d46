"""
A private stream of hourly demand
=================================

We predict the hourly demand for hired bicycles from streaming data.
`~skdp.kernel.DPOnlineKernelRegressor` learns in temporal order: it first predicts each week and
then learns it. The parameter ``release`` determines the releases and their cost:

- ``"chunk"``, the default, releases one gradient and the second moments of each week. It has one
  budget for a stream of any length and keeps no private state.
- ``"final"`` releases the function after each week. A release is cheap, but the guarantee covers
  all releases so far, so epsilon grows.
- ``"sgd"`` adds noise to each step, with one budget for a stream of any length.
- ``"matrix"`` releases noisy sums of a stream of known length, whose noise partly cancels in the
  function. It has one budget and less noise.
"""

# %%
# The data are the demand in Washington in 2011 and 2012 if they are in the folder named by the
# environment variable ``SKDP_DATA``, and a simulation of the same columns otherwise. The target is
# the square root of the count. It is closer to the middle of its bounds, to which noisy models
# shrink, and its bounds are as public as those of the count.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import skdp
from skdp.datasets import fetch_bike_sharing
from skdp.kernel import (
    DPOnlineKernelRegressor,
    Recursion,
    automatic_t0,
    run_features,
    stream_sensitivities,
)
from skdp.preprocessing import make_public_preprocessor
from skdp.rows import fourier_features

skdp.set_config(known_seeds=True)  # only for the figure: a known seed makes the noise known


def simulated_demand(seed=0):
    """Simulate two years of hours, with two peaks on working days and more demand if warm."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2011-01-01", "2012-12-31 23:00", freq="h")
    hours, days = times.hour.to_numpy(), times.day_of_year.to_numpy()
    season = -np.cos(2 * np.pi * (days - 20) / 365)
    daily = np.cumsum(rng.standard_normal(len(times) // 24 + 1)) * 0.02
    weather = np.repeat(daily - pd.Series(daily).rolling(15, 1).mean(), 24)[: len(times)]
    temp = 0.5 + 0.25 * season - 0.06 * np.cos(2 * np.pi * (hours - 3) / 24) + weather
    workingday = (times.day_of_week < 5).astype(float)
    peaks = [np.exp(-(((hours - h) / w) ** 2)) for h, w in ((8, 1.5), (17.5, 2.0), (14, 4.5))]
    shape = np.where(workingday == 1, peaks[0] + 1.4 * peaks[1] + 0.4 * peaks[2], 1.2 * peaks[2])
    hum = np.clip(0.65 - weather + 0.1 * rng.standard_normal(len(times)), 0.0, 1.0)
    years = (times.year - 2011).astype(float)
    mean = 500 * (0.08 + shape) * np.clip(temp, 0.1, 1.0) * (1.3 - hum) * (1 + 0.6 * years)
    columns = {
        "hr": hours.astype(float),
        "workingday": workingday,
        "temp": np.clip(temp, 0.0, 1.0),
        "hum": hum,
    }
    return pd.DataFrame(columns), rng.poisson(mean).astype(float)


try:
    bike = fetch_bike_sharing()
    data, hires, source = bike.data, bike.target.to_numpy(), "Washington"
except OSError:
    data, hires = simulated_demand()
    source = "simulated"


def clock(values, period):
    """Return cosine and sine of a periodic value."""
    angles = 2 * np.pi * np.asarray(values, dtype=float) / period
    return np.column_stack([np.cos(angles), np.sin(angles)])


bounds = {"workingday": (0, 1), "temp": (0.0, 1.0), "hum": (0.0, 1.0)}
scaled = make_public_preprocessor(bounds, norm=None).fit_transform(data[list(bounds)])
X = np.hstack([scaled, *(clock(data.hr, 24 / k) for k in (1, 2, 3))])
highest = np.sqrt(1000.0)
roots = np.sqrt(np.clip(hires, 0.0, 1000.0))
print(f"{source}: {len(X)} hours, {X.shape[1]} columns")

# %%
# Each week is first predicted from earlier releases and then learned. Two years of weekly releases
# at :math:`\varepsilon = 1/4` cost about as much as the budget of 2 of the other methods.

week, n_hours = 168, len(X)
gamma, theta, delta = 0.2, 0.6, 1e-6
parts = [slice(start, min(start + week, n_hours)) for start in range(0, n_hours, week)]
ends = np.array([part.stop for part in parts])
releases = {
    '"chunk"': {"release": "chunk", "epsilon": 2.0},
    '"final"': {"release": "final", "epsilon": 0.25, "theta": theta},
    # Noise at every step requires smaller steps.
    '"sgd"': {"release": "sgd", "epsilon": 2.0, "theta": 0.75},
    '"matrix"': {"release": "matrix", "epsilon": 2.0, "theta": theta, "horizon": n_hours},
}
predictions = {name: np.full(n_hours, 250.0) for name in ["not private", *releases]}
spent = {name: [] for name in releases}
for name, options in releases.items():
    model = DPOnlineKernelRegressor(
        delta=delta, gamma=gamma, y_bounds=(0.0, highest), random_state=0, **options
    )
    for i, part in enumerate(parts):
        if i:
            predictions[name][part] = model.predict(X[part]) ** 2
        model.partial_fit(X[part], roots[part])
        spent[name].append(model.guarantee_.epsilon)
    print(f"{name:8s} epsilon {model.guarantee_.epsilon:.2f} after {len(parts)} weeks")

# %%
# The same recursion without privacy.

features = fourier_features("rbf", X.shape[1], n_components=1000, gamma=gamma, random_state=0)
recursion, gathered = Recursion(theta, automatic_t0(theta)), np.zeros(1000)
targets = 2 * roots / highest - 1
for i, part in enumerate(parts):
    Z = features.transform(X[part])
    if i:
        value = Z @ gathered / (part.start - 1 + recursion.t0)
        predictions["not private"][part] = (highest * (np.clip(value, -1, 1) + 1) / 2) ** 2
    gathered = run_features(Z, targets[part], gathered, part.start, recursion)

# %%
# Top left: a week in the second summer, predicted before it was learned; the title names the data.
# Top right: the score along the stream, over four weeks at a time. (Scores use the exact demand,
# which no budget covers, only for this figure.) Recursions lag behind growing demand even without
# noise, because they weight all years equally; ``"chunk"`` forgets. Bottom left: the total cost of
# all releases so far. Releases of ``"final"`` become cheaper, because each past record has less
# and less weight, but their costs add up. Bottom right: the largest effect of one record on the
# function, by the constant of the paper and by ours, for the recursion of the paper (``"plain"``)
# and for clipped residuals (``"huber"``, the default). The noise of one release is proportional to
# this effect.

figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
colors = {"not private": "0.35", '"chunk"': "C3", '"final"': "C0", '"sgd"': "C1", '"matrix"': "C2"}
styles = {"not private": ":", '"chunk"': "-", '"final"': "-.", '"sgd"': "-", '"matrix"': "--"}
shown = parts[80]
days = np.arange(shown.stop - shown.start) / 24
axes[0, 0].fill_between(days, hires[shown], color="0.85", label="demand")
for name, values in predictions.items():
    axes[0, 0].plot(days, values[shown], styles[name], color=colors[name], lw=1.4, label=name)
    window = range(1, len(parts) - 3)
    errors = (values - hires) ** 2
    scores = [1 - np.mean(errors[i * week : (i + 4) * week]) / np.var(hires) for i in window]
    axes[0, 1].plot(ends[4:], scores, styles[name], color=colors[name], lw=1.4)
axes[0, 0].set(
    title=f"a week in the second summer ({source})", xlabel="day", ylabel="hires per hour"
)
axes[0, 1].set(title="accuracy, four weeks at a time", xlabel="hours seen", ylabel="$R^2$")
axes[0, 1].set(ylim=(-0.6, 1.0))
axes[0, 1].axhline(0.0, color="0.8", zorder=0)
for name, values in spent.items():
    axes[1, 0].plot(
        ends, values, "--" if name in ('"matrix"', '"sgd"') else "-", color=colors[name], lw=1.8
    )
axes[1, 0].set(title="guarantee so far", xlabel="hours seen", ylabel=f"epsilon at delta={delta:g}")
axes[1, 0].set(ylim=(0.0, None))

times = np.unique(np.geomspace(10, n_hours, 60).astype(int))
stream = {"theta": 0.75, "t0": automatic_t0(0.75), "y_bound": 1.0}
for label, options, style in [
    ("paper, plain", {"bound": "paper"}, "k:"),
    ("tight, plain", {}, "k--"),
    ("tight, huber", {"residual": "huber", "width": 0.5}, "k-"),
]:
    axes[1, 1].loglog(times, stream_sensitivities(times, **stream, **options), style, label=label)
axes[1, 1].set(title="largest effect of one record, theta=0.75", xlabel="hours seen")
axes[1, 1].set(ylabel="distance of functions")
axes[1, 1].legend(frameon=False)
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6)
plt.show()
