# The set-up's Python: Debian's own interpreter, with tools and libraries from PyPI, each pinned with its hashes.
# shellcheck shell=bash disable=SC2154  # $top, $parts come from tools/setup

# Not the first python3 in PATH: that may be of another version, without Debian's python3-systemd.
readonly debian_python=/usr/bin/python3

# The version tells 3.11 from 3.13, whose wheels differ; a venv links to the interpreter that made it.
key_venv() {
    key_of "$("$debian_python" --version 2>&1)" "$(uname -m)" -- "$parts/venv.sh" "$top/tools/requirements.txt"
}

packages_venv() {
    echo python3 python3-venv
    echo python3-systemd        # linked into the venv, see below
    echo git                    # the zipapp carries the commit
    echo shellcheck systemd     # make check: scripts; systemd-analyze verify; the manual pages;
    echo groff-base iproute2 procps openssl   # and networks, processes, certificates of the tests' own,
    echo swtpm tpm2-tools       # and TPMs,
    echo dmidecode              # and SMBIOS tables,
    echo xfsprogs btrfs-progs   # and disks of the real root's
    echo rpm                    # make rpm
}

time_venv() { echo "half a minute"; }

make_venv() {
    local folder=$2 final=$3 script packages
    "$debian_python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r "$top/tools/requirements.txt"
    # systemd-python is a C extension that PyPI has only as source. Debian's is built for this interpreter; a link
    # to this one package, instead of --system-site-packages, keeps every other unpinned library out.
    packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    ln -s /usr/lib/python3/dist-packages/systemd "$packages/systemd"
    # pip has written this folder's name into the scripts; the folder is about to get its own.
    for script in "$folder"/bin/*; do
        if [ ! -L "$script" ] && grep -qI "$folder" "$script"; then sed -i "s|$folder|$final|g" "$script"; fi
    done
    "$folder/bin/python" -c 'import aiohttp, cryptography, jeepney, pyudev, requests, sqlalchemy, systemd.journal, wsproto, yaml'
}
