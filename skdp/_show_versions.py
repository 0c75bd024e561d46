"""Which versions a report of a fault is about."""

import os
import platform
import sys
from importlib import metadata

import scipy.linalg  # noqa: F401 (what is not loaded has no threads to show)
from threadpoolctl import threadpool_info

from skdp import __version__

_REQUIRED = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "cryptography", "dp-accounting")
_OPTIONAL = (
    "joblib",
    "matplotlib",
    "mpi4py",
    "networkx",
    "pandas",
    "statsmodels",
)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _section(title: str, values: dict[str, object]) -> str:
    width = max(map(len, values))
    return "\n".join([f"{title}:", *(f"{name:>{width}}: {values[name]}" for name in values)])


def show_versions() -> None:
    """Print the versions that matter in a report: of Python, of skdp, of what it builds on.

    Also the libraries of linear algebra and their threads. No data, parameter or ledger is looked
    at, but paths of this machine are printed.

    Examples
    --------
    >>> import skdp
    >>> skdp.show_versions()  # doctest: +SKIP
    System:
        python: 3.13.1 (main, Dec  4 2024, 00:00:00) [GCC 13.2.0]
    executable: /usr/bin/python3
       machine: Linux-6.8.0-x86_64-with-glibc2.39
          CPUs: 8
    ...
    """
    system: dict[str, object] = {
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "machine": platform.platform(),
        "CPUs": os.cpu_count(),
    }
    versions: dict[str, object] = {"skdp": __version__}
    versions |= {name: _version(name) for name in _REQUIRED + _OPTIONAL}
    sections = [_section("System", system), _section("Python dependencies", versions)]
    for library in threadpool_info():
        fields = ("internal_api", "version", "num_threads", "architecture", "filepath")
        values = {name: library[name] for name in fields if name in library}
        sections.append(_section(f"Threads ({library['user_api']})", values))
    print("\n\n".join(sections))
