"""``--after-batch``: the user's command between two batches. Of a node whose steps do nothing, the change fails."""

import json
from typing import Any

import pytest

from tests.hostile.test_connections import APPLY, Site, site
from tests.system.harness import GPUREADY

__all__ = ["site"]

NAMES = ("lies_about_steps1", "lies_about_steps2", "lies_about_steps3")


def rolled(site: Site, hook: str, *words: str) -> tuple[dict[str, Any], str]:
    """The document and stderr of a rollout, one host at a time, which bears all failures."""
    path = site.inventory(**{name: {} for name in NAMES})
    options = ["--batch", "1", "--max-fail", "100%", "--after-batch", hook, *words, "--output", "json"]
    done = site.ran([GPUREADY, *APPLY, *options, "-i", path])
    return json.loads(done.stdout), done.stderr


def test_it_runs_after_each_batch_with_its_hosts(site: Site) -> None:
    found, _ = rolled(site, 'echo "healthy: $GPUREADY_BATCH_HOSTS"')
    ran = [(each["hosts"], each["exit_code"], each["output"]) for each in found["after_batch"]]
    assert ran == [([name], 0, f"healthy: {name}\n") for name in NAMES]
    assert found["error"] is None


def test_it_stops_the_rollout_and_its_batch_is_not_done(site: Site) -> None:
    hook = f"head -c 9000 /dev/zero | tr '\\0' x; echo; echo nccl is slow; [ $GPUREADY_BATCH_HOSTS != {NAMES[1]} ]"
    state = site.home / "state"
    found, err = rolled(site, hook, "--state-dir", str(state))
    why = f"--after-batch failed after {NAMES[1]} (exit 1)"
    assert [host["outcome"] for host in found["hosts"].values()] == ["failed", "failed", "not_attempted"]
    assert f"not begun: {why}" in found["hosts"][NAMES[2]]["notes"]
    assert found["error"]["message"] == f"{why}: nccl is slow" and f"{why}: nccl is slow" in err
    assert [each["exit_code"] for each in found["after_batch"]] == [0, 1]
    assert max(len(each["output"]) for each in found["after_batch"]) == 2000
    last = json.loads((state / "apply.jsonl").read_text("utf-8").splitlines()[-1])
    assert (last["host"], last["begun"], last["result"]) == (NAMES[1], True, None)


def test_it_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuready.operations import hook

    monkeypatch.setattr(hook, "LIMIT", 2)
    done = hook.after_batch("echo begun; sleep 600 & wait", ["n1"])
    assert (done.exit_code, done.output) == (None, "begun\n")
