# What the tests need of the system, and how to install it on Debian. `run` reads this file; `say` and `die` are its own.
#
# The short lane needs little: Python, Java, a PostgreSQL server for tests of the ledger, Chromium for the page. The others add
# PgBouncer, promtool (alert rules), Kerberos with what it takes to build a Kafka client that speaks it, and npm, which carries that client's source.

PARTS_OF_SHORT="python java postgres chromium"
PARTS_OF_ALL="$PARTS_OF_SHORT pgbouncer promtool kerberos npm"
KERBEROS_PACKAGES="krb5-kdc krb5-admin-server krb5-user libsasl2-dev libsasl2-modules-gssapi-mit libkrb5-dev
    libcurl4-openssl-dev libssl-dev zlib1g-dev build-essential pkg-config python3-dev"

# missing_parts PART...: those that the system does not have.
missing_parts() {
    for part in "$@"; do
        "has_$part" || printf '%s\n' "$part"
    done
}

has_python() { (find_python) >/dev/null 2>&1; }

has_java() {
    java=java
    [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
    major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || true
    [ "${major:-0}" -ge 17 ]
}

# Debian keeps the server's programs out of the PATH.
has_postgres() { command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }
has_chromium() { command -v chromium >/dev/null 2>&1; }
has_promtool() { command -v promtool >/dev/null 2>&1; }
has_pgbouncer() { command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ]; }
has_npm() { command -v npm >/dev/null 2>&1; }

has_kerberos() {
    command -v kinit >/dev/null 2>&1 && [ -x /usr/sbin/krb5kdc ] && [ -f /usr/include/sasl/sasl.h ] &&
        [ -f /usr/include/gssapi/gssapi.h ] && { ls /usr/include/*/curl/curl.h || ls /usr/include/curl/curl.h; } >/dev/null 2>&1
}

# what_is PART: the words for people.
what_is() {
    case $1 in
        python) echo "Python 3.11 to 3.14 with venv (packages python3, python3-venv)" ;;
        java) echo "Java 17 or newer, for Kafka and Spark (package openjdk-17-jre-headless, or set JAVA_HOME)" ;;
        postgres) echo "a PostgreSQL server, for tests of the ledger (package postgresql)" ;;
        chromium) echo "Chromium, for tests of the page (packages chromium, fonts-dejavu-core)" ;;
        pgbouncer) echo "PgBouncer, for a test of the ledger behind it (package pgbouncer)" ;;
        promtool) echo "promtool, for tests of the alert rules (out of the package prometheus)" ;;
        kerberos) echo "Kerberos, for tests of its logins (packages $(echo $KERBEROS_PACKAGES))" ;;
        npm) echo "npm, which has the source of a Kafka client with Kerberos (package npm)" ;;
    esac
}

# system_packages INSTALL PART...: install what is missing as root or by sudo; with INSTALL=no only name it.
system_packages() {
    install=$1
    shift
    missing=$(missing_parts "$@")
    [ -n "$missing" ] || return 0
    say "run: missing on this machine:"
    for part in $missing; do say "  $(what_is "$part")"; done
    [ "$install" = yes ] || die "install what is missing, or leave out --no-install"
    command -v apt-get >/dev/null 2>&1 || die "there is no apt-get here: install what is missing, and run again"
    if [ "$(id -u)" -eq 0 ]; then
        AS_ROOT=
    elif command -v sudo >/dev/null 2>&1; then
        AS_ROOT=sudo
    else
        die "installing it takes root, and there is no sudo: install what is missing, and run again"
    fi
    say "run: installing it by ${AS_ROOT:+sudo }apt-get"
    $AS_ROOT apt-get update -qq || STATUS=1 die "apt-get update failed: is a package mirror reachable? (see its message above)"
    for part in $missing; do
        "install_$part" || STATUS=1 die "not installed: $(what_is "$part") (see the message above)"
    done
    still=$(missing_parts $missing)
    [ -z "$still" ] || STATUS=1 die "installed, but still not usable: $(for part in $still; do what_is "$part"; done)"
}

apt_install() {
    $AS_ROOT env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

install_python() { apt_install python3 python3-venv; }
# Newer Debian releases have left Java 17 behind.
install_java() { apt_install openjdk-17-jre-headless || apt_install default-jre-headless; }
# Playwright's own browsers are not needed: the page's tests drive Debian's.
install_chromium() { apt_install chromium fonts-dejavu-core; }
install_pgbouncer() { apt_install pgbouncer; }
install_npm() { apt_install npm; }
# Debian's KDC does not start by itself as long as it has no realm.
# shellcheck disable=SC2086  # names of packages
install_kerberos() { apt_install $KERBEROS_PACKAGES; }

# The package postgresql would also start a cluster of its own; the tests start theirs in a folder of their own.
install_postgres() {
    apt_install postgresql-common &&
        $AS_ROOT sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
        apt_install postgresql
}

# The package prometheus would also start a server; the tests need its promtool alone.
install_promtool() {
    unpacked=$(mktemp -d)
    (cd "$unpacked" && apt-get download -qq prometheus && dpkg-deb --extract prometheus_*.deb .) &&
        $AS_ROOT install -m 755 "$unpacked/usr/bin/promtool" /usr/local/bin/promtool
    status=$?
    rm -rf "$unpacked"
    return "$status"
}
