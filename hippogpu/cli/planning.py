"""The verb that says what reading a corpus takes: plan extract; and the name that all plans stand under."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from hippogpu.cli import options
from hippogpu.cli.indexing import DEFAULT_CHUNK_TOKENS
from hippogpu.cli.output import note, note_list, people, print_json, table
from hippogpu.config import IndexConfig, read_configs, with_values
from hippogpu.corpus import chunk as split_passage
from hippogpu.corpus import read_corpus
from hippogpu.embed import embedder_from_name
from hippogpu.errors import CorpusError, UsageError
from hippogpu.llm import Prices, cost, prices_of, token_counter
from hippogpu.openie import ExtractionPlan, plan_extraction
from hippogpu.types import Passage, Refusal

plan = typer.Typer(
    name="plan",
    help="Estimate what a run will take, before anything is spent.\n\n\b\nhippogpu plan extract corpus.jsonl\n"
    "hippogpu plan index --passages 1000000",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def extract(
    corpus: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Files or folders of passages.")],
    model: options.Model = None,
    url: options.Url = None,
    prompting: options.PromptingRule = None,
    tokenizer: Annotated[
        str,
        typer.Option("--tokenizer", metavar="NAME", help="A tokenizer.json, or a model whose tokenizer is at hand."),
    ] = "",
    sample: Annotated[int, typer.Option("--sample", min=2, help="How many passages are tokenised.")] = 1000,
    tokens_a_second: Annotated[
        float | None,
        typer.Option("--tokens-a-second", min=1e-9, help="Tokens that the model reads and writes in a second."),
    ] = None,
    encoder: options.Encoder = None,
    chunk: Annotated[bool, typer.Option("--chunk", help="Split passages that the encoder cannot read whole.")] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Estimate requests, tokens, time and cost of reading a corpus with a language model; nothing is sent.

    A sample of the passages is tokenised; lengths of replies are estimated from those of real extractions. A text that
    several passages have is counted once. With --chunk, or chunk_tokens under [index], passages are split as index
    would with that encoder. Prices come from the configuration ([llm] prompt_price, …), else from a dated table of
    well-known models.

    \b
    hippogpu plan extract corpus.jsonl --model gpt-4o-mini --url https://api.openai.com/v1
    hippogpu plan extract corpus.jsonl --tokens-a-second 7400 --prompting joint
    """
    configs = read_configs(config)
    given = {"model": model, "url": url}
    llm = with_values(configs.llm_for("extract"), {name: value for name, value in given.items() if value is not None})
    settings = with_values(configs.extract, {"prompting": prompting} if prompting else {})
    reading = read_corpus(corpus)
    counter = token_counter(tokenizer or llm.model)
    if tokenizer and not counter.exact:
        raise UsageError(f"No tokenizer '{tokenizer}' is at hand. Name a tokenizer.json, or leave --tokenizer out.")
    refused: list[Refusal] = []
    passages = _as_indexed(reading.passages, configs.index or IndexConfig(), encoder or "minilm", refused, chunk=chunk)
    estimate = plan_extraction(passages, settings, counter.count, sample=sample)
    refused = [*reading.refusals, *refused]
    prices = prices_of(llm)
    value = {
        "model": llm.model or None,
        "prompting": settings.prompting,
        "verify": settings.verify,
        "tokenizer": {"name": counter.name, "exact": counter.exact},
        **_value(estimate, prices, tokens_a_second),
        "refused": [item._asdict() for item in refused],
    }
    if json:
        print_json(value)
    else:
        _show(value, estimate, prices)
    if llm.window and estimate.longest > llm.window:
        note(
            f"The longest prompt needs {estimate.longest:,} tokens with its reply and the model reads {llm.window:,}: "
            "split the passages with --chunk, or lower largest_tokens under [extract].",
            quiet=quiet,
        )
    note_list("Refused", [f"{item.where}: {item.reason}" for item in refused])
    if refused:
        raise typer.Exit(1)


def _as_indexed(
    passages: Iterable[Passage], config: IndexConfig, encoder: str, refused: list[Refusal], *, chunk: bool
) -> Iterable[Passage]:
    """The passages as an index holds them: split, when that is asked for; those that cannot be are put into refused."""
    if not chunk and not config.chunk_tokens:
        return passages
    embedder = embedder_from_name(encoder)
    window = config.chunk_tokens or embedder.window or DEFAULT_CHUNK_TOKENS
    split = partial(
        split_passage,
        window_tokens=window,
        overlap_tokens=with_values(config, {"chunk_tokens": window}).chunk_overlap,
        token_counts=embedder.token_counts,
    )
    return _parts(passages, split, refused)


def _parts(
    passages: Iterable[Passage], split: Callable[[Passage], list[Passage]], refused: list[Refusal]
) -> Iterator[Passage]:
    for passage in passages:
        try:
            yield from split(passage)
        except CorpusError as error:
            refused.append(Refusal(f"passage '{passage.id}'", str(error)))


def _value(estimate: ExtractionPlan, prices: Prices | None, tokens_a_second: float | None) -> dict[str, Any]:
    tokens = estimate.tokens
    return {
        "passages": estimate.passages,
        "repeated": estimate.repeated,
        "sampled": estimate.sampled,
        "requests": estimate.requests,
        "prompt_tokens": tokens.prompt,
        "shared_tokens": tokens.cached,
        "completion_tokens": tokens.completion,
        "off_by": round(estimate.off_by, 4),
        "longest": estimate.longest,
        "cost": None if prices is None else round(cost(tokens._replace(cached=0), prices), 4),
        "cost_with_prefix_cache": None if prices is None else round(cost(tokens, prices), 4),
        "seconds": None if tokens_a_second is None else round((tokens.prompt + tokens.completion) / tokens_a_second, 1),
    }


def _show(value: dict[str, Any], estimate: ExtractionPlan, prices: Prices | None) -> None:
    names = ["passages", "repeated", "sampled", "requests"]
    names += ["prompt_tokens", "shared_tokens", "completion_tokens", "longest"]
    rows = [[name.replace("_", " "), f"{value[name]:,}"] for name in names]
    rows.append(["tokens are off by", f"{100 * estimate.off_by:.1f} % at most (95 %), for the sample alone"])
    known = prices is not None
    rows.append(["cost", f"{value['cost']:,.2f}" if known else "unknown: set prompt_price and completion_price"])
    if known:
        rows.append(["cost if the server caches prefixes", f"{value['cost_with_prefix_cache']:,.2f}"])
    if value["seconds"] is not None:
        rows.append(["hours", f"{value['seconds'] / 3600:,.2f}"])
    tokenizer = value["tokenizer"]
    title = f"Reading with {value['model'] or 'a language model'}, {value['prompting']}"
    rows.append(["tokens counted by", tokenizer["name"] if tokenizer["exact"] else f"{tokenizer['name']} (not exact)"])
    people().print(table(title, ["what", "about"], rows))
