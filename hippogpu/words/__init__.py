"""Words: which a text has, and which passages have a word, how often."""

from hippogpu.words.counting import count_words
from hippogpu.words.splitting import UNSPACED, words_of

__all__ = ["UNSPACED", "count_words", "words_of"]
