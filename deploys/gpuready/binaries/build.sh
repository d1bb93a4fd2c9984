#!/bin/sh
# build.sh DIRECTORY [MACHINE]...: cuinit.MACHINE into DIRECTORY, for x86_64 and aarch64. The same compiler and linker
# make the same bytes. There need be no libcuda: what is linked against has its name and its functions only.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
into=$1; shift
[ $# -gt 0 ] || set -- x86_64 aarch64
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
echo 'int cuInit(void){return 0;} int cuDeviceGetCount(void){return 0;} int cuDriverGetVersion(void){return 0;}' >"$work/empty.c"
for machine; do
  cc=$machine-linux-gnu-gcc
  "$cc" -shared -nostdlib -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so" "$work/empty.c"
  "$cc" -std=c11 -Os -Wall -Wextra -Werror -ffreestanding -fno-builtin -fno-tree-loop-distribute-patterns \
    -fno-stack-protector -fno-asynchronous-unwind-tables -fno-ident -fPIE -pie -nostdlib -nostartfiles -s \
    -Wl,--build-id=none,-z,noseparate-code,-z,norelro,-z,now,-z,noexecstack,--hash-style=both \
    -o "$into/cuinit.$machine" "$here/cuinit.c" -L"$work" -lcuda
done
