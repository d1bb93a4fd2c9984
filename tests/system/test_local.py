"""``-i @local``: gpuready on the machine that it is to converge, without SSH, and with the same lock.

It is this very machine, in a mount namespace of its own: what is written in /etc, /var/lib and /run is memory that goes
with the test, and no systemd is seen, which would work outside of it.
"""

import json
from pathlib import Path

import pytest

from tests.system.harness import here

_PRIVATE = """
mount -t tmpfs tmpfs /mnt
for d in /etc /var/lib; do
  mkdir -p /mnt$d/upper /mnt$d/work
  mount -t overlay overlay -o lowerdir=$d,upperdir=/mnt$d/upper,workdir=/mnt$d/work $d
done
mount -t tmpfs tmpfs /run
rm -f /etc/nccl.conf
run() { echo; "$GPUREADY" "$@" -i spec.yaml -i @local --only nccl --output json | tr -d '\\n'; }
run apply --yes
echo; cat /etc/nccl.conf | tr '\\n' ' '
run apply --yes
hold() {
  rm -f held
  (exec 9<>/run/gpuready.lock; flock 9; echo "$1" >/run/gpuready.lock; : >held; exec tail -f held >/dev/null 2>&1) &
  holder=$!
  until [ -e held ]; do sleep 0.05; done
}
hold somebody
echo; "$GPUREADY" status -i spec.yaml -i @local --output json | tr -d '\\n'
sed -i 's/22/20/' spec.yaml
run apply --yes
run apply --yes --wait-lock 9m 2>told &
waits=$!
until grep -q 'wait for another run' told || ! kill -0 $waits; do sleep 0.1; done
kill $holder
wait $waits
cat told >&2
sed -i 's/20/22/' spec.yaml
hold somebody
echo 'reconverge, on the node itself' >/run/gpuready.lock
(sleep 2; kill $holder) &
run apply --yes
run remove --yes
echo; ls /etc/nccl.conf 2>&1 || true
"""
SPEC = 'all: {vars: {gpuready: {hardware: {gpus: none}, nccl: {extra: {NCCL_IB_TIMEOUT: "22"}}}}}\n'


@pytest.mark.promise
def test_apply_and_remove_here(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC, "utf-8")
    rows, errors = here(_PRIVATE, tmp_path)
    assert len(rows) == 10, f"{rows}\n{errors}"
    first, conf, again, seen, locked, patient, waited, removed, gone = rows[1:]
    results = [json.loads(row) for row in (first, again, locked, patient, waited, removed)]
    assert all(result["hosts"] for result in results), f"{results}\n{errors}"
    hosts = [result["hosts"]["@local"] for result in results]
    assert [host["outcome"] for host in hosts] == ["changed", "ok", "failed", *["changed"] * 3], errors
    assert "@local: wait for another run (somebody)" in errors
    assert "NCCL_IB_TIMEOUT=22" in conf
    status = json.loads(seen)["hosts"]["@local"]["status"]
    assert (status["lock"], status["step"], status["outcome"]) == ("somebody", "", "converged")
    assert status["record"]["components"] == {"nccl": "changed"} and status["record"]["partial"]
    assert "another gpuready run is changing this node (somebody)" in hosts[2]["error"]["message"]
    assert hosts[1]["execs"] == 1
    assert "No such file" in gone


_STRESS = """
mount -t tmpfs tmpfs /run
run() { echo; "$GPUREADY" verify -i @local -e hardware.gpus=1 --level stress --output json "$@" | tr -d '\\n'; }
run -e verify.torch=/usr/bin/python3
run
(exec 9<>/run/gpuready.lock; flock 9; echo somebody >/run/gpuready.lock; : >held; exec tail -f held >/dev/null 2>&1) &
holder=$!
until [ -e held ]; do sleep 0.05; done
run -e verify.torch=/usr/bin/python3
kill $holder
run -e hardware.gpus=none
"""


def test_no_gpu_here_is_loaded_and_the_reason_is_told(tmp_path: Path) -> None:
    rows, errors = here(_STRESS, tmp_path)
    results = [json.loads(row) for row in rows[1:]]
    asked, unnamed, locked, without = (result["hosts"]["@local"] for result in results)
    checks = {check["id"]: (check["status"], check["summary"]) for check in asked["checks"]}
    assert checks["stress.run"] == ("unknown", "no nvidia module is loaded"), errors
    assert checks["stress.compute"] == ("skip", "see stress.run") and asked["stress"] == []
    assert results[0]["exit_code"] == 3
    assert asked["execs"] == unnamed["execs"] + 1  # the probe, the active checks, and the load
    unloaded = {check["id"]: check["status"] for check in unnamed["checks"] if check["id"].startswith("stress.")}
    assert unloaded.pop("stress.run") == "unknown" and set(unloaded.values()) == {"skip"} and len(unloaded) == 4
    assert "another gpuready run is changing this node (somebody)" in locked["error"]["message"]
    assert "stress" not in locked
    assert without["notes"] == ["nothing was loaded at level stress: hardware.gpus: none"] and without["stress"] == []
