"""The page at `/`."""

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
