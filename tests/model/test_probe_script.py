"""The probe itself, run on this very machine: it reads only, leaves nothing behind, and outlives what hangs."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpuready.base import resources
from gpuready.base.records import MOST_OUTPUT, Records
from gpuready.base.records import unmarked as records
from gpuready.gpu.bus import FABRIC_MANAGER
from gpuready.gpu.imex import IMEX
from gpuready.model import probe
from gpuready.model.parse import parse
from gpuready.model.smi import lean
from gpuready.model.state import Dma, NodeState, Unknown
from tests.lab import scale
from tests.model.probe_answers import recorded

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the probe reads /proc")
SHELLS = [shell for shell in ("dash", "bash", "sh") if shutil.which(shell)]
MARK = "GPUREADY_TEST_MARK"
Run = Callable[..., list[str]]


def command(shell: str) -> list[str]:
    """How the transport starts a script: it comes by stdin."""
    return [shell, "-c", 'eval "$(cat)"']


def left_behind(mark: str) -> list[str]:
    """Processes that still live and were started with ``mark`` in their environment."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = (directory / "environ").read_bytes()
            status = (directory / "status").read_text()
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environment.split(b"\0") and "State:\tZ" not in status:
            found.append(" ".join(status.splitlines()[:3]))
    return found


#: The directories of these probes; others may run on this machine, too.
NAMED = f"gpuready-probe-{uuid.uuid4().hex}."


def named(script: str) -> str:
    """The script, with a directory of that name."""
    assert script.count("gpuready-probe.") > 0
    return script.replace("gpuready-probe.", NAMED)


def leftover_directories() -> set[str]:
    return {str(p) for base in ("/run", "/tmp") for p in Path(base).glob(f"{NAMED}*")}


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs a probe script and returns its lines after ``begin``; afterwards nothing of it may be left."""
    marks = []

    def _run(script: str, shell: str = "dash", timeout: float = 30, **options: object) -> list[str]:
        mark = uuid.uuid4().hex
        marks.append(mark)
        environment = {"HOME": "/", "PATH": os.environ["PATH"], MARK: mark, "LD_LIBRARY_PATH": "/nowhere"}
        done = subprocess.run(
            command(shell if shell in SHELLS else "sh"),
            input=script.encode("ascii"),
            capture_output=True,
            timeout=scale.seconds(timeout),
            check=False,
            env=environment,
            **options,  # type: ignore[call-overload]
        )
        assert done.stderr == b""
        return records(done.stdout.decode("ascii"))

    yield _run
    limit = scale.Limit(2)  # what was killed needs a moment to be gone
    while any(left_behind(mark) for mark in marks) and not limit.over():
        time.sleep(0.05)
    assert [left for mark in marks for left in left_behind(mark)] == []


Node = Callable[..., str]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """The probe's script for a node whose nvidia-smi (or another command) is the given program."""

    def _node(program: str, name: str = "nvidia-smi", limit: int = 0) -> str:
        fake = tmp_path / name
        fake.write_text(program)
        fake.chmod(0o755)
        (tmp_path / "version").write_text(recorded("proc-driver-nvidia-version.txt"))
        script = probe.render(limit or round(scale.seconds(probe.LIMIT)))
        for old, new in (
            ("/proc/driver/nvidia/version", str(tmp_path / "version")),
            ("PATH=/usr/local/sbin", f"PATH={tmp_path}:/usr/local/sbin"),
        ):
            assert old in script
            script = script.replace(old, new)
        return script

    return _node


def test_the_same_bytes_for_all_and_all_of_them_ascii() -> None:
    first = probe.script()
    probe.script.cache_clear()
    assert probe.script() == first
    assert first.isascii()
    assert probe.script.__wrapped__.__code__.co_argcount == 0, "nothing of a spec or a host enters it"


@pytest.mark.parametrize("shell", SHELLS)
def test_it_runs_here_and_its_answer_is_a_state(run: Run, shell: str) -> None:
    state = parse(run(named(probe.script()), shell))
    assert state.kernel == os.uname().release
    assert state.machine == os.uname().machine
    assert state.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert abs(state.clock - time.time()) < 60
    release = Path("/etc/os-release")
    if release.is_file():
        assert state.files["/etc/os-release"].data == release.read_bytes()
        assert state.os.id
    if shutil.which("dpkg-query"):
        assert isinstance(state.packages, dict)
    assert NodeState.model_validate(json.loads(json.dumps(state.model_dump()))) == state
    assert leftover_directories() == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_it_runs_without_root(run: Run) -> None:
    state = parse(run(probe.script(), user=65534, group=65534, extra_groups=[]))
    assert state.kernel == os.uname().release


def listing() -> dict[str, tuple[int, ...]]:
    found = {}
    for base, _, names in os.walk("/etc"):
        for name in [".", *names]:
            try:
                stat = os.lstat(Path(base, name))
            except OSError:
                continue
            found[f"{base}/{name}"] = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_mode, stat.st_size, stat.st_ino)
    return found


def test_it_changes_no_file_in_etc(run: Run) -> None:
    for _ in range(4):  # another process may write there, too, but not each time
        before = listing()
        run(probe.script())
        changed = {p for p, stat in listing().items() if before.get(p) != stat} | (set(before) - set(listing()))
        if not changed:
            return
    raise AssertionError(f"it changed {sorted(changed)[:5]}")


READ_ONLY = "mount --make-rprivate / && mount -t tmpfs tmpfs /run && for m in / /etc /var /tmp /usr /root; do "
READ_ONLY += 'mount --bind "$m" "$m" && mount -o remount,bind,ro "$m" || exit 9; done; '


def test_it_needs_no_place_to_write_but_its_own_in_run() -> None:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("needs root and unshare(1)")
    shell = "rm -rf /run/mount; exec 4>&1; sh -c 'eval \"$(cat)\"'; echo left: $(find /run -mindepth 1) >&4"
    if subprocess.run(["unshare", "-m", "sh", "-c", READ_ONLY + "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", READ_ONLY + shell],
        input=probe.script().encode(),
        capture_output=True,
        check=False,
    )
    *lines, left = records(done.stdout.decode("ascii"))
    assert left == "left:"
    assert parse(lines).kernel == os.uname().release


def test_with_no_place_at_all_it_says_so(run: Run) -> None:
    script = probe.script().replace("PATH=/usr/local/sbin", "mktemp() { return 1; }; PATH=/usr/local/sbin")
    with pytest.raises(Exception, match="no room"):
        parse(run(script))


def test_it_loads_no_module_and_calls_nvidia_smi_only_where_the_module_is_loaded() -> None:
    words = probe.script().replace("=", " ").split()
    assert not {"rdma", "modprobe", "ibv_devinfo", "ibstat", "lspci", "insmod"} & set(words)
    (line,) = [line for line in probe.script().splitlines() if "nvidia-smi -q" in line]
    assert line.startswith("[ -e /proc/driver/nvidia/version ] && has nvidia-smi && bg smi ")


def test_it_says_which_driver_holds_a_device(run: Run, tmp_path: Path) -> None:
    """uevent as the kernel writes it: DRIVER first, and missing where no driver holds the device."""
    for address, device, uevent in (
        ("0000:1b:00.0", "2330", "DRIVER=nvidia\nPCI_CLASS=30200\n"),
        ("0000:1c:00.0", "2330", "PCI_CLASS=30200\n"),
        ("0000:1d:00.0", "2330", "DRIVER=vfio-pci\nPCI_CLASS=30200\n"),
        ("0000:1e:00.0", "2330", None),
        ("0000:65:00.4", "20b5", "DRIVER=nvidia\nPCI_CLASS=30200\n"),
    ):
        folder = tmp_path / "devices" / address
        folder.mkdir(parents=True)
        for name, text in (("vendor", "0x10de"), ("class", "0x030200"), ("device", f"0x{device}"), ("uevent", uevent)):
            if text is not None:
                (folder / name).write_text(f"{text}\n")
    (tmp_path / "devices/0000:65:00.4/physfn").symlink_to("../0000:1b:00.0")  # a virtual function
    script = probe.script().replace("/sys/bus/pci/devices/", f"{tmp_path}/devices/")
    assert [line.split()[0::3] for line in parse(run(script)).driver.pci] == [
        ["0000:1b:00.0", "nvidia"],
        ["0000:1c:00.0", "none"],
        ["0000:1d:00.0", "vfio-pci"],
        ["0000:1e:00.0", "none"],
    ]


# --- what hangs, floods or fails ------------------------------------------------------------------------------


def test_a_real_answer_comes_through_whole(run: Run, node: Node, tmp_path: Path) -> None:
    (tmp_path / "answer").write_text(recorded("nvidia-smi-q-x.xml"))
    state = parse(run(node(f"#!/bin/sh\n[ \"$*\" = '-q -x' ] && cat {tmp_path}/answer\n")))
    assert state.driver.smi == lean(recorded("nvidia-smi-q-x.xml"))


@pytest.mark.fault("process-in-d")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_child_that_ignores_sigterm_is_abandoned_at_the_limit(run: Run, node: Node, shell: str) -> None:
    program = "#!/bin/sh\ntrap '' TERM\nsleep 60 &\nwait\nsleep 60\n"
    state = parse(run(node(program, limit=1), shell))
    assert isinstance(state.driver.smi, Unknown)
    assert "smi: no answer within the probe's limit, abandoned (pid " in state.driver.smi.unknown
    assert " in state S" in state.driver.smi.unknown
    assert state.kernel, "the rest is there"


def test_a_version_that_hangs_costs_the_versions_only(run: Run, node: Node) -> None:
    state = parse(run(node("#!/bin/sh\nsleep 60\n", "nvidia-ctk", limit=1)))
    assert isinstance(state.tools, Unknown)
    assert "versions: no answer" in state.tools.unknown
    assert state.kernel


@pytest.mark.parametrize("shell", SHELLS)
def test_libraries_are_followed_by_one_process(run: Run, node: Node, tmp_path: Path, shell: str) -> None:
    """Three directories that are one, a link that leads nowhere, and what the cache names elsewhere or by mistake.

    Where only the cache leads, a library beside a cached one is seen, too; in /usr/lib64 of RHEL, always.
    """
    for folder in (real := tmp_path / "real", apart := tmp_path / "apart", built_in := tmp_path / "lib64"):
        folder.mkdir()
    (built_in / "libcuda.so.1").touch()
    (tmp_path / "linked").symlink_to(real)
    whole = real / "libcuda.so.580.95.05"
    for file in (whole, apart / "libnvidia-ml.so.1", apart / "libcuda.so.580.95.05"):
        file.touch()
    (real / "libcuda.so.1").symlink_to(whole.name)
    (real / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.550.1")
    (real / "libcuda.so").symlink_to("/nowhere/at/all")
    (tmp_path / "ld.so.conf").write_text(f"# of the driver\n{real}\n  {tmp_path}/linked/ # again\n{tmp_path}/none\n")
    (tmp_path / "ld.so.cache").touch()
    rows = "".join(f"\tlibnvidia-ml.so.1 (libc6,x86-64) => {path}/libnvidia-ml.so.1\n" for path in (apart, "/phantom"))
    other = "\tlibc.so.6 (libc6,x86-64) => /lib/libc.so.6\n"
    (tmp_path / "cached").write_text(f"3 libs found in cache `/etc/ld.so.cache'\n{other}{rows}")
    (tmp_path / "ldconfig").write_text(f"#!/bin/sh\ncat {tmp_path}/cached\n")
    (tmp_path / "ldconfig").chmod(0o755)
    program = f'#!/bin/sh\ncase $* in *libcuda*) echo "$#" >>{tmp_path}/calls ;; esac\nexec /usr/bin/readlink "$@"\n'
    script = node(program, "readlink").replace("=/sbin/ldconfig", f"={tmp_path}/ldconfig")
    script = script.replace("/usr/lib64 ", f"{built_in} ").replace("/etc/ld.so.c", f"{tmp_path}/ld.so.c")
    answer = run(script, shell)
    assert Records(answer).run("ldcache") == rows, "the driver's lines only"
    state = parse(answer)
    assert not isinstance(state.linker, Unknown)
    assert {path: to for path, to in state.linker.libs.items() if path.startswith(str(tmp_path))} == {
        **{f"{folder}/libcuda.so.1": str(whole) for folder in (real, f"{tmp_path}/linked/")},
        **{f"{folder}/{whole.name}": str(whole) for folder in (real, f"{tmp_path}/linked/")},
        **{f"{folder}/libnvidia-ml.so.1": f"{real}/libnvidia-ml.so.550.1" for folder in (real, f"{tmp_path}/linked/")},
        f"{built_in}/libcuda.so.1": f"{built_in}/libcuda.so.1",
        f"{real}/libcuda.so": "",
        f"{tmp_path}/linked//libcuda.so": "",
        **{f"{apart}/{name}": f"{apart}/{name}" for name in ("libnvidia-ml.so.1", whole.name)},
    }
    calls = (tmp_path / "calls").read_text().split()
    assert (len(calls), calls.count("2")) == (3, 2), "one for all, and one for each that leads nowhere"


def test_of_dnfs_repositories_only_those_of_the_toolkit_and_ours_are_read(run: Run, tmp_path: Path) -> None:
    """Other files of that kind have passwords, or 650 KB."""
    (repos := tmp_path / "yum.repos.d").mkdir()
    (repos / "site.repo").write_text("[site]\nbaseurl=https://site.example\nproxy_password=x\n")
    (repos / "nct.repo").write_text("[n]\nbaseurl=https://nvidia.github.io/libnvidia-container/stable/rpm/x86_64\n")
    (repos / "cut.repo").write_text("[rest]\nbaseurl=https://site.example\n")
    (kept := tmp_path / f"kept{repos}").mkdir(parents=True)
    (kept / "cut.repo.original").touch()
    script = probe.script().replace("/etc/yum.repos.d", str(repos))
    state = parse(run(script.replace('"/var/lib/gpuready/backup$f', f'"{tmp_path}/kept$f'), SHELLS[0]))
    found = {path for path in state.files if path.startswith(str(repos))}
    assert found == {f"{repos}/cut.repo", f"{repos}/nct.repo"}


@pytest.mark.parametrize("there", [True, False])
def test_what_nvlink_5_needs_of_the_node(run: Run, tmp_path: Path, there: bool) -> None:
    """ib_umad, the DRA driver and IMEX's channel leave marks; files say what the next boot loads, and IMEX's list."""
    (nodes := tmp_path / "nvidia-imex").mkdir()
    (nodes / "nodes_config.cfg").write_text("10.0.0.1\n")
    (boot := tmp_path / "modules-load.d").mkdir()
    (boot / "x.conf").write_text("ib_umad\n")
    script = probe.script()
    if there:
        for path in ("infiniband_mad/abi_version", "plugins/compute-domain.nvidia.com/x"):
            (file := tmp_path / path).parent.mkdir(parents=True)
            file.touch()
        (channels := tmp_path / "imex-channels").mkdir()
        (channels / "channel0").symlink_to("/dev/null")
    script = probe.script()
    for old, new in (
        ("/usr/lib/modules-load.d", "modules-load.d"),
        ("/etc/nvidia-imex", "nvidia-imex"),
        ("/dev/nvidia-caps-imex-channels", "imex-channels"),
        ("/sys/class/infiniband_mad", "infiniband_mad"),
        ("/var/lib/kubelet/plugins/compute-domain", "plugins/compute-domain"),
    ):
        assert old in script
        script = script.replace(old, f"{tmp_path}/{new}")
    state = parse(run(script))
    assert state.files[f"{boot}/x.conf"].text == "ib_umad\n"
    assert {IMEX, FABRIC_MANAGER} <= set(script.split()), "the services of the fabric"
    assert state.files[f"{nodes}/nodes_config.cfg"].text == "10.0.0.1\n"
    marks = {"ib_umad", "dra_imex", "imex_channel0"}
    assert marks & set(state.marks) == (marks if there else set())


def test_what_is_between_cpu_gpu_and_nic(run: Run, tmp_path: Path) -> None:
    """Neighbouring CPUs with the same governor give one line; a device without an IOMMU group is left out."""
    files = {"kernel/numa_balancing": "1", "devices/system/node/node0/x": "", "devices/system/node/node1/x": ""}
    files |= {f"devices/system/cpu/cpufreq/policy{n}/scaling_governor": name for n, name in enumerate("aab")}
    files |= {"devices/pci0/0000:1b:00.0/iommu_group/type": "DMA-FQ", "devices/pci0/0000:1c:00.0/x": ""}
    for path, text in files.items():
        (file := tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    for link, device in (
        ("bus/pci/drivers/nvidia/0000:1b:00.0", "0000:1b:00.0"),
        ("class/infiniband/m/device", "0000:1c:00.0"),
    ):
        (at := tmp_path / link).parent.mkdir(parents=True)
        at.symlink_to(tmp_path / "devices/pci0" / device)
    script = probe.script().replace("/proc/sys/kernel/numa", f"{tmp_path}/kernel/numa").replace("/sys/", f"{tmp_path}/")
    found = parse(run(script)).dma
    assert found == Dma(numa_nodes=2, numa_balancing="1", governors=("a", "b"), iommu={"0000:1b:00.0": "DMA-FQ"})


def test_where_a_tool_is(run: Run, node: Node, tmp_path: Path) -> None:
    state = parse(run(node("#!/bin/sh\nexit 9\n", "nvidia-container-runtime")))
    assert not isinstance(state.tools, Unknown)
    found = state.tools["nvidia-container-runtime"]
    assert (found.path, found.version_line) == (f"{tmp_path}/nvidia-container-runtime", "")


def test_a_child_that_keeps_its_output_open_does_not_hold_the_probe(run: Run, node: Node, tmp_path: Path) -> None:
    state = parse(run(node(f"#!/bin/sh\nsleep 60 &\necho $! >{tmp_path}/pid\necho done\n", limit=50)))
    assert state.driver.smi == "done\n"
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # it lived on, and the probe did not wait for it


@pytest.mark.fault("D14", "probe-ended-among-children")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_probe_that_is_ended_leaves_no_directory(node: Node, tmp_path: Path, number: int) -> None:
    script = named(node(f"#!/bin/sh\ntouch {tmp_path}/there\nsleep 20\n", limit=20))
    with subprocess.Popen(command("sh"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin
        process.stdin.write(script.encode())
        process.stdin.close()
        limit = scale.Limit(20)
        while not (tmp_path / "there").exists() and not limit.over():
            time.sleep(0.02)
        assert leftover_directories(), "it had none to leave"
        process.send_signal(number)
        assert process.wait(scale.seconds(30)) != 0
    assert leftover_directories() == set()


@pytest.mark.fault("D14", "probe-ended-among-children")
def test_probes_that_are_ended_among_their_children_leave_nothing(tmp_path: Path) -> None:
    """Many at once, each with children that write all the time, so that some write while it is cleared."""
    head = resources.script("lib/workspace", what="probe")
    work = """
    n=0; while [ $n -lt 6 ]; do n=$((n+1))
      ( i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo "$i" >"$W/$n.$i.rc"; done ) 2>/dev/null &
    done
    echo "$W"; kill -TERM $$; sleep 10
    """
    with ExitStack() as stack:
        started = [
            stack.enter_context(subprocess.Popen(["sh", "-c", head + work], stdout=subprocess.PIPE, text=True))
            for _ in range(30)
        ]
        made = []
        for process in started:
            assert process.stdout
            made.append(process.stdout.read().strip())  # until its children have ended, too
            assert process.wait(60) != 0
    assert len(set(made)) == 30 and all(path.rpartition("/")[2].startswith("gpuready-probe.") for path in made)
    assert [path for each in made for path in (each, f"{each}.gone") if Path(path).exists()] == []


MISMATCH = "NVML: Driver/library version mismatch"
PROGRAMS: dict[str, tuple[str, str | Unknown]] = {
    "bytes that are no text": (
        "printf 'a\\000b\\377\\376\\nbegin\\nend 1\\r\\n'",
        "a\0b\udcff\udcfe\nbegin\nend 1\r\n",
    ),
    "two megabytes": ("yes 0123456789012345678 | head -c 2000000", "0123456789012345678\n" * 100_000),
    "five megabytes": (
        "yes 0123456789012345678 | head -c 5000000",
        Unknown(unknown=f"smi: it printed 5000000 characters; gpuready reads at most {MOST_OUTPUT}"),
    ),
    "it fails": (f"echo half; echo '{MISMATCH}' >&2; exit 18", Unknown(unknown=f"smi: exit 18: {MISMATCH}")),
    "it reads its input and gets none": ("cat; echo read", "read\n"),
    "the login's environment": ('echo "$LC_ALL,${LD_LIBRARY_PATH-unset},${LD_PRELOAD-unset}"', "C,unset,unset\n"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_command_prints(name: str, run: Run, node: Node) -> None:
    program, answer = PROGRAMS[name]
    assert parse(run(node(f"#!/bin/sh\n{program}\n", limit=20))).driver.smi == answer


def test_packages_are_an_answer_though_some_pattern_matches_nothing(run: Run, node: Node) -> None:
    program = "#!/bin/sh\nprintf 'libnvidia-container1\\tamd64\\t1.20.0-1\\thi \\n'\n"
    program += "echo 'dpkg-query: no packages found matching podman' >&2; exit 1\n"
    answer = run(node(program, "dpkg-query"))
    packages = parse(answer).packages
    assert isinstance(packages, dict) and packages["libnvidia-container1"].held
    assert b"no packages found" not in base64.b64decode(answer[0].split(" ")[1]), "stderr of a success is not sent"


def test_packages_are_unknown_when_dpkg_is_in_trouble(run: Run, node: Node) -> None:
    packages = parse(run(node("#!/bin/sh\necho 'database is corrupt' >&2; exit 2\n", "dpkg-query"))).packages
    assert isinstance(packages, Unknown) and "database is corrupt" in packages.unknown


def test_the_answer_is_one_record_of_ascii(run: Run) -> None:
    record, end = run(probe.script())
    word, content = record.split(" ")
    assert (word, end) == ("tar", "end 1")
    assert base64.b64decode(content, validate=True).endswith(bytes(1024))
