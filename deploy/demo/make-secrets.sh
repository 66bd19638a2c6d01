#!/bin/sh
# make-secrets.sh [DIRECTORY]: writes the passwords of docker-compose.yml, each made here from
# 256 random bits, below the directory (/secrets), unless they exist. Each file belongs to the
# user that reads it, and nobody else can.
set -eu
umask 077
cd "${1:-/secrets}"

random() { od -An -v -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# keep FILE OWNER TEXT: the file appears whole, or not at all.
keep() {
	[ ! -s "$1" ] || return 0
	printf '%s' "$3" >"$1.new"
	chmod 0400 "$1.new"
	chown "$2" "$1.new"
	mv "$1.new" "$1"
	echo "made $1"
}

mongodb=999:999 server=65532:65532 grafana=472:0 # the users of the images
keep mongo/keyfile $mongodb "$(random)" # by which members of the replica set know each other
keep mongo/root $mongodb "$(random)"
keep mongo/oauth $mongodb "$(random)"
keep server/mongodb-uri $server "mongodb://oauth:$(cat mongo/oauth)@mongo:27017/?replicaSet=rs0"
keep grafana/admin-password $grafana "$(random)"
