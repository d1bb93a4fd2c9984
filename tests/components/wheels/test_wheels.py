"""Wheels as they are read here, environments as they are asked there, and what goes into the spec of both."""

import json
import subprocess
import sys
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.base import resources
from gpuready.base.errors import GpureadyError
from gpuready.catalogue import BY_ID
from gpuready.components.wheels import archive, component, fit
from gpuready.components.wheels.archive import Needs, WheelError
from gpuready.components.wheels.component import RemoveWheel, Wheels
from gpuready.components.wheels.record import Record, path, records
from gpuready.components.wheels.state import Environment, environment, installed_hash, on_record
from gpuready.contract.compare import compare
from gpuready.contract.component import Disruption
from gpuready.contract.removal import Removal
from gpuready.inventory.hosts import load
from gpuready.model.parse import parse
from gpuready.model.spec import NodeSpec
from gpuready.model.state import NodeState, Unknown
from tests.components.wheels import test_wheel_verdicts as wheel_verdicts
from tests.components.wheels.wheelfiles import shared_object, wheel
from tests.model.probe_answers import lines
from tests.verdicts import root_file

SHA = "a" * 64
URL = "https://mirror.example:8443/pytorch/torch-1-py3-none-any.whl"


# --- a wheel ----------------------------------------------------------------------------------------------------


def test_what_a_wheel_says_and_what_its_libraries_need(tmp_path: Path) -> None:
    made = wheel(
        tmp_path,
        tag="cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64",
        requires=["filelock", "sympy>=1"],
        libraries={
            "libtorch.so": shared_object(
                ["libc10.so", "libcublas.so.12", "libm.so.6"],
                ["GLIBC_2.4", "GLIBC_2.34", "GLIBC_PRIVATE", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "CXXABI_1.3.13"],
                runpath="/usr/local/cuda/lib64:$ORIGIN/../lib",
            ),
            "renamed.so.1": shared_object(["libcublas.so.12"], ["GLIBC_2.17"], soname="libc10.so"),
            "script.so": b"INPUT(libc10.so)",
        },
    )
    found = archive.read(str(made))
    assert (found.name, found.version, found.file) == ("torch", "2.2.1", made.name)
    assert found.tags == {"cp310-cp310-manylinux_2_17_x86_64", "cp310-cp310-manylinux2014_x86_64"}
    digest = subprocess.run(["sha256sum", made], capture_output=True, text=True, check=True).stdout.split()[0]
    assert (found.sha256, found.size) == (digest, made.stat().st_size)
    assert found.unpacked == sum(member.file_size for member in zipfile.ZipFile(made).infolist())
    assert found.requires == ("filelock", "sympy>=1")
    needed = archive.needs(str(made))
    assert needed.floors == {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
    assert needed.libraries == {"libcublas.so.12", "libm.so.6"}
    assert needed.places == {"/usr/local/cuda/lib64"}
    assert needed.cuda == (12, 1)


def test_a_file_that_is_built_anew_is_read_anew(tmp_path: Path) -> None:
    first = archive.read(str(wheel(tmp_path)))
    second = archive.read(str(wheel(tmp_path, word="another")))
    assert (first.version, first.file) == (second.version, second.file) and first.sha256 != second.sha256


@pytest.mark.parametrize(
    ("libraries", "cuda"),
    [
        (["libcudart.so.12"], (12, 0)),
        (["libcudart.so.11.0"], (11, 0)),
        (["libcudart.so.10.2", "libcudart.so.9.2"], (10, 2)),
        (["libc.so.6"], None),
    ],
)
def test_other_wheels_take_the_cuda_of_their_runtime_library(
    tmp_path: Path, libraries: list[str], cuda: object
) -> None:
    made = wheel(tmp_path, name="apex", libraries={"x.so": shared_object(libraries)})
    assert archive.needs(str(made)).cuda == cuda


def test_a_real_library_is_read() -> None:
    (one, *_) = [p for p in Path(sys.prefix).rglob("*.so") if p.is_file()]
    found = archive._Found()
    with one.open("rb") as file:
        found._elf(file, one.name)
    assert found.floors["GLIBC"] >= (2, 2) and "libc.so.6" in found.needed


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        ("no zip", "File is not a zip file"),
        ({}, "there are 0 directories"),
        ({"torch-2.dist-info/METADATA": "", "torch-3.dist-info/METADATA": ""}, "there are 2 directories"),
        ({"torch-2.2.1.dist-info/METADATA": "Version: 2.2.1\n"}, "no item named 'torch-2.2.1.dist-info/WHEEL'"),
        ({"torch-2.2.1.dist-info/METADATA": "Version: 2.2.2", "torch-2.2.1.dist-info/WHEEL": ""}, "version 2.2.2"),
    ],
)
def test_a_file_that_is_not_a_wheel_is_named(tmp_path: Path, content: str | dict[str, str] | None, why: str) -> None:
    made = tmp_path / "torch-2.2.1-py3-none-any.whl"
    if isinstance(content, str):
        made.write_text(content)
    elif content is not None:
        with zipfile.ZipFile(made, "w") as members:
            for name, text in content.items():
                members.writestr(name, text)
    with pytest.raises(WheelError, match="torch-2") as told:
        archive.read(str(made))
    assert why in str(told.value)


def test_a_library_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = wheel(tmp_path, libraries={"libtorch.so": b"\x7fELF" + bytes(200)})
    with pytest.raises(WheelError, match=r"torch/lib/libtorch\.so is not a readable ELF file"):
        archive.needs(str(broken))


# --- an environment ---------------------------------------------------------------------------------------------


def asked(**what: list[str]) -> dict[str, list[str]]:
    return {"names": [], "tags": [], "libraries": [], "places": [], **what}


def look(prefix: str, what: dict[str, list[str]]) -> tuple[int, str]:
    words = [sys.executable, "-IB", "-", prefix, json.dumps(what)]
    program = resources.document("wheels/look.py")
    done = subprocess.run(words, input=program, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_environment_of_these_tests_as_on_a_node(tmp_path: Path) -> None:
    (tmp_path / "libcublas.so.12").touch()
    version = "".join(map(str, sys.version_info[:2]))
    what = asked(
        names=["pytest", "pydantic-core", "gpuready", "torch"],
        tags=["py3-none-any", f"cp{version}-abi3-nothing", "cp27-none-any"],
        libraries=["libc.so.6", "libcublas.so.12", "libnowhere.so.1"],
        places=[str(tmp_path), "/nowhere"],
    )
    found = environment(*look(sys.prefix, what), "python (pid 7)\npython3 (pid 8)\n")
    assert (found.trouble, found.python) == ("", "{}.{}.{}".format(*sys.version_info[:3]))
    assert found.users == ("python (pid 7)", "python3 (pid 8)")
    assert set(found.installed) == {"pytest", "pydantic-core", "gpuready"}
    assert (found.installed["pytest"].version, found.installed["pytest"].sha256) == (pytest.__version__, "")
    assert found.found == ("libc.so.6", "libcublas.so.12")
    assert found.versions["GLIBC"].startswith("2.") and found.versions.get("GLIBCXX", "3.4.").startswith("3.4.")
    if found.pip:
        assert found.tags == ("py3-none-any",) and found.tag.startswith(f"cp{version}-cp{version}-")
    assert environment(0, json.dumps(found.model_dump(exclude={"users"})), "").users == ()


def test_another_pythons_environment_is_no_environment() -> None:
    found = environment(*look("/somewhere/else", asked()), "")
    assert found.trouble == f"its python belongs to {sys.prefix}"


@pytest.mark.parametrize(
    ("rc", "text", "trouble"),
    [
        (1, "it is neither\n", "it is neither"),
        (139, "", "its python exited with 139 and no message"),
        (0, "", "its python's answer is not understood: ''"),
        (0, "[]", "its python's answer is not understood: '[]'"),
        (0, '{"colour": 1}', "its python's answer is not understood"),
        (0, '{"users": []}', "its python's answer is not understood"),
    ],
)
def test_an_invalid_answer_is_reported(rc: int, text: str, trouble: str) -> None:
    assert trouble in environment(rc, text, "").trouble


@pytest.mark.parametrize(
    ("text", "sha256"),
    [
        ('{"archive_info": {"hash": "sha256=' + SHA + '"}, "url": "x"}', SHA),
        ('{"archive_info": {"hashes": {"sha256": "' + SHA + '"}}}', SHA),
        ('{"archive_info": {"hashes": {"md5": "1"}, "hash": "md5=1"}}', ""),
        ('{"archive_info": {}}', ""),
        ('{"dir_info": {"editable": true}}', ""),
        ('{"archive_info": null}', ""),
        ('{"archive_info": {"hash": 5}}', ""),
        ("[]", ""),
        ("", ""),
        ("[" * 100_000, ""),
    ],
)
def test_what_pip_wrote_down(text: str, sha256: str) -> None:
    assert installed_hash(text) == sha256


@given(st.text(max_size=80))
def test_no_record_on_disk_raises(text: str) -> None:
    assert set(on_record(f"/a\t{text}").values()) <= {"", SHA}
    assert records(NodeState(files={path("/a", "b"): root_file(text)})) == ()


def test_the_probe_tells_of_what_is_on_record() -> None:
    row = '/opt/x/torch-2.dist-info\t{"archive_info": {"hash": "sha256=' + SHA + '"}}\n/opt/y\t\n'
    assert parse(lines(outs={"wheels": row})).wheels == {"/opt/x/torch-2.dist-info": SHA, "/opt/y": ""}
    assert parse(lines()).wheels == {}
    hung = parse(lines(stuck={"wheels": "Name: sh\nState: D (disk sleep)\nPid: 9\n"}))
    assert isinstance(hung.wheels, Unknown)
    assert NodeState.model_validate_json(hung.model_dump_json()) == hung


def test_a_record_comes_back_as_it_was() -> None:
    mine = Record("/opt/x/torch-2.dist-info", "/opt/x", "torch", "2", SHA, "")
    assert records(NodeState(files={path("/opt/x", "torch"): root_file(f"{mine.info}\n{mine.said}\n")})) == (mine,)


def misfit(needed: Needs, versions: dict[str, str]) -> str:
    """Why a wheel of these needs does not fit an environment on a system of these versions."""
    made = archive.Wheel("x.whl", "x", "1", frozenset({"t"}), SHA)
    return fit.misfit(made, needed, Environment(pip="24.0", tags=("t",), versions=versions), "/e")


@given(st.dictionaries(st.sampled_from(["GLIBC", "GLIBCXX", "CXXABI"]), st.tuples(st.just(3), st.integers(0, 99))))
def test_a_system_fits_exactly_when_it_is_new_enough(floors: dict[str, Any]) -> None:
    has = {kind: ".".join(map(str, floor)) for kind, floor in floors.items()}
    assert misfit(Needs(floors), has) == ""
    for kind in floors:
        assert f"needs {kind}_" in misfit(Needs(floors), {**has, kind: "2.9"})


def test_many_libraries_that_are_missing_are_counted() -> None:
    said = misfit(Needs(libraries=frozenset(f"lib{n}.so" for n in range(9))), {})
    assert "lib0.so, lib1.so" in said and " and 3 more, which" in said


# --- the smoke of an environment --------------------------------------------------------------------------------


def smoke(name: str, where: Path) -> dict[str, Any]:
    program = f"import sys; sys.path.insert(0, {str(where)!r})\n{resources.document('wheels/smoke.py')}"
    words = [sys.executable, "-IB", "-", name]
    done = subprocess.run(words, input=program, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_smoke_tells_version_cuda_nccl_and_what_is_missing(tmp_path: Path) -> None:
    requires = ["pytest", "pytest>=999", "nowhere>=1", 'elsewhere; python_version < "3"', 'more; extra == "x"']
    zipfile.ZipFile(wheel(tmp_path, requires=requires)).extractall(tmp_path)
    told = smoke("torch", tmp_path)
    assert told["missing"] == [f"pytest>=999 (it is {pytest.__version__})", "nowhere>=1"]
    assert (told["version"], told["cuda"], told["nccl"]) == ("2.2.1", "12.1", [2, 19, 3])
    assert told["architectures"] == ["sm_80", "sm_90", "compute_90"]
    assert "PackageNotFoundError" in smoke("apex", tmp_path)["version"]["error"]
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libcudart.so.12: cannot open')")
    assert smoke("torch", tmp_path)["torch"]["error"] == "OSError: libcudart.so.12: cannot open"


def test_other_wheels_import_every_module_of_their_record(tmp_path: Path) -> None:
    suffix = next(s for s in EXTENSION_SUFFIXES if s != ".so")
    zipfile.ZipFile(wheel(tmp_path, name="apex", version="0.1")).extractall(tmp_path)
    record = tmp_path / "apex-0.1.dist-info" / "RECORD"
    added = ("apex_helper.py", f"amp_C{suffix}", "amp_data.so", "tests/__init__.py", "no-name.py", "../../bin/apex")
    record.write_text(record.read_text() + "".join(f"{path},,\n" for path in added))
    (tmp_path / "apex_helper.py").write_text("import atexit, apex\natexit.register(print, 'below the answer')\n")
    (tmp_path / f"amp_C{suffix}").write_text("no library")
    told = smoke("apex", tmp_path)
    assert told["modules"] == ["apex", "apex_helper", "amp_C"]
    assert told["imported"]["error"].startswith("amp_C: ImportError: ") and f"amp_C{suffix}" in str(told["imported"])
    zipfile.ZipFile(wheel(tmp_path)).extractall(tmp_path)  # an extension's libc10.so is there once torch is loaded
    assert smoke("apex", tmp_path)["modules"] == ["apex", "apex_helper", "torch", "amp_C"]
    (tmp_path / "apex" / "__init__.py").write_text("raise RuntimeError('x' * 999 + '\\nwhat it was')")
    told = smoke("apex", tmp_path)
    assert told["imported"]["error"].startswith("apex: RuntimeError: x") and str(told["imported"]).count("what it was")
    spec = NodeSpec.model_validate({"torch_wheels": [{"wheel": "apex-0.1-py3-none-any.whl", "env": "/opt/train"}]})
    judged = BY_ID["wheels.works"].verdict(spec, wheel_verdicts.node(out=json.dumps(told)))
    assert judged.status == "fail" and judged.summary.startswith("apex in /opt/train cannot be imported: apex: Runt")
    assert judged.summary.endswith("xxx what it was") and len(judged.summary) == 400


def test_what_is_missing_can_be_pasted_into_a_shell() -> None:
    node = wheel_verdicts.node(missing=["sympy>=1.13 (it is 1.2)", "filelock"])
    judged = BY_ID["wheels.works"].verdict(NodeSpec.model_validate(wheel_verdicts.NAMED), node)
    assert judged.remedy == "install them: /opt/train/bin/python -m pip install 'sympy>=1.13' filelock"


# --- spec -------------------------------------------------------------------------------------------------------


def inventory(folder: Path, block: str) -> str:
    hosts = folder / "hosts.yaml"
    hosts.write_text(f"all:\n  hosts: {{n1: {{}}}}\n  vars:\n    gpuready:\n      {block}\n")
    return str(hosts)


def test_a_wheels_path_is_the_inventorys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wheel(tmp_path)
    where = inventory(tmp_path, f"torch_wheels: [{{wheel: {made.name}, env: /opt/x/}}, {{wheel: {made}, env: /opt/y}}]")
    monkeypatch.chdir("/")
    (entry,) = load([where]).chosen
    found = {one.env: (one.wheel, one.name) for one in entry.spec.torch_wheels}
    assert found == dict.fromkeys(("/opt/x", "/opt/y"), (str(made), "torch"))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{wheel: no-1-py3-none-any.whl, env: /x}", r"torch_wheels\[0\].wheel: no such file"),
        ("{wheel: torch.whl, env: /x}", "not the file name of a wheel"),
        ("{wheel: torch-1.tar.gz, env: /x}", "the path of a wheel on this machine"),
        (f"{{wheel: '{URL}', env: /x}}", "a wheel from a URL needs sha256"),
        (f"{{wheel: '{URL}', env: /x, sha256: {SHA[1:]}}}", "64 hexadecimal digits, as sha256sum prints them"),
        (f"{{wheel: '{URL}?token=x', env: /x, sha256: {SHA}}}", "URL without credentials and query"),
        (f"{{wheel: 'https://h/a%2Ftorch.whl', env: /x, sha256: {SHA}}}", "neither a plain path nor a plain URL"),
        (f"{{wheel: 'ftp://h/torch-1-py3-none-any.whl', env: /x, sha256: {SHA}}}", "neither a plain path nor"),
        (f"{{wheel: '{URL}', env: /x, sha256: {SHA}, header: 'X-Key: x'}}", "not a reference to a secret"),
        (f"{{wheel: '{URL}', env: /x, sha256: {SHA}, header: 'env:HOME'}}", "does not allow the inventory to read"),
        (f"{{wheel: '{URL}', env: /x, sha256: {SHA}, header: 'env:GPUREADY_X'}}", "header: the secret is not a header"),
        (
            f"{{wheel: 'http://h/torch-1-py3-none-any.whl', env: /x, sha256: {SHA}, header: 'env:GPUREADY_X'}}",
            "the URL must begin with https://",
        ),
        ("{wheel: 'torch-1#-py3-none-any.whl', env: /x}", "the path of a wheel on this machine"),
        ("{wheel: torch-1-py3-none-any.whl}", r"torch_wheels\[0\].env is missing"),
        ("{wheel: torch-1-py3-none-any.whl, env: relative}", "absolute directory of a venv or conda"),
        ("{wheel: torch-1-py3-none-any.whl, env: /opt/../x}", "not a plain absolute directory"),
        ("{wheel: torch-1-py3-none-any.whl, env: /x, pip: 1}", r"torch_wheels\[0\].pip: unknown key"),
        (
            "{wheel: torch-1-py3-none-any.whl, env: /x}, {wheel: torch-2-py3-none-any.whl, env: /x/}",
            "torch is listed 2",
        ),
        ("torch-1-py3-none-any.whl", "a mapping with wheel, env"),
    ],
)
def test_what_is_wrong_in_the_spec_is_said_with_its_place(
    tmp_path: Path, entry: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUREADY_X", "no-colon")
    with pytest.raises(GpureadyError, match=why) as told:
        load([inventory(tmp_path, f"torch_wheels: [{entry}]")])
    assert f"{tmp_path}/hosts.yaml:5" in str(told.value)


def test_a_local_file_takes_neither_hash_nor_header_and_a_url_has_the_files_name(tmp_path: Path) -> None:
    made = wheel(tmp_path)
    with pytest.raises(GpureadyError, match="sha256 and header are only for a URL"):
        load([inventory(tmp_path, f"torch_wheels: [{{wheel: {made.name}, env: /x, sha256: {SHA}}}]")])
    url = "https://h/torch-2.2.1%2Bcu121-cp310-cp310-linux_x86_64.whl"
    (entry,) = load([inventory(tmp_path, f"torch_wheels: [{{wheel: '{url}', env: /x, sha256: {SHA}}}]")]).chosen
    (one,) = entry.spec.torch_wheels
    assert (one.name, one.file, one.wheel) == ("torch", "torch-2.2.1+cu121-cp310-cp310-linux_x86_64.whl", url)


@pytest.mark.parametrize(
    ("entry", "secret"),
    [
        (f"{{wheel: '{URL}', env: /x, sha256: {SHA}, header: hunter2}}", "hunter2"),
        (f"{{wheel: 'https://me:hunter2@h/torch-1-py3-none-any.whl', env: /x, sha256: {SHA}}}", "hunter2"),
    ],
)
def test_a_secret_in_clear_text_is_refused_and_not_repeated(tmp_path: Path, entry: str, secret: str) -> None:
    with pytest.raises(GpureadyError) as told:
        load([inventory(tmp_path, f"torch_wheels: [{entry}]")])
    assert secret not in str(told.value) and ("not a reference" in str(told.value) or "use header" in str(told.value))


# --- what is asked, and the way back ----------------------------------------------------------------------------


def spec(*entries: tuple[Path, str]) -> NodeSpec:
    return NodeSpec.model_validate({"torch_wheels": [{"wheel": str(made), "env": env} for made, env in entries]})


def recorded(made: Path, env: str, before: str = "", now: str | None = None) -> NodeState:
    """A node on which that wheel is on record, and pip has ``now``."""
    found = archive.read(str(made))
    mine = Record(f"{env}/{found.name}-{found.version}.dist-info", env, found.name, found.version, found.sha256, before)
    wheels = {mine.info: found.sha256 if now is None else now}
    return NodeState(files={path(env, found.name): root_file(f"{mine.info}\n{mine.said}\n")}, wheels=wheels)


def test_only_environments_that_differ_are_asked_and_of_all_that_is_named_for_them(tmp_path: Path) -> None:
    torch = wheel(tmp_path, libraries={"x.so": shared_object(["libcudart.so.12", "libcuda.so.1"], runpath="/cuda")})
    apex = wheel(tmp_path, name="apex", version="1")
    state = recorded(torch, "/a")
    assert component.asked(spec((torch, "/a")), state) == ()
    ((env, what),) = component.asked(spec((torch, "/a"), (apex, "/a")), state)
    assert (env, what["names"], what["libraries"]) == ("/a", ("apex", "torch"), ())
    ((env, what),) = component.asked(spec((torch, "/a"), (torch, "/b")), state)
    assert (env, what["libraries"], what["places"]) == ("/b", ("libcudart.so.12",), ("/cuda",))
    assert [env for env, _ in component.asked(spec((torch, "/a")), recorded(torch, "/a", now=SHA))] == ["/a"]
    torch.unlink()
    assert component.asked(spec((torch, "/b")), state) == ()
    assert "No such file" in compare(Wheels(), spec((torch, "/b")), state).error


def test_remove_uninstalls_what_was_new_and_leaves_what_replaced_something(tmp_path: Path) -> None:
    made = wheel(tmp_path)
    record = ("wheels./a.torch.recorded", False)
    note = "torch 2.2.1 stays in /a: it replaced 2.1.0, of which gpuready has no copy; install the version that you "
    for before, keys, disruption, notes in (
        ("", {("wheels./a.torch", None), record}, Disruption.recreate, ()),
        ("2.1.0", {record}, Disruption.none, (f"{note}want by hand",)),
    ):
        state = recorded(made, "/a", before=before)
        found = compare(Removal(Wheels()), NodeSpec(), state)
        assert {(change.key, change.expected) for change in found.diff} == keys
        assert (found.disruption, found.notes) == (disruption, notes)
        (step,) = Wheels().restore(found.diff, NodeSpec(), state)
        assert isinstance(step.args, RemoveWheel) and step.args.uninstall == (before == "")


def test_remove_leaves_alone_what_somebody_else_installed_since(tmp_path: Path) -> None:
    made = wheel(tmp_path)
    assert not compare(Removal(Wheels()), NodeSpec(), recorded(made, "/a", now=SHA)).diff
    assert not compare(Removal(Wheels()), NodeSpec(), NodeState()).applies
    hung = recorded(made, "/a").model_copy(update={"wheels": Unknown(unknown="wheels: no answer")})
    assert "wheels: no answer" in compare(Removal(Wheels()), NodeSpec(), hung).error
