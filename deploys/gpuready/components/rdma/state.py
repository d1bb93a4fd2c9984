"""Files of the rdma component, which the probe reads."""

from __future__ import annotations

#: Read last of its directory, so that no distribution's default takes precedence.
CONF = "/etc/modprobe.d/zz-gpuready-rdma.conf"


GRUB = "/etc/default/grub.d/zz-gpuready-rdma.cfg"


#: Has dracut take CONF along, which it does by itself only where hostonly is on (Debian's default is off).
DRACUT = "/etc/dracut.conf.d/zz-gpuready-rdma.conf"


#: Younger than CONF once all initramfs images were looked at.
MARK = "/var/lib/gpuready/rdma.initramfs"
