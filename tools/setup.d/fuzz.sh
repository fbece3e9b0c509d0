# The fuzzer (atheris, which is libFuzzer for Python) beside everything that the set-up's Python has.
# shellcheck shell=bash disable=SC2154  # $top, $parts come from tools/setup

# Apart from the venv, which `make test` needs: there are wheels for few Pythons, on x86-64 only.
key_fuzz() {
    key_of "$("$debian_python" --version 2>&1)" "$(uname -m)" -- \
        "$parts/fuzz.sh" "$top/tools/requirements.txt" "$top/tools/requirements-fuzz.txt"
}

packages_fuzz() { packages_venv; }

time_fuzz() { echo "half a minute"; }

make_fuzz() {
    local folder=$2
    "$debian_python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r "$top/tools/requirements.txt" -r "$top/tools/requirements-fuzz.txt"
    "$folder/bin/python" -c 'import atheris, jeepney, pyudev, requests, yaml'
}
