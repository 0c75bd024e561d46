"""What each site runs."""

import os
import warnings
from pathlib import Path

import numpy as np

from hospital.common import model, rows
from skdp.engines import flower_client
from skdp.exceptions import PrivacyWarning

FOLDER = Path(os.environ["SKDP_FLOWER_TEST"])


def learn(engine, context):
    """Fit with the rows of this site."""
    warnings.simplefilter("ignore", PrivacyWarning)  # the seed
    number = context.node_config["partition-id"]
    return model(epsilon=context.run_config["epsilon"], engine=engine).fit(*rows(number))


def finish(fitted, context):
    """Save the model at this site."""
    number = context.node_config["partition-id"]
    np.save(FOLDER / f"{number}.npy", fitted.coef_)


app = flower_client(
    learn, checkpoint=FOLDER / f"fit-{os.environ['SKDP_FLOWER_SITE']}", finish=finish
)
