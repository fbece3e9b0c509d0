# Debian trees to boot in emulated machines: a guest (guest.sh) with a kernel, and with dracut, so that the
# initramfs is made by the suite's own.
# shellcheck shell=bash disable=SC2154  # $parts, in_guest come from tools/setup

# The cloud kernel has the drivers of emulated machines only, in a quarter of the space. A tpm2-tools of the
# guest's own judges what we read from its TPM.
readonly in_vm=(linux-image-cloud-amd64 dracut dracut-network zstd e2fsprogs tpm2-tools)

key_vm() { key_of vm "$1" "$(dpkg --print-architecture)" -- "$parts/guest.sh" "$parts/vm.sh"; }

packages_vm() {
    packages_guest "$1"                     # the networks around the machines are the same
    echo qemu-system-x86 swtpm swtpm-tools tpm2-tools
    echo e2fsprogs cpio zstd                # their disks, and a look into an initramfs
    [ -e "$(path_of "vm-$1")" ] || packages_of_a_tree
}

time_vm() { echo "a minute and a half"; }

# INITRD=No (what kernel packages ask their hooks for): no initramfs, the tests make theirs with homeport in it.
make_vm() {
    INITRD=No debian_tree "$1" "$2/root" "${in_guest[@]}" "${in_vm[@]}"
    [ "$1" != forky ] || networkmanager_units "$1" "$2"
}

# NetworkManager's own units for an initramfs, which Debian leaves out of its package (dracut has some), as they are
# in its source package. The tests put them into a machine for what other distributions have.
networkmanager_units() {
    local suite=$1 folder=$2 work=$2/source version apt
    version=$(dpkg-query --admindir="$folder/root/var/lib/dpkg" -W -f '${Version}' network-manager)
    mkdir -p "$work/lists" "$work/cache" "$folder/networkmanager"
    echo "deb-src http://deb.debian.org/debian $suite main" >"$work/sources.list"
    apt=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o Acquire::Check-Valid-Until=false
        -o "Dir::Etc::TrustedParts=$folder/root/etc/apt/trusted.gpg.d" -o APT::Sandbox::User=root)
    apt-get -q "${apt[@]}" update
    (cd "$work" && apt-get -q "${apt[@]}" source --download-only "network-manager=$version")
    tar -xf "$work"/network-manager_*.orig.tar.* -C "$folder/networkmanager" --strip-components=2 --wildcards \
        '*/data/NetworkManager-*initrd.service.in' '*/src/nm-initrd-generator/nm-initrd-generator.sh'
    rm -rf "$work"
}
