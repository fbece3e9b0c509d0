# shellcheck shell=sh
bootstrap=NetworkManager/system-connections/homeport-bootstrap.nmconnection

# A machine that is on DHCP by the bootstrap profile stays on it. NetworkManager takes down what it no longer finds
# when it reads its profiles again, so the profile becomes the machine's own before the package's goes.
keep_bootstrap() {
    if [ ! -e "/etc/$bootstrap" ] && nmcli --get-values UUID connection show --active 2>/dev/null |
            grep -qxF "$(sed -n 's/^uuid=//p' "/usr/lib/$bootstrap")"; then
        (umask 077 && { echo "# Left by homeport when it was removed."; cat "/usr/lib/$bootstrap"; } >"/etc/$bootstrap.new")
        mv "/etc/$bootstrap.new" "/etc/$bootstrap"
    fi
}

# And back, if nobody has changed it since.
take_bootstrap_back() {
    if [ -e "/etc/$bootstrap" ] && [ "$(tail -n +2 "/etc/$bootstrap")" = "$(cat "/usr/lib/$bootstrap")" ]; then
        rm "/etc/$bootstrap"
    fi
}
