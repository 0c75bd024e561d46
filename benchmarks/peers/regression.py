"""Linear regression from noisy moments: AdaSSP and boosted AdaSSP, under replace-one.

Both are written from the papers, with exact compositions of Gaussian releases in place of simpler
ones, which gives them less noise than the papers do.
"""

import numpy as np

from skdp.privacy import gaussian_mu

__all__ = ["ada_ssp", "boosted_ada_ssp"]

# Probability of the bounds on the noise, as in the paper.
_RISK = 0.05


def _rows(X):
    """Rows with a constant, divided by the largest norm that rows of the cube have."""
    rows = np.column_stack([np.clip(X, -1.0, 1.0), np.ones(len(X))])
    return rows / np.sqrt(rows.shape[1])


def _targets(y, y_bounds):
    low, high = y_bounds
    return np.clip((2.0 * y - low - high) / (high - low), -1.0, 1.0)


def _predicted(X_test, weights, y_bounds):
    low, high = y_bounds
    return (low + high + (high - low) * np.clip(_rows(X_test) @ weights, -1.0, 1.0)) / 2.0


def _noisy_moments(rows, mu, rng, width, quantile):
    """Second moments with noise and with the penalty that it needs: two releases of ``mu`` each.

    The penalty is ``width / mu`` less what the least eigenvalue has for sure, which is its noisy
    value minus ``quantile / mu``.
    """
    d = rows.shape[1]
    moments = rows.T @ rows
    # xx' - zz' has norm at most 1, and Frobenius norm at most sqrt(2): pairs count twice.
    noise = np.triu(rng.normal(0.0, 1.0 / mu, (d, d)), 1)
    noise += noise.T + np.diag(rng.normal(0.0, np.sqrt(2.0) / mu, d))
    least = np.linalg.eigvalsh(moments)[0] + (rng.standard_normal() - quantile) / mu
    return moments + noise + max(0.0, width / mu - max(0.0, least)) * np.eye(d)


def ada_ssp(X, y, X_test, *, y_bounds, epsilon, delta, rng):
    """Predictions for the test rows by AdaSSP: three Gaussian releases of equal mu.

    Wang, "Revisiting differentially private linear regression", UAI 2018, algorithm 2.

    Parameters
    ----------
    X, y, X_test : ndarray
        Rows in [-1, 1]^d; what is beyond is cut.

    y_bounds : (float, float)

    epsilon, delta : float

    rng : Generator

    Returns
    -------
    predicted : ndarray of shape (n_test,)
    """
    rows, targets = _rows(X), _targets(y, y_bounds)
    mu = gaussian_mu(epsilon=epsilon, delta=delta) / np.sqrt(3.0)
    d = rows.shape[1]
    width = np.sqrt(2.0 * d * np.log(2.0 * d**2 / _RISK))
    moments = _noisy_moments(rows, mu, rng, width, np.sqrt(2.0 * np.log(2.0 / _RISK)))
    products = rows.T @ targets + rng.normal(0.0, 2.0 / mu, d)
    return _predicted(X_test, np.linalg.solve(moments, products), y_bounds)


def boosted_ada_ssp(X, y, X_test, *, y_bounds, epsilon, delta, rng, n_rounds=100):
    """The same by boosted AdaSSP: residuals, cut at 1, are fitted round by round.

    Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu, "Improved differentially private regression
    via gradient boosting", 2023, algorithm 1, and as their code has it: all releases have equal
    mu, and the penalty is 1.96 sqrt(d) times the noise of a pair.

    Parameters
    ----------
    X, y, X_test : ndarray
        Rows in [-1, 1]^d; what is beyond is cut.

    y_bounds : (float, float)

    epsilon, delta : float

    rng : Generator

    n_rounds : int, default=100

    Returns
    -------
    predicted : ndarray of shape (n_test,)
    """
    rows, targets = _rows(X), _targets(y, y_bounds)
    d = rows.shape[1]
    mu = gaussian_mu(epsilon=epsilon, delta=delta) / np.sqrt(n_rounds + 2.0)
    solver = np.linalg.inv(_noisy_moments(rows, mu, rng, 1.96 * np.sqrt(d), 1.96))
    weights = np.zeros(d)
    for _ in range(n_rounds):
        residuals = np.clip(targets - rows @ weights, -1.0, 1.0)
        weights += solver @ (rows.T @ residuals + rng.normal(0.0, 2.0 / mu, d))
    return _predicted(X_test, weights, y_bounds)
