"""Speed of the distributed classifier: both engines, a plain loop, and the noise alone.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/distributed_speed.py

One pass of 64 nodes over Covertype (581,012 x 54, class 2 against the rest, public scaling), each
node one row a round: 9079 rounds. Noise comes from the operating system on its grid.

noise alone
    What the solver's own ``draw`` returns for these rounds, in its blocks: exact integers, and
    the floats that are made of them.
local engine
    `fit`, with its checks; links always up, or in half of the rounds.
plain loop
    The same algorithm as one would write it at first, node by node in Python, on the first rows
    and extrapolated. The noise comes in blocks there too. That it is the same algorithm is
    checked: under one seed its parameters are those of `fit`.
passes
    40 passes of 24 nodes over the first 24,000 rows, with noise of 0 and in two sizes of batches:
    rows are brought onto the grid once, or as before in each pass.
many nodes
    A fit with 4 features and 10 rows a node in a process of its own: wall time and peak of memory.
MPI
    `fit` with engine="mpi" on this machine, 64 nodes spread over the processes, on the first rows:
    wall time, for a process that waits uses none. Needs ``pip install "skdp[mpi]" mpich``.

All but MPI is CPU time of one thread, the median of some rounds in which everything takes its
turn, so that a slow moment of the machine meets all.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from skdp._grid import grid_rows
from skdp.datasets import fetch_covertype
from skdp.distributed import DistributedDPClassifier
from skdp.distributed._plan import Plan
from skdp.engines import LocalEngine, MPIEngine
from skdp.losses import HingeLoss
from skdp.preprocessing import make_public_preprocessor
from skdp.solvers.gossip import GossipState, GossipUpdate, batches, run_gossip
from skdp.topology import make_topology

N_NODES = 64
BLOCK = 71  # rounds whose noise the solver draws at once
LAWS = {"gaussian": 1e-5, "k_norm": 0.0, "laplace": 0.0}
BAR = 3.0


def covertype():
    """Rows of Covertype, and whether they are of class 2."""
    data = fetch_covertype()
    prepare = make_public_preprocessor(data.bounds, indicators=data.indicators)
    rows = np.ascontiguousarray(prepare.fit_transform(data.data))
    return rows, np.asarray(data.target == 2).astype(int)


def classifier(noise, **options):
    """The model; everything else is at its default, apart from classes, which are public."""
    options = {"topology": "random_regular", "edge_probability": 0.5, **options}
    return DistributedDPClassifier(
        1.0, LAWS[noise], n_nodes=N_NODES, noise=noise, classes=[0, 1], **options
    )


def drawing(plan):
    """``draw(n)`` draws the noise of n rounds, as `fit` does."""
    return partial(plan.release.draw, plan.sources, np.arange(N_NODES))


def plain_loop(model, X, y):
    """What `fit` does with one row a node and round, one node after the other.

    Only public numbers and the noise are taken from ``model``, which has been fitted before.
    """
    plan = model._stream.plan
    update, size, topology = plan.update, plan.size, plan.topology
    rows = plan.release.rows(X)
    draw = drawing(plan)
    n_rounds = -(-len(y) // N_NODES)
    released = [np.zeros(size) for _ in range(N_NODES)]
    total, weight = [np.zeros(size) for _ in range(N_NODES)], 0.0
    for start in range(0, n_rounds, BLOCK):
        stop = min(start + BLOCK, n_rounds)
        noise, mixing = draw(stop - start), topology.mixing(start, stop)
        steps = update.steps(np.arange(start + 1, stop + 1))
        for r in range(stop - start):
            share = (start + r + 1.0) ** update.decay
            weight += share
            fresh = []
            for i in range(N_NODES):
                mixed = np.zeros(size)
                for j in np.flatnonzero(mixing[r, i]):
                    mixed += mixing[r, i, j] * released[j]
                k = (start + r) * N_NODES + i
                if k < len(y):
                    gradient, sign = noise[r, i].copy(), 2 * y[k] - 1
                    if sign * (rows[k] @ mixed) < 1.0:
                        gradient -= sign * rows[k]
                    mixed -= steps[r] * gradient
                norm = np.sqrt(mixed @ mixed)
                if norm > update.radius:
                    mixed *= update.radius / norm
                total[i] += share * mixed
                fresh.append(mixed)
            released = fresh
    return np.mean(total, axis=0) / weight


def check_loop(X, y):
    """Compare the plain loop with `fit` under one seed."""
    few = 40 * N_NODES + 7
    model = classifier("k_norm", random_state=0)
    model.fit(X[:few], y[:few])
    expected = np.concatenate([model.coef_[0], model.intercept_])
    twin = classifier("k_norm", random_state=0).fit(X[:1], y[:1])
    plan = Plan.of(twin, model.classes_, X.shape[1])  # the noise, drawn afresh
    twin._stream = replace(twin._stream, plan=plan)
    np.testing.assert_allclose(plain_loop(twin, X[:few], y[:few]), expected, rtol=1e-9)


class Times:
    """CPU seconds, by name."""

    def __init__(self):
        self.values = {}

    def measure(self, name, work):
        """Run ``work`` once."""
        start = time.process_time()
        work()
        self.values.setdefault(name, []).append(time.process_time() - start)

    def __getitem__(self, name):
        return float(np.median(self.values[name]))


def local(X, y, rounds, n_few):
    """Measure everything that runs in this process, and print it."""
    check_loop(X, y)
    times = Times()
    n_rounds = -(-len(y) // N_NODES)
    for _ in range(rounds):
        for law in LAWS:
            models = {p: classifier(law, edge_probability=p) for p in (1.0, 0.5)}
            for p, model in models.items():
                times.measure((law, p), lambda model=model: model.fit(X, y))
            model = models[0.5]
            draw = drawing(model._stream.plan)

            def noise(draw=draw):
                for start in range(0, n_rounds, BLOCK):
                    draw(min(BLOCK, n_rounds - start))

            times.measure((law, "noise"), noise)
            few = (X[:n_few], y[:n_few])
            times.measure((law, "loop"), lambda few=few, model=model: plain_loop(model, *few))
    print(f"{X.shape[0]} x {X.shape[1]}, {N_NODES} nodes, {n_rounds} rounds, CPU time")
    print(f"  {'':41s}{'seconds':>9s}{'examples a second':>19s}{'of noise':>10s}")
    verdicts = []
    for law in LAWS:
        base = times[law, "noise"]
        lines = {
            "noise alone": base,
            "local engine, links always up": times[law, 1.0],
            "local engine, half of links up": times[law, 0.5],
            f"plain loop, from {n_few} rows": times[law, "loop"] * len(y) / n_few,
        }
        for label, seconds in lines.items():
            rate, ratio = len(y) / seconds, seconds / base
            print(f"  {law + ', ' + label:41s}{seconds:9.2f}{rate:19,.0f}{ratio:10.2f}")
        for p, links in ((1.0, "always"), (0.5, "half")):
            ratio = times[law, p] / base
            verdict = "yes" if ratio <= BAR else "NO"
            verdicts.append(f"{law}, {links}: {ratio:.2f} {verdict}")
    print(f"  at most {BAR:g} times the noise: {'; '.join(verdicts)}")


def passes(X, y, rounds, n_few=24_000, n_passes=40):
    """Measure what it saves to keep rows on the grid, and print it."""
    times, n_nodes = Times(), 24
    X, y = X[:n_few], y[:n_few]
    owners, topology = np.arange(len(y)) % n_nodes, make_topology("random_regular", n_nodes)
    size = X.shape[1] + 1
    engine = LocalEngine()
    engine.open(topology, size)
    print(f"{n_passes} passes of {n_nodes} nodes over {len(y)} rows, CPU time")
    for batch_size in (50, -(-len(y) // n_nodes)):
        update = GossipUpdate(HingeLoss(), batch_size, 20.0, lambda times: 1.0 / np.sqrt(times))
        schedule = batches(owners, n_nodes, batch_size)
        options = dict(
            rows=lambda X: grid_rows(X, 1.0, True, 2.0**-12),
            draw=lambda n: np.zeros((n, n_nodes, size)),
            release=lambda add_to, noise, takes_part: add_to(noise),
        )
        go = partial(run_gossip, engine, topology, X, y, schedule, update=update, **options)

        def once(go=go):
            return go(GossipState.zeros(n_nodes, size), n_passes=n_passes)

        def each(go=go):
            state = GossipState.zeros(n_nodes, size)
            for _ in range(n_passes):
                state = go(state)
            return state

        np.testing.assert_array_equal(once().released, each().released)
        for _ in range(rounds):
            times.measure((batch_size, "once"), once)
            times.measure((batch_size, "each"), each)
        ratio = times[batch_size, "each"] / times[batch_size, "once"]
        print(
            f"  batches of {batch_size:4d}: {times[batch_size, 'once']:.2f} s, ratio {ratio:.2f}"
        )


# The peak as Linux tells it: that of getrusage includes what the parent held.
MANY = """
import re, sys, time
from pathlib import Path
import numpy as np
from skdp.distributed import DistributedDPClassifier

def peak_memory():
    return int(re.search("VmHWM:[^0-9]*([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1e3

n_nodes, p = int(sys.argv[1]), float(sys.argv[2])
before = peak_memory()
rng = np.random.default_rng(0)
X, y = rng.uniform(-0.5, 0.5, size=(10 * n_nodes, 4)), rng.integers(0, 2, 10 * n_nodes)
start = time.perf_counter()
DistributedDPClassifier(n_nodes=n_nodes, edge_probability=p, classes=[0, 1]).fit(X, y)
taken = time.perf_counter() - start
print(f"  {n_nodes:8,d}{p:8.1f}{taken:10.2f}{before:10.0f}{peak_memory():10.0f}")
"""


def many_nodes():
    """Fit rings of many nodes, each in a process of its own, and print what they take."""
    print(
        "Rings, 10 rounds: nodes, probability of links, seconds, MB after imports, MB at the peak"
    )
    for n_nodes in (1_000, 10_000, 100_000):
        for p in (1.0, 0.5):
            subprocess.run([sys.executable, "-c", MANY, str(n_nodes), str(p)], check=True)


def mpi(X, y, ranks, n_few):
    """Start this script once more under mpiexec, for each number of processes."""
    launcher = Path(sys.executable).parent / "mpiexec"
    if not launcher.exists():
        print('MPI: no mpiexec beside python: pip install "skdp[mpi]" mpich')
        return
    print(f"MPI, {N_NODES} nodes on this machine, {n_few} rows, wall time")
    print(f"  {'processes':>10s}{'rounds a second':>18s}{'ms a round':>12s}{'examples':>12s}")
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X[:n_few])
        np.save(f"{folder}/y.npy", y[:n_few])
        for n in ranks:
            command = [launcher, "-n", str(n), sys.executable, "-m", "mpi4py", __file__]
            run = subprocess.run(
                [*map(str, command), "--process", folder],
                capture_output=True,
                text=True,
                timeout=600,
            )
            if run.returncode:
                print(f"  {n:10d}  failed: {run.stderr.strip()[-300:]}")
            else:
                print(run.stdout, end="", flush=True)


def process(folder):
    """One process of an MPI job."""
    X, y = np.load(f"{folder}/X.npy", mmap_mode="r"), np.load(f"{folder}/y.npy")
    engine = MPIEngine()
    node = np.arange(len(y)) % N_NODES
    here = np.isin(node, engine.nodes(N_NODES))
    X, y, node = np.ascontiguousarray(X[here]), y[here], node[here]
    model = classifier("gaussian", engine=engine)
    first = np.arange(len(y)) < 10 * len(engine.nodes(N_NODES))
    model.fit(X[first], y[first], node[first])
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        model.fit(X, y, node)
        taken.append(time.perf_counter() - start)
    if 0 in engine.mine:
        from mpi4py import MPI

        seconds, n_rounds = float(np.median(taken)), model.n_rounds_
        print(
            f"  {MPI.COMM_WORLD.size:10d}{n_rounds / seconds:18,.0f}"
            f"{1e3 * seconds / n_rounds:12.2f}{model.n_samples_seen_ / seconds:12,.0f}"
        )


def main():
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=581_012)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4, 16])
    parser.add_argument("--process", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        process(arguments.process)
        return
    X, y = covertype()
    X, y = X[: arguments.rows], y[: arguments.rows]
    passes(X, y, arguments.rounds)
    many_nodes()
    local(X, y, arguments.rounds, min(len(y), 200 * N_NODES))
    mpi(X, y, arguments.ranks, min(len(y), 1000 * N_NODES))


if __name__ == "__main__":
    main()
