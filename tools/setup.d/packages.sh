# Debian packages that the pieces need; apt is asked once, and only for what is missing.
# shellcheck shell=bash disable=SC2154  # $cache comes from tools/setup

install_packages() {
    local piece wanted="" missing started=$SECONDS log=$cache/log/packages
    for piece; do wanted+=" $(ask packages "$piece")"; done
    missing=$(missing_packages "$wanted")
    if [ -z "$missing" ]; then
        say "packages: there"
        return
    fi
    # shellcheck disable=SC2086  # words
    set -- $missing
    [ "$(id -u)" = 0 ] || fail "packages are missing (as root: apt-get install --no-install-recommends $*)"
    say "packages: installing $* ($log)"
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
