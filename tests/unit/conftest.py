"""Fixtures of the unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_index import index_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where an index may be made."""
    return tmp_path / "small.hippo"


@pytest.fixture
def made(root: Path) -> Path:
    """A small index of one generation."""
    index_of(root)
    return root
