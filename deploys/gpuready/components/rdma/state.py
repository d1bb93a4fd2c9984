"""Files of the rdma component, which the probe reads."""

#: Its name sorts last, so that it takes precedence over the distribution's files.
CONF = "/etc/modprobe.d/zz-gpuready-rdma.conf"
GRUB = "/etc/default/grub.d/zz-gpuready-rdma.cfg"
#: Makes dracut include CONF, which it does by itself only with hostonly (off by default on Debian).
DRACUT = "/etc/dracut.conf.d/zz-gpuready-rdma.conf"
#: Newer than CONF after all initramfs images were checked.
MARK = "/var/lib/gpuready/rdma.initramfs"
