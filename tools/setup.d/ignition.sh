# The released ignition-validate and Butane, built from the Go module proxy: judges of what homeport writes for
# Ignition. Without Go there are none, and the tests go by the rules of Ignition's specification alone.
# shellcheck shell=bash disable=SC2154  # $parts comes from tools/setup

readonly ignition_version=v2.24.0 butane_version=v0.25.1
readonly go_wanted=1.24  # their go.mod

key_ignition() {
    key_of "$ignition_version" "$butane_version" "$(uname -m)" "$(go_there)" -- "$parts/ignition.sh"
}

packages_ignition() { :; }

time_ignition() { echo "a minute"; }

# Only a Go that the machine has already: a person who has none needs none.
go_there() {
    local version
    version=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || true
    if [ -n "$version" ] && printf '%s\n' "$go_wanted" "$version" | sort --check=quiet --version-sort; then
        echo "go"
    else
        echo "no go"
    fi
}

make_ignition() {
    local folder=$2
    mkdir -p "$folder/bin"
    if [ "$(go_there)" = "no go" ]; then
        echo "no Go $go_wanted here" > "$folder/why-not"
        return
    fi
    # A module of its own: Butane's program is in a folder that `go install` takes for another module.
    cd "$folder" || return
    printf 'module judges\ngo %s\n' "$go_wanted" > go.mod
    export GOFLAGS="-mod=mod -buildvcs=false" GOTOOLCHAIN=local
    nice go get "github.com/coreos/ignition/v2@$ignition_version" "github.com/coreos/butane@$butane_version"
    nice go build -o bin/ignition-validate github.com/coreos/ignition/v2/validate
    nice go build -o bin/butane github.com/coreos/butane/internal
    printf '{"ignition": {"version": "3.0.0"}}' | bin/ignition-validate -
}
