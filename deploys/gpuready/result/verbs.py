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


#: Verbs by what they are for, in the order of --help. Each is a folder of verbs/, whose command is imported when the
#: verb is used.
GROUPS = {
    "Start": {
        "init": Verb("Write an inventory to begin with."),
        "trust": Verb("Store the SSH host keys of the hosts."),
        "inventory": Verb("Show hosts, groups and specs, without connecting."),
    },
    "Change": {
        "plan": Verb("Show what apply would change."),
        "apply": Verb(
            "Change the nodes to match their spec, then verify.",
            changes=True,
            code_3="a check failed after the change (not: is unknown)",
        ),
        "remove": Verb("Restore what was there before gpuready.", changes=True),
        "rdma": Verb(
            "Move an RDMA device into a container, or back.",
            commands=(("attach", True), ("detach", True), ("list", False)),
        ),
    },
    "Check": {
        "verify": Verb("Check every node against its spec.", code_3="a difference, or a failed or unknown check"),
        "fabric": Verb("Test RDMA or TCP between the hosts.", code_3="a test failed or is unknown"),
        "status": Verb("Show when each node was last converged, by which release and spec."),
        "history": Verb("Show since when checks fail and nodes drift."),
    },
    "Ask": {
        "explain": Verb(
            "Explain an error message, a check or a component.", code_3="a check of that message failed or is unknown"
        ),
        "compat": Verb(
            "Predict whether an image runs on a host.",
            code_3="the image will not run, or no prediction is possible, or a trace differs from the prediction",
        ),
        "nccl": Verb("Show the NCCL settings of each host.", code_3="a host has no valid settings"),
        "report": Verb("Show a result in any format, compare two, or join several."),
    },
    "Print": {
        "render": Verb(
            "Print configuration for Docker, Kubernetes, Slurm, systemd, monitoring or a cloud.",
            commands=(("docker", False),),
            code_3="containers get no GPUs",
        ),
        "launch": Verb(
            "Print the commands or the job that start a training on several nodes.",
            commands=(("hosts", False),),
            code_3="a host has no torchrun line",
        ),
        "bundle": Verb("Fetch what nodes without internet access need, to a folder."),
        "example": Verb("Print a training script for several nodes."),
        "record": Verb("Print the state of the nodes as JSON, for --state."),
        "schema": Verb("Print the JSON Schema of the inventory or of the result."),
        "completion": Verb("Print a shell completion script."),
    },
}
VERBS = {name: verb for group in GROUPS.values() for name, verb in group.items()}
#: All commands, as the result document names them, and which of them change nodes.
COMMANDS = {name: verb.changes for name, verb in VERBS.items()} | {
    f"{name} {word}": changes for name, verb in VERBS.items() for word, changes in verb.commands
}
