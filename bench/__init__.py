"""Measurements and comparisons that are run from a checkout: python -m bench VERB."""
