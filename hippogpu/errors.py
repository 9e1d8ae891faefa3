"""What can go wrong, as one tree.

    HippoError
    ├── ConfigError        a setting that is unknown or out of range
    ├── UsageError         a call that cannot mean anything (empty query, k < 1)
    ├── MissingExtraError  an optional package is not installed
    ├── CorpusError        an input of passages or questions that cannot be read
    ├── ExtractionError    an extractor or its stored results failed as a whole
    ├── EncoderError       weights, a server or a model that cannot encode
    └── StoredIndexError        an index folder that cannot be used
        ├── IndexMissingError    there is none
        ├── IndexDamagedError    a file is missing, cut or altered
        ├── IndexFormatError     written by a newer hippogpu
        ├── EncoderMismatchError opened with another encoder
        └── IndexLockedError     another writer holds it

Every message says what was wrong, the value, and the next step.
"""


class HippoError(Exception):
    """Base of every error that hippogpu raises on purpose."""


class ConfigError(HippoError):
    """A setting is unknown, of the wrong type or out of range."""


class UsageError(HippoError):
    """The call itself cannot mean anything."""


class MissingExtraError(HippoError):
    """An optional package is needed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'hippogpu[{extra}]' (in a checkout: pip install '.[{extra}]')"
        )
        self.package = package
        self.extra = extra


class CorpusError(HippoError):
    """An input of passages or questions cannot be read."""


class ExtractionError(HippoError):
    """An extractor, or a file of stored extractions, failed as a whole."""


class EncoderError(HippoError):
    """The encoder cannot be loaded or cannot encode."""


class StoredIndexError(HippoError):
    """An index folder cannot be used."""


class IndexMissingError(StoredIndexError):
    """The folder holds no index."""


class IndexDamagedError(StoredIndexError):
    """A file of the index is missing, cut short or altered."""


class IndexFormatError(StoredIndexError):
    """The index was written by a newer version of the program."""


class EncoderMismatchError(StoredIndexError):
    """The index was built with another encoder."""


class IndexLockedError(StoredIndexError):
    """Another writer holds the index."""


def require_extra(module: str, *, package: str, extra: str, purpose: str) -> object:
    """The imported module, or MissingExtraError naming the extra that brings it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error
