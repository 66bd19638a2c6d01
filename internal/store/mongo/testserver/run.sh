#!/usr/bin/env bash
# Runs the test server in the foreground on 127.0.0.1, port $1; the default
# 0 takes a free one. A second argument "lax" runs the bare library. Prints its
# URI once it answers. MONGO_TEST_SERVER_OPTIONS is more options for Java, such as
# -Xmx16g; of two that differ the last counts. Needs Java 17 and Maven; the libraries come from Maven's
# repository at the pinned versions.
set -euo pipefail
port=${1:-0}
cd "$(dirname "$0")"
classpath=target/classpath.txt
if [[ ! -s $classpath || pom.xml -nt $classpath ]]; then
  mkdir -p target
  mvn -q -B dependency:build-classpath -Dmdep.outputFile="$PWD/$classpath.new" >&2
  mv "$classpath.new" "$classpath"
fi
exec java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${MONGO_TEST_SERVER_OPTIONS:-} -cp "$(cat "$classpath")" TestServer.java "$port" "${@:2}"
