"""Personalised PageRank: our solvers beside others, over graphs from a thousand passages to a million."""
