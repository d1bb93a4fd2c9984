"""Checks of locked memory as processes get it: in this session, from Docker, and in a new container.

Sources: ``ulimit -l``, in KiB or the word unlimited; dockerd's reference (default-ulimits, --default-ulimit).
"""

import re

from gpuready.components.docker.state import CONFIG, command_line, daemon_json
from gpuready.components.memlock.component import wanted
from gpuready.contract import need
from gpuready.contract.check import Check, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState


def _login(spec: NodeSpec, state: NodeState) -> Verdict:
    if not wanted(spec, state):
        return skip("no limit of locked memory is asked for (memlock)")
    if state.memlock == "unlimited":
        return passed("root may lock all memory in this session")
    # Not a failure: a session over an older connection keeps the limit from before apply.
    return warn(
        f"root may lock {state.memlock or 'an unknown number of'} KiB in this session",
        "log in again; if that does not help: UsePAM yes in sshd_config, pam_limits.so in /etc/pam.d/sshd and sudo",
    )


def _docker(spec: NodeSpec, state: NodeState) -> Verdict:
    if not wanted(spec, state):
        return skip("no limit of locked memory is asked for (memlock)")
    if state.docker is None:
        return skip("no Docker on this node, or it does not run")
    ulimits = daemon_json(state.files).get("default-ulimits")
    own = ulimits.get("memlock") if isinstance(ulimits, dict) else None
    if isinstance(own, dict) and {own.get("Hard", 0), own.get("Soft", 0)} != {-1}:
        return fail(f"{CONFIG} gives every container a limit of its own: memlock {own.get('Hard', 0)} bytes")
    started = " ".join(command_line(state.dockerd_command, state.unit("docker.service")))
    flag = re.search(r"--default-ulimit[= ](memlock=(?!-1(:-1)?( |$))\S*)", started)
    if flag:
        return fail(f"dockerd is started with --default-ulimit {flag[1]}")
    return passed("Docker sets no limit of its own: containers inherit containerd's")


def _container(spec: NodeSpec, state: NodeState) -> Verdict:
    if not wanted(spec, state):
        return skip("no limit of locked memory is asked for (memlock)")
    if not spec.verify.image:
        return skip("verify.image is not set, and gpuready pulls no image by itself")
    found = re.search(r"memlock=(\S+)", need.answer(state, "smoke", "no container reported its limit").out)
    if found is None:
        return unknown("no container reported its limit")
    if found[1] != "unlimited":
        return fail(f"a new container may lock {found[1]} KiB, not all")
    return passed("a new container may lock all memory")


CHECKS = (
    Check(
        "memlock.login",
        "logins may lock enough memory",
        Level.effective,
        "Logins have a limit of locked memory: limits.d was written after this session began, or PAM is not asked.",
        "ulimit -l; grep memlock -r /etc/security/limits.conf /etc/security/limits.d",
        "gpuready apply, then a new login",
        _login,
        component="memlock",
    ),
    Check(
        "memlock.docker",
        "no default-ulimits lowers the memlock limit",
        Level.config,
        "A default-ulimits of the user's takes precedence over what containers inherit.",
        "grep -A3 default-ulimits /etc/docker/daemon.json; tr '\\0' ' ' </proc/$(pidof dockerd)/cmdline",
        "take memlock out of default-ulimits, and restart Docker when it is idle: a reload does not take it over",
        _docker,
        component="memlock",
    ),
    Check(
        "memlock.container",
        "containers may lock enough memory",
        Level.smoke,
        "RDMA pins its buffers: with a limit ibv_reg_mr fails with ENOMEM and NCCL falls back to TCP.",
        "docker run --rm IMAGE sh -c 'ulimit -l'; grep 'Max locked' /proc/$(pidof containerd)/limits",
        "gpuready apply; Docker with a containerd of its own has to be restarted once",
        _container,
        component="memlock",
        active=True,
        after=("docker.smoke", "memlock.config", "memlock.docker"),
    ),
)
