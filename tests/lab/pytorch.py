"""A layer over a root image: Debian's own PyTorch for the CPU, which knows gloo, so that test machines can train.

It is 1 GB and takes two minutes, so it is built only for the tests that ask for it: lab.machine(with_torch=True).
"""

from pathlib import Path

from tests.lab import cache, host, node

# Nothing of apt's stays: the lists of the image count. Debian builds PyTorch without libuv, and torchrun asks for it.
_INSTALL = """
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -qy -o DPkg::Options::=--force-unsafe-io install --no-install-recommends python3-torch libopenblas0-pthread
apt-get clean
cd /usr/lib/python3/dist-packages/torch/distributed
sed -i 's/multi_tenant=True,/& use_libuv=False,/' elastic/rendezvous/static_tcp_rendezvous.py
sed -i 's/is_master=False,/& use_libuv=False,/' rendezvous.py
rm -f /etc/resolv.conf
"""
# In its own mount namespace, so that nothing stays mounted whatever ends it.
_MERGE = """
mount -t overlay -o "lowerdir=$LOWER,upperdir=$INTO/layer,workdir=$INTO/work,volatile" overlay "$INTO/root"
cd "$INTO/root"
mount -t proc proc proc
cp "$RESOLV" etc/resolv.conf
chroot . sh -euc "$INSTALL"
umount proc
cd /
umount "$INTO/root"
rm -rf "$INTO/work" "$INTO/root" "$INTO/layer/var/lib/apt/lists" "$INTO/layer/var/cache/apt"
"""


def layer(image: Path) -> Path:
    """The cached layer for a root image; overlay takes both as lower directories."""
    recipe = {"image": image.parent.name, "install": _INSTALL, "merge": _MERGE}

    def build(into: Path) -> None:
        for part in ("layer", "work", "root"):
            (into / part).mkdir()
        values = {"LOWER": image, "INTO": into, "RESOLV": node.resolv_conf(), "INSTALL": _INSTALL}
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **{key: str(value) for key, value in values.items()}}
        host.sh("unshare", "--mount", "sh", "-euc", _MERGE, env=env)

    return cache.cached("pytorch", recipe, build) / "layer"
