"""A node whose exporter is asked for in another place: a change that disturbs (recreate, because systemd is reloaded).

With it, the tests of Slurm and of Kubernetes show what is drained, what waits, and who brings the node back.
"""

from tests.system.harness import Result
from tests.system.host import Host

PLACES = ("/var/lib/one", "/var/lib/two")


class Disturbed(Host):
    """A machine with the exporter, and runs that ask for its files in the other place."""

    place = PLACES[1]

    def first(self) -> None:
        """Let the exporter write to the first place."""
        self.run(f"mkdir -p {' '.join(PLACES)}")
        self.done(self.ask())

    @property
    def other(self) -> str:
        return PLACES[1 - PLACES.index(self.place)]

    def spec_of(self, **maintenance: object) -> dict[str, object]:
        exporter = {"rdma_exporter": "textfile", "textfile_directory": self.other}
        return {"monitoring": exporter, "maintenance": maintenance}

    def ask(self, *words: str, env: dict[str, str] | None = None, **maintenance: object) -> Result:
        spec = self.spec_of(**maintenance)
        return self.call("apply", "--only", "monitoring", *words, code=None, env=env or {}, **spec)

    def waited(self, result: Result, *words: str) -> str:
        """The run waited, and says for what."""
        assert result.code == 7, result.explain()
        reason = str(result.component("monitoring")["pending_reason"])
        assert all(word in reason for word in words), reason
        self.given_back()
        return reason

    def done(self, result: Result) -> None:
        """The run did it, and the node is back."""
        assert (result.code, result.changed()) == (0, {"monitoring"}), result.explain()
        self.place = self.other
        self.given_back()

    def given_back(self) -> None:
        """Check that nothing says that gpuready drained the node."""
