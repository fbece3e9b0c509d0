# A Debian with the kernel for every machine, for what the cloud kernel has no drivers for: USB. For `make test-vm-full`
# alone: it is four times as large, and slower to boot where the processor is emulated.
# shellcheck shell=bash disable=SC2154  # $parts, in_guest, in_vm come from tools/setup

key_metal() { key_of metal "$1" "$(dpkg --print-architecture)" -- "$parts"/{guest,vm,metal}.sh; }
packages_metal() { packages_vm "$1"; }
time_metal() { echo "two minutes"; }
make_metal() { INITRD=No debian_tree "$1" "$2/root" "${in_guest[@]}" "${in_vm[@]/-cloud-/-}"; }
