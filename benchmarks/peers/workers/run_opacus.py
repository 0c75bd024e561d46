"""DP-SGD by Opacus: logistic or linear regression, or one hidden layer, with Poisson batches.

The noise follows from Opacus' accountant (PRV), whose tolerances are set to two hundredths of the
budget, which gives less noise at small budgets than what it does by itself.
"""

from functools import cache

import numpy as np
import opacus
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from protocol import serve
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


@cache
def _noise(epsilon, delta, rate, steps):
    tolerance = 0.02 * epsilon
    return get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=delta,
        sample_rate=rate,
        steps=steps,
        accountant="prv",
        epsilon_tolerance=tolerance,
        eps_error=tolerance,
    )


class _Batches(Dataset):
    """Rows that come a batch at a time, which spares a loop in Python over records."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], self.y[i]

    def __getitems__(self, chosen):
        chosen = torch.as_tensor(chosen, dtype=torch.long)
        return self.X[chosen], self.y[chosen]


def _collate(batch):
    return batch


def _network(kind, d):
    if kind == "linear":
        return nn.Linear(d, 1)
    return nn.Sequential(nn.Linear(d, 16), nn.Tanh(), nn.Linear(16, 1))


def fit(rows, job):
    """Score of class 1, or the target, of test rows."""
    setting, n = job["setting"], len(rows.y)
    torch.manual_seed(job["seed"])
    # Rows of norm 1 have tiny entries: a network gets them times a public factor.
    factor = float(rows.scale) if setting["model"] != "linear" else 1.0
    X, X_test = (
        torch.as_tensor(factor * part, dtype=torch.float32) for part in (rows.X, rows.X_test)
    )
    y, loss = rows.y, nn.BCEWithLogitsLoss()
    if rows.is_regression:
        low, high = map(float, rows.y_bounds)
        y, loss = (2.0 * y - low - high) / (high - low), nn.MSELoss()
    y = torch.as_tensor(y, dtype=torch.float32)
    network = _network(setting["model"], X.shape[1])
    network.train()
    loader = DataLoader(
        _Batches(X, y), batch_size=min(setting["batch"], n // 3), collate_fn=_collate
    )
    steps = setting.get("steps") or setting["epochs"] * len(loader)
    network, optimizer, loader = PrivacyEngine(accountant="prv").make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=setting["lr"]),
        data_loader=loader,
        noise_multiplier=_noise(job["epsilon"], job["delta"], 1.0 / len(loader), steps),
        max_grad_norm=setting["cap"],
    )
    done = 0
    while done < steps:
        for batch, targets in loader:
            optimizer.zero_grad()
            loss(network(batch)[:, 0], targets).backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
    network.eval()
    with torch.no_grad():
        scores = network(X_test)[:, 0].double().numpy()
    if rows.is_regression:
        return (low + high + (high - low) * np.clip(scores, -1.0, 1.0)) / 2.0
    return 1.0 / (1.0 + np.exp(-scores))


if __name__ == "__main__":
    serve(fit, {"opacus": opacus.__version__, "torch": torch.__version__})
