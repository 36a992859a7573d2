#!/bin/sh
# Makes what docker-compose.yaml asks for and nobody else may know: `.env` with random passwords, and deploy/secrets with
# Spark's settings and the token for metrics. Its files are mounted into containers of several users: any may read them
# there, and on this machine the folder is its owner's alone.
# What is there already stays: run it as often as you like.
set -eu
umask 077
cd "$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)"

# 32 random bytes as Fernet keys want them: base64 for URLs.
random() { head -c 32 /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_'; }

if [ ! -e .env ]; then
    draft=.env.$$
    trap 'rm -f "$draft"' EXIT
    while IFS= read -r line; do
        case $line in
            *=) printf '%s%s\n' "$line" "$(random)" ;;
            *) printf '%s\n' "$line" ;;
        esac
    done <.env.example >"$draft"
    mv "$draft" .env
    echo "new-secrets: made .env" >&2
fi

mkdir -p deploy/secrets
chmod 700 deploy/secrets
umask 022

token=deploy/secrets/metrics-token
if [ ! -e "$token" ]; then
    random >"$token.$$"
    mv "$token.$$" "$token"
    echo "new-secrets: made $token" >&2
fi

settings=deploy/secrets/spark-defaults.conf
if [ ! -e "$settings" ]; then
    cat >"$settings.$$" <<SETTINGS
# Spark's master, workers and drivers know each other by the secret, and encrypt what they send and store.
spark.authenticate                  true
spark.authenticate.secret           $(random)
spark.network.crypto.enabled        true
spark.io.encryption.enabled         true
SETTINGS
    mv "$settings.$$" "$settings"
    echo "new-secrets: made $settings" >&2
fi
