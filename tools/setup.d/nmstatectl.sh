# The released nmstatectl, from crates.io: the version that the product is measured and tested with.
# shellcheck shell=bash disable=SC2154  # $parts comes from tools/setup

readonly nmstatectl_version=2.2.62
readonly rust_wanted=1.88  # its rust-version

# A binary of a newer C library does not run in an older guest, hence glibc.
key_nmstatectl() {
    key_of "$nmstatectl_version" "$(uname -m)" "$(getconf GNU_LIBC_VERSION)" -- "$parts/nmstatectl.sh"
}

packages_nmstatectl() {
    [ ! -e "$(path_of nmstatectl)" ] || return 0
    echo gcc libc6-dev ca-certificates
    # Debian's cargo is too old; cargo-web, kept up with what browsers need, replaces it.
    find_cargo >/dev/null || echo cargo-web rustc-web
}

time_nmstatectl() { echo "5 minutes"; }

make_nmstatectl() {
    local folder=$2 cargo
    cargo=$(find_cargo)
    # With the rustc that came with it, not with an older one that stands first in PATH.
    PATH=$(dirname "$cargo"):$PATH
    # The release profile, but for what costs most of the time and gains nothing that a boot would notice:
    # link-time optimisation and the last levels of the optimiser.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_TARGET_DIR="$folder/target" \
        nice "$cargo" install --locked --version "$nmstatectl_version" --root "$folder" nmstatectl
    rm -rf "$folder/target"
    "$folder/bin/nmstatectl" version
}

# The machine's own, where it is new enough.
find_cargo() {
    local cargo
    for cargo in cargo "$HOME/.cargo/bin/cargo" /usr/bin/cargo; do
        if command -v "$cargo" >/dev/null && new_enough "$("$cargo" --version 2>/dev/null | cut -d' ' -f2)"; then
            command -v "$cargo"
            return
        fi
    done
    return 1
}

new_enough() { [ -n "$1" ] && printf '%s\n' "$rust_wanted" "$1" | sort --check=quiet --version-sort; }
