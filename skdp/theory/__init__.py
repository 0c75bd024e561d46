"""Bounds and rules of the papers as functions of public numbers."""
