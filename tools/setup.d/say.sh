# How the set-up speaks: a line when something slow begins, a line with its time when it ends.
# shellcheck shell=bash

say() { printf 'setup: %s\n' "$*" >&2; }

fail() { say "$@"; exit 1; }

# Seconds as a person says them.
minutes() { if [ "$1" -lt 100 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }

# Standard input becomes the file $1 with mode $2, at one instant: a reader sees the old one or the new one.
replace_file() {
    local temporary
    temporary=$(mktemp "$1.XXXXXX")
    cat >"$temporary"
    chmod "${2:-644}" "$temporary"
    mv -f "$temporary" "$1"
}
