"""How a language model is asked about questions: to filter facts, to name entities, to think, to answer."""

from __future__ import annotations

from dataclasses import dataclass

from hippogpu.config.checks import check_types, require


@dataclass(frozen=True, slots=True)
class AnswerConfig:
    """How a language model is asked about a question. HippoRAG 2, sections 3.4 and 4; IRCoT (arXiv 2212.10509).

    passages            passages that the reader sees, at least 1
    steps               most searches a question of IRCoT, at least 1 (then no thought is written)
    step_passages       passages that each search of IRCoT gives, and that a thought is written from
    passage_characters  how much of a passage is shown; what is cut is counted
    max_tokens          most tokens of a reply at first; a reply that was cut is asked for again with twice as many
    largest_tokens      most tokens that a reply is ever given
    tries               how often a question is asked when the reply cannot be used
    """

    passages: int = 5
    steps: int = 2
    step_passages: int = 10
    passage_characters: int = 4000
    max_tokens: int = 512
    largest_tokens: int = 2048
    tries: int = 3

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("passages", "steps", "step_passages", "max_tokens", "tries"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        require(self, "passage_characters", self.passage_characters >= 100, "at least 100")
        require(self, "largest_tokens", self.largest_tokens >= self.max_tokens, "at least max_tokens")
