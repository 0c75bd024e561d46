"""Regression on streams: one file a release."""
