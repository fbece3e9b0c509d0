# Debian packages that the pieces need; apt is asked once, and only for what is missing.
# shellcheck shell=bash disable=SC2154  # $cache comes from tools/setup

install_packages() {
    local piece wanted="" missing lock
    for piece; do wanted+=" $(ask packages "$piece")"; done
    missing=$(missing_packages "$wanted")
    if [ -n "$missing" ]; then
        # One set-up at a time; the other one then finds them installed.
        exec {lock}>"$cache/packages.lock"
        flock "$lock"
        missing=$(missing_packages "$wanted")
        # shellcheck disable=SC2086  # words
        [ -z "$missing" ] || install_missing "$lock" $missing
        exec {lock}>&-
    else
        say "packages: there"
    fi
}

install_missing() {
    local lock=$1 started=$SECONDS log=$cache/log/packages
    shift
    [ "$(id -u)" = 0 ] || fail "packages are missing (as root: apt-get install --no-install-recommends $*)"
    say "packages: installing $* ($log)"
    # A list that cannot be fetched may be of somebody's own archive: whether it matters, install tells. Without our
    # lock: a daemon that an installation starts would keep it.
    if ! { apt_get update || true; apt_get install --yes --no-install-recommends "$@"; } \
            >"$log" 2>&1 </dev/null {lock}>&-; then
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
