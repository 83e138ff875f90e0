"""The image and the Kubernetes manifest: their form, and that what they name exists."""

import fnmatch
import json
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml

from bertkit.serving.app import list_endpoints
from bertkit.serving.settings import ServeSettings

OPEN_PATHS = {one.path for one in list_endpoints() if one.is_open}
CACHE = "/cache"


@pytest.fixture
def root(request):
    return request.config.rootpath


@pytest.fixture
def instructions(root):
    """The instructions of the image: their names and arguments, of the last stage and before."""
    text = re.sub(r"^#.*\n", "", (root / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


@pytest.fixture
def last_stage(instructions):
    start = max(index for index, (name, _) in enumerate(instructions) if name == "FROM")
    return dict(instructions[start:])


@pytest.fixture
def manifests(root):
    text = (root / "examples/kubernetes/serve.yaml").read_text()
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


@pytest.fixture
def pod(manifests):
    return manifests["Deployment"]["spec"]["template"]["spec"]


@pytest.fixture
def container(pod):
    (container,) = pod["containers"]
    return container


def test_the_image_copies_and_installs_what_is_there(instructions, root):
    kept = [line[1:] for line in (root / ".dockerignore").read_text().split() if line[0] == "!"]
    copied = [shlex.split(one) for name, one in instructions if name == "COPY"]
    sources = [one for words in copied if "--from=build" not in words for one in words[:-1]]
    assert sorted(sources) == sorted(kept)
    assert [one for one in sources if not (root / one).exists()] == []
    assert not any(fnmatch.fnmatch(one, ".*") for one in sources)

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    (extras,) = re.findall(r"'\.\[(.+?)\]'", " ".join(one for _, one in instructions))
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_the_image_runs_the_server_as_a_user_without_rights(last_stage):
    command = json.loads(last_stage["ENTRYPOINT"])  # a shell would keep signals to itself
    assert command == ["bertkit", "serve", "--host", "0.0.0.0"]
    assert all(int(one) > 1000 for one in last_stage["USER"].split(":"))
    assert int(last_stage["EXPOSE"]) == ServeSettings().port
    places = dict(one.split("=", 1) for one in shlex.split(last_stage["ENV"]))
    assert last_stage["VOLUME"] == CACHE
    assert all(places[one].startswith(CACHE) for one in ("HOME", "HF_HOME", "TMPDIR"))


def test_the_check_of_the_image_tells_whether_the_server_is_alive(last_stage, client):
    program, flag, code = json.loads(last_stage["HEALTHCHECK"].partition("CMD")[2])
    assert (program, flag) == ("python", "-c")
    address = f"127.0.0.1:{ServeSettings().port}/"
    assert code.count(address) == 1
    for port, status in ((client.server.port, 0), (1, 1)):
        there = code.replace(address, f"127.0.0.1:{port}/")
        done = subprocess.run([sys.executable, "-c", there], capture_output=True, check=False)
        assert done.returncode == status


def test_the_manifest_asks_open_routes_of_the_image(manifests, container, last_stage):
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}
    assert probes["liveness"]["path"] == "/health"
    assert probes["readiness"]["path"] == container["startupProbe"]["httpGet"]["path"] == "/ready"
    assert {one["path"] for one in probes.values()} <= OPEN_PATHS
    (port,) = container["ports"]
    assert {one["port"] for one in probes.values()} == {port["name"]}
    assert port["containerPort"] == int(last_stage["EXPOSE"])
    (exposed,) = manifests["Service"]["spec"]["ports"]
    assert exposed["targetPort"] == port["name"]


def test_the_manifest_leaves_time_for_requests_and_passes_options(pod, container):
    _, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] > int(seconds) + ServeSettings().timeout
    flags = {f"--{name.replace('_', '-')}" for name in ServeSettings.model_fields}
    assert set(container["args"]) <= flags


def test_the_manifest_gives_no_rights_and_a_place_to_write(manifests, pod, container, last_stage):
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    user = f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    assert pod["securityContext"]["runAsNonRoot"]
    assert user == last_stage["USER"]
    (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
    assert (mount["name"], mount["mountPath"]) == (volume["name"], last_stage["VOLUME"])
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    spec = manifests["Deployment"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == manifests["Service"]["spec"]["selector"]
