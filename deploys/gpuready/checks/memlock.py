"""Locked memory as it comes out at the end: in this very session, and in a new container.

Source: ``ulimit -l``, in KiB or the word unlimited.
"""

from __future__ import annotations

import re

from gpuready.checks.base import Check, Level, Verdict, fail, passed, skip, unknown, warn
from gpuready.components.memlock import wanted
from gpuready.spec.model import NodeSpec
from gpuready.state.model import NodeState


def _login(spec: NodeSpec, state: NodeState) -> Verdict:
    if not wanted(spec, state):
        return skip("no limit of locked memory is asked for (memlock)")
    if state.memlock == "unlimited":
        return passed("root may lock all memory in this session")
    # A session over a connection that was there before apply has the limit of then: no failure.
    return warn(
        f"root may lock {state.memlock or 'an unknown number of'} KiB in this session",
        "log in again; if that does not help: UsePAM yes in sshd_config, pam_limits.so in /etc/pam.d/sshd and sudo",
    )


def _container(spec: NodeSpec, state: NodeState) -> Verdict:
    if not wanted(spec, state):
        return skip("no limit of locked memory is asked for (memlock)")
    if not spec.verify.image:
        return skip("no image is named (verify.image), and none is pulled unasked")
    found = re.search(r"memlock=(\S+)", (state.active.get("smoke") or {}).get("out", ""))
    if found is None:
        return unknown("no container told its limit")
    if found[1] != "unlimited":
        return fail(f"a new container may lock {found[1]} KiB, not all")
    return passed("a new container may lock all memory")


CHECKS = (
    Check(
        "memlock.login",
        Level.effective,
        "Logins have a limit of locked memory: limits.d was written after this session began, or PAM is not asked.",
        "ulimit -l; grep memlock -r /etc/security/limits.conf /etc/security/limits.d",
        "gpuready apply, then a new login",
        _login,
    ),
    Check(
        "memlock.container",
        Level.smoke,
        "RDMA pins its buffers: with a limit ibv_reg_mr fails with ENOMEM and NCCL falls back to TCP.",
        "docker run --rm IMAGE sh -c 'ulimit -l'; grep 'Max locked' /proc/$(pidof containerd)/limits",
        "gpuready apply; a default-ulimits of your own in daemon.json takes precedence",
        _container,
        active=True,
        after=("docker.smoke", "memlock.config"),
    ),
)
