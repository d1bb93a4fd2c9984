"""The picture of a plan in the README: ``python -m docs.picture`` writes docs/plan.svg, from a recorded node."""

import contextlib
import html
import io
import json
import re
import tempfile
from pathlib import Path

from gpuready.cli.app import run

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "plan.svg"
_RECORDED = "tests/data/h200-mounted-driver/state.json"
_SPEC = {
    "hardware": {"gpus": 8, "model": "H200"},
    "toolkit": {
        "cuda_compat_mode": "mount",
        "version": "1.20.0",  # this and repo are as recorded, so that the picture shows no difference there
        "repo": {
            "url": "http://127.0.0.1:8418/stable/deb/$(ARCH)",
            "key": "http://127.0.0.1:8418/gpgkey",
            "fingerprint": "A9107F12065BC076ABD2A6997758F05BE265CDE2",
        },
    },
    "runtimes": {"docker": {"default_runtime": True, "shm_size": "8g"}},
}


def plan(color: bool = False) -> str:
    """What ``gpuready plan`` prints for the recorded node."""
    with tempfile.TemporaryDirectory() as folder:
        inventory = Path(folder) / "hosts.yaml"
        inventory.write_text(json.dumps({"all": {"hosts": {"gpu01": {}}, "vars": {"gpuready": _SPEC}}}), "utf-8")
        words = [
            "plan",
            "-i",
            str(inventory),
            "--state",
            str(ROOT / _RECORDED),
            "--color",
            "always" if color else "never",
        ]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = run(words)
    assert code == 0, code
    _, _, text = out.getvalue().partition("\n\n")  # without the head line, which has paths and seconds
    return "$ gpuready plan -i hosts.yaml\n\n" + re.sub(r"\d+\.\d s$", "0.2 s", text, flags=re.M)


def picture() -> str:
    """The plan as SVG, by rich; without the fonts that its template would load from the network."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(plan(color=True)), soft_wrap=False)
    svg = console.export_svg(title="gpuready plan", theme=MONOKAI, unique_id="plan")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)


def words_of(svg: str) -> str:
    """The text of such a picture, without its spaces: they differ between versions of rich."""
    shown = re.findall(r"<text[^>]*>(.*?)</text>", svg, re.S)
    return re.sub(r"\s", "", html.unescape("".join(shown)).replace("gpuready\xa0plan", "", 1))


if __name__ == "__main__":
    PICTURE.write_text(picture(), "utf-8")
