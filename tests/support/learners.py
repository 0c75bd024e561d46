"""Learners and noise that are written again, for bounds that are tested by running them."""

import numpy as np


def learn(answers, steps, radius):
    """Lazy projection; answers(w, t) of shape (n_runs, d) for the weights of time t."""
    theta, path = 0.0, []
    for t, step in enumerate(steps):
        w = np.atleast_2d(step * theta)
        w = w * np.minimum(1.0, radius / np.maximum(np.linalg.norm(w, axis=1), 1e-300))[:, None]
        path.append(w)
        theta = theta - answers(w, t)
    return path


def draw(rng, noise, scale, n, d):
    direction = rng.standard_normal((n, d))
    if noise == "gaussian":
        return scale * direction
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return scale * rng.gamma(d, size=(n, 1)) * direction
