# shellcheck shell=sh
# Half of a boot's time in Python is compiling: the zipapp gets bytecode of this machine's Python beside its sources.
# Without it homeport is only slower. That is also why package tools are told not to compare this one file.
add_bytecode() {
    /usr/bin/python3 -I /usr/share/homeport/mkzipapp.py --add-bytecode /usr/lib/homeport/homeport.pyz ||
        echo "homeport: without bytecode of this machine's Python: it starts a little slower" >&2
}
