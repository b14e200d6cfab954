#!/usr/bin/env bash
# Installs what the outside judges need, on Debian: PostgreSQL 15 with psql and pgbench, a JVM, Node.js, Python packages (Spark too) into .cache/venv,
# and Iceberg's Java library into .cache/jars.
# Run with "bench" it adds what the benchmarks need. It does nothing that is done already.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
say() { echo "setup: $*" >&2; }

packages=()
command -v psql >/dev/null || packages+=(postgresql-client-15)
[ -x /usr/lib/postgresql/15/bin/postgres ] || packages+=(postgresql-15)
command -v java >/dev/null || packages+=(openjdk-17-jre-headless)
command -v mvn >/dev/null || packages+=(maven)
command -v node >/dev/null || packages+=(nodejs)
command -v npm >/dev/null || packages+=(npm)
python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3 python3-venv)
if [ ${#packages[@]} -gt 0 ]; then
	say "installing ${packages[*]}"
	[ "$(id -u)" = 0 ] || { say "needs root to install ${packages[*]}"; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null
fi

venv=$here/.cache/venv
stamp=$venv/requirements.stamp
if ! cmp -s test/clients/requirements.txt "$stamp"; then
	say "installing Python packages"
	python3 -m venv "$venv"
	"$venv/bin/pip" install -q --disable-pip-version-check -r test/clients/requirements.txt
	cp test/clients/requirements.txt "$stamp"
fi
consumer=examples/consumer-javascript
if [ ! -d $consumer/node_modules/pg ]; then
	say "installing JavaScript packages"
	npm install --prefix $consumer --silent --no-audit --no-fund --no-package-lock
fi
jars=$here/.cache/jars
for artifact in org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0 org.xerial:sqlite-jdbc:3.53.2.0; do
	IFS=: read -r _ name version <<<"$artifact"
	[ ! -s "$jars/$name-$version.jar" ] || continue
	say "fetching $name $version"
	mkdir -p "$jars"
	rm -f "$jars/$name"-*.jar
	mvn -q -B dependency:copy -Dartifact="$artifact" -DoutputDirectory="$jars" >&2
done
if [ "${1:-}" = bench ] && ! cmp -s test/bench/requirements.txt "$venv/bench.stamp"; then
	say "installing the benchmarks' peers"
	"$venv/bin/pip" install -q --disable-pip-version-check -r test/bench/requirements.txt
	cp test/bench/requirements.txt "$venv/bench.stamp"
fi
