"""Is the noise that was drawn the noise that was declared?"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.special import gammainc, gammaincinv

from skdp._validation import between, fraction, one_of, plain_arguments, positive_int
from skdp.audit._drawn import Drawn, broken_records, noisy_records
from skdp.audit._findings import Finding
from skdp.audit._noise_laws import (
    other_laws,
    other_ratios,
    too_little,
    too_little_at_the_centre,
    too_little_in_coordinates,
    too_short,
)
from skdp.audit._noise_sharing import (
    asymmetric,
    repeated_fits,
    repeated_numbers,
    repeated_records,
    shared_by_coordinates,
    shared_by_fits,
    shared_by_releases,
)
from skdp.audit._suspicion import Suspicion
from skdp.audit._transcript import Transcript
from skdp.mechanisms import Released

__all__ = ["noise_findings", "noise_runs_needed"]

_KINDS = ("laplace", "k_norm", "gaussian")
_SHOWN = 5  # places of one fault
_SCALE_SHARE = 0.2  # of the alarm, for the scale of all noise of one law


def noise_findings(transcripts: Sequence[Transcript], *, alarm: float = 1e-7) -> list[Finding]:
    """Look for noise that is not what its transcript declares.

    Noise is what is released less what is asked, rounded to the lattice. Found are, without any
    chance: a scale below that of the law times the sensitivity, or a law below its guarantee;
    what is released off the lattice. And by tests: noise that is too little, everywhere, at one
    place in the code, in one release or in one fit; that is not symmetric; that coordinates,
    releases or fits share; that repeats itself; and that has another shape. Noise that is larger
    than declared by one factor breaks no promise and is not found.

    Not seen are noise that others can compute although it looks fresh (a seed that counts up, or
    the clock), and what differs from the law by less than that many numbers can tell.

    Parameters
    ----------
    transcripts : sequence of Transcript
        Of fits with fresh noise each (``random_state=None``, clones of one estimator) on the same
        data. Fits are compared with each other if they have as many releases of the same sizes
        and laws as most; each alone is tested in any case. One fit will do, with fewer tests.

    alarm : float, default=1e-7
        Probability at most of any finding if all noise is as declared, whatever the algorithm
        and the data are. It is divided among the tests, whose p-values are exact, or too large.

    Returns
    -------
    list of Finding
        Of kind "law" for what is declared, and "noise" for what is drawn.

    Notes
    -----
    How many numbers it takes is in `noise_runs_needed`. Scales are tested by the sum of
    squares (Gaussian noise), of magnitudes (Laplace) or of norms (K-norm), which has a Gamma
    distribution; signs as fair coins, whatever the magnitudes; repetitions by the largest mass of
    a point; shapes by likelihood ratios with a mixture of other laws, and by the distribution of
    ratios, with the Dvoretzky-Kiefer-Wolfowitz bound.

    Examples
    --------
    >>> from skdp.audit import recording
    >>> from skdp.audit._noise import noise_findings
    >>> from skdp.mechanisms import laplace_mechanism
    >>> from skdp.privacy import ApproxDP
    >>> with recording() as transcript:
    ...     told = laplace_mechanism([0.5] * 50, l1_sensitivity=1.0, guarantee=ApproxDP(1.0))
    >>> noise_findings([transcript])
    []
    """
    fraction(alarm=alarm)
    if isinstance(transcripts, Transcript) or any(isinstance(t, Released) for t in transcripts):
        raise ValueError("transcripts must be a list of transcripts, one of each fit; got one.")
    alarm, fits = float(alarm), noisy_records(transcripts)
    found = broken_records(fits)
    drawn = Drawn.of(fits)
    if drawn is None:
        return found
    what = "what is released is no multiple of the step of its lattice"
    found.extend(Finding("noise", what, where) for where in drawn.off_lattice)
    if len(drawn):
        for tests in _tests(drawn):
            for test in tests:
                by_test = [one for each in test() for one in _confirmed(each, alarm)]
                found.extend(by_test)
                if by_test:
                    break  # the others would say it again
    return list(dict.fromkeys(found))


def _tests(drawn: Drawn) -> list[list[Callable[[], list[Suspicion]]]]:
    """Tests by what they look for. Their shares add up to 1."""
    return [
        [
            lambda: too_little(drawn, "place", 0.1),
            lambda: too_little(drawn, "all", _SCALE_SHARE),
            lambda: too_little(drawn, "position", 0.03),
            lambda: too_little(drawn, "fit", 0.03),
            lambda: too_little(drawn, "record", 0.01),
            lambda: too_little_at_the_centre(drawn, 0.01),
            lambda: too_short(drawn, 0.01),
            lambda: too_little_in_coordinates(drawn, "place", 0.005),
            lambda: too_little_in_coordinates(drawn, "position", 0.005),
        ],
        [
            lambda: asymmetric(drawn, "place", 0.03),
            lambda: asymmetric(drawn, "all", 0.04),
            lambda: asymmetric(drawn, "position", 0.02),
            lambda: asymmetric(drawn, "fit", 0.01),
        ],
        [lambda: shared_by_coordinates(drawn, 0.1)],
        [lambda: shared_by_releases(drawn, 0.1)],
        [lambda: shared_by_fits(drawn, 0.1)],
        [
            lambda: repeated_fits(drawn, 0.04),
            lambda: repeated_records(drawn, 0.03),
            lambda: repeated_numbers(drawn, 0.03),
        ],
        [lambda: other_laws(drawn, 0.05)],
        [lambda: other_ratios(drawn, 0.05)],
    ]


def _confirmed(suspicion: Suspicion, alarm: float) -> Iterator[Finding]:
    """Findings of tests whose p-values leave no doubt, the clearest first."""
    p = suspicion.p
    if not len(p):
        return
    clear = np.flatnonzero(p <= alarm * suspicion.share / len(p))
    for i in clear[np.argsort(p[clear], kind="stable")][:_SHOWN].tolist():
        yield Finding("noise", suspicion.what(i), suspicion.where(i))


@plain_arguments
def noise_runs_needed(
    kind: str, *, size: int, factor: float = 2.0, alarm: float = 1e-7, power: float = 0.99
) -> int:
    """Fits after which `noise_findings` tells noise that is too little by a factor.

    Halved noise of one number a fit takes 78 fits if it is Gaussian, and 141 if Laplace; of three
    numbers 26 and 47, of ten 8 and 15, of a hundred 1 and 2. K-norm noise takes as many as
    Laplace noise. No test of as small an alarm needs much less, as the sum it rests on holds all
    that the numbers tell of their scale.

    Parameters
    ----------
    kind : {"laplace", "k_norm", "gaussian"}

    size : int
        Numbers that one fit releases, of all its releases together.

    factor : float, default=2.0
        By which the noise is too little, above 1.

    alarm : float, default=1e-7
        As for `noise_findings`.

    power : float, default=0.99
        Probability with which it is to be found.

    Returns
    -------
    int
        For noise of one law, on a lattice that is fine beside it.

    Examples
    --------
    >>> from skdp.audit._noise import noise_runs_needed
    >>> [noise_runs_needed("gaussian", size=size) for size in (1, 3, 10, 100)]
    [78, 26, 8, 1]
    >>> [noise_runs_needed("laplace", size=size) for size in (1, 3, 10, 100)]
    [141, 47, 15, 2]
    """
    one_of(_KINDS, kind=kind)
    positive_int(size=size)
    fraction(alarm=alarm, power=power)
    between(1.01, 1e6, factor=factor)

    def found(n: int) -> float:
        shape = n * size / (2.0 if kind == "gaussian" else 1.0)
        least = gammaincinv(shape, alarm * _SCALE_SHARE)
        return float(gammainc(shape, least * factor ** (2 if kind == "gaussian" else 1)))

    high = 1
    while found(high) < power:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return high
