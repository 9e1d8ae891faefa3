"""Readers beside a writer: an index that is rewritten generation by generation, and processes that ask it meanwhile."""
