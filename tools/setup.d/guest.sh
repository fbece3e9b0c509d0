# Debian trees to boot in containers: what a server has before homeport comes, and what its tests ask for.
# shellcheck shell=bash disable=SC2154  # $parts comes from tools/setup

# First what the product stands on, then what a test looks at the network with.
readonly in_guest=(
    systemd systemd-sysv dbus udev network-manager
    python3 python3-yaml python3-requests python3-pyudev python3-systemd python3-jeepney python3-wsproto
    ca-certificates kmod procps iproute2 iputils-ping curl tcpdump
)

# One of the machines may be the one that the others ask: homeport-server's libraries. Debian 12 has older ones.
readonly of_the_server=(python3-aiohttp python3-sqlalchemy python3-cryptography)

key_guest() { key_of "$1" "$(dpkg --print-architecture)" -- "$parts/guest.sh"; }

packages_guest() {
    echo systemd-container dbus     # systemd-nspawn
    echo iproute2 procps kmod       # the networks around the machines
    echo dnsmasq-base               # their DHCP and DNS
    echo tcpdump iputils-ping iputils-arping curl
    echo genisoimage dosfstools mtools   # their configuration drives
    [ -e "$(path_of "guest-$1")" ] || packages_of_a_tree
}

# mmdebstrap, and the newest keyring, with the key of a suite that came after this machine's.
packages_of_a_tree() { echo mmdebstrap debian-archive-keyring+; }

time_guest() { echo "a minute"; }

make_guest() {
    local packages=("${in_guest[@]}")
    [ "$1" = bookworm ] || packages+=("${of_the_server[@]}")
    debian_tree "$1" "$2/root" "${packages[@]}"
}

# debian_tree SUITE FOLDER PACKAGE...: a Debian without what nobody reads in it, and without a name.
debian_tree() {
    local suite=$1 root=$2 packages options=()
    shift 2
    [ "$(id -u)" = 0 ] || { echo "A guest's files belong to root: run as root"; return 1; }
    packages=$(IFS=,; echo "$*")
    # What is in preparation is signed for a week; a mirror may keep it for longer.
    [ "$suite" != forky ] || options+=(--aptopt='Acquire::Check-Valid-Until "false"')
    # No mirror named: main, updates and security of the suite. No fsync for what is thrown away if it fails, no
    # manuals in a machine that nobody reads in.
    mmdebstrap --mode=root --variant=minbase --include="$packages" --format=directory "${options[@]}" \
        --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        "$suite" "$root"
    # mmdebstrap lends the tree this machine's name and DNS; a guest gets its own from what it is assigned.
    rm -f "$root/etc/hostname" "$root/etc/resolv.conf"
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*
}
