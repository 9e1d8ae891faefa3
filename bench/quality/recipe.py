"""A recipe: which data, records, encoder and rows, and which figures must come out."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

from bench.quality.types import check_row, check_types
from hippogpu.config import PROFILES, SearchConfig, with_values
from hippogpu.errors import ConfigError, require_extra

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
PUBLISHED = "published.yaml"
BASELINES = ("dense", "bm25", "hippo2")
_MODEL_FILTERS = ("llm", "cross-encoder")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: settings under a name.

    group : the heading it stands under · than : a row it is also compared with · note : what a reader should know
    """

    name: str
    settings: SearchConfig
    group: str = ""
    than: str | None = None
    note: str = ""

    @property
    def needs_model(self) -> bool:
        """Whether a model is asked at question time: such a row is run only with --config, and never timed."""
        return self.settings.filter in _MODEL_FILTERS or self.settings.entities == "llm"

    def changed(self) -> dict[str, Any]:
        """The settings that are not the defaults."""
        plain = SearchConfig()
        names = SearchConfig.__dataclass_fields__
        found = {name: getattr(self.settings, name) for name in names}
        return {name: value for name, value in found.items() if name == "method" or value != getattr(plain, name)}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is measured on one set of questions. Paths of the data are relative to the folder of --data.

    use       "train" when settings were chosen on these questions, "report" when none ever was
    records   {"file": …} of stored extractions, or {"extractor": "spacy"}
    records_by   who made them, in words; llm_records tells whether it was a language model
    vectors   a folder of stored vectors instead of the encoder's (bench.oracle.data), "" for none
    family    the published sets it is like: musique, 2wiki, hotpotqa, or ""
    cases     whether the rank of every gold passage is listed, question by question
    expected  row → measure → percent, each within `tolerance` points
    """

    name: str
    title: str
    use: str
    data: str
    index: str
    records: Mapping[str, str]
    records_by: str
    llm_records: bool
    rows: Sequence[Row]
    queries: str = "queries.jsonl"
    qrels: str = ""
    encoder: str = "minilm"
    vectors: str = ""
    profile: str = "default"
    family: str = ""
    k: int = 20
    cases: bool = False
    level: str = "passage"
    note: str = ""
    expected: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    tolerance: float = 0.84

    def chosen(self, patterns: Sequence[str]) -> list[Row]:
        """The rows whose name is or fits a pattern (* and ?), all without patterns; ConfigError when no row does."""
        if not patterns:
            return list(self.rows)
        fit = [row for row in self.rows if any(row.name == p or fnmatch.fnmatchcase(row.name, p) for p in patterns)]
        if not fit:
            names = ", ".join(f"'{row.name}'" for row in self.rows)
            raise ConfigError(
                f"No row of '{self.name}' fits {' or '.join(map(repr, patterns))}. Its rows are: {names}."
            )
        return fit

    def row(self, name: str) -> Row | None:
        """The row of that name, None when there is none."""
        return next((row for row in self.rows if row.name == name), None)


def read_recipe(path: Path) -> Recipe:
    """The recipe of a YAML file, or of that name in bench/recipes. ConfigError names the file and the key."""
    file = recipe_file(path)
    values = read_yaml(file)
    if not isinstance(values, dict):
        raise ConfigError(f"The recipe '{file}' is no mapping. Begin with 'name: …'.")
    known = set(Recipe.__dataclass_fields__)
    unknown = sorted(set(values) - known, key=str)
    if unknown:
        raise ConfigError(f"The recipe '{file}' has the key '{unknown[0]}'. Its keys are: {', '.join(sorted(known))}.")
    lacking = [name for name, item in Recipe.__dataclass_fields__.items() if item.default is MISSING]
    lacking = [name for name in lacking if name not in {*values, "rows", "expected"}]
    if lacking:
        raise ConfigError(f"The recipe '{file}' lacks the key '{lacking[0]}'. Add it.")
    rows = _rows(values.pop("rows", "rows.yaml"), file)
    check_types(values, file)
    return _checked(Recipe(**values, rows=rows), file)


def recipe_file(path: Path) -> Path:
    """The file itself, or that of a shipped recipe by its name."""
    if path.exists():
        return path
    shipped = RECIPES / f"{path.name.removesuffix('.yaml')}.yaml"
    if not shipped.exists():
        raise ConfigError(f"There is no recipe '{path}'. Give a file, or one of: {', '.join(shipped_recipes())}.")
    return shipped


def shipped_recipes() -> list[str]:
    """The names of the recipes in bench/recipes; other files there hold rows, published figures and the like."""
    return sorted(file.stem for file in RECIPES.glob("*.yaml") if file.read_text(encoding="utf-8").startswith("name:"))


def read_yaml(path: Path) -> Any:
    """The value of a YAML file, by the safe loader; ConfigError when it cannot be read."""
    yaml: Any = require_extra("yaml", package="PyYAML", extra="bench", purpose="Reading a recipe")
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"The recipe '{path}' cannot be read: {error}.") from error


def _rows(value: Any, file: Path, within: tuple[Path, ...] = ()) -> tuple[Row, ...]:
    """Rows as a list, or the name of a file beside the recipe (or beside the shipped ones) that holds one.

    within : the files of rows that are being read: one of them again would have no end
    """
    if isinstance(value, str):
        beside = file.parent / value
        found = (beside if beside.exists() else RECIPES / value).resolve()
        if found in within:
            raise ConfigError(f"The rows of '{file}' include the file '{value}', which includes itself. Take that out.")
        return _rows(read_yaml(found), file, (*within, found))
    if not isinstance(value, list):
        raise ConfigError(f"The 'rows' of '{file}' must be a list or the name of a file. Got {value!r}.")
    made: list[Row] = []
    for item in value:
        if isinstance(item, dict) and set(item) == {"include"}:
            made += _rows(item["include"], file, within)
        else:
            made.append(_row(item, file))
    return tuple(made)


def _row(item: Any, file: Path) -> Row:
    if not isinstance(item, dict) or "name" not in item or "method" not in item:
        raise ConfigError(f"A row of '{file}' needs 'name' and 'method'. Got {item!r}.")
    extra = sorted(set(item) - {"name", "method", "settings", "group", "than", "note"}, key=str)
    if extra:
        raise ConfigError(f"The row '{item['name']}' of '{file}' has the key '{extra[0]}', which no row has.")
    check_row(item, file)
    try:
        settings = with_values(SearchConfig(), {"method": item["method"], **(item.get("settings") or {})})
    except ConfigError as error:
        raise ConfigError(f"The row '{item['name']}' of '{file}': {error}") from error
    return Row(item["name"], settings, item.get("group", ""), item.get("than"), item.get("note", ""))


def _checked(recipe: Recipe, file: Path) -> Recipe:
    names = [row.name for row in recipe.rows]
    twice = sorted({name for name in names if names.count(name) > 1})
    wrong = [name for row in recipe.rows if (name := row.than) and name not in names]
    wrong += [name for name in recipe.expected if name not in names]
    for holds, told in (
        (not twice, f"has two rows called {twice}"),
        (not wrong, f"names the rows {wrong}, which it has not"),
        (recipe.use in ("train", "report"), f"has use '{recipe.use}', which is neither train nor report"),
        (recipe.level in ("passage", "title"), f"has level '{recipe.level}', which is neither passage nor title"),
        (recipe.profile in PROFILES, f"has profile '{recipe.profile}', which is none of {', '.join(PROFILES)}"),
        (set(recipe.records) in ({"file"}, {"extractor"}), "has 'records' that are neither 'file' nor 'extractor'"),
    ):
        if not holds:
            raise ConfigError(f"The recipe '{file}' {told}. Correct it.")
    return recipe
