"""``gpuready compat`` as it is typed: verdicts, exit codes, every format, and what cannot be asked."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from gpuready.cli.app import run
from gpuready.report.result import result_schema
from tests.lab import scale

VALIDATOR = jsonschema.Draft202012Validator(result_schema())
HOST = ["compat", "--driver", "450.102.04", "--gpu", "GeForce RTX 2080 Ti"]
FIELD = [*HOST, "--image-cuda", "11.2.2", "--compat-lib", "460.32.03", "--stack", "mount"]


def test_the_case_of_the_field_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*FIELD, "--output", "json"]) == 3
    out, err = capsys.readouterr()
    found = json.loads(out)
    VALIDATOR.validate(found)
    assert (found["verdict"], found["certain"], found["libcuda"]) == ("ERROR_804", True, "460.32.03")
    assert "GeForce RTX 2080 Ti is a consumer GPU" in found["reason"]
    assert [fix["verdict"] for fix in found["fixes"]] == ["NATIVE", "MINOR", "MINOR", "NATIVE"]
    assert (found["exit_code"], found["hosts"], err) == (3, {}, "")


@pytest.mark.parametrize(
    ("argv", "verdict", "code"),
    [
        ([*FIELD[:-2], "--stack", "disabled"], "MINOR", 0),
        ([*FIELD[:-2], "--toolkit", "1.17.3"], "ERROR_804", 3),
        ([*FIELD[:-2], "--toolkit", "1.17.4"], "MINOR", 0),
        (["compat", "--driver", "535.54.03", "--image-cuda", "12.4", "--compat-lib", "550.54.14"], "ERROR_804", 3),
        ([*HOST, "--image-cuda", "10.2"], "NATIVE", 0),
        ([*HOST, "--image-cuda", "12.4.1"], "NEEDS_DRIVER", 3),
        ([*FIELD, "--require", "cuda>=11.2 brand=tesla,driver>=418,driver<419"], "REFUSED", 3),
        (["compat", "--driver", "575.10.10", "--gpu", "datacenter", "--image-cuda", "12.9.1", "--compat-lib",
          "575.57.08", "--note", '{"format":1,"CUDA version":"12.9","driver":[570,575]}'], "FORWARD", 0),
    ],
)  # fmt: skip
def test_verdicts_and_exit_codes(argv: list[str], verdict: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*argv, "--output", "json"]) == code
    assert json.loads(capsys.readouterr().out)["verdict"] == verdict


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FIELD) == 3
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("ERROR_804  the image's libcuda 460.32.03 is loaded in place of the driver's 450.102.04")
    assert second.startswith("  fix:     1. upgrade the driver to 460.32.03 or newer")
    assert len(rest) == 3
    assert run(["compat", "--driver", "535.54.03", "--image-cuda", "12.4", "--compat-lib", "550.54.14"]) == 3
    assert capsys.readouterr().out.startswith("ERROR_804?  ")


def test_for_ci(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*FIELD, "--output", "junit"]) == 3
    suites = ET.fromstring(capsys.readouterr().out)
    assert suites.get("failures") == "1"
    assert run([*HOST, "--image-cuda", "10.2", "--output", "junit"]) == 0
    assert ET.fromstring(capsys.readouterr().out).get("failures") == "0"
    assert run([*FIELD, "--output", "jsonl"]) == 3
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["verdict"] == "ERROR_804"


@pytest.mark.parametrize(
    ("more", "message", "instead"),
    [
        (["--driver", "450"], "--driver 450: no version", "535.104.05"),
        (["--driver", "latest"], "--driver latest: no version", "a full driver version"),
        (["--driver", "100.14.11"], "no known driver", "346"),
        (["--image-cuda", "12.7"], "no such CUDA toolkit is known (on 2026-", "12.6, 12.8"),
        (["--image-cuda", "112"], "--image-cuda 112: no version", "X.Y"),
        (
            ["--compat-lib", "libcuda.so.460.32.03"],
            "--compat-lib libcuda.so.460.32.03: no version",
            "full driver version",
        ),
        (["--stack", "ldconfig", "--toolkit", "1.17.3"], "ldconfig needs toolkit 1.17.7 or newer", "--stack mount"),
        (["--stack", "hook", "--toolkit", "1.17.4"], "hook needs toolkit 1.17.5 or newer", "--stack disabled"),
        (["--stack", "disabled", "--toolkit", "1.17.3"], "disabled needs toolkit 1.17.4 or newer", "--stack mount"),
        (["--toolkit", "1.17"], "--toolkit 1.17: no version", "X.Y.Z"),
        (["--note", "{}"], "--note describes one library, and --compat-lib names none", "--compat-lib"),
        (["--compat-lib", "460.32.03", "--note", "{"], "--note: invalid JSON", "driver"),
        (["--compat-lib", "460.32.03", "--note", '{"driver": "535"}'], "'driver' is not a list of numbers", "[535"),
        (["--compat-lib", "460.32.03", "--note", '{"format":1,"drivers":[535]}'], "key 'drivers'", '"driver":['),
        (["--compat-lib", "460.32.03", "--note", '{"a":1}'], "unknown key 'a' (allowed: format, CUDA", "format"),
        (["--compat-lib", "460.32.03", "--note", '{"format":2}'], '"format" must be 1', '"format":1'),
        (["--compat-lib", "460.32.03", "--note", "{}"], '"format" must be 1', '"format":1'),
        (["--require", "cuda>=x"], "--require: 'cuda>=x': 'x' is not a version", "cuda>=12.4"),
        (["--stack", "hook", "--require", "speed>3"], "unknown property 'speed'", "cuda>=12.4"),
        (["--gpu", "NVIDIA A100"], "--gpu was given several times", "one call for each"),
        (["--stack", "cdi"], "'cdi' is not one of 'none', 'mount', 'ldconfig', 'hook', 'disabled'", "--help"),
    ],
)
def test_what_cannot_be_asked(more: list[str], message: str, instead: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*HOST, "--image-cuda", "11.2.2", *more, "--output", "json"]) == 64
    out, err = capsys.readouterr()
    found = json.loads(out)
    VALIDATOR.validate(found)
    assert message in found["error"]["message"]
    assert instead in found["error"]["remedy"]
    assert message in err


def test_an_empty_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compat", "--driver", "450.102.04", "--gpu", "", "--image-cuda", "11.0"]) == 64
    assert "--gpu is empty" in capsys.readouterr().err


def test_a_gate_that_nobody_asks(capsys: pytest.CaptureFixture[str]) -> None:
    argv = [*HOST, "--image-cuda", "11.0", "--require", "cuda>=12.9"]
    assert run(argv) == 0
    assert "  note:    NVIDIA_REQUIRE_CUDA is ignored here: only libnvidia-container" in capsys.readouterr().out
    assert run([*argv, "--stack", "ldconfig"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("REFUSED")
    assert "NVIDIA_REQUIRE_CUDA is ignored" not in out


@pytest.mark.parametrize("given", [["--driver", "450.102.04"], ["--image-cuda", "11.2.2"], []])
def test_what_is_missing_is_named(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compat", *given]) == 64
    err = capsys.readouterr().err
    assert ("--image-cuda is missing" if given[:1] == ["--driver"] else "--driver is missing") in err
    assert "gpuready compat --driver 535.54.03" in err


def test_no_pyinfra_and_no_gevent() -> None:
    code = (
        "import sys\nfrom gpuready.cli.main import run\ncode = run(sys.argv[1:])\n"
        "heavy = {'pyinfra', 'gevent', 'paramiko', 'elftools', 'zstandard', 'rich'}\n"
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *FIELD], capture_output=True, text=True, timeout=scale.seconds(60), check=False
    )
    assert done.stderr == "3 []\n"
