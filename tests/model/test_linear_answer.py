"""What a run does with a node's answer takes time in proportion to the answer, whichever part of it is long.

The parts come from the probe's script: what it writes to P/, and the files that it packs. Each one is made of short
lines, up to its limit and to a quarter of it, beside the rest of a recorded answer. Four times as much may take eight
times as long, not sixteen.
"""

import base64
import gc
import re
import time
from collections.abc import Iterator
from datetime import date

import pytest

from gpuready.base.archive import members
from gpuready.base.records import MOST_FILE, MOST_OUTPUT, MOST_TEXT
from gpuready.catalogue import CATALOGUE
from gpuready.contract.check import concerning, run_checks
from gpuready.contract.compare import Plan
from gpuready.model import probe
from gpuready.model.parse import parse
from gpuready.model.spec import NodeSpec
from gpuready.node import NODE, REMOVALS
from tests.model.probe_answers import DATA, docker_info, h200_lines, tar

pytestmark = pytest.mark.long

#: Seconds of CPU below which nobody waits, so that the shorter text need not be measured.
FLOOR = 0.3
#: A text four times as long takes four times as long, or more where it no longer fits the processor's cache; code that
#: is quadratic takes sixteen times as long.
_MOST = 11
SPEC = NodeSpec.model_validate(
    {
        "hardware": {"gpus": 1, "rdma": {"ports": 1}},
        "memlock": "unlimited",
        "driver": {"policy": "hold"},
        "monitoring": {"rdma_exporter": "textfile"},
        "rdma": {"netns_mode": "exclusive"},
        "gate": True,
        "verify": {"level": "smoke"},
    }
)
SCRIPT = probe.script()


def _file(*path: str) -> str:
    return DATA.joinpath(*path).read_text(encoding="utf-8")


def _recorded() -> dict[str, bytes]:
    """The recorded answer, with the recorded outputs of other nodes for what that one does not have."""
    found = {one.path[1:]: one.data for one in members(base64.b64decode(h200_lines()[0].removeprefix("tar ")))}
    outs = {
        "docker": docker_info("info-26.1"),
        "containerd": _file("containerd", "2.1.toml"),
        "network": _file("network", "probe.txt"),
    }
    for name, text in outs.items():
        found |= {f"P/{name}.out": text.encode(), f"P/{name}.rc": b"0\n"}
    return found | {"etc/containerd/config.toml": outs["containerd"].encode(), "etc/docker/daemon.json": b"{}\n"}


RECORDED = _recorded()
#: Lines that are shorter than the recorded ones, and as good.
SHORT = {"P/proc.text": "/proc/a:xxxxxxx", "P/network.out": "lower=/sys/class/net/a/lower_b"}


def parts() -> Iterator[str]:
    """Every part that the probe's script can make: members of its archive."""
    yield from sorted({f"P/{name}.text" for name in re.findall(r"P/(\w+)\.text", SCRIPT)})
    yield from sorted({f"P/{name}.out" for name in ("ldcache", *re.findall(r"\bbg ([a-z_]+) ", SCRIPT))})
    packed = re.search(r"for f in (/etc/os-release.*?); do", SCRIPT, re.S)
    assert packed is not None
    yield from sorted({pattern.replace("*", "x")[1:] for pattern in re.findall(r"/\S+", packed[1])})


PARTS = list(parts())


def shapes(part: str, size: int) -> Iterator[str]:
    """The part in short lines: empty ones, its own shortest one, and numbered ones in the form of its own."""
    own = [line for line in RECORDED.get(part, b"").decode().splitlines() if line.strip()]
    short = SHORT.get(part) or min(own or ["a=b"], key=len)
    yield "\n" * size
    yield f"{short}\n" * (size // (len(short) + 1))
    yield "".join(f"{number}{short}{number}\n" for number in range(size // (len(short) + 13)))


def seconds(part: str, text: str) -> float:
    """CPU time to parse the answer with this text as one part, compare all components, both ways, and judge it."""
    answer = RECORDED | {part: text.encode()} | ({f"{part[:-4]}.rc": b"0\n"} if part.endswith(".out") else {})
    rows = [f"tar {base64.b64encode(tar(dict(answer))).decode()}", "end 1"]
    began = time.process_time()
    state = parse(rows)
    for order in (NODE, REMOVALS):
        plan = Plan(order, SPEC, state)
        for item in order:
            plan[item]
    run_checks(concerning(CATALOGUE, SPEC, state), SPEC, state, "gpu1", active=False, today=date.today())
    return time.process_time() - began


@pytest.fixture(autouse=True, scope="module")
def alone() -> Iterator[None]:
    """What earlier tests left in memory is not searched for garbage meanwhile; a run of gpuready has none of it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_the_parts_are_found() -> None:
    assert {"P/proc.text", "P/docker.out", "etc/docker/daemon.json", "etc/ld.so.conf.d/x.conf"} <= set(PARTS)
    assert len(PARTS) > 70, PARTS
    assert all(part in PARTS for part in RECORDED if re.search(r"P/.*\.(text|out)$", part))


def test_a_long_cache_and_many_libraries_do_not_multiply() -> None:
    """Each entry of the linker's cache leads to a library of another version, beside many others."""

    def taken(count: int) -> float:
        cache = "".join(f"\tlibcuda.so.1 (libc6,x86-64) => /d{n}/libcuda.so.1\n" for n in range(count))
        libs = "".join(f"/d{n}/libcuda.so.1\t/d{n}/libcuda.so.5.{n}\n/d{n}/libcuda.so.5.{n}\tx\n" for n in range(count))
        began = time.process_time()
        rows = RECORDED | {"P/ldcache.out": cache.encode(), "P/ldcache.rc": b"0\n", "P/libs.text": libs.encode()}
        state = parse([f"tar {base64.b64encode(tar(dict(rows))).decode()}", "end 1"])
        plan = Plan(NODE, SPEC, state)
        for item in NODE:
            plan[item]
        run_checks(concerning(CATALOGUE, SPEC, state), SPEC, state, "gpu1", active=False, today=date.today())
        return time.process_time() - began

    many = min(taken(8000) for _ in range(3))
    assert many <= FLOOR or many < _MOST * max(taken(2000) for _ in range(3))


@pytest.mark.fault("D3", "short-lines")
@pytest.mark.parametrize("part", PARTS)
def test_time_grows_with_the_answer_alone(part: str) -> None:
    most = MOST_OUTPUT if part.endswith(".out") else min(MOST_TEXT, MOST_FILE)
    for few, many in zip(shapes(part, most // 4), shapes(part, most), strict=True):
        took = seconds(part, many)
        if took > FLOOR:  # other work on the machine costs CPU time, too: the best of three counts
            took = min(took, seconds(part, many), seconds(part, many))
        assert took <= FLOOR or took < _MOST * max(seconds(part, few) for _ in range(3)), many[:40]
