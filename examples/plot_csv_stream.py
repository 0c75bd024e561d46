"""
Learning from a CSV file in chunks
==================================

If a file does not fit into memory or is still growing, `pandas` can read it in chunks, and
`~skdp.kernel.DPOnlineKernelRegressor` learns from one chunk after the other. Rows are preprocessed
with public bounds and categories that are stated before the file is opened. They do not depend on
the rows, so each chunk is preprocessed independently.
"""

# %%
# The file is a synthetic log of a power station: temperature, pressure, humidity, fuel and power.
# Some cells are empty.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import skdp
from skdp.kernel import DPOnlineKernelRegressor
from skdp.preprocessing import make_public_preprocessor

skdp.set_config(known_seeds=True)  # only for the figure: a known seed makes the noise known

rng = np.random.default_rng(0)
n_rows = 20_000
temperature = rng.uniform(-5, 38, n_rows)
fuel = rng.choice(["gas", "oil"], n_rows, p=[0.8, 0.2])
pressure, humidity = rng.normal(1013, 8, n_rows), rng.uniform(20, 100, n_rows)
power = 480 - 1.4 * temperature - 25 / (1 + np.exp((18 - temperature) / 3))
power += np.where(fuel == "gas", 5.0, -8.0) - 0.06 * humidity + rng.normal(0, 4, n_rows)
columns = {
    "temperature": temperature.round(1),
    "pressure": pressure.round(1),
    "humidity": humidity.round(),
    "fuel": fuel,
    "power": power.round(2),
}
log = pd.DataFrame(columns)
log.loc[rng.uniform(size=n_rows) < 0.01, "humidity"] = np.nan
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "log.csv"
log.to_csv(path, index=False)

# %%
# Public information: the range of each instrument, the fuels, and the range of the station's
# power. ``missing="center"`` fills empty cells with the middle of the range. Do not drop their
# rows: all later rows would move up one position, into other chunks, but the guarantee covers the
# change of a single row.

bounds = {"temperature": (-20, 50), "pressure": (950, 1070), "humidity": (0, 100)}
categories = {"fuel": ["gas", "oil"]}
prepare = make_public_preprocessor(bounds, categories, missing="center", norm=None)
model = DPOnlineKernelRegressor(
    epsilon=1.0,
    delta=1e-6,
    gamma=0.3,
    y_bounds=(380.0, 520.0),
    random_state=0,  # only for the figure; omit it on real data
)

# %%
# Each chunk is first predicted by the current model and then learned. We pass data types to
# ``read_csv``, which otherwise infers them from the values of each chunk. Only one chunk is in
# memory at a time. The scores use the exact targets, which no budget covers; they are only for the
# figure.

types = {**dict.fromkeys(bounds, float), "fuel": "category", "power": float}
seen, scores = [], []
for chunk in pd.read_csv(path, chunksize=1_000, dtype=types):
    X = prepare.fit_transform(chunk[[*bounds, *categories]])
    y = chunk["power"].to_numpy()
    if seen:
        error = np.mean((model.predict(X) - y) ** 2)
        scores.append(1 - error / power.var())
    model.partial_fit(X, y)
    seen.append(model.n_samples_seen_)
print(f"R^2 of the last chunk {scores[-1]:.2f} after {seen[-1]} rows")
print(model.guarantee_)
folder.cleanup()

# %%
# The figure shows the score of each chunk before it is learned. Most of the improvement takes a
# few thousand rows. ``fit_transform`` learns nothing here, because ranges and categories are
# parameters. The budget is charged once, at the first row, for all rows up to the horizon.

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
axis.plot(seen[:-1], scores, "o-", ms=4)
axis.set(xlabel="rows seen", ylabel="$R^2$ of the next chunk", ylim=(0, 1))
axis.set(title="epsilon=1 for the whole stream, read from a CSV file in chunks of 1,000")
plt.show()
