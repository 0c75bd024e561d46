"""Scores of models on private rows, within a budget."""

__all__: list[str] = []
