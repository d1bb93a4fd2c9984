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
  cause   apt cannot verify NVIDIA's CUDA repository: its key is not installed, or, on Debian 13 and newer, the key of a
          repository for an older release is refused because of SHA1. gpuready does not manage this repository.
  fix     use the repository of this release; install the package cuda-keyring from that repository, and remove the old
          key (apt-key del 7fa2af80); the lines above this one name another reason
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
A4B469963BF863CC is not bound: SHA1 is not considered secure since 2026-02-01 (apt, developer.download.nvidia.com)
  pattern sha1 is not considered secure since.{0,300}developer\.download\.nvidia\.com\S{0,100}.{0,20} is not signed
  also    developer\.download\.nvidia\.com[^ ]{0,100} ?(?:inrelease)?: sub-process .{0,400}sha1 is not considered secure
  also    a4b469963bf863cc is not bound.{0,300}sha1 is not considered secure
  also    developer\.download\.nvidia\.com\S{0,100}: policy will reject signature
  source  NVIDIA/cuda-repo-management#39
  cause   apt of Debian 13 and newer checks signatures with sqv, which refuses SHA1 since 2026-02-01. The key of
          NVIDIA's older repositories (Ubuntu, Debian 12) is bound with SHA1. NVIDIA does not replace it.
  fix     use the repository of this release with its own cuda-keyring (Debian 13: .../repos/debian13, new key); if you
          need an older one, allow SHA1 longer: copy /usr/share/apt/default-sequoia.config to
          /etc/crypto-policies/back-ends/apt-sequoia.config, and set sha1.second_preimage_resistance there to a
          later day
Error: Unable to find a match: kmod-nvidia-latest-dkms
  pattern unable to find a match: (?:kmod-nvidia|nvidia-driver|nvidia-open)
  also    no match for argument: (?:kmod-nvidia|nvidia-driver|nvidia-open)
  source  ComputeCanada/puppet-magic_castle#374
  checks  driver.packages driver.owner
  cause   The enabled stream of the module nvidia-driver does not have this package, so dnf does not see it: NVIDIA's
          default stream is now open-dkms, with kmod-nvidia-open-dkms. Or NVIDIA's repository is not configured.
  fix     dnf module list nvidia-driver shows the streams; install the package of the enabled one
          (kmod-nvidia-open-dkms), or dnf module reset nvidia-driver, then enable the wanted one, such as
          nvidia-driver:latest-dkms
Err: https://nvidia.github.io/libnvidia-container/... Could not handshake: Error in the pull function
  pattern nvidia\.(?:github\.io|com)/[^ ]{1,120} (?:[a-z]{1,12} )?could not handshake
  source  NVIDIA/nvidia-container-toolkit#1781
  checks  repository.config repository.candidate
  cause   Something on the way broke the TLS connection to the repository: a proxy, a firewall or a filter of the
          network. The repository, its address and its key are not the reason.
  fix     curl -vI of the address that the line names, on the node; behind a proxy set Acquire::https::Proxy in
          /etc/apt/apt.conf.d; without a way out use a mirror, or carry the packages to the node
libnvidia-decode-570 depends on libnvidia-compute-570; however: Package libnvidia-compute-570 is not installed (dpkg)
  pattern (?:nvidia|cuda|datacenter-gpu)[^ ]{0,60} depends on [^ ]{1,60}(?: \([^)]{1,60}\))?; however: package [^ ]{1,60} is not installed
  source  NVIDIA/nvidia-installer#33
  checks  driver.packages node.packages
  cause   dpkg -i installs only the named files, and this package needs another one. Some packages of the driver need
          each other, so no order of single calls works.
  fix     give all files in one call: apt-get install ./*.deb (or dpkg -i *.deb); with a network, apt-get -f install
          fetches what is missing
nothing provides dkms >= 3.1.8 needed by kmod-nvidia-open-dkms (dnf, zypper)
  pattern nothing provides [^ ]{1,60}(?: [<>=]{1,2} [^ ]{1,40})? needed by (?:the to be installed )?(?:kmod-nvidia|nvidia|libnvidia|cuda|dkms-nvidia)
  source  stackhpc/ansible-slurm-appliance#703
  checks  driver.packages driver.nextboot
  cause   The driver's package needs a package, or a version of it, that no configured repository has. dkms comes from
          EPEL, which is missing, off, or an old copy; or NVIDIA's repository is that of another release.
  fix     enable EPEL (for dkms), or update your mirror of it, then dnf clean all and install again; compare the release
          in the address of NVIDIA's repository with /etc/os-release; else install an older driver at its full version
nvidia-l4t-bootloader: Warning: Cannot get compatible board name (Jetson)
  pattern warning: cannot get compatible board name
  source  Seeed-Studio/Linux_for_Tegra#41
  cause   apt updates the Jetson's boot firmware and kernel from NVIDIA's repository, which does not know this carrier
          board: the board is not NVIDIA's own. The other nvidia-l4t packages stop behind it.
  fix     before a reboot repair it with the board maker's current BSP for this L4T release, or flash that; then
          apt-mark hold 'nvidia-l4t-*', and update only by the maker's BSP; on NVIDIA's own kit: dpkg --configure -a
          shows the first error
Distribution `vllm==0.23.1+cu129` can't be installed because it doesn't have a source distribution or wheel
  pattern distribution '(?:torch|triton|flash|nvidia|vllm|sgl|xformers|apex|cu|jax|tensorrt|onnxruntime|bitsandbytes)[^']{0,200}' can't be installed because it doesn't have
  also    \b(?:torch|triton|flash|nvidia|vllm|sgl|xformers|apex|cu|jax|tensorrt|onnxruntime|bitsandbytes)[a-z0-9_.-]{0,40}==\S{1,60} has no wheels with a matching
  source  vllm-project/vllm#49683
  checks  wheels.config
  cause   The index has wheels of this version only for other machines: for another processor (x86_64, aarch64), a newer
          glibc (manylinux_2_35 needs glibc 2.35), or another Python.
  fix     uv names the platforms that there are; uname -m, getconf GNU_LIBC_VERSION and python3 --version show this one;
          take a version, or an index (cuNNN), that has a wheel for it, or a newer image
No matching distribution found for torch==2.1.2+cu121
  pattern no matching distribution found for (?:torch|torchvision|torchaudio|xformers|vllm)==[0-9a-z.]{1,24}\+(?:cu|cpu|rocm)
  also    satisfies the requirement (?:torch|torchvision|torchaudio|xformers|vllm)==[0-9a-z.]{1,24}\+(?:cu|cpu|rocm)
  source  ChenxiLiu-HNU/TimeCMA#12
  cause   PyPI has no versions with +cuNNN, +cpu or +rocm in the name: they are on download.pytorch.org. Or that index
          has none for this Python.
  fix     pip install torch==2.1.2 --index-url https://download.pytorch.org/whl/cu121, with the wanted version and cuNNN
          (in a requirements file the line --extra-index-url URL); if that fails, too, use an older Python
THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE ... torch (pip)
  pattern do not match the hashes from the requirements file.{0,300}(?:torch|nvidia|triton|vllm)
  source  pytorch/pytorch#152009
  cause   pip got another file than the index announces: the download was cut off, a cache or proxy still has an older
          file, or a nightly build was replaced.
  fix     pip cache purge, then again with --no-cache-dir; with a proxy or mirror, empty its cache; for a nightly build
          wait, or take that of another day
Unable to locate package nvidia-container (Jetson)
  pattern unable to locate package nvidia-(?:container|jetpack|jetpack-runtime)(?![a-z0-9-])
  source  jetsonhacks/install-docker#4
  cause   nvidia-container and nvidia-jetpack are packages of JetPack, for Jetson only. The package sources of this
          machine do not have NVIDIA's Jetson repository, or have it for another release.
  fix     on a Jetson: /etc/apt/sources.list.d/nvidia-l4t-apt-source.list must name repo.download.nvidia.com/jetson and
          the release of L4T; then apt-get update. On other machines install nvidia-container-toolkit
tls: failed to verify certificate: x509: certificate signed by unknown authority
  pattern x509: certificate signed by unknown authority
  source  NVIDIA/gpu-operator#1519
  cause   The server's certificate comes from an authority that this program does not trust: a private registry or
          mirror, or a proxy that replaces certificates.
  fix     add the authority's certificate to the node's store (/usr/local/share/ca-certificates and
          update-ca-certificates; RHEL: /etc/pki/ca-trust/source/anchors and update-ca-trust) and restart the engine;
          or ca = in /etc/containerd/certs.d/HOST/hosts.toml, /etc/docker/certs.d/HOST/ca.crt
installed package nvidia-driver-common-3:610.43.02-1.fc44.x86_64 obsoletes libnvidia-ml (dnf)
  pattern nvidia-driver-common-[0-9]\S{5,60} (?:from [a-z0-9_-]{3,40} )?(?:obsoletes|replaces) libnvidia-
  also    requires libnvidia-(?:cfg|ml)\(x86-64\) >= \S{3,40} but no(?:ne of the)? providers can be installed
  also    requires cuda-nvml\(x86-64\), but none of the providers can be installed
  source  negativo17/nvidia-driver#201
  checks  driver.packages driver.owner
  cause   From 610 on, the packages of negativo17 and Terra for Fedora have libnvidia-ml and libnvidia-cfg inside
          nvidia-driver-common. A package that still requires the old names (nvidia-xconfig, cuda-nvml-devel, another
          repository's) stops the update.
  fix     dnf upgrade --refresh, when the repository has rebuilt it; remove what a server does not need
          (nvidia-xconfig); keep the driver and CUDA in one repository
nvidia-kmod-common requires (nvidia-driver-selinux if selinux-policy-targeted) (dnf)
  pattern requires \(nvidia-driver-selinux if selinux-policy-targeted\)
  source  terrapkg/packages#14008
  checks  driver.packages
  cause   The new driver package requires nvidia-driver-selinux, and no enabled repository has it: the repository was
          incomplete at that time.
  fix     dnf upgrade --refresh, later again; until then dnf upgrade --exclude='*nvidia*' keeps the driver as it is
""")
