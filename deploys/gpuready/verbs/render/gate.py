"""Write what a scheduler needs to ask the gate (component ``gate``): a program for Slurm, a plugin for Kubernetes.

Slurm: prologs must not call Slurm's commands, and their exit code drains the node; a HealthCheckProgram has to drain it
by itself. One slurm.conf holds for nodes without GPUs, too, so the program passes where there is no gate.
Kubernetes: node-problem-detector starts a custom plugin in its own container, so nsenter takes it to the node. Exit 0
is OK, 1 a problem, anything else unknown; 80 bytes of its output become the condition's message.
Sources: slurm.conf(5), Slurm's guide to prologs and epilogs, slurmd's run_script_health_check; node-problem-detector's
docs/custom_plugin_monitor.md and pkg/custompluginmonitor.
"""

from typing import Any

from gpuready.base import resources
from gpuready.components.gate.component import LIMIT, SCRIPT

_CONDITION = "GPUNotReady"


def slurm() -> str:
    """Return the program (POSIX sh); the lines for slurm.conf are in its head."""
    return resources.script("verbs/render/slurm", verify=SCRIPT)


def node_problem_detector() -> dict[str, Any]:
    """Return the configuration of a custom plugin monitor that sets the condition GPUNotReady."""
    timeout = f"{LIMIT + 5}s"
    return {
        "plugin": "custom",
        "pluginConfig": {
            "invoke_interval": "60s",
            "timeout": timeout,
            "max_output_length": 80,
            "concurrency": 1,
            "enable_message_change_based_condition_update": True,
        },
        "source": "gpuready-verify",
        "metricsReporting": True,
        "conditions": [{"type": _CONDITION, "reason": "GPUsAreReady", "message": "gpuready-verify passes"}],
        "rules": [
            {
                "type": "permanent",
                "condition": _CONDITION,
                "reason": "GPUsAreNotReady",
                "path": "/usr/bin/nsenter",
                "args": ["--target=1", "--mount", "--pid", "--", SCRIPT, "--node-problem-detector"],
                "timeout": timeout,
            }
        ],
    }
