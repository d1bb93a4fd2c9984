"""Verdicts on limits of locked memory."""

from gpuready.model.state import NodeState
from tests.components.docker.test_docker_verdicts import NVIDIA, smoked
from tests.verdicts import SMOKE, UNREADABLE, Row, fails, held, holding, is_unknown, passes, skips, state, warns
from tests.verdicts import root_file as file

LOCK, UNLIMITED = {"memlock": "unlimited"}, "* - memlock unlimited\nroot - memlock unlimited\n"


def ulimits(default: str, *flags: str) -> NodeState:
    """A Docker whose daemon.json has these default-ulimits, started with these flags."""
    document = file(f'{{"default-ulimits": {default}}}')
    return state(docker=NVIDIA, files={"/etc/docker/daemon.json": document}, dockerd_command=("dockerd", *flags))


VERDICTS: list[Row] = [
    skips("memlock.config", "no RDMA port"),
    is_unknown("memlock.config", "could not be read", state(units=UNREADABLE), LOCK),
    fails("memlock.config", "memlock.login.root", spec=LOCK),
    passes("memlock.config", "as the spec says", holding(UNLIMITED, "/etc/security/limits.conf"), LOCK),
    skips("memlock.login", "no limit of locked memory"),
    passes("memlock.login", "may lock all memory", state(memlock="unlimited"), LOCK),
    warns("memlock.login", "8192 KiB", state(memlock="8192"), LOCK),
    warns("memlock.login", "an unknown number", spec=LOCK),
    skips("memlock.docker", "no limit of locked memory", state(docker=NVIDIA)),
    skips("memlock.docker", "no Docker", spec=LOCK),
    passes("memlock.docker", "inherit containerd's", state(docker=NVIDIA), LOCK),
    passes("memlock.docker", "no limit", ulimits('{"memlock": {"Name": "memlock", "Hard": -1, "Soft": -1}}'), LOCK),
    passes("memlock.docker", "no limit", ulimits('{"nofile": {"Name": "nofile", "Hard": 64, "Soft": 64}}'), LOCK),
    passes("memlock.docker", "no limit", ulimits("null", "--default-ulimit", "memlock=-1:-1", "--debug"), LOCK),
    fails("memlock.docker", "65536", ulimits('{"memlock": {"Name": "memlock", "Hard": 65536, "Soft": -1}}'), LOCK),
    fails("memlock.docker", "memlock 0 bytes", ulimits('{"memlock": {"Name": "memlock"}}'), LOCK),
    fails("memlock.docker", "memlock=1024", ulimits("{}", "--default-ulimit=memlock=1024"), LOCK),
    skips("memlock.container", "no limit of locked memory", spec=SMOKE),
    skips("memlock.container", "no image", spec=LOCK | {"verify": {"level": "smoke"}}),
    is_unknown("memlock.container", "no container reported", spec=LOCK | SMOKE),
    fails("memlock.container", "8192 KiB", smoked("gpus=0 memlock=8192 shm=1"), LOCK | SMOKE),
    passes("memlock.container", "all memory", smoked("gpus=0 memlock=unlimited"), LOCK | SMOKE),
]
test_verdict = held(VERDICTS)
