"""Speed of the distributed classifier: both engines, a plain loop, and the noise alone.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/distributed_speed.py

One pass of 64 nodes over Covertype (581,012 x 54, class 2 against the rest, public scaling), each
node one row a round: 9079 rounds of algorithms 1 and 2 of the paper, by
``paper=PaperAlgorithm(step="regret")``. Noise comes from the operating system on its grid.

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
    A fit with 4 features and 10 rows a node in a process of its own: wall time and peak of memory,
    on rings and where nodes have four neighbours. From these, bytes a node, and
    whether a further node takes the same wherever there are many.
MPI
    `fit` with engine="mpi" on this machine, 64, 1,024 and 10,000 nodes spread over the processes,
    on the first rows: wall time, for a process that waits uses none, and the largest peak of
    memory of a process beside what it held before. Needs ``pip install "skdp[mpi]" mpich``.
machines
    Two network namespaces, each with an address of its own, stand for two machines that are
    joined by a wire: 64 nodes in 2 and in 4 processes, half of them on either side, and the bytes
    that arrive over the wire. Needs Linux, the command ``ip``, and the right to use it.

All but MPI is CPU time of one thread, the median of some rounds in which everything takes its
turn, so that a slow moment of the machine meets all.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import skdp
from skdp._grid import grid_rows
from skdp.datasets import fetch_covertype
from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
from skdp.distributed._gossip import GossipState, GossipUpdate, batches, run_gossip
from skdp.distributed._plan import Plan
from skdp.engines import LocalEngine, MPIEngine
from skdp.learner import HingeLoss
from skdp.preprocessing import make_public_preprocessor
from skdp.topology import make_topology

skdp.set_config(known_seeds=True)  # fits are reproducible, and void of privacy

N_NODES = 64
BLOCK = 71  # rounds whose noise the solver draws at once
LAWS = {"gaussian": 1e-5, "k_norm": 0.0, "laplace": 0.0}
BAR = 3.0
MPI_ROUNDS = {64: 1000, 1_024: 200, 10_000: 30}  # of so many nodes
LINEAR = 1.25  # how much more a further node may take where there are many


def covertype():
    """Rows of Covertype, and whether they are of class 2."""
    data = fetch_covertype()
    prepare = make_public_preprocessor(data.bounds, indicators=data.indicators)
    rows = np.ascontiguousarray(prepare.fit_transform(data.data))
    return rows, np.asarray(data.target == 2).astype(int)


def classifier(noise, n_nodes=N_NODES, edge_probability=0.5, **options):
    """The model; everything else is at its default, apart from classes, which are public."""
    links = make_topology("random_regular", n_nodes, edge_probability=edge_probability)
    step = {"batch_size": 1, "n_passes": 1, "step": "regret"}
    return DistributedDPClassifier(
        1.0,
        LAWS[noise],
        n_nodes=n_nodes,
        paper=PaperAlgorithm(loss="hinge", noise=noise, **step),
        intercept_scaling=1.0,
        classes=[0, 1],
        **{"topology": links, **options},
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
from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
from skdp.topology import make_topology

def memory(what):
    status = Path("/proc/self/status").read_text()
    return int(re.search(what + ":[^0-9]*([0-9]+)", status)[1]) / 1e3

n_nodes, p, topology = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
X, y = rng.uniform(-0.5, 0.5, size=(10 * n_nodes, 4)), rng.integers(0, 2, 10 * n_nodes)
model = DistributedDPClassifier(
    n_nodes=n_nodes, topology=make_topology(topology, n_nodes, edge_probability=p),
    paper=PaperAlgorithm(batch_size=1, n_passes=1), classes=[0, 1],
)
model.fit(X[:20], y[:20])
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = memory("VmRSS")
start = time.perf_counter()
model.fit(X, y)
taken = time.perf_counter() - start
print(taken, before, memory('VmHWM') - before, len(model.topology_.edges))
"""


def many_nodes(sizes=(1_000, 10_000, 100_000, 200_000, 400_000)):
    """Fit networks of many nodes, each in a process of its own, and print what they take."""
    print("10 rounds: MB before the fit, and MB at the peak beside them")
    print(
        "  " + "".join(f"{c:>10s}" for c in ("nodes", "links", "up", "seconds", "before", "peak"))
    )
    peaks = {}
    for topology in ("ring", "random_regular"):
        for n_nodes in sizes:
            for p in (1.0, 0.5):
                command = [sys.executable, "-c", MANY, str(n_nodes), str(p), topology]
                run = subprocess.run(command, check=True, capture_output=True, text=True)
                seconds, before, peak, n_links = map(float, run.stdout.split())
                peaks[topology, n_nodes, p] = peak * 1e6
                line = f"{n_nodes:10,d}{n_links:10,.0f}{p:10.1f}"
                print(f"  {line}{seconds:10.2f}{before:10.0f}{peak:10.1f}")
    for p in (1.0, 0.5):
        ring, regular = (
            np.array([peaks[t, n, p] for n in sizes[-3:]]) for t in ("ring", "random_regular")
        )
        each = np.array([np.diff(y) / np.diff(sizes[-3:]) for y in (ring, regular)])
        grown = float((each[:, 1] / each[:, 0]).max())
        print(
            f"  links up {p:g}: {each[0, 1]:,.0f} bytes a node with two links, {each[1, 1]:,.0f} "
            f"with four; beyond {sizes[-2]:,} a further one takes {grown:.2f} times what it did "
            f"(at most {LINEAR:g}: {'yes' if grown <= LINEAR else 'NO'})"
        )


def memory(what):
    """Memory of this process in MB, "VmRSS" of now or "VmHWM" at the peak."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(f"{what}:[^0-9]*([0-9]+)", status)[1]) / 1e3


def mpi(X, y, ranks, n_rounds):
    """Start this script once more under mpiexec, for each number of nodes and processes."""
    launcher = Path(sys.executable).parent / "mpiexec"
    if not launcher.exists():
        print('MPI: no mpiexec beside python: pip install "skdp[mpi]" mpich')
        return
    print("MPI on this machine, wall time; MB of the largest process beside what it held before")
    columns = ("nodes", "processes", "rounds", "rounds a second", "ms a round", "rows", "MB")
    print("  " + "".join(f"{column:>16s}" for column in columns))
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        np.save(f"{folder}/y.npy", y)
        for n_nodes, rounds in n_rounds.items():
            for n in ranks:
                command = [launcher, "-n", n, sys.executable, "-m", "mpi4py", __file__]
                command += ["--process", folder, "--nodes", n_nodes, "--n-rounds", rounds]
                run = subprocess.run(
                    list(map(str, command)), capture_output=True, text=True, timeout=1800
                )
                if run.returncode:
                    print(f"  {n_nodes:16,d}{n:16d}  failed: {run.stderr.strip()[-300:]}")
                else:
                    print(run.stdout, end="", flush=True)


# In place of ssh: options, host and command.
ENTER = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
case $1 in 10.77.0.1) side=skdp-a;; *) side=skdp-b;; esac
shift
exec ip netns exec $side sh -c "$*"
"""
WIRE = """
netns add skdp-a
netns add skdp-b
link add skdp-va netns skdp-a type veth peer name skdp-vb netns skdp-b
-n skdp-a addr add 10.77.0.1/24 dev skdp-va
-n skdp-b addr add 10.77.0.2/24 dev skdp-vb
-n skdp-a link set skdp-va up
-n skdp-b link set skdp-vb up
-n skdp-a link set lo up
-n skdp-b link set lo up
"""


def machines(X, y, n_rounds=300):
    """Run over a wire between two namespaces that are made for it, and taken down."""
    launcher = Path(sys.executable).parent / "mpiexec"
    print(f"Two machines, {N_NODES} nodes, {n_rounds} rounds, wall time")
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X[: n_rounds * N_NODES])
        np.save(f"{folder}/y.npy", y[: n_rounds * N_NODES])
        enter = Path(folder) / "enter"
        enter.write_text(ENTER)
        enter.chmod(0o700)
        try:
            for line in WIRE.strip().splitlines():
                subprocess.run(["ip", *line.split()], check=True, capture_output=True)
            for n in (2, 4):
                command = ["ip", "netns", "exec", "skdp-a", launcher, "-launcher", "ssh"]
                command += ["-launcher-exec", enter, "-hosts", "10.77.0.1,10.77.0.2", "-n", n]
                # Both sides have one memory, which would be the shorter way.
                command += ["-genv", "UCX_TLS", "tcp,self", sys.executable, "-m", "mpi4py"]
                command += [__file__, "--process", folder, "--nodes", N_NODES]
                command += ["--n-rounds", n_rounds]
                run = subprocess.run(
                    list(map(str, command)), capture_output=True, text=True, timeout=600
                )
                print(run.stdout if not run.returncode else run.stderr[-300:], end="", flush=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"  cannot be tried here: {error}")
        finally:
            for side in ("skdp-a", "skdp-b"):
                subprocess.run(["ip", "netns", "del", side], capture_output=True, check=False)


def received():
    """MB that have come over the wire of `machines`; 0 without one."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.strip().startswith("skdp-v")) / 1e6


def process(folder, n_nodes, n_rounds):
    """One process of an MPI job."""
    from mpi4py import MPI

    X, y = np.load(f"{folder}/X.npy", mmap_mode="r"), np.load(f"{folder}/y.npy", mmap_mode="r")
    engine = MPIEngine()
    here = engine.nodes(n_nodes)
    place = np.arange(n_rounds * n_nodes).reshape(n_rounds, n_nodes)[:, here].ravel() % len(y)
    node = np.tile(here, n_rounds)
    X, y = X[place], y[place]
    model = classifier("gaussian", engine=engine, n_nodes=n_nodes)
    few = np.arange(len(y)) < 5 * len(here)
    model.fit(X[few], y[few], node[few])
    MPI.COMM_WORLD.Barrier()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = memory("VmRSS")
    taken, heard = [], received()
    for _ in range(3):
        start = time.perf_counter()
        model.fit(X, y, node)
        taken.append(time.perf_counter() - start)
    heard = (received() - heard) / 3
    peak = MPI.COMM_WORLD.reduce(memory("VmHWM") - before, op=MPI.MAX)
    if 0 in here:
        seconds = float(np.median(taken))
        print(
            f"  {n_nodes:16,d}{MPI.COMM_WORLD.size:16d}{n_rounds:16d}{n_rounds / seconds:16,.0f}"
            f"{1e3 * seconds / n_rounds:16.2f}{n_rounds * n_nodes / seconds:16,.0f}{peak:16.1f}"
        )
        if heard:
            print(f"  {heard:.2f} MB a fit arrive over the wire on the side of process 0")


def main():
    """Print all tables, or those asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=581_012)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2, 4, 16])
    parser.add_argument(
        "--only", nargs="*", default=["passes", "many", "local", "mpi", "machines"]
    )
    parser.add_argument("--process", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--n-rounds", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        process(arguments.process, arguments.nodes, arguments.n_rounds)
        return
    X, y = covertype()
    X, y = X[: arguments.rows], y[: arguments.rows]
    parts = {
        "passes": lambda: passes(X, y, arguments.rounds),
        "many": many_nodes,
        "local": lambda: local(X, y, arguments.rounds, min(len(y), 200 * N_NODES)),
        "mpi": lambda: mpi(X, y, arguments.ranks, MPI_ROUNDS),
        "machines": lambda: machines(X, y),
    }
    for part in arguments.only:
        parts[part]()


if __name__ == "__main__":
    main()
