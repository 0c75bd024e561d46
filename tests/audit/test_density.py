"""Objective perturbation by its density: what neighbours attain of the claim, and mutants."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.insides import NoiseSource, listening, noise_source
from support.linear import LAYOUTS, LOSSES, exact_gradient, random_problem, stored_rows
from support.noise import Silent
from support.perturbed import CASES, NONE, PAIRS, blocks, heard, world

from skdp.audit._density import (
    NeighbouringObjectives,
    density_audit,
    forced_linear,
    linear_findings,
    linear_of,
    log_determinant,
    log_law,
    minimiser_findings,
)
from skdp.learner import (
    HuberHingeLoss,
    LogisticLoss,
    ObjectiveNoise,
    ObjectivePerturbation,
    SoftmaxLoss,
    _objective,
    calibrate,
)
from skdp.learner._newton import minimise
from skdp.mechanisms import Perturbed
from skdp.privacy import ApproxDP
from skdp.rows import _blocks as solver_rows
from skdp.rows._blocks import RowBlocks

PAIR = {pair.name: pair for pair in PAIRS}
PURE = ObjectiveNoise(2.0, 3.0, False, ApproxDP(1.0))
GAUSSIAN = ObjectiveNoise(2.0, 3.0, True, ApproxDP(1.0, 1e-5))


def problem(loss, n=30, d=3, seed=0, layout="dense", noise=PURE):
    """A run on random rows, and weights anywhere."""
    rng = np.random.default_rng(seed)
    X, codes = random_problem(loss, rng, n=n, d=d)
    data = RowBlocks(LAYOUTS[layout](X), codes, x_norm=1.0, constant=0.5)
    return world(loss, data, noise), rng.normal(size=(loss.n_outputs, d + 1))


def log_ratio(one, other, weights):
    """Privacy loss at an output."""
    here, there = (
        log_law(each.law, linear_of(each, weights)) + log_determinant(each, weights)
        for each in (one, other)
    )
    return here - there


# The density


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_linear_term_and_determinant_are_those_of_the_objective_written_anew(loss, layout):
    perturbed, weights = problem(loss, layout=layout)
    rows = stored_rows(perturbed.data)
    codes = np.concatenate([codes for _, codes in perturbed.data.blocks])

    def gradient(weights):
        return exact_gradient(loss, rows, codes, weights) + 2 * weights.astype(np.longdouble)

    assert_allclose(linear_of(perturbed, weights), -gradient(weights).astype(float), atol=1e-12)
    step, columns = 1e-7, []
    for place in range(weights.size):
        moved = np.zeros(weights.size)
        moved[place] = step
        moved = moved.reshape(weights.shape)
        change = gradient(weights + moved) - gradient(weights - moved)
        columns.append((change / (2 * step)).astype(float).ravel())
    expected = np.linalg.slogdet(np.array(columns))[1]
    assert_allclose(log_determinant(perturbed, weights), expected, rtol=1e-5)


@pytest.mark.parametrize("noise", [PURE, GAUSSIAN], ids=["K-norm", "Gaussian"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(1.0)], ids=str)
def test_densities_of_all_data_sets_have_one_integral(loss, noise):
    # Minimisers are a change of variables of the noise: what the determinant is there for.
    axis = np.linspace(-45.0, 45.0, 301)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2)
    rng = np.random.default_rng(3)
    pair = [
        world(loss, blocks(rng.normal(size=(n, 2)), rng.integers(0, 2, n)), noise) for n in (2, 9)
    ]
    # Nothing is left of the points by coordinates of their own.
    objectives = NeighbouringObjectives.of(*pair)
    points = objectives.outputs.T @ points @ objectives.inputs
    assert objectives.size == 2
    totals = np.exp(objectives.log_densities(points)).sum(axis=1) * (axis[1] - axis[0]) ** 2
    s = noise.scale
    expected = 2 * np.pi * s**2  # of exp(-|b|^2 / 2 s^2), and of exp(-|b| / s)
    assert_allclose(totals, expected, rtol=1e-2)


@pytest.mark.every(2)
@pytest.mark.parametrize("margin", [0.0, 2.0])
def test_densities_of_several_classes_have_one_integral(margin):
    # K-norm noise of each of two classes.
    axis = np.linspace(-45.0, 45.0, 901)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2, 1)
    rng = np.random.default_rng(3)
    pair = [
        world(SoftmaxLoss(2, margin), blocks(rng.normal(size=(n, 1)), rng.integers(0, 2, n)), PURE)
        for n in (2, 9)
    ]
    objectives = NeighbouringObjectives.of(*pair)
    assert objectives.shape == (2, 1)
    totals = np.exp(objectives.log_densities(points)).sum(axis=1) * (axis[1] - axis[0]) ** 2
    expected = (2.0 * PURE.scale) ** 2  # of exp(-(|b_1| + |b_2|) / s)
    assert_allclose(totals, expected, rtol=1e-2)


# What neighbours attain


@pytest.mark.parametrize(
    "pair, calibration, gaussian",
    [pytest.param(*case, id=f"{case[0].name}-{case[1]}-{'gauss' * case[2]}") for case in CASES],
)
def test_worst_pairs_keep_the_claim_and_come_near_it(pair, calibration, gaussian):
    runs = pair.runs(pair.noise(calibration, gaussian))
    audits = [density_audit(*runs, rng=0)]
    if audits[0].share < pair.least[calibration, gaussian]:
        # Where a search ends depends on the last digits, which are not alike on all processors.
        audits.append(density_audit(*runs, rng=1))
    assert [finding for audit in audits for finding in audit.findings] == []
    shares = [audit.share for audit in audits]
    assert pair.least[calibration, gaussian] <= max(shares) <= 1.0


@pytest.mark.parametrize(
    "pair, gaussian",
    [
        pytest.param(pair, gaussian, id=f"{pair.name}{'-gauss' * gaussian}")
        for pair, calibration, gaussian in CASES
        if calibration == "tight" and len(pair.here[0]) < 9
    ],
)
def test_halved_noise_is_found_on_worst_pairs(pair, gaussian):
    noise = pair.noise("tight", gaussian)
    audit = density_audit(*pair.runs(replace(noise, scale=noise.scale / 2)), rng=0)
    assert [finding.kind for finding in audit.findings] == ["sensitivity"]
    assert audit.share > 1.3


# Mutants of what the claim rests on


def fitted(pair, gaussian=False, n=4, data=None, **changed):
    """Kinds of all that is found in a few fits of one neighbour and one of the other."""
    plan = pair.plan(gaussian=gaussian, **changed)
    here, there = pair.data() if data is None else data
    fits = [heard(plan, here, seed) for seed in range(n)] + [heard(plan, there, n)]
    found = density_audit(fits[0][0], fits[-1][0], rng=0).findings
    found += [finding for fit in fits for finding in minimiser_findings(*fit)]
    found += linear_findings([perturbed for perturbed, _ in fits])
    return {finding.kind for finding in found}


def halved_noise(patch):
    def halved(*args, **options):
        noise = calibrate(*args, **options)
        return replace(noise, scale=noise.scale / 2)

    patch.setattr(_objective, "calibrate", halved)


def no_determinant(patch):
    patch.setattr(HuberHingeLoss, "log_determinant", lambda loss, ratio: 0.0)
    patch.setattr(HuberHingeLoss, "worst_trade", lambda loss, ratio, weight: weight)


def halved_curvature(patch):
    patch.setattr(HuberHingeLoss, "curvature", property(lambda loss: 0.25 / loss.width))


def one_record(patch):
    patch.setattr(ApproxDP, "n_records_changed", property(lambda guarantee: 1.0))


def unclipped(patch):
    patch.setattr(solver_rows, "clip_rows", lambda X, x_norm: X)


def unchecked_norm(patch):
    patch.setattr(RowBlocks, "check_norm", lambda data, most: None)


def l2_residuals(patch):
    patch.setattr(SoftmaxLoss, "lipschitz_l1", property(lambda loss: loss.lipschitz))


def one_radius(patch):
    draw = NoiseSource.k_norms
    patch.setattr(
        NoiseSource, "k_norms", lambda source, n, size, scale: draw(source, 1, n * size, scale)
    )


def minimising(**mutations):
    """Mutant that minimises something else than it says."""

    def mutant(patch):
        def other(loss, data, **options):
            return minimise(loss, data, **options | {k: f(options) for k, f in mutations.items()})

        patch.setattr(_objective, "minimise", other)

    return mutant


def drawing(law):
    """Mutant that draws another linear term."""

    def mutant(patch):
        draw = _objective.recorded

        def drawn(kind, value, **options):
            return draw(kind, law(value), **options | {"linear": law(value)})

        patch.setattr(_objective, "recorded", drawn)

    return mutant


def halved_masking(patch):
    release = _objective.release

    def halved(weights, **options):
        return release(weights, **options | {"sensitivity": options["sensitivity"] / 2})

    patch.setattr(_objective, "release", halved)


KINKED = PAIR["hinge, replaced at the kink"]
CLASSES = PAIR["softmax with a margin, replaced, straight"]
STRAIGHT = PAIR["hinge, replaced, straight"]
INTERCEPT = PAIR["hinge, intercept"]
FAR = {"here": (3.0 * STRAIGHT.here[0], [1]), "there": (3.0 * STRAIGHT.there[0], [1])}
LEFT_OUT = dict(row_norm=blocks(*INTERCEPT.here).row_norm)
MUTANTS = [
    (halved_noise, KINKED, False, {}, "sensitivity"),
    (halved_noise, STRAIGHT, True, {}, "sensitivity"),
    (no_determinant, KINKED, False, {}, "sensitivity"),
    (no_determinant, replace(KINKED, penalty=2.0), True, {}, "sensitivity"),
    (halved_curvature, KINKED, False, {}, "sensitivity"),
    (one_record, STRAIGHT, False, {}, "sensitivity"),
    (unclipped, replace(STRAIGHT, **FAR), False, {}, "sensitivity"),
    (unchecked_norm, INTERCEPT, False, LEFT_OUT, "sensitivity"),
    (unchecked_norm, INTERCEPT, True, LEFT_OUT, "sensitivity"),
    (minimising(penalty=lambda o: o["penalty"] / 2), KINKED, False, {}, "outcome"),
    (minimising(linear=lambda o: None), KINKED, False, {}, "outcome"),
    (minimising(linear=lambda o: o["linear"] / 2), KINKED, True, {}, "outcome"),
    (minimising(tolerance=lambda o: 30 * o["tolerance"]), KINKED, False, {}, "outcome"),
    (drawing(np.zeros_like), KINKED, False, {}, "noise"),
    (drawing(np.zeros_like), STRAIGHT, True, {}, "noise"),
    (drawing(lambda linear: linear + 1e-9), KINKED, False, {}, "noise"),
    (halved_masking, KINKED, False, {}, "sensitivity"),
    (l2_residuals, CLASSES, False, {}, "sensitivity"),
    (one_record, CLASSES, False, {}, "sensitivity"),
]


@pytest.mark.parametrize("mutant, pair, gaussian, changed, kind", MUTANTS)
def test_mutants_are_found(mutant, pair, gaussian, changed, kind, monkeypatch):
    assert fitted(pair, gaussian) == set()
    mutant(monkeypatch)
    assert fitted(pair, gaussian, **changed) == {kind}


@pytest.mark.parametrize("gaussian", [False, True])
def test_linear_terms_have_the_norms_of_their_law(gaussian):
    pair = PAIR["hinge, added, straight"]
    plan = pair.plan(gaussian=gaussian)
    data = pair.data()[1]

    def drawn(n, **changed):
        plan_ = replace(plan, law=replace(plan.law, **changed))
        records = [heard(plan_, data, seed)[0] for seed in range(n)]
        return [replace(record, law=plan.law) for record in records]

    assert linear_findings(drawn(200)) == []
    for scale in (0.5, 2.0):  # in 200 draws, a standard deviation of 5 or 7 % of the mean
        (finding,) = linear_findings(drawn(200, scale=scale * plan.law.scale))
        assert finding.kind == "noise"
    (finding,) = linear_findings(drawn(200, gaussian=not gaussian))
    silent = [heard(plan, data, Silent())[0] for _ in range(3)]
    (finding,) = linear_findings(silent)
    assert "norms of 3 linear terms" in finding.what
    assert linear_findings([]) == []


def test_one_radius_for_the_rows_of_all_classes_is_found(monkeypatch):
    data = CLASSES.data()[0]
    plan = CLASSES.plan()
    assert linear_findings([heard(plan, data, seed)[0] for seed in range(200)]) == []
    one_radius(monkeypatch)
    (finding,) = linear_findings([heard(plan, data, seed)[0] for seed in range(200)])
    assert finding.kind == "noise"


# Replay


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHingeLoss(), SoftmaxLoss(3)], ids=str)
def test_a_forced_linear_term_leads_to_the_same_minimiser(loss, gaussian):
    rng = np.random.default_rng(0)
    X, codes = random_problem(loss, rng, n=50, d=4)
    here, there = blocks(X, codes), blocks(-9.0 * X[::-1], codes)  # any other rows
    plan = ObjectivePerturbation.plan(
        ApproxDP(1.0, 1e-5 if gaussian else 0.0), loss=loss, n_features=4, row_norm=here.row_norm,
        penalty=0.5,
    )  # fmt: skip
    _, masking = heard(plan, here)
    found = []

    def listener(record):
        found.append(record)
        if isinstance(record, Perturbed):
            return forced_linear(record, masking.asked)
        return masking.released

    with listening(listener):
        released = plan(there, noise_source(1))
    assert_array_equal(released, masking.released)
    perturbed, again = found
    forced = forced_linear(perturbed, masking.asked)
    assert_array_equal(forced, perturbed.step * np.rint(forced / perturbed.step))
    distance = np.linalg.norm(again.asked - masking.asked)
    assert 0.0 < distance <= masking.sensitivity / 2  # one solver's error, not that of two
    assert again.sensitivity == masking.sensitivity
    assert minimiser_findings(replace(perturbed, linear=forced), again) == []


@pytest.mark.parametrize("noise", [PURE, GAUSSIAN], ids=["K-norm", "Gaussian"])
@pytest.mark.parametrize("loss", [LogisticLoss(0.5), SoftmaxLoss(3)], ids=str)
def test_few_coordinates_say_what_all_of_them_do(loss, noise):
    # Two rows in six dimensions; weights in their span.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2, 6))
    one = world(loss, blocks(X, [0, 1]), noise)
    other = world(loss, blocks(X[[0, 0]], [0, 1]), noise)
    objectives = NeighbouringObjectives.of(one, other)
    # What moves all scores alike changes no squared norm of noise, but sums of norms.
    is_apart = loss.n_outputs > 1 and noise.gaussian
    assert objectives.size == 2 * (loss.n_outputs - is_apart)
    points = rng.normal(size=(4, *objectives.shape))
    for point, found in zip(points, objectives.losses(points), strict=True):
        weights = objectives.outputs @ point @ objectives.inputs.T
        assert_allclose(log_ratio(one, other, weights), found, rtol=1e-9, atol=1e-11)
        assert_allclose(objectives.outputs.T @ weights @ objectives.inputs, point)
        outside = rng.normal(size=weights.shape)
        if noise.gaussian:
            outside -= outside @ objectives.inputs @ objectives.inputs.T
            assert_allclose(log_ratio(one, other, weights + outside), found, rtol=1e-9)


def test_equal_rows_lose_nothing_and_public_numbers_are_compared():
    one, other = (problem(LogisticLoss())[0] for _ in range(2))
    assert density_audit(one, other).share == 0.0
    empty = [world(LogisticLoss(), blocks(*NONE), PURE) for _ in range(2)]
    assert density_audit(*empty).dimension == 0
    (finding,) = density_audit(one, replace(other, penalty=3.0, step=0.5)).findings
    assert finding.kind == "law"
    assert finding.what.startswith("penalty, step of")
