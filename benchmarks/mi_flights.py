"""Arrival delays learned from flights that trust nobody: the table of the guide.

    OPENBLAS_NUM_THREADS=1 python benchmarks/mi_flights.py

The 327,346 flights from New York City in 2013 that arrived as planned, in the order of the
timetable, from the table ``flights`` of the R package nycflights13. Each day is predicted before
it is learned, from the delay on departure, hour, season and distance. Mean absolute error in
minutes and R^2 from the second day on, with delays clipped to [-60, 180] minutes; one draw each.

The scaling of the columns was tried on these flights, which no budget pays for. "no noise" is the
same learner with a budget so high that there is no noise to speak of; the best constant is the
median of all delays, which nobody knows in advance.

Needs SKDP_DATA (``nycflights13/flights.csv.gz``).
"""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

import skdp
from skdp.linear_model import MIPrivateSGDRegressor

skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy

BUDGETS = (0.001, 0.01, 0.1, 1.0)
NO_NOISE = 100.0
CHANNELS = {
    "gradient, K-norm noise": {"noise": "k_norm"},
    "value": {"feedback": "bandit"},
    "value as a vector": {"feedback": "bandit", "perturbation": "vector"},
}
Y_BOUNDS = (-60.0, 180.0)
UNIT = 0.25  # of columns with small effects
PUBLIC = {"x_norm": np.sqrt(1 + 3 * UNIT**2), "radius": 1.5, "y_bounds": Y_BOUNDS}


def read_flights(path):
    """Rows, delays, and the day of each flight."""
    table = pd.read_csv(path).dropna(subset=["arr_delay"])
    departure = table.dep_time // 100 * 60 + table.dep_time % 100
    minute = (departure - table.dep_delay) % 1440
    day = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_year
    table = table.assign(minute=minute, year_day=day - 1 + minute / 1440)
    table = table.sort_values("year_day", kind="stable", ignore_index=True)
    X = np.column_stack(
        [
            scaled(table.dep_delay, *Y_BOUNDS),
            UNIT * clock(table.minute, 1440),
            UNIT * clock(table.year_day, 365),
            UNIT * scaled(table.distance, 0, 5000),
        ]
    )
    return X, table.arr_delay.to_numpy(dtype=float), table.year_day.to_numpy() // 1


def scaled(values, low, high):
    """Map public bounds to [-1, 1]."""
    return np.clip((2 * np.asarray(values, dtype=float) - low - high) / (high - low), -1, 1)


def clock(values, period):
    """Where the hand of a clock points."""
    angles = 2 * np.pi * np.asarray(values, dtype=float) / period
    return np.column_stack([np.cos(angles), np.sin(angles)])


def in_advance(model, X, y, starts):
    """Predictions for each day by what was learned on the days before."""
    predictions = np.full(len(y), np.nan)
    for start, stop in pairwise(starts.tolist()):
        if start:
            predictions[start:stop] = model.predict(X[start:stop])
        model.partial_fit(X[start:stop], y[start:stop])
    return predictions


def scores(predictions, late):
    """Mean absolute error in minutes, and R^2."""
    error = predictions - late
    return f"{np.mean(np.abs(error)):8.2f} {1 - np.mean(error**2) / np.var(late):8.3f}"


def main():
    """Print one line a budget and a channel."""
    path = Path(os.environ["SKDP_DATA"]) / "nycflights13" / "flights.csv.gz"
    X, y, day = read_flights(path)
    starts = np.searchsorted(day, np.arange(366))
    late = np.clip(y, *Y_BOUNDS)[starts[1] :]
    runs = {f"gradient, {nats:g} nats": {"mi_budget": nats} for nats in BUDGETS}
    runs |= {name: {"mi_budget": 0.1, **channel} for name, channel in CHANNELS.items()}
    runs["no noise"] = {"mi_budget": NO_NOISE}
    print(f"{len(y)} flights\n{'':28s} epsilon at delta=1e-6  minutes      R^2")
    for name, options in runs.items():
        model = MIPrivateSGDRegressor(random_state=1, **options, **PUBLIC)
        told = scores(in_advance(model, X, y, starts)[starts[1] :], late)
        print(f"{name:28s} {model.guarantee_.epsilon_at(1e-6):22.3g} {told}")
    print(f"{'best constant':51s} {scores(np.median(late), late)}")


if __name__ == "__main__":
    main()
