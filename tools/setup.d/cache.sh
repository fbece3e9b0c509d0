# What is slow to make is made once, for every clone of the repository.
#
# A piece lies in $cache/NAME/KEY. The key is a hash of what the piece is made of, so a piece is never changed, only
# replaced by one under another key. It is made in $cache/NAME/making.XXXXXX and renamed when it is whole: whatever
# has a name that is a key is complete. One lock a name: of two set-ups at once one makes the piece, the other
# waits for it. A maker and its children inherit the lock, so that a half-made piece is swept away only when nobody
# works on it any more, even after kill -9.
# shellcheck shell=bash disable=SC2154  # $cache comes from tools/setup

# How long a piece is kept after its last use: another clone may be at another commit.
readonly keep_days=30

# key_of WORD... [-- FILE...]: the words and the contents of the files, as 16 hex digits.
key_of() {
    local words=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do words+=("$1"); shift; done
    [ $# -eq 0 ] || shift
    { printf '%s\n' "${words[@]}"; [ $# -eq 0 ] || sha256sum -- "$@" | cut -d' ' -f1; } | sha256sum | cut -c1-16
}

# make_piece NAME KEY TIME PROGRAM...: have it made if it is not there. PROGRAM is called with the folder to fill
# and the path that the folder will have; TIME says what that takes.
make_piece() {
    local name=$1 key=$2 time=$3 final lock
    shift 3
    final=$cache/$name/$key
    if [ -d "$final" ]; then
        touch "$final" 2>/dev/null || true  # used today
        say "$name: there"
        return
    fi
    mkdir -p "$cache/$name" "$cache/log"
    exec {lock}>"$cache/$name/lock"
    if ! flock --nonblock "$lock"; then
        say "$name: another set-up is at it, waiting"
        flock "$lock"
    fi
    if [ -d "$final" ]; then
        say "$name: there, made by another set-up"
    else
        sweep_pieces "$name"
        fill_piece "$name" "$final" "$time" "$@" || return
    fi
    exec {lock}>&-
}

fill_piece() {
    local name=$1 final=$2 time=$3 started=$SECONDS folder log=$cache/log/$1
    shift 3
    folder=$(mktemp -d "$cache/$name/making.XXXXXX") || return
    chmod 755 "$folder"
    say "$name: making it (about $time; $log)"
    if ! "$@" "$folder" "$final" >"$log" 2>&1 </dev/null; then
        say "$name: failed after $(minutes $((SECONDS - started))); the end of $log:"
        tail -n 30 "$log" >&2
        return 1
    fi
    # On disk before it has its name: a power cut leaves no piece that only looks whole.
    sync -f "$folder" && touch "$folder" && mv -T "$folder" "$final" || return
    say "$name: made in $(minutes $((SECONDS - started)))"
}

# With the lock held: what a killed maker left, and what nobody has used for a month.
sweep_pieces() {
    find "$cache/$1" -mindepth 1 -maxdepth 1 -type d \( -name 'making.*' -o -mtime "+$keep_days" \) \
        -exec rm -rf --one-file-system -- {} +
}
