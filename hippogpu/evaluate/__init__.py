"""How good are rankings and answers against what is known? Measures, intervals, comparisons, TREC files."""

from __future__ import annotations

from hippogpu.evaluate.answers import exact_match, normalise_answer, token_f1
from hippogpu.evaluate.intervals import Difference, Interval, mean_intervals, paired_differences
from hippogpu.evaluate.levels import ByTitle, ranked_ids, to_titles
from hippogpu.evaluate.measures import ALL_RECALL_CUTOFFS, CUTOFFS, Evaluation, Gold, Level, evaluate, measure_names
from hippogpu.evaluate.trec import Run, read_run, write_qrels, write_trec

__all__ = [
    "ALL_RECALL_CUTOFFS",
    "CUTOFFS",
    "ByTitle",
    "Difference",
    "Evaluation",
    "Gold",
    "Interval",
    "Level",
    "Run",
    "evaluate",
    "exact_match",
    "mean_intervals",
    "measure_names",
    "normalise_answer",
    "paired_differences",
    "ranked_ids",
    "read_run",
    "to_titles",
    "token_f1",
    "write_qrels",
    "write_trec",
]
