"""How good are rankings and answers against what is known? Measures, intervals, comparisons, TREC files, pages."""

from __future__ import annotations

from hippogpu.evaluate.answers import evaluate_answers, exact_match, normalise_answer, token_f1
from hippogpu.evaluate.asking import EncodedOnce, Named, Ranker, ask, ask_named
from hippogpu.evaluate.comparing import GoldPlace, QuestionChange, Ranked, gold_places, question_changes
from hippogpu.evaluate.intervals import Difference, Interval, mean_intervals, paired_differences
from hippogpu.evaluate.levels import ByTitle, one_id_each, ranked_ids, titles_of, to_titles
from hippogpu.evaluate.measures import ALL_RECALL_CUTOFFS, CUTOFFS, Evaluation, Gold, Level, evaluate, measure_names
from hippogpu.evaluate.trec import Run, read_run, write_qrels, write_trec

__all__ = [
    "ALL_RECALL_CUTOFFS",
    "CUTOFFS",
    "ByTitle",
    "Difference",
    "EncodedOnce",
    "Evaluation",
    "Gold",
    "GoldPlace",
    "Interval",
    "Level",
    "Named",
    "QuestionChange",
    "Ranked",
    "Ranker",
    "Run",
    "ask",
    "ask_named",
    "evaluate",
    "evaluate_answers",
    "exact_match",
    "gold_places",
    "mean_intervals",
    "measure_names",
    "normalise_answer",
    "one_id_each",
    "paired_differences",
    "question_changes",
    "ranked_ids",
    "read_run",
    "titles_of",
    "to_titles",
    "token_f1",
    "write_qrels",
    "write_trec",
]
