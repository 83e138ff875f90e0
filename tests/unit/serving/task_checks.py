"""What holds for the route of every task."""

import json

from tests.closeness import close

from bertkit.serving.endpoint import write_json


def check_task(client, path, one):
    """Hold the answers of `model/task` to an input, alone and twice, against its pipeline's."""
    name, task = path.split("/")
    loaded = client.server.service.models[name].loaded
    given = tuple(one) if isinstance(one, list) else one
    result = loaded.pipelines[task](given)
    expected = result.to_json() if hasattr(result, "to_json") else result
    expected = json.loads(write_json(expected))
    answer = client.post(f"/v1/models/{path}", {"inputs": [one, one]})
    assert answer.status == 200, answer.content
    assert answer.json["model"] == name
    assert answer.json["usage"]["total_tokens"] > 0
    for found in answer.json["results"]:
        assert find_numbers(found) == close(find_numbers(expected), "float32")
        assert drop_numbers(found) == drop_numbers(expected)
    if not isinstance(one, list):
        (_, second) = answer.json["results"]
        alone = client.post(f"/v1/models/{path}", {"inputs": one}).json["results"]
        assert drop_numbers(alone) == drop_numbers(second)


def find_numbers(value):
    """The numbers in a value of JSON, in their order."""
    if isinstance(value, float):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for part in parts for number in find_numbers(part)]


def drop_numbers(value):
    """A value of JSON with its numbers replaced."""
    if isinstance(value, dict):
        return {key: drop_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return list(map(drop_numbers, value))
    return "number" if isinstance(value, float) else value
