"""templates/lib/idle.sh.j2, as far as it can be tried here: which images do not count, on both sides alike."""

import subprocess

import pytest

from gpuready.base import resources
from gpuready.contract.ignored_containers import counted, words
from gpuready.model.spec import NodeSpec
from gpuready.model.state import Container, Docker, NodeState

SHA = "sha256:" + "0a" * 32
CASES = [
    ("nginx", ["nginx"], True),
    ("nginx:1.27", ["nginx"], True),
    ("nginx:1.27", ["nginx:1.26"], False),
    ("nginx", ["nginx:latest"], False),
    ("registry:5000/team/web:2", ["registry:5000/team/web"], True),
    ("registry:5000/team/web:2", ["registry"], False),
    ("registry:5000/team/web", ["registry:5000"], False),
    (f"web:2@{SHA}", ["web"], True),
    (f"web:2@{SHA}", ["web:2"], True),
    (f"web:2@{SHA}", [f"web:2@{SHA}"], True),
    ("webserver", ["web"], False),
    ("team/web", ["web"], False),
    ("web", [], False),
    ("web", ["a", "b", "web"], True),
]


@pytest.mark.parametrize(("image", "ignore", "ignored"), CASES)
def test_images_that_do_not_count(image: str, ignore: list[str], ignored: bool) -> None:
    spec = NodeSpec.model_validate({"maintenance": {"ignore": ignore}})
    state = NodeState(docker=Docker(containers=(Container(id="1", name="c", image=image),)))
    found = counted(spec, state).docker
    assert isinstance(found, Docker) and bool(found.containers) is not ignored
    assert words(spec) == ("", *ignore)
    script = resources.script("lib/idle") + 'is_ignored "$@"\n'
    done = subprocess.run(["sh", "-c", script, "idle", image, *ignore], capture_output=True, text=True, check=False)
    assert (done.returncode == 0, done.stderr) == (ignored, "")
