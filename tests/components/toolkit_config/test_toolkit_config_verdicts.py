"""Verdicts on the toolkit's config.toml."""

from tests.verdicts import Row, fails, held, holding, is_unknown, passes, skips, warns

TOML = "/etc/nvidia-container-runtime/config.toml"

VERDICTS: list[Row] = [
    # config.toml
    skips("config.readable", "there is no"),
    passes("config.readable", "can be read", holding("", TOML)),
    fails("config.readable", "is not valid TOML", holding("[x", TOML)),
    fails("config.readable", "is not valid TOML", holding("a = 1\na = 2\n", TOML)),
    passes("config.cgroups", "not set", holding("[nvidia-container-cli]\n#no-cgroups = true\n", TOML)),
    fails("config.cgroups", "rootless", holding("[nvidia-container-cli]\nno-cgroups = true\n", TOML)),
    passes("config.escape", "nothing in it", holding("[features]\nx = true\n", TOML)),
    warns("config.escape", "can get out", holding("[features]\nallow-ldconfig-from-container = true\n", TOML)),
    warns(
        "config.escape",
        "can get out",
        holding('nvidia-container-runtime.modes.legacy.cuda-compat-mode = "mount"', TOML),
    ),
    skips("config.config", "the spec has no toolkit.mode"),
    is_unknown("config.config", "is not valid TOML", holding("[x", TOML), {"toolkit": {"mode": "cdi"}}),
    fails("config.config", "nvidia-container-runtime.mode", spec={"toolkit": {"mode": "cdi"}}),
    passes("config.config", "as the spec says", spec={"toolkit": {"mode": "auto"}}),
]
test_verdict = held(VERDICTS)
