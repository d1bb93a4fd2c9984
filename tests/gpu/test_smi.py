"""nvidia-smi -q -x: the recorded H200 in typed values, the spellings of other drivers, and no text that raises."""

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuready.model.smi import Gpu, gpus, lean
from gpuready.model.state import Unknown
from tests.model.probe_answers import recorded

XML = recorded("nvidia-smi-q-x.xml")


def one(body: str) -> Gpu:
    found = gpus(f'<nvidia_smi_log><gpu id="00000000:3B:00.0">{body}</gpu></nvidia_smi_log>')
    assert not isinstance(found, Unknown) and len(found) == 1
    return found[0]


def test_the_recorded_gpu() -> None:
    found = gpus(XML)
    assert not isinstance(found, Unknown)
    (gpu,) = found
    assert (gpu.bus, gpu.name, gpu.vbios) == ("00000000:00:06.0", "NVIDIA H200", "96.00.A5.00.1A")
    assert (gpu.recovery, gpu.persistence, gpu.mig, gpu.ecc_mode) == ("None", True, (False, False), (True, True))
    assert len(gpu.ecc) == 8 and set(gpu.ecc.values()) == {0}
    assert len(gpu.repairs) == 4 and not any(gpu.repairs.values())
    assert (gpu.remapped, gpu.remap_pending, gpu.remap_failed) == (0, False, False)
    assert (gpu.retired, gpu.retire_pending) == (None, None)
    assert (gpu.width, gpu.generation, gpu.throttled) == ((16, 16), (5, 5), ())
    assert (gpu.temperature, gpu.margin) == (38, 51), "49 C to the limit, and it slows down 2 C above that"
    assert (gpu.fabric_state, gpu.fabric_status, gpu.fabric_health) == (None, None, {})
    assert (gpu.errors, gpu.unread) == ({}, {})


def test_without_the_supported_clocks_it_says_the_same_in_half_the_size() -> None:
    short = lean(XML)
    assert gpus(short) == gpus(XML)
    assert len(short) < len(XML) / 2
    assert lean(short) == short
    cut = XML[: XML.index("</supported_clocks>")]
    assert lean(cut) == cut, "what is damaged stays as it is"


def test_spellings_of_older_drivers() -> None:
    gpu = one(
        "<clocks_throttle_reasons><clocks_throttle_reason_hw_slowdown>Active</clocks_throttle_reason_hw_slowdown>"
        "</clocks_throttle_reasons><retired_pages><double_bit_retirement><retired_count>3</retired_count>"
        "</double_bit_retirement><pending_blacklist>Yes</pending_blacklist></retired_pages><ecc_errors><volatile>"
        "<single_bit><device_memory>7</device_memory></single_bit><double_bit><total>1</total></double_bit></volatile>"
        "<aggregate><sram_uncorrectable>4</sram_uncorrectable></aggregate></ecc_errors><temperature>"
        "<gpu_temp>60 C</gpu_temp><gpu_temp_slow_threshold>87 C</gpu_temp_slow_threshold></temperature>"
    )
    assert gpu.throttled == ("hw_slowdown",)
    assert (gpu.retired, gpu.retire_pending) == (3, True)
    assert gpu.ecc == {"volatile.dram_corrected": 7, "volatile.double_bit": 1, "aggregate.sram_uncorrectable": 4}
    assert (gpu.temperature, gpu.margin, gpu.recovery) == (60, 27, None)


@pytest.mark.parametrize(
    "text", ["N/A", "[N/A]", "Not Supported", "[Not Supported]", "", "Requested functionality has been deprecated"]
)
def test_no_such_value(text: str) -> None:
    gpu = one(f"<persistence_mode>{text}</persistence_mode><temperature><gpu_temp>{text}</gpu_temp></temperature>")
    assert (gpu.persistence, gpu.temperature, gpu.errors, gpu.unread) == (None, None, {}, {})


@pytest.mark.parametrize("text", ["ERR!", "[Unknown Error]", "[GPU requires reset]", "GPU is lost", "Unknown Error"])
def test_an_error_in_a_cell_is_reported(text: str) -> None:
    gpu = one(f"<persistence_mode>{text}</persistence_mode><fabric><state>{text}</state></fabric>")
    assert gpu.errors == {"persistence_mode": text, "fabric/state": text}


def test_unknown_words_in_a_cell_are_reported() -> None:
    gpu = one("<persistence_mode>Sometimes</persistence_mode><temperature><gpu_temp>warm</gpu_temp></temperature>")
    assert gpu.unread == {"persistence_mode": "Sometimes", "temperature/gpu_temp": "warm"}


def test_entities_are_refused() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>'
    found = gpus(bomb)
    assert isinstance(found, Unknown) and "entities" in found.unknown
    outside = gpus(XML.replace("nvsmi_device_v13.dtd", "file:///etc/passwd"))
    assert outside == gpus(XML), "a DTD is named by every answer, and never fetched"


@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    short = lean(XML)
    start = data.draw(st.integers(0, len(short)))
    end = start + data.draw(st.integers(0, 200))
    text = short[:start] + data.draw(st.text(st.characters(exclude_categories=[]), max_size=20)) + short[end:]
    _typed(text)


@given(st.text(st.characters(exclude_categories=[]), max_size=60), st.randoms(use_true_random=False))
def test_no_value_raises(value: str, chance: random.Random) -> None:
    """One element's text is replaced, so the rest still is XML and what reads that element sees the value."""
    short = lean(XML)
    ends = [at for at in range(len(short)) if short.startswith("</", at)]
    end = chance.choice(ends)
    start = short.rindex(">", 0, end) + 1
    safe = value.replace("&", "").replace("<", "")
    _typed(short[:start] + safe + short[end:])


def _typed(text: str) -> None:
    found = gpus(text)
    if isinstance(found, Unknown):
        assert found.unknown.startswith("nvidia-smi -q -x: ")
        return
    for gpu in found:
        assert all(isinstance(value, int) for value in gpu.ecc.values())
        for one_of in dataclasses.astuple(gpu):
            assert one_of is None or isinstance(one_of, str | bool | int | tuple | dict)
