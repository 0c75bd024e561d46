"""Names of nodes: public, and given in an order, never found in the rows."""

import numpy as np

from skdp._validation import is_whole, shown

__all__ = ["clean_names", "node_number", "node_numbers", "with_names"]


def clean_names(names, n_nodes):
    """Names as a tuple of strings or of integers, checked; None where numbers are the names."""
    if names is None:
        return None
    rule = f"node_names must hold {n_nodes} different names, one for each of n_nodes={n_nodes}"
    rule += ", all strings or all integers"
    try:
        values = list(names.tolist() if hasattr(names, "tolist") else names)
    except TypeError:
        raise ValueError(f"{rule}; got {shown(names)}.") from None
    is_text = all(isinstance(value, str) for value in values)
    valid = not isinstance(names, str) and (is_text or all(map(is_whole, values)))
    if not valid or len(values) != n_nodes or len(set(values)) != n_nodes:
        raise ValueError(f"{rule}; got {shown(names)}.")
    cleaned = tuple(map(str if is_text else int, values))
    return None if cleaned == tuple(range(n_nodes)) else cleaned


def with_names(topology, names):
    """A topology whose nodes have these names, in their order."""
    names = clean_names(names, topology.n_nodes)
    if names is None or names == topology.node_names:
        return topology
    if topology.node_names is not None:
        raise ValueError(
            f"node_names must be those of the topology, {shown(topology.node_names)}, or None; "
            f"got {shown(names)}."
        )
    return topology.named(names)


def node_number(topology, *, or_none=False, **named):
    """Number of one node, from its name or its number; ``named`` says what it is to be called."""
    ((what, node),) = named.items()
    names = topology.node_names
    if names is not None and (isinstance(node, str) or is_whole(names[0])):
        if is_whole(node) or isinstance(node, str):
            found = _number_of(names).get(node)
            if found is not None:
                return found
    elif is_whole(node) and 0 <= node < topology.n_nodes:
        return int(node)
    rule = "None or " * or_none
    if names is None:
        rule += f"a node from 0 to {topology.n_nodes - 1}"
    else:
        rule += f"the name of a node, one of {shown(list(names))}"
    raise ValueError(f"{what} must be {rule}; got {shown(node)}.")


def node_numbers(topology, nodes):
    """Numbers of nodes, an array of names or of numbers; numbers are returned as they are."""
    names = topology.node_names
    is_number = nodes.dtype.kind in "iu"
    if names is None or (is_number and isinstance(names[0], str)):
        return nodes
    number = _number_of(names)
    try:
        return np.array([number[node] for node in nodes.tolist()], dtype=np.intp)
    except (KeyError, TypeError):
        unknown = next(node for node in nodes.tolist() if not _is_name(node, number))
    raise ValueError(f"node must hold names of nodes, {shown(list(names))}; got {shown(unknown)}.")


def _number_of(names):
    return {name: i for i, name in enumerate(names)}


def _is_name(value, number):
    try:
        return value in number
    except TypeError:
        return False
