"""The RDMA exporter's script over sysfs trees of several drivers, read back by Prometheus' own parser.

Errors are real ones: some files of /sys and /proc answer a read with EINVAL, EOPNOTSUPP or EIO.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gpuready.base import resources
from tests.lab import scale
from tests.lab.processes import matching, wait_gone

IRDMA = (Path(__file__).parents[2] / "data" / "rdma" / "irdma-hw_counters.txt").read_text("ascii").split()
#: As the kernels have them: drivers/infiniband/sw/rxe, hw/mlx5, hw/bnxt_re, core/sysfs.c.
RXE = "sent_pkts rcvd_pkts duplicate_request out_of_seq_request rcvd_rnr_err send_rnr_err rcvd_seq_err ack_deferred"
RXE += " retry_exceeded_err retry_rnr_exceeded_err completer_retry_err send_err link_downed rdma_sends rdma_recvs"
MLX5 = "np_cnp_sent rp_cnp_handled np_ecn_marked_roce_packets out_of_sequence packet_seq_err local_ack_timeout_err"
IB = "symbol_error link_downed port_rcv_data port_xmit_data port_rcv_packets VL15_dropped port_xmit_wait"
AWKS = ["awk", *(f"{shell} awk" for shell in ["busybox"] if shutil.which(shell))]


class Tree:
    """A sysfs below a directory of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "class" / "infiniband").mkdir(parents=True)

    def write(self, path: str, text: str) -> Path:
        """A file, its directories made."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", "ascii")
        return file

    def device(self, name: str, port: int = 1, *, kind: str = "hw_counters", names: str = "", **files: str) -> Path:
        """A device's port with counters that count 1, 2, 3 and so on."""
        base = f"class/infiniband/{name}"
        self.write(f"{base}/node_type", "1: CA")
        for n, counter in enumerate(names.split(), 1):
            self.write(f"{base}/ports/{port}/{kind}/{counter}", str(n))
        for path, text in files.items():
            self.write(f"{base}/ports/{port}/{path}", text)
        return self.root / base / "ports" / str(port)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "sys")


def said(tree: Tree, *args: str, awk: str = "awk", locks: Path | None = None, limit: int = 30) -> str:
    """What the script prints; a device that hangs is left after ``limit`` seconds."""
    script = tree.root.parent / "exporter"
    text = resources.script("monitoring/rdma-exporter", sysfs=str(tree.root), limit=limit)
    new = script.with_suffix(".new")
    new.write_text(re.sub(r"\bawk (?=['-])", f"{awk} ", text), "ascii")
    new.replace(script)  # a shell may still be reading the old one
    run = ["sh", str(script), *args]
    env = {**os.environ, **({"RUNTIME_DIRECTORY": str(locks)} if locks else {})}
    done = subprocess.run(run, capture_output=True, check=False, timeout=scale.seconds(20), env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode("ascii")


def samples(text: str) -> Iterator[Sample]:
    """Every sample, as the parser of prometheus_client reads it; each family is there once."""
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    for family in families:
        assert family.documentation and family.type in ("counter", "gauge"), family
        assert (family.type == "counter") == all(sample.name.endswith("_total") for sample in family.samples)
        yield from family.samples


def values(text: str) -> dict[str, float]:
    """``name{device/port}`` -> value."""
    found = {}
    for sample in samples(text):
        place = "/".join(sample.labels[key] for key in ("device", "port") if key in sample.labels)
        assert f"{sample.name}{{{place}}}" not in found
        found[f"{sample.name}{{{place}}}"] = sample.value
    return found


@pytest.mark.parametrize("awk", AWKS)
def test_every_counter_of_irdma(tree: Tree, awk: str) -> None:
    tree.device("irdma0", names=" ".join(IRDMA), link_layer="Ethernet", state="4: ACTIVE", rate="25 Gb/sec (1X EDR)")
    found = values(said(tree, awk=awk))
    assert len(IRDMA) == 47 and "lifespan" in IRDMA
    for n, name in enumerate(IRDMA, 1):
        if name != "lifespan":
            assert [key for key, value in found.items() if value == n and key.startswith("rdma_hw_")], name
    assert len([key for key in found if key.startswith("rdma_hw_")]) == 46
    assert found["rdma_port_rate_bytes_per_second{irdma0/1}"] == 25e9 / 8
    assert found["rdma_port_state_id{irdma0/1}"] == 4
    assert found["rdma_exporter_devices{}"] == 1
    assert found["rdma_exporter_read_errors{irdma0}"] == 0


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize(
    ("file", "metric"),
    [
        ("iwInRdmaWrites", "rdma_hw_iw_in_rdma_writes_total"),
        ("InRdmaWrites", "rdma_hw_in_rdma_writes_total"),
        ("RxECNMrkd", "rdma_hw_rx_ecn_mrkd_total"),
        ("RxUDP", "rdma_hw_rx_udp_total"),
        ("cnpHandled", "rdma_hw_cnp_handled_total"),
        ("ip4OutOctets", "rdma_hw_ip4_out_bytes_total"),
        ("ip6InMcastPkts", "rdma_hw_ip6_in_mcast_pkts_total"),
        ("np_cnp_sent", "rdma_hw_np_cnp_sent_total"),
        ("rx_roce_good_bytes", "rdma_hw_rx_roce_good_bytes_total"),
        ("a.new-name", "rdma_hw_a_new_name_total"),
        ("active_qps", "rdma_hw_active_qps"),
        ("watermark_qps", "rdma_hw_watermark_qps"),
    ],
)
def test_names(tree: Tree, awk: str, file: str, metric: str) -> None:
    tree.device("d0", names=file)
    assert values(said(tree, awk=awk))[f"{metric}{{d0/1}}"] == 1


def test_counters_of_a_port_have_their_units(tree: Tree) -> None:
    port = tree.device("mlx5_0", kind="counters", names=IB, link_layer="InfiniBand", rate="400 Gb/sec (4X NDR)")
    (port / "counters" / "port_xmit_data").write_text("4611686018427387904\n", "ascii")
    (port / "counters" / "VL15_dropped").write_text("N/A (no PMA)\n", "ascii")
    found = values(said(tree))
    assert found["rdma_port_rcv_bytes_total{mlx5_0/1}"] == 3 * 4
    assert found["rdma_port_xmit_bytes_total{mlx5_0/1}"] == 2.0**64
    assert found["rdma_symbol_error_total{mlx5_0/1}"] == 1
    assert found["rdma_port_xmit_wait_total{mlx5_0/1}"] == 7
    assert not [key for key in found if "vl15" in key or "_data" in key]
    assert found["rdma_exporter_read_errors{mlx5_0}"] == 0


def test_several_devices_and_ports_share_families(tree: Tree) -> None:
    tree.device("rxe0", names=RXE)
    tree.device("mlx5_0", 1, names=MLX5)
    tree.device("mlx5_0", 2, names=MLX5)
    tree.write("class/infiniband/efa_0/hw_counters/submitted_cmds", "9")
    found = values(said(tree))
    assert found["rdma_hw_sent_pkts_total{rxe0/1}"] == 1
    assert found["rdma_hw_out_of_sequence_total{mlx5_0/2}"] == 4
    assert found["rdma_device_hw_submitted_cmds_total{efa_0}"] == 9
    assert found["rdma_exporter_devices{}"] == 3


def test_what_a_port_is(tree: Tree) -> None:
    tree.device("mlx5_bond_0", link_layer="Ethernet")
    tree.write("class/infiniband/mlx5_bond_0/fw_ver", '28.39 "x"')
    tree.write("class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "bond0")
    tree.device("rxe0", link_layer="Ethernet")
    tree.write("class/infiniband/rxe0/parent", "eth1")
    info = {s.labels["device"]: s.labels for s in samples(said(tree)) if s.name == "rdma_port_info"}
    assert info["mlx5_bond_0"]["netdev"] == "bond0" and info["mlx5_bond_0"]["fw_ver"] == "28.39 _x_"
    assert info["rxe0"] == {"device": "rxe0", "port": "1", "fw_ver": "", "container": ""} | {
        "link_layer": "Ethernet", "netdev": "eth1", "node_type": "CA"
    }  # fmt: skip


def test_an_unreadable_counter_affects_no_other(tree: Tree) -> None:
    counters = tree.device("d0", names="good") / "hw_counters"
    (counters / "unsupported").symlink_to("/sys/class/net/lo/speed")  # EINVAL
    (counters / "unsupported_too").symlink_to("/sys/class/net/lo/phys_port_id")  # EOPNOTSUPP
    (counters / "went").symlink_to("/nowhere")  # ENOENT
    (counters / "broken").symlink_to("/proc/self/mem")  # EIO
    (counters / "text").write_text("many\n", "ascii")
    tree.device("d1", names="good")
    found = values(said(tree))
    assert found["rdma_hw_good_total{d0/1}"] == found["rdma_hw_good_total{d1/1}"] == 1
    assert found["rdma_exporter_read_errors{d0}"] == 2
    assert found["rdma_exporter_read_errors{d1}"] == 0
    assert not [key for key in found if "unsupported" in key or "went" in key or "broken" in key]


def short() -> int:
    """Seconds in which all but a device that hangs is read."""
    return round(scale.seconds(4))


@pytest.fixture
def stuck(tree: Tree) -> Path:
    """A counter of d0 that hangs until somebody writes into it; d1 has none."""
    tree.device("d1", names="good")
    os.mkfifo(counter := tree.device("d0", names="good") / "hw_counters/stuck")
    return counter


def test_a_device_that_hangs_affects_no_other(tree: Tree, stuck: Path) -> None:
    found = values(said(tree, limit=short()))
    stuck.open("w").close()  # lets the reader that was left behind go
    assert found["rdma_hw_good_total{d1/1}"] == 1
    assert found["rdma_exporter_read_errors{d0}"] == 1
    assert found["rdma_exporter_devices{}"] == 1
    assert not [key for key in found if key.startswith("rdma_hw_good") and "d0" in key]


def test_a_device_that_hangs_in_a_container_affects_no_other(tree: Tree, stuck: Path) -> None:
    told = said(tree, "inside", "web", "0123456789ab", limit=short())
    stuck.open("w").close()
    assert "@ d1 web 0123456789ab\n" in told and "hw_counters/good:1\n" in told
    assert "d0" not in told


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    """What systemd gives to the script as its RuntimeDirectory."""
    (made := tmp_path / "locks").mkdir()
    return made


def test_a_device_that_hangs_for_good_gets_no_second_reader(tree: Tree, stuck: Path, locks: Path) -> None:
    """A run each 15 seconds would leave thousands a day that nothing can end."""
    first = values(said(tree, locks=locks, limit=short()))
    before = readers(stuck)
    assert (first["rdma_hw_good_total{d1/1}"], len(before)) == (1, 1)
    second = values(said(tree, locks=locks, limit=short()))
    assert (second["rdma_hw_good_total{d1/1}"], second["rdma_exporter_read_errors{d0}"]) == (1, 1)
    assert readers(stuck) == before
    stuck.open("w").close()
    wait_gone(before, 10)
    stuck.unlink()
    assert values(said(tree, locks=locks))["rdma_hw_good_total{d0/1}"] == 1


def readers(file: Path) -> list[int]:
    """The processes that were told to read it."""
    return matching(lambda argv: argv[:1] == ["grep"] and str(file) in argv)


def test_without_a_device_there_is_an_answer(tree: Tree) -> None:
    assert values(said(tree)) == {"rdma_exporter_devices{}": 0}
    shutil.rmtree(tree.root)
    assert values(said(tree)) == {"rdma_exporter_devices{}": 0}


def test_textfile(tree: Tree, tmp_path: Path) -> None:
    tree.device("d0", names="good")
    (file := tmp_path / "textfile/rdma.prom").parent.mkdir()
    file.write_text("old 1\n", "ascii")
    with file.open("rb") as reader:
        assert said(tree, "textfile", str(file.parent)) == ""
        assert reader.read() == b"old 1\n"  # replaced, not written over
    assert list(file.parent.iterdir()) == [file]
    assert file.stat().st_mode & 0o777 == 0o644
    assert values(file.read_text("ascii"))["rdma_hw_good_total{d0/1}"] == 1


@pytest.mark.fault("textfile-link")
@pytest.mark.parametrize("name", ["rdma.prom.new", "rdma.prom"])
@pytest.mark.parametrize("kind", ["file", "directory", "nothing"])
def test_textfile_follows_no_link(tree: Tree, tmp_path: Path, name: str, kind: str) -> None:
    """Who may write into the directory may leave a link there; the script is root's."""
    for path in (folder := tmp_path / "textfile", other := tmp_path / "other"):
        path.mkdir()
    (other / "file").write_text("theirs\n", "ascii")
    (folder / name).symlink_to({"file": other / "file", "directory": other, "nothing": other / "new"}[kind])
    assert said(tree, "textfile", str(folder)) == ""
    assert [(path.name, path.read_text("ascii")) for path in other.iterdir()] == [("file", "theirs\n")]
    assert [(path.name, path.is_symlink()) for path in folder.iterdir()] == [("rdma.prom", False)]
    assert values((folder / "rdma.prom").read_text("ascii")) == {"rdma_exporter_devices{}": 0}


def test_nothing_is_left_in_tmp(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.device("d0", names="good")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    assert "good" in said(tree)
    assert not list((tmp_path / "tmp").iterdir())
