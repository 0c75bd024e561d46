"""Environments of peers, made from pinned requirements when they are first asked for.

    python benchmarks/peers/environments.py [--environments FOLDER] [PEER ...]

They lie in ``--environments``, by default ``skdp-peers`` in the user's cache. One is made again
when its file in ``requirements`` has changed. About 2.4 GB in all, most of it torch.
"""

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["PEERS", "default_folder", "interpreter"]

REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
PEERS = tuple(sorted(path.stem for path in REQUIREMENTS.glob("*.txt")))


def default_folder() -> Path:
    """Where environments are made."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "skdp-peers"


def interpreter(peer: str, folder: Path) -> Path:
    """Return the Python of a peer's environment, which is made where it is not there.

    Parameters
    ----------
    peer : str
        One of `PEERS`.

    folder : Path
    """
    wanted = REQUIREMENTS / f"{peer}.txt"
    place = folder / peer
    made = place / "requirements.txt"  # written last: an install that broke off has none
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (made.exists() and made.read_text() == wanted.read_text()):
        print(f"making the environment {place}", flush=True)
        venv.create(place, clear=True, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "--requirement", wanted]
        subprocess.run(command, check=True)
        shutil.copy(wanted, made)
    return python


def main():
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peers", nargs="*", choices=[*PEERS, []], default=[])
    parser.add_argument("--environments", type=Path, default=default_folder(), metavar="FOLDER")
    arguments = parser.parse_args()
    for peer in arguments.peers or PEERS:
        print(f"{peer}: {interpreter(peer, arguments.environments)}")


if __name__ == "__main__":
    sys.exit(main())
