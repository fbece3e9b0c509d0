# What homeport is compared with: Afterburn from crates.io, nm-cloud-setup from Debian's source package, which
# leaves it out of its binaries. For `make test-peers` and `make bench` alone.
# shellcheck shell=bash disable=SC2154  # $parts comes from tools/setup

readonly afterburn_version=5.11.0  # the first one that writes profiles for NetworkManager
readonly peer_suite=trixie         # of the guest that nm-cloud-setup runs in, with the same NetworkManager

# What NetworkManager's build wants for this one program and its libnm.
readonly nm_build_depends=(
    build-essential meson ninja-build pkgconf gettext dpkg-dev
    libglib2.0-dev libdbus-1-dev libudev-dev uuid-dev libndp-dev libcurl4-gnutls-dev libjansson-dev libsystemd-dev
    libgnutls28-dev xsltproc
)

key_peer() {
    case $1 in
        afterburn) key_of "$afterburn_version" "$(uname -m)" "$(getconf GNU_LIBC_VERSION)" -- "$parts/peer.sh" ;;
        nm-cloud-setup) key_of "$peer_suite" "$(dpkg --print-architecture)" -- "$parts/peer.sh" ;;
    esac
}

packages_peer() {
    # The tests give Afterburn drives.
    [ "$1" != afterburn ] || echo gcc libc6-dev genisoimage dosfstools mtools
    [ ! -e "$(path_of "peer-$1")" ] || return 0
    case $1 in
        afterburn)
            echo libssl-dev pkg-config ca-certificates
            find_cargo >/dev/null || echo cargo-web rustc-web
            ;;
        nm-cloud-setup) echo mmdebstrap debian-archive-keyring+ ;;
    esac
}

time_peer() { echo "10 minutes"; }

make_peer() {
    case $1 in
        afterburn) make_afterburn "$2" ;;
        nm-cloud-setup) make_nm_cloud_setup "$2" ;;
    esac
}

# As nmstatectl is made: without what costs most of the time.
make_afterburn() {
    local folder=$1 cargo
    cargo=$(find_cargo)
    PATH=$(dirname "$cargo"):$PATH
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_TARGET_DIR="$folder/target" \
        nice "$cargo" install --locked --version "$afterburn_version" --root "$folder" afterburn
    rm -rf "$folder/target"
    "$folder/bin/afterburn" --version
}

# In a tree of that suite, so that it fits the libraries of the guest; the tree is thrown away.
make_nm_cloud_setup() {
    local folder=$1 packages
    [ "$(id -u)" = 0 ] || { echo "A tree's files belong to root: run as root"; return 1; }
    packages=$(IFS=,; echo "${nm_build_depends[*]}")
    # shellcheck disable=SC2016  # $1 is mmdebstrap's
    nice mmdebstrap --mode=root --variant=minbase --include="$packages" --format=directory \
        --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' \
        --customize-hook='chroot "$1" /bin/sh -eu -c "$BUILD_IN_TREE"' \
        "$peer_suite" "$folder/tree"
    mkdir "$folder/bin"
    mv "$folder/tree/build/src/nm-cloud-setup/nm-cloud-setup" "$folder/bin/"
    rm -rf --one-file-system "$folder/tree"
}

# shellcheck disable=SC2034  # read by mmdebstrap's hook
export BUILD_IN_TREE='
sed -n "s/^deb /deb-src /p" /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
apt-get -q update
cd /tmp
apt-get -q source network-manager
meson setup --buildtype=release -Dprefix=/usr -Dlocalstatedir=/var -Druntime_dir=/run \
    -Dnm_cloud_setup=true -Dcrypto=gnutls -Dtests=no -Ddocs=false -Dintrospection=false -Dvapi=false \
    -Dsession_tracking=no -Dsession_tracking_consolekit=false -Dsuspend_resume=auto -Dpolkit=false -Dselinux=false \
    -Dlibaudit=no -Dwifi=false -Dwext=false -Dppp=false -Dmodem_manager=false -Dovs=false -Dnmcli=false -Dnmtui=false \
    -Dqt=false -Debpf=false -Dlibpsl=false -Dsystemdsystemunitdir=no -Dudev_dir=no -Dfirewalld_zone=false \
    -Dreadline=none /build network-manager-*/
ninja -C /build src/nm-cloud-setup/nm-cloud-setup
'
