"""Networks by flat options, which tests can combine."""

from dataclasses import fields

from skdp.distributed import DistributedDPClassifier, PaperAlgorithm
from skdp.topology import make_topology

OF_PAPER = {field.name for field in fields(PaperAlgorithm)}
OF_LINKS = {"edge_probability", "topology_seed"}


def nested(*, paper=None, **options):
    """Options of a classifier, from those of its parts; ``paper=True`` asks for its defaults."""
    inner = {name: options.pop(name) for name in OF_PAPER & options.keys()}
    if inner or paper:
        options["paper"] = PaperAlgorithm(**inner)
    links = {name: options.pop(name) for name in OF_LINKS & options.keys()}
    if links:
        options["topology"] = make_topology(
            options.get("topology", "ring"),
            options.get("n_nodes", 8),
            edge_probability=links.get("edge_probability", 1.0),
            seed=links.get("topology_seed", 0),
        )
    return options


def network(*budget, kind=DistributedDPClassifier, **options):
    """A classifier by flat options."""
    return kind(*budget, **nested(**options))
