"""Choosing parameters and epsilon on private rows, within one budget."""

__all__: list[str] = []
