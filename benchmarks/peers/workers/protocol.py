"""What workers and `compare.py` say to each other: one line of JSON each way.

A worker runs in its peer's environment, which has numpy and no skdp. It is told a job, with the
path of the split and that for predictions, and answers with its seconds of CPU time, or an error.
Labels of test rows are never among what it gets.
"""

import json
import sys
import time
import warnings

import numpy as np


class Rows:
    """A split as arrays: what is in the file by name.

    ``X`` and ``X_test`` are prepared rows, which ``x_low`` and ``x_high`` bound where they are not
    of norm 1; ``numbers``, ``low``, ``high`` are columns with bounds, on the scale on which they
    are public, clipped; ``codes`` the categories. ``y_bounds`` is empty for two classes, and ``y``
    zeros and ones then.
    """

    def __init__(self, path):
        with np.load(path) as file:
            self.__dict__.update({name: file[name] for name in file.files})

    @property
    def is_regression(self):
        """Whether the target is a number."""
        return len(self.y_bounds) == 2


def serve(fit, versions):
    """Answer jobs until the input ends.

    Parameters
    ----------
    fit : callable
        Of `Rows` and the job (a dict with "epsilon", "delta", "seed", "setting"); returns what is
        predicted for test rows: the score of class 1, or the target.

    versions : dict
        Name of each package that matters, and its version.
    """
    answers, sys.stdout = sys.stdout, sys.stderr  # what a peer prints is no answer
    warnings.simplefilter("ignore")
    print(json.dumps(versions), file=answers, flush=True)
    path, rows = None, None
    for line in sys.stdin:
        job = json.loads(line)
        if job["rows"] != path:
            path, rows = job["rows"], Rows(job["rows"])
        try:
            start = time.process_time()
            predicted = np.asarray(fit(rows, job), dtype=float)
            answer = {"seconds": time.process_time() - start}
            np.save(job["out"], predicted)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:150].replace("\n", " ")}
        print(json.dumps(answer), file=answers, flush=True)
