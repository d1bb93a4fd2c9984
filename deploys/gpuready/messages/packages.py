# ruff: noqa: E501  (a table: patterns stay whole)
"""Messages of apt, dnf and pip about NVIDIA's packages."""

from gpuready.messages.entry import read

MESSAGES = read(r"""
E: Conflicting values set for option Signed-By regarding source https://nvidia.github.io/...
  pattern conflicting values set for option signed-by(?:$| regarding source \.{3}| regarding source .{0,60}nvidia)
  source  NVIDIA/libnvidia-container#194
  checks  repository.config repository.candidate
  cause   Two files in /etc/apt/sources.list.d name NVIDIA's repository with different keys. apt then reads no source.
  fix     gpuready apply keeps one source and moves the others aside; by hand: grep -l nvidia /etc/apt/sources.list.d/*
          and remove the old file
NO_PUBKEY DDCAE044F796ECB0 (nvidia.github.io)
  pattern no_pubkey ddcae044f796ecb0
  source  NVIDIA/nvidia-container-toolkit#1478
  checks  repository.config repository.candidate
  cause   apt has no key for the repository of the container toolkit: the keyring file is missing, not readable, or not
          the one that signed-by names.
  fix     gpuready apply writes the key (checked by its fingerprint) and the source; by hand follow the toolkit's
          install guide
NO_PUBKEY A4B469963BF863CC (developer.download.nvidia.com)
  pattern no_pubkey a4b469963bf863cc
  source  turlucode/ros-docker-gui#13
  cause   NVIDIA changed the key of the CUDA repository in April 2022; this machine or image has only the old one.
  fix     install cuda-keyring (cuda-keyring_1.1-1_all.deb) from the CUDA repository and remove other entries for it;
          use a newer nvidia/cuda image
The following signatures were invalid: BADSIG F60F4B3D7FA2AF80 cudatools
  pattern (?:bad|expkey|revkey)sig (?:f60f4b3d7fa2af80|a4b469963bf863cc|ddcae044f796ecb0)
  source  NVIDIA/nvidia-docker#613
  checks  repository.config repository.candidate
  cause   What apt downloaded from NVIDIA's repository does not match its signature: a proxy or mirror served an old or
          incomplete file, or the key was replaced.
  fix     rm -r /var/lib/apt/lists/*nvidia*, apt-get update; with a mirror or proxy look at its cache; install the new
          key (cuda-keyring)
The repository 'https://nvidia.github.io/... InRelease' is not signed
  pattern the repository .{0,20}nvidia\.github\.io\S{0,100}.{0,20} is not signed
  source  NVIDIA/nvidia-container-toolkit#409
  checks  repository.config repository.candidate
  cause   apt cannot verify NVIDIA's repository: no key for it, or the address does not exist for this distribution.
  fix     gpuready apply writes the right address and key; by hand: the toolkit's packages are at
          nvidia.github.io/libnvidia-container/stable/deb for every distribution
The repository 'https://developer.download.nvidia.com/... InRelease' is not signed
  pattern the repository .{0,20}developer\.download\.nvidia\.com\S{0,100}.{0,20} is not signed
  source  docs.nvidia.com/cuda/cuda-installation-guide-linux
  cause   apt cannot verify NVIDIA's CUDA repository: its key is not installed. gpuready does not manage this
          repository.
  fix     install the package cuda-keyring from that repository, and remove the old key (apt-key del 7fa2af80)
Unable to locate package nvidia-container-toolkit
  pattern (?:unable to locate package|no package|unable to find a match:|no match for argument:) nvidia-(?:container-toolkit|docker2)
  source  docs.nvidia.com/datacenter/cloud-native/container-toolkit (install guide)
  checks  repository.config repository.candidate
  cause   NVIDIA's repository is not among the package sources, or its list was not updated.
  fix     gpuready apply adds the repository and installs the toolkit; nvidia-docker2 is now nvidia-container-toolkit
nvidia-driver-550 : Depends: libnvidia-gl-550 but it is not going to be installed
  pattern (?:nvidia-[a-z0-9-]{1,40}|libnvidia-[a-z0-9-]{1,40}|cuda-[a-z0-9-]{1,40}|libcuda1) ?: (?:pre)?depends: .{1,80}(?:but it is not|but .{1,40} is to be installed)
  source  NVIDIA/ubuntu-packaging-nvidia-driver#3
  checks  driver.packages driver.owner node.packages
  cause   The driver's packages of two repositories (the distribution's and NVIDIA's), or of two versions, conflict with
          each other.
  fix     apt-cache policy of the named packages shows their repositories; keep one of them, then install all packages
          of the driver at one full version in one call
trying to overwrite ..., which is also in package nvidia-... / libnvidia-...
  pattern trying to overwrite .{1,160}which is also in package (?:nvidia|libnvidia|libcuda)
  source  pop-os/shop#121
  checks  driver.packages driver.owner node.packages
  cause   Packages of two drivers, or of two repositories, contain the same file; dpkg stopped in the middle.
  fix     remove the packages of the other driver, then dpkg --configure -a and apt-get -f install
package nvidia-settings from cuda-rhel10-x86_64 is filtered out by modular filtering
  pattern (?:nvidia|cuda)\S{0,80}.{0,80}filtered out by modular filtering
  also    filtered out by modular filtering for argument: (?:nvidia|cuda)
  source  rocky-linux/rockylinux.org#201
  checks  driver.packages
  cause   dnf hides the driver's packages, because another stream of the module nvidia-driver is enabled, or a
          repository for another release is configured.
  fix     dnf module reset nvidia-driver, then dnf module enable nvidia-driver:BRANCH-open (or -dkms); check that the
          repository is that of this release
requires nvidia-kmod = 3:X, but none of the providers can be installed
  pattern requires nvidia-(?:kmod|settings|kmod-common|driver)\S{0,20} = \S{3,40} but none of the providers
  source  NVIDIA/yum-packaging-precompiled-kmod#50
  checks  driver.packages driver.nextboot
  cause   The repository has no kernel module of that version for this kernel, or packages of two repositories or module
          streams are mixed.
  fix     use the dkms or open-dkms stream (dnf module reset nvidia-driver first), with the kernel's -devel package
          installed
Package kmod-nvidia-X.rpm is not signed (GPG check FAILED)
  pattern package \S{0,20}nvidia\S{0,120} is not signed
  source  NVIDIA/yum-packaging-precompiled-kmod#24
  checks  driver.packages
  cause   A package of the repository has no signature, so dnf refuses the whole transaction.
  fix     run dnf clean packages and try again later, or choose another version; only the repository's maintainer can
          sign the package; do not switch gpgcheck off
Public key for cuda-... is not installed. GPG Keys are configured as: ... D42D0685.pub
  pattern public key for \S{0,20}(?:cuda|nvidia|libnvidia|libcu)\S{0,100} is not installed
  source  gridhead/nvidia-auto-installer-for-fedora-linux#160
  cause   dnf did not import NVIDIA's key for the CUDA repository.
  fix     rpm --import https://developer.download.nvidia.com/compute/cuda/repos/DISTRO/x86_64/D42D0685.pub, then install
          again
E: dpkg was interrupted, you must manually run 'dpkg --configure -a'
  pattern dpkg was interrupted, you must manually run
  source  openhab/openhabian#952
  checks  node.packages
  cause   A package installation was cut off: packages are unpacked and not configured. apt does nothing until that is
          done; a driver among them may have built no module.
  fix     dpkg --configure -a, then apt-get -f install
torch-...whl is not a supported wheel on this platform
  pattern (?:torch|triton|flash_attn|nvidia|vllm|xformers|apex|cuda|cupy)\S{0,80}\.whl is not a supported wheel on this platform
  source  pip.pypa.io (wheel tags)
  checks  wheels.config wheels.works
  cause   The wheel was built for another Python version or architecture than this environment.
  fix     pip debug --verbose lists the tags that this Python accepts; build or pick the wheel for it (cp310 is Python
          3.10)
E: Version '580.65.06-1' for 'nvidia-fabricmanager-580' was not found
  pattern version '[^']{1,80}' for '(?:lib)?(?:nvidia|cuda|nvsdm|nccl|nvlsm|datacenter-gpu|cudnn|xserver-xorg-video-nvidia)[^']{0,60}' was not found
  source  NVIDIA/gpu-driver-container#451
  checks  repository.candidate driver.packages
  cause   The repositories do not have that package at that version: it was renamed (from 580 on, NVIDIA's fabric
          manager has no branch in its name), replaced by a newer version, or the list is old.
  fix     apt-get update, then apt-cache policy PACKAGE (and the name without the branch) shows what there is; take one
          version for all packages of the driver
E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 2448 (unattended-upgr)
  pattern could not get lock /var/lib/(?:dpkg|apt)/
  source  servo/ci-runners#57
  checks  node.firstboot node.packages
  cause   Another program installs packages just now: unattended-upgrades, or cloud-init at the first boot.
  fix     wait until that process has ended, then try again; do not delete the lock; on new machines first run
          cloud-init status --wait; apt-get -o DPkg::Lock::Timeout=600 waits by itself
ERROR (dkms apport): binary package for nvidia: 535.183.01 not found
  pattern dkms apport\): (?:binary package for nvidia\S{0,20}: \S{1,30} not found|kernel package \S{1,80} is not supported)
  general
  source  pop-os/pop#3811
  checks  driver.nextboot driver.loaded
  cause   Only Ubuntu's crash reporter: it cannot report the failed build of a module, because the driver or the kernel
          is not from Ubuntu's own packages. The build itself failed for another reason.
  fix     the reason is in the make.log of that module below /var/lib/dkms; install the headers of that kernel, or a
          driver that supports it
package kmod-nvidia conflicts with kmod-nvidia-latest-dkms
  pattern \bkmod-nvidia\S{0,100} (?:from \S{1,60} )?conflicts with kmod-nvidia
  also    conflicts between attempted installs of (?:xorg-x11-)?nvidia
  source  NVIDIA/yum-packaging-precompiled-kmod#50
  checks  driver.packages driver.owner
  cause   Two builds of the driver exclude each other: a precompiled module and the DKMS one, or packages of two
          repositories (NVIDIA's, RPM Fusion, negativo17).
  fix     keep one repository and one stream: dnf module list nvidia-driver; remove the installed kmod-nvidia packages,
          dnf module reset nvidia-driver, then enable the one stream (BRANCH-dkms, BRANCH-open) and install again
nvcc: command not found
  pattern \bnvcc: (?:command )?not found
  also    command 'nvcc' not found
  also    no such file or directory: 'nvcc'
  also    could not find nvcc
  also    \S{0,60}/bin/nvcc: not found
  source  Ahsanr312/Installing-CUDA-Toolkit-cuDNN-OpenCV-and-PyTorch-on-Ubuntu-20.04#1
  cause   nvcc is the compiler of the CUDA toolkit, not a part of the driver: the toolkit is not installed, or
          /usr/local/cuda/bin is not on the PATH. Programs that are already built do not need it, but those that compile
          when they start do: FlashInfer in vLLM and SGLang, DeepGEMM, extensions of PyTorch.
  fix     ls /usr/local/cuda*/bin/nvcc; if it is there, export PATH=/usr/local/cuda/bin:$PATH; else install
          cuda-toolkit-X-Y (without the driver), or use a -devel image
E: Error, pkgProblemResolver::Resolve generated breaks, this may be caused by held packages
  pattern pkgproblemresolver::resolve generated breaks
  source  pop-os/pop#3554
  checks  driver.packages
  cause   apt found no set of packages that fit: one is held, or the wanted driver excludes an installed one. The lines
          above, below "unmet dependencies", name the packages.
  fix     apt-mark showhold; apt-cache policy of the named packages shows their repositories; apt update and apt
          full-upgrade, then install the driver from one repository only
""")
