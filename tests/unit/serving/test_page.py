"""The page at `/`."""

from tests.families import make_folder
from tests.unit.serving.running import running


def test_the_page_is_open_and_may_only_ask_its_server(models, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("secret")
    with running({"words": models["words"]}, key_file=keys) as client:
        answer = client.get("/")
        assert client.get("/v1/models").status == 401
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    allowed, _, rest = policy.partition("; connect-src 'self'; ")
    assert allowed.startswith("default-src 'none'; script-src 'sha256-")
    assert rest == "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    assert "unsafe" not in policy
    in_page = policy.removesuffix("; frame-ancestors 'none'")
    assert f'content="{in_page}"' in answer.content.decode()
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"


def test_a_model_that_fills_blanks_says_how_it_writes_them(models, tmp_path):
    folder = make_folder(tmp_path, "roberta", "RobertaForMaskedLM")
    served = {"words": models["words"], "reader": models["reader"], "roberta": folder}
    with running(served) as client:
        listed = client.get("/v1/models").json["data"]
        text = "All human beings are <mask>."
        filled = client.post("/v1/models/roberta/fill-mask", {"inputs": text}).json["results"]
    masks = {one["id"]: one["mask"] for one in listed}
    assert masks == {"words": "[MASK]", "reader": None, "roberta": "<mask>"}
    assert filled["mask"] == "<mask>"
