"""What an image leaves for its first boot: ``apply --image`` writes it (verbs/apply/image.py).

The first boot removes it when the node is converged. Another apply that converges the node deletes it, too, and so does
``remove``: else the first boot would apply the spec of the image again.
"""

NAME = "gpuready-image-boot"
SPEC = "/var/lib/gpuready/image-boot.yaml"
_UNITS = "/etc/systemd/system"
FILES = (
    f"{_UNITS}/{NAME}.service",
    f"{_UNITS}/gpuready-host-keys.service",
    f"{_UNITS}/multi-user.target.d/{NAME}.conf",
    SPEC,
)
