# Debian packages that the pieces and the tests need; apt is asked once, and only for what is missing.
# shellcheck shell=bash disable=SC2154  # $cache comes from tools/setup

# What each is for stands beside it.
packages_of() {
    case $1 in
        venv)
            echo python3 python3-venv
            echo python3-systemd            # linked into the venv: see venv.sh
            echo git                        # the zipapp carries the commit
            echo shellcheck systemd         # make check: scripts; systemd-analyze verify
            ;;
        nmstatectl)
            [ -e "$(nmstatectl_path)" ] || rust_packages
            ;;
        guest-*)
            echo systemd-container dbus     # systemd-nspawn
            echo iproute2 procps kmod       # the networks around the machines
            echo dnsmasq-base               # their DHCP and DNS
            echo tcpdump iputils-ping iputils-arping curl
            echo mmdebstrap
            # The newest one, with the key of a suite that came after this machine's.
            [ -e "$(guest_path "${1#guest-}")" ] || echo debian-archive-keyring+
            ;;
        *) fail "no piece is called $1 (tools/setup --list)" ;;
    esac
}

install_packages() {
    local piece wanted="" missing
    for piece; do wanted+=" $(packages_of "$piece")"; done
    missing=$(missing_packages "$wanted")
    if [ -z "$missing" ]; then
        say "packages: there"
        return
    fi
    # shellcheck disable=SC2086  # words
    set -- $missing
    [ "$(id -u)" = 0 ] || fail "packages are missing (as root: apt-get install --no-install-recommends $*)"
    local started=$SECONDS log=$cache/log/packages
    say "packages: installing $* ($log)"
    mkdir -p "$cache/log"
    if ! { apt_get update && apt_get install --yes --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
        say "packages: failed; the end of $log:"
        tail -n 30 "$log" >&2
        return 1
    fi
    say "packages: installed in $(minutes $((SECONDS - started)))"
}

# Another apt may be at work, as on a machine that has just booted: wait for its lock.
apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

# Those of the names in $1 that are not installed. One that ends in + is always wanted, in its newest version.
missing_packages() {
    local there
    # shellcheck disable=SC2016  # dpkg's own variables
    there=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u)
    # shellcheck disable=SC2086  # words
    comm -23 <(printf '%s\n' $1 | sort -u) <(echo "$there") | sed 's/+$//'
}
