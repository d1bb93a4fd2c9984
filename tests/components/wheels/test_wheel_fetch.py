"""A wheel that a node fetches: the script with the real curl, and a web server on loopback."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpuready.components.wheels.component import FetchWheel
from tests.components.wheels.mirror import Mirror
from tests.components.wheels.wheelfiles import wheel
from tests.lab import scale

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the node's scripts run as root")
MIB = 1 << 20
HEADER = 'X-Token: "s3cret\\" and 100%s'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("wheel"), extra=os.urandom(3 * MIB))


@dataclass
class Node:
    """A directory for wheels, an environment, and the server."""

    place: Path
    built: Path
    mirror: Mirror
    data: bytes = field(init=False)
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        self.data = self.built.read_bytes()
        self.sha256 = hashlib.sha256(self.data).hexdigest()
        self.mirror.files["/" + self.built.name] = self.data
        (self.place / "env/bin").mkdir(parents=True)
        (self.place / "env/pyvenv.cfg").touch()
        (self.place / "env/bin/python").symlink_to("/usr/bin/python3")

    @property
    def file(self) -> Path:
        return self.place / "wheels" / self.sha256 / self.built.name

    @property
    def part(self) -> Path:
        return self.file.with_name(f"{self.file.name}.part")

    def began(self, data: bytes) -> None:
        """An earlier fetch was cut off."""
        self.part.parent.mkdir(parents=True)
        self.part.write_bytes(data)

    def fetch(self, header: str = "", limit: int = 600, url: str = "") -> tuple[int, str]:
        """The exit code, and the last line on stderr."""
        script = self.place / "script"
        folder, env = str(self.place / "wheels"), str(self.place / "env")
        url = url or f"{self.mirror.url}/{self.built.name}"
        args = FetchWheel(self.built.name, self.sha256, (env,), (self.sha256,), folder, url, header, limit)
        script.write_text(args.render(), "utf-8")
        environ = {**os.environ, "CURL_HOME": "/nonexistent", "no_proxy": "*"}
        done = subprocess.run(
            ["sh", script], capture_output=True, text=True, check=False, env=environ, timeout=scale.seconds(120)
        )
        assert done.stdout == ""
        return done.returncode, done.stderr.strip().rpartition("\n")[2]

    def arrived(self) -> bool:
        """It is there, whole, and nothing else is."""
        there = sorted(path for path in (self.place / "wheels").rglob("*") if path.is_file())
        return (
            there == [self.file] and self.file.read_bytes() == self.data and self.file.stat().st_mode & 0o777 == 0o644
        )


@pytest.fixture
def node(built: Path) -> Iterator[Node]:
    with tempfile.TemporaryDirectory() as place:  # below /tmp, where nobody may read the wheel
        Path(place).chmod(0o755)
        mirror = Mirror()
        yield Node(Path(place), built, mirror)
        mirror.stop()


def test_a_wheel_arrives_and_its_header_is_in_no_argument_and_no_file(node: Node) -> None:
    seen: list[str] = []

    def look() -> None:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                argv, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if b"curl" in argv or b"s3cret" in argv + environ:
                seen.append((argv + environ).decode(errors="replace"))
        seen.extend(path.read_text("utf-8", "replace") for path in node.place.rglob("*") if path.is_file())

    node.mirror.look = look
    assert node.fetch(HEADER) == (0, "")
    assert node.arrived() and node.mirror.sent == [len(node.data)]
    assert node.mirror.asked[0]["X-Token"] == HEADER.partition(" ")[2]
    assert seen and not [text for text in seen if "s3cret" in text]
    assert not (node.place / "script").exists()
    node.mirror.asked.clear()
    assert node.fetch() == (0, "")
    assert node.arrived() and not node.mirror.asked and (node.place / "script").exists()


@pytest.mark.fault("cut-wheel")
def test_what_the_server_cuts_is_resumed_and_nothing_is_sent_twice(node: Node) -> None:
    node.mirror.cuts = [MIB, MIB]
    assert node.fetch() == (0, "")
    assert node.arrived() and node.mirror.sent == [MIB, MIB, len(node.data) - 2 * MIB]
    assert [asked.get("Range") for asked in node.mirror.asked] == [None, f"bytes={MIB}-", f"bytes={2 * MIB}-"]


def test_a_whole_file_of_an_earlier_run_is_not_fetched_again(node: Node) -> None:
    node.began(node.data)
    assert node.fetch() == (0, "")
    assert node.arrived() and node.mirror.sent == []


@pytest.mark.fault("cut-wheel")
@pytest.mark.parametrize("way", ["no ranges", "changed", "shorter"])
def test_what_does_not_continue_starts_again_once(node: Node, way: str) -> None:
    node.mirror.ranges = way != "no ranges"
    node.began(bytes(MIB if way != "shorter" else len(node.data) + 5))
    assert node.fetch() == (0, "")
    assert node.arrived() and len(node.mirror.asked) == 2 and node.mirror.sent[-1] == len(node.data)


def test_a_server_without_ranges_that_cuts_is_given_up(node: Node) -> None:
    node.mirror.ranges = False
    node.mirror.cuts = [MIB] * 9
    rc, why = node.fetch()
    assert rc == 1 and "the server does not resume, and the connection broke" in why
    assert len(node.mirror.asked) == 4


@pytest.mark.fault("wrong-wheel")
@pytest.mark.parametrize("cut", [False, True])
def test_another_file_is_refused_with_both_hashes_and_not_kept(node: Node, cut: bool) -> None:
    other = node.data[:-1] + b"x"
    node.mirror.files["/" + node.built.name] = other
    node.mirror.cuts = [MIB] if cut else []
    rc, why = node.fetch()
    assert rc == 1 and node.sha256 in why and hashlib.sha256(other).hexdigest() in why
    assert [path for path in (node.place / "wheels").rglob("*") if path.is_file()] == []
    assert len(node.mirror.asked) == (3 if cut else 1)


@pytest.mark.parametrize(("header", "works"), [("", True), (HEADER, False)])
def test_a_header_is_for_its_server_alone(node: Node, header: str, works: bool) -> None:
    front = Mirror()
    front.redirects["/" + node.built.name] = f"{node.mirror.url}/{node.built.name}"
    rc, why = node.fetch(header, url=f"{front.url}/{node.built.name}")
    front.stop()
    assert (rc == 0, node.arrived(), len(node.mirror.asked)) == (works, works, int(works)), why
    assert works or "redirects, and the header is for that server alone" in why


def test_a_missing_file_is_told_at_once_and_a_busy_server_asked_again(node: Node) -> None:
    node.mirror.errors = [404]
    rc, why = node.fetch()
    assert rc == 1 and why.startswith("cannot fetch http://127.") and "404" in why and len(node.mirror.asked) == 1
    node.mirror.errors = [503]
    assert node.fetch() == (0, "")
    assert node.arrived()
    node.file.unlink()
    node.mirror.cuts = [MIB, 0, 0, 0]
    node.mirror.asked.clear()
    rc, why = node.fetch()
    assert (rc, len(node.mirror.asked), node.part.stat().st_size) == (1, 4, MIB), why
    node.mirror.errors = [403]
    assert node.fetch()[0] == 1 and node.part.stat().st_size == MIB
    rc, why = node.fetch(limit=0)
    assert rc == 1 and f"did not arrive within 0 s: {MIB} bytes did; run again" in why


def test_a_file_that_is_no_wheel_is_told_before_pip_runs(node: Node) -> None:
    node.mirror.files["/" + node.built.name] = b"no zip"
    node.sha256 = hashlib.sha256(b"no zip").hexdigest()
    rc, why = node.fetch()
    assert rc == 1 and "is not a readable wheel" in why and not node.file.exists()


def test_a_node_without_curl_is_told(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    render = FetchWheel.render
    monkeypatch.setattr(
        FetchWheel, "render", lambda self: render(self).replace("PATH=/usr/local/sbin:", "PATH=/none #")
    )
    assert node.fetch() == (1, "there is no curl on this node")
