"""Clients that have texts translated and continued."""

import openai
import pytest
from huggingface_hub.errors import HfHubHTTPError, TextGenerationError
from tests.e2e.serving.clients import ask_as_node, ask_hub

from bertkit.decoders.generation.generator import Generator
from bertkit.decoders.generation.seq2seq_generator import Translator


def test_the_hubs_client_writes(server, models):
    expected = Translator.load(models["translator"], device="cpu")("the cat", beams=3)
    client = ask_hub(server, "translator")
    found = client.translation("the cat", generate_parameters={"num_beams": 3})
    assert found.translation_text == expected.text
    with pytest.raises(HfHubHTTPError, match="src_lang"):
        client.translation("the cat", src_lang="en", tgt_lang="de")
    continued = Generator.load(models["writer"], device="cpu")("the cat", max_tokens=4)
    written = ask_hub(server, "writer").text_generation("the cat", max_new_tokens=4)
    assert written == continued.answers[0].text


WRITTEN = {"max_new_tokens": 12, "temperature": 3.0, "seed": 5}


@pytest.fixture(scope="module")
def continued(models):
    """What is written of "the cat", with the options above."""
    write = Generator.load(models["writer"], device="cpu")
    (answer,) = write("the cat", max_tokens=12, temperature=3.0, seed=5).answers
    assert len(answer.text.split()) > 3
    return answer


def test_the_hubs_client_reads_what_is_written_as_a_whole_and_word_by_word(server, continued):
    client, text = ask_hub(server, "writer"), continued.text
    assert client.text_generation("the cat", **WRITTEN) == text
    whole = client.text_generation("the cat", **WRITTEN, return_full_text=True)
    assert whole == "the cat" + text
    parts = list(client.text_generation("the cat", **WRITTEN, stream=True))
    assert len(parts) > 2
    assert "".join(parts) == text
    stop = text[3:9]
    expected = text[: text.index(stop) + len(stop)]
    assert client.text_generation("the cat", **WRITTEN, stop=["none of it", stop]) == expected
    parts = client.text_generation("the cat", **WRITTEN, stop=[stop], stream=True)
    assert "".join(parts) == expected


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"details": True}, "details"),
        ({"repetition_penalty": 1.3}, "no setting repetition_penalty"),
        ({"watermark": True}, "no setting watermark"),
        ({"stop": [""]}, "stop"),
        ({"temperature": -1.0}, "temperature"),
    ],
)
def test_the_hubs_client_is_told_what_a_writer_does_not_do(server, option, message):
    with pytest.raises(TextGenerationError, match=message):
        ask_hub(server, "writer").text_generation("the cat", **option)


def test_openai_completes_prompts(openai_client, continued):
    create = openai_client.completions.create
    drawn = {"max_tokens": 12, "temperature": 3.0, "seed": 5}
    asked = {"model": "writer", "prompt": "the cat", "frequency_penalty": 0, **drawn}
    found = create(**asked)
    (choice,) = found.choices
    assert (choice.text, found.object, found.model) == (continued.text, "text_completion", "writer")
    assert choice.finish_reason == ("stop" if continued.is_finished else "length")
    assert found.usage.completion_tokens == continued.num_tokens
    assert found.usage.total_tokens == found.usage.prompt_tokens + continued.num_tokens
    stop = continued.text[3:9]
    (choice,) = create(**asked, stop=stop, echo=True).choices
    before = continued.text[: continued.text.index(stop)]
    assert (choice.text, choice.finish_reason) == ("the cat" + before, "stop")
    chunks = create(**asked, stop=[stop], stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == before
    several = create(model="writer", prompt=["the cat", "a dog"], n=2, **drawn).choices
    assert [one.index for one in several] == [0, 1, 2, 3]
    greedy = create(model="writer", prompt="the cat", temperature=0, seed=1)
    assert greedy.choices == create(model="writer", prompt="the cat").choices
    with pytest.raises(openai.BadRequestError, match="no setting best_of"):
        create(**asked, extra_body={"best_of": 3})


def test_the_hubs_client_for_node_completes(server, continued):
    path = "/v1/models/"
    body = {"prompt": "the cat", "max_tokens": 12, "temperature": 3.0, "seed": 5}
    named = {"model": f"{server}/v1/models/writer", **body, "return_full_text": False}
    for place in (path + "writer/v1/completions", "/v1/completions"):
        (choice,) = ask_as_node(server, place, named)["choices"]
        assert choice["text"] == continued.text
