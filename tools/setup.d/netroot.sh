# A Debian whose root file system may be on the network, for `make test-vm-full` alone. iSCSI: the guest's kernel has
# it, and tgt is a target that is a program. It is run from this tree: as a package of this machine it would come with
# a service that everybody can reach.
# shellcheck shell=bash disable=SC2154  # $parts, in_guest, in_vm come from tools/setup

key_netroot() { key_of netroot "$1" "$(dpkg --print-architecture)" -- "$parts"/{guest,vm,netroot}.sh; }
packages_netroot() { packages_vm "$1"; }
time_netroot() { echo "a minute and a half"; }
make_netroot() { INITRD=No debian_tree "$1" "$2/root" "${in_guest[@]}" "${in_vm[@]}" open-iscsi tgt; }
