"""What all sites have agreed on, and the rows of each; here these are simulated."""

import numpy as np

from skdp.distributed import DistributedDPClassifier, SecureSums


def rows(number):
    """Rows of one site."""
    rng = np.random.default_rng(number)
    X = rng.uniform(-0.7, 0.7, size=(60, 2))
    return X, (X[:, 0] > 0).astype(int)


def model(**options):
    """A model that is not fitted; its seed makes runs comparable, and protects nobody."""
    return DistributedDPClassifier(
        n_nodes=3, classes=[0, 1], trust=SecureSums(tolerates=1), random_state=7, **options
    )
