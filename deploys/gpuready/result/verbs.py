"""The one list of verbs: what the help, the result document and the table of exit codes need to know of each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """A verb; the rest of it is in its folder in ``verbs/``.

    ``changes``: it changes nodes. A dry run is a plan. ``commands``: its own commands, if it has several, each with
    ``changes``. ``code_3``: what exit code 3 means after it; empty: it never ends with 3.
    """

    help: str
    changes: bool = False
    commands: tuple[tuple[str, bool], ...] = ()
    code_3: str = ""


#: In the order of --help. Each is a folder of verbs/, whose command is imported when the verb is used.
VERBS = {
    "init": Verb("Write an inventory to begin with."),
    "trust": Verb("Store the SSH host keys of the hosts."),
    "inventory": Verb("Show hosts, groups and specs, without connecting."),
    "plan": Verb("Show what apply would change."),
    "apply": Verb(
        "Change the nodes to match their spec, then verify.", changes=True, code_3="a check failed after the change"
    ),
    "verify": Verb("Check every node against its spec.", code_3="a difference, or a failed or unknown check"),
    "status": Verb("Show when each node was last converged, by which release and spec."),
    "remove": Verb("Restore what was there before gpuready.", changes=True),
    "probe": Verb("Print the state of the nodes as JSON."),
    "explain": Verb(
        "Explain an error message, a check or a component.", code_3="a check of that message failed or is unknown"
    ),
    "fabric": Verb("Test RDMA or TCP between the hosts.", code_3="a test failed or is unknown"),
    "rdma": Verb(
        "Move an RDMA device into a container, or back.",
        commands=(("attach", True), ("detach", True), ("list", False)),
    ),
    "nccl": Verb("Print NCCL settings and torchrun lines.", code_3="a host has no valid settings"),
    "compat": Verb(
        "Predict whether an image runs on a host.",
        code_3="the image will not run, or that is unknown, or a traced container is not as predicted",
    ),
    "docker-args": Verb("Print docker run options for each host.", code_3="containers get no GPUs"),
    "render": Verb("Print configuration for monitoring, Kubernetes, Slurm or a cloud."),
    "example": Verb("Print a training script for several nodes, or its launcher."),
    "report": Verb("Show a result in any format, what changed between two, or shards as one."),
    "history": Verb("Show since when hosts and checks are as they are."),
    "completion": Verb("Print a shell completion script."),
    "schema": Verb("Print the JSON Schema of the inventory or of the result."),
}
#: All commands, as the result document names them, and which of them change nodes.
COMMANDS = {name: verb.changes for name, verb in VERBS.items()} | {
    f"{name} {word}": changes for name, verb in VERBS.items() for word, changes in verb.commands
}
