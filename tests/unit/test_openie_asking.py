"""An extractor that asks a language model: what is asked, what is kept of replies, and what a failure costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hippogpu.config import ExtractConfig
from hippogpu.errors import ExtractionError
from hippogpu.llm import Failure, Llm, Reply, Request
from hippogpu.openie import LlmExtractor, prompts
from hippogpu.openie.asking import CUT, GIVE_UP_AFTER, NO_ENTITIES, NOT_STATED, UNVERIFIED
from hippogpu.testing.engines import Answer, ScriptedEngine
from hippogpu.types import Passage, Record, Usage

ADA = Passage("p1", "Ada", "Ada wrote notes.")
BOB = Passage("p2", "", "Bob met Ada.")
DOWN = Failure("connection refused", unreachable=True)
GOOD = {
    "entities": '{"entities":["Ada","notes"]}',
    "triples": '{"triples":[["Ada","wrote","notes"]]}',
    "both": '{"entities":["Ada"],"triples":[["Ada","wrote","notes"]]}',
    "stated": '{"stated":[1]}',
}
STEPS = {id(prompts.ENTITIES.schema): "entities", id(prompts.TRIPLES.schema): "triples"} | {
    id(prompts.JOINT.schema): "both",
    id(prompts.VERIFY.schema): "stated",
}


def step(request: Request) -> str:
    return STEPS[id(request.schema)]


def answering(**changed: Answer | Sequence[Answer] | Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """Good replies, but for the steps named: a reply, replies one after another, or a function."""
    queues = {name: list(answers) for name, answers in changed.items() if isinstance(answers, list)}

    def answer(request: Request) -> Answer:
        name = step(request)
        told = queues[name].pop(0) if queues.get(name) else changed.get(name, GOOD[name])
        if callable(told):
            return told(request)
        return GOOD[name] if isinstance(told, list) else told

    return answer


def run(
    answer: Callable[[Request], Answer], passages: Sequence[Passage] = (ADA,), *, in_flight: int = 4, **settings: object
) -> tuple[list[Record], ScriptedEngine]:
    engine = ScriptedEngine(answer, in_flight=in_flight)
    extractor = LlmExtractor(Llm(engine), replace(ExtractConfig(), **settings))
    return list(extractor.extract(iter(passages))), engine


def cut(text: str) -> Callable[[Request], Reply]:
    return lambda request: Reply(request, text, "length", Usage(5, 0, 9))


def test_entities_are_asked_for_and_then_the_triples_given_those() -> None:
    (record,), engine = run(answering())
    assert (record.entities, [triple[:3] for triple in record.triples]) == (
        ("Ada", "notes"),
        [("Ada", "wrote", "notes")],
    )
    assert [step(request) for request in engine.asked] == ["entities", "triples"]
    assert engine.asked[1].messages[-1].content == 'Title: Ada\n\nAda wrote notes.\n\nEntities: ["Ada","notes"]'


def test_joint_prompting_asks_once() -> None:
    (record,), engine = run(answering(), prompting="joint")
    assert (record.entities, len(record.triples), len(engine.asked)) == (("Ada",), 1, 1)


def test_every_request_begins_with_the_same_messages() -> None:
    _, engine = run(answering(), [ADA, BOB])
    stems = {request.messages[:-1] for request in engine.asked if step(request) == "entities"}
    assert len(stems) == 1


def test_the_tokens_of_all_requests_of_a_passage_are_counted() -> None:
    (record,), engine = run(answering())
    words = sum(len(message.content.split()) for request in engine.asked for message in request.messages)
    assert record.usage == Usage(words, 0, 2)


def test_no_passage_waits_for_the_first_step_of_the_others() -> None:
    passages = [Passage(f"p{number}", "", f"Text {number}.") for number in range(9)]
    _, engine = run(answering(), passages, in_flight=3)
    first_triples = next(i for i, (event, request) in enumerate(engine.events) if step(request) == "triples")
    last_entities = max(i for i, (event, request) in enumerate(engine.events) if step(request) == "entities")
    assert first_triples < last_entities
    assert first_triples <= 4


def test_passages_are_taken_only_when_the_engine_has_room() -> None:
    taken: list[str] = []

    def passages():
        for number in range(50):
            taken.append(f"p{number}")
            yield Passage(f"p{number}", "", "Text.")

    records = LlmExtractor(Llm(ScriptedEngine(answering(), in_flight=3))).extract(passages())
    next(records)
    assert len(taken) <= 6


def test_a_reply_that_cannot_be_used_is_asked_for_again_at_a_temperature() -> None:
    (record,), engine = run(answering(triples=["sorry, no", GOOD["triples"]]))
    assert (record.error, len(record.triples)) == (None, 1)
    assert [(request.temperature, request.seed) for request in engine.asked] == [(0.0, 0), (0.0, 0), (0.3, 1)]


def test_a_passage_whose_replies_stay_unusable_fails_with_the_reason_and_its_neighbour_does_not() -> None:
    def triples(request: Request) -> Answer:
        return "sorry, no" if "Bob" in request.messages[-1].content else GOOD["triples"]

    records, _ = run(answering(triples=triples), [ADA, BOB])
    errors = {record.passage_id: record.error for record in records}
    assert errors == {"p1": None, "p2": "the reply holds no JSON ('sorry, no') (3 tries)"}


def test_triples_are_asked_for_without_entities_when_those_cannot_be_had() -> None:
    (record,), engine = run(answering(entities="no JSON at all"))
    assert (len(record.triples), record.entities, record.drops[0].reason) == (1, (), NO_ENTITIES)
    assert engine.asked[-1].messages[-1].content.endswith("Entities: []")


def test_a_cut_reply_is_asked_for_with_twice_the_tokens() -> None:
    (record,), engine = run(answering(triples=[cut('{"triples":[["Ada","wr'), GOOD["triples"]]), max_tokens=100)
    assert [request.max_tokens for request in engine.asked] == [100, 100, 200]
    assert (len(record.triples), record.drops) == (1, ())


def test_a_reply_that_is_cut_at_the_largest_budget_keeps_its_complete_triples() -> None:
    half = '{"triples":[["Ada","wrote","notes"],["Ada","met","Bo'
    (record,), engine = run(answering(triples=cut(half)), max_tokens=100, largest_tokens=300)
    assert [request.max_tokens for request in engine.asked] == [100, 100, 200, 300]
    assert [triple[:3] for triple in record.triples] == [("Ada", "wrote", "notes")]
    assert CUT in {drop.reason for drop in record.drops}


HALF = '{"triples":[["Ada","wrote","notes"],["Ada","met","Bo'


def then(*answers: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    """One answer after another, the last one for good."""
    left = list(answers)
    return lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)


def failing(failure: Failure) -> Callable[[Request], Reply]:
    return lambda request: Reply(request, "", "failed", failure=failure)


def test_a_cut_reply_whose_longer_one_is_refused_keeps_its_complete_triples() -> None:
    (record,), engine = run(answering(triples=then(cut(HALF), failing(Failure("status 400: too many tokens")))))
    assert (record.error, len(record.triples), len(engine.asked)) == (None, 1, 5)
    assert record.drops[0] == (CUT, "status 400: too many tokens (3 tries)")


def test_a_cut_reply_whose_longer_one_finds_no_server_is_left_to_the_next_run() -> None:
    records, _ = run(answering(triples=then(cut(HALF), failing(DOWN))))
    assert [record.error for record in records] == ["connection refused"]


def test_a_reply_cut_before_its_first_triple_fails_the_passage() -> None:
    (record,), _ = run(answering(triples=cut('{"triples":[["Ad')), max_tokens=64, largest_tokens=64)
    assert record.error == "the reply does not come to its end in 64 tokens"


def test_verification_drops_what_the_passage_does_not_state() -> None:
    two = '{"triples":[["Ada","wrote","notes"],["Ada","ate","notes"]]}'
    (record,), engine = run(answering(triples=two), verify=True)
    assert [triple[:3] for triple in record.triples] == [("Ada", "wrote", "notes")]
    assert record.drops == ((NOT_STATED, '["Ada","ate","notes"]'),)
    assert engine.asked[-1].messages[-1].content.endswith('1. ["Ada","wrote","notes"]\n2. ["Ada","ate","notes"]')


def test_triples_beyond_what_a_verification_can_list_are_kept_and_told() -> None:
    many = json.dumps({"triples": [["Ada", "wrote", f"note {number}"] for number in range(450)]})
    (record,), engine = run(answering(triples=many, stated='{"stated":[2]}'), verify=True)
    assert len(record.triples) == 51
    assert record.drops[-1] == (UNVERIFIED, "50 triples beyond the first 400")
    assert "401." not in engine.asked[-1].messages[-1].content


def test_a_verification_that_cannot_be_had_keeps_the_triples_and_says_so() -> None:
    for answer in ("what?", Failure("status 400: no")):
        (record,), _ = run(answering(stated=answer), verify=True)
        assert (record.error, len(record.triples), record.drops[-1].reason) == (None, 1, UNVERIFIED)


def test_a_verification_that_finds_no_server_leaves_the_passage_to_the_next_run() -> None:
    records, _ = run(answering(stated=DOWN))
    assert [record.error for record in records] == [None]
    records, _ = run(answering(stated=DOWN), verify=True)
    assert [record.error for record in records] == ["connection refused"]


def test_a_passage_without_triples_is_not_verified() -> None:
    (record,), engine = run(answering(triples='{"triples":[]}'), verify=True)
    assert (record.error, record.triples, len(engine.asked)) == (None, (), 2)


def test_a_refused_request_fails_its_passage_alone() -> None:
    def entities(request: Request) -> Answer:
        return Failure("status 400: too long") if "Bob" in request.messages[-1].content else GOOD["entities"]

    records, _ = run(answering(entities=entities), [ADA, BOB])
    errors = {record.passage_id: record.error for record in records}
    assert errors == {"p1": None, "p2": "status 400: too long (3 tries)"}


def test_a_run_that_never_finds_the_server_ends_with_its_reason_and_fails_no_passage() -> None:
    extractor = LlmExtractor(Llm(ScriptedEngine(lambda request: DOWN)))
    with pytest.raises(
        ExtractionError, match=r"2 passages in a row had no reply from test.*connection refused.*address"
    ):
        list(extractor.extract(iter([ADA, BOB])))


def test_replies_that_are_remembered_do_not_show_that_the_server_is_there() -> None:
    class Remembering(ScriptedEngine):
        def stream(self, next_request):
            yield from (replace(reply, remembered=reply.failure is None) for reply in super().stream(next_request))

    engine = Remembering(answering(triples=DOWN))
    with pytest.raises(ExtractionError, match="2 passages in a row"):
        list(LlmExtractor(Llm(engine)).extract(iter([ADA, BOB])))


def test_passages_that_found_no_server_at_the_end_of_a_run_are_outages() -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        return GOOD[step(request)] if len(asked) <= 2 else DOWN

    records, _ = run(answer, [ADA, BOB], in_flight=1)
    assert [(record.passage_id, record.error, record.outage) for record in records] == [
        ("p1", None, False),
        ("p2", "connection refused", True),
    ]


def test_a_hundred_passages_that_are_refused_alike_end_the_run() -> None:
    passages = (Passage(f"p{number}", "", "Text.") for number in range(10_000))
    engine = ScriptedEngine(lambda request: Failure("status 418: no"))
    with pytest.raises(ExtractionError, match=r"100 passages in a row.*418"):
        list(LlmExtractor(Llm(engine)).extract(passages))


def test_passages_that_are_refused_each_in_its_own_words_are_failures_of_their_own() -> None:
    passages = (Passage(f"p{number}", "", f"Text {number}.") for number in range(150))
    engine = ScriptedEngine(lambda request: Failure(f"{request.messages[-1].content} is too long"))
    records = list(LlmExtractor(Llm(engine)).extract(passages))
    assert (len(records), {record.outage for record in records}) == (150, {False})


@pytest.mark.parametrize(
    "text", ['{"triples":[["Ada","wrote","notes"],["Ada","was in', '{"triples":[["Ada","wrote","notes"],']
)
def test_a_reply_that_ends_before_its_json_is_a_cut_one_whatever_the_server_calls_it(text: str) -> None:
    whole = '{"triples":[["Ada","wrote","notes"],["Ada","was in","London"]]}'
    (record,), engine = run(answering(triples=[text, whole]))
    assert (len(record.triples), [request.max_tokens for request in engine.asked]) == (2, [1024, 1024, 2048])


@pytest.mark.parametrize("text", ['{"triples":["a","b","c"]}', '{"triples":[{"a":"b"}]}', '{"triples":["Ada wrote."]}'])
def test_a_reply_of_which_nothing_can_be_kept_is_no_empty_success(text: str) -> None:
    (record,), engine = run(answering(triples=text))
    assert (record.error is not None, len(engine.asked)) == (True, 4)


def test_a_server_that_goes_away_for_good_ends_the_run_after_a_hundred_requests() -> None:
    asked = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        return GOOD[step(request)] if len(asked) <= 4 else DOWN

    passages = (Passage(f"p{number}", "", "Text.") for number in range(10_000))
    records = LlmExtractor(Llm(ScriptedEngine(answer, in_flight=2))).extract(passages)
    with pytest.raises(ExtractionError, match=f"{GIVE_UP_AFTER} passages"):
        assert [record.error for record in records] == [None, None]
    assert len(asked) == 4 + GIVE_UP_AFTER


def test_failures_between_successes_are_the_passages_own() -> None:
    def answer(request: Request) -> Answer:
        return DOWN if "Bob" in request.messages[-1].content else GOOD[step(request)]

    records, _ = run(answer, [BOB, ADA])
    assert {record.passage_id: record.error for record in records} == {"p1": None, "p2": "connection refused"}


def test_the_name_tells_model_prompting_and_verification_apart() -> None:
    llm = Llm(ScriptedEngine(answering(), model="m"))
    names = {
        LlmExtractor(llm, replace(ExtractConfig(), prompting=prompting, verify=verify)).name
        for prompting in ("two-step", "joint")
        for verify in (True, False)
    }
    assert len(names) == 4
    assert all(name.startswith("llm-m-") and prompts.VERSION in name for name in names)


@pytest.mark.parametrize("prompt", [prompts.ENTITIES, prompts.TRIPLES, prompts.JOINT, prompts.VERIFY])
def test_the_worked_example_of_a_prompt_fits_its_own_schema(prompt: prompts.Prompt) -> None:
    answer = json.loads(prompt.answer)
    assert list(answer) == prompt.schema["required"]
    for triple in answer.get("triples", ()):
        assert len(triple) == 3


def test_every_triple_of_the_worked_example_holds_an_entity_of_it() -> None:
    answer = json.loads(prompts.JOINT.answer)
    assert all({subject, object_} & set(answer["entities"]) for subject, _, object_ in answer["triples"])
