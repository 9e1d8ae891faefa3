"""Which phrases mean nearly the same?"""

from hippogpu.synonyms.known import KnownSynonyms
from hippogpu.synonyms.searching import MIN_ALPHANUMERICS, find_synonyms

__all__ = ["MIN_ALPHANUMERICS", "KnownSynonyms", "find_synonyms"]
