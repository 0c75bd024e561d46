"""Three sites in processes of their own, under the Flower that people run."""

import os
import shutil
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skdp.engines._flower import _number_of
from skdp.exceptions import PrivacyWarning

APP = Path(__file__).with_name("flower_app")
BIN = Path(sys.executable).parent
needs_flower = pytest.mark.skipif(
    not (BIN / "flower-superlink").exists(), reason='needs pip install "skdp[flower]"'
)


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Started:
    """Programs that end with the test."""

    def __init__(self, folder):
        self.folder, self.programs = folder, []
        self.environment = os.environ | {
            "FLWR_HOME": str(folder / "flwr"),
            "HOME": str(folder),
            "FLWR_TELEMETRY_ENABLED": "0",
            "SKDP_FLOWER_TEST": str(folder),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        }

    def start(self, name, *arguments, **variables):
        with open(self.folder / f"{len(self.programs)}.log", "w") as log:
            program = subprocess.Popen(
                [BIN / name, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment | variables,
                start_new_session=True,
            )
        self.programs.append(program)
        return program

    def logs(self):
        return "\n".join(path.read_text()[-2000:] for path in sorted(self.folder.glob("*.log")))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for program in reversed(self.programs):
            if program.poll() is None:
                os.killpg(program.pid, 15)
        for program in self.programs:
            try:
                program.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, 9)
                program.wait()


@needs_flower
@pytest.mark.slow
def test_three_sites_learn_what_one_process_does_although_one_is_killed(tmp_path, monkeypatch):
    app = shutil.copytree(APP, tmp_path / "app")
    link, *ports = free_ports(4)
    (tmp_path / "flwr").mkdir()
    (tmp_path / "flwr" / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{link}"\n'
        "insecure = true\n"
    )
    address = ["--host", "127.0.0.1", "--port"]
    with Started(tmp_path) as started:
        no_install = "--disable-runtime-dependency-installation"
        started.start("flower-superlink", "--insecure", no_install, *address, str(link))

        def site(number):
            return started.start(
                "flower-supernode",
                *("--insecure", "--superlink", f"127.0.0.1:{link}"),
                *(*address, str(ports[number]), "--node-config", f"partition-id={number}"),
                SKDP_FLOWER_SITE=str(number),
            )

        sites = list(map(site, range(3)))
        until = time.monotonic() + 60.0
        while started.start("flwr", "run", str(app), "here").wait(60):
            assert time.monotonic() < until, started.logs()
            time.sleep(1.0)
        until = time.monotonic() + 100.0
        while not (tmp_path / "fit-1" / "result-6.step").exists():
            assert time.monotonic() < until, started.logs()
            time.sleep(0.5)
        os.killpg(sites[1].pid, 9)  # in the middle of the fit
        sites[1].wait()
        ports[1] = free_ports(1)[0]
        site(1)
        until = time.monotonic() + 300.0
        while len(list(tmp_path.glob("*.npy"))) < 3:
            assert time.monotonic() < until, started.logs()
            time.sleep(1.0)
    models = [np.load(tmp_path / f"{number}.npy") for number in range(3)]
    assert len({one.tobytes() for one in models}) == 1
    monkeypatch.syspath_prepend(APP)
    from hospital import common

    X, y = map(np.concatenate, zip(*map(common.rows, range(3)), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        together = common.model(epsilon=0.5).fit(X, y, node=np.repeat(range(3), 60))
    assert_array_equal(models[0], together.coef_)


def test_sites_have_numbers():
    for config in ({}, {"partition-id": "1"}, {"partition-id": True}):
        context = SimpleNamespace(node_config=config)  # of Flower, which has more
        with pytest.raises(ValueError, match="partition-id, the number of the site"):
            _number_of(context)
