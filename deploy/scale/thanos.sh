#!/usr/bin/env bash
# Starts one part of Thanos: thanos.sh receive|query|rule. All listen on loopback (ADDRESS to change it).
set -euo pipefail
data=${DATA:-/var/lib/thanos} rules=${RULES:-/etc/cephqos/rules} address=${ADDRESS:-127.0.0.1}
interval=${INTERVAL:-15s} alertmanager=${ALERTMANAGER:-http://127.0.0.1:9093}
# The agents' samples are this late: their batches, and one scrape.
late=${LATE:-15s}
receive_grpc=${RECEIVE_GRPC:-10907} receive_write=${RECEIVE_WRITE:-10908} receive_http=${RECEIVE_HTTP:-10909}
query_http=${QUERY_HTTP:-10902} query_grpc=${QUERY_GRPC:-10901}
rule_http=${RULE_HTTP:-10912} rule_grpc=${RULE_GRPC:-10911}

case ${1:-} in
receive)
  # An agent that was cut off sends what it kept, late and out of order.
  exec thanos receive --log.level=warn --tsdb.path="$data/receive" --tsdb.retention=15d \
    --label='receive="0"' --tsdb.out-of-order.time-window=2h \
    --grpc-address="$address:$receive_grpc" --http-address="$address:$receive_http" \
    --remote-write.address="$address:$receive_write"
  ;;
query)
  # What tells replicas and stores apart is taken away: dashboards and rules see each series once.
  exec thanos query --log.level=warn --http-address="$address:$query_http" --grpc-address="$address:$query_grpc" \
    --endpoint="$address:$receive_grpc" --endpoint="$address:$rule_grpc" \
    --query.replica-label=replica --query.replica-label=receive --query.replica-label=tenant_id \
    --query.replica-label=rule --query.auto-downsampling
  ;;
rule)
  exec thanos rule --log.level=warn --data-dir="$data/rule" --rule-file="$rules/*.yml" --eval-interval="$interval" \
    --rule-query-offset="$late" --query="$address:$query_http" \
    --label='rule="0"' --alert.label-drop=rule --alertmanagers.url="$alertmanager" \
    --grpc-address="$address:$rule_grpc" --http-address="$address:$rule_http"
  ;;
*)
  echo "thanos.sh: '${1:-}': expected receive, query or rule" >&2
  exit 2
  ;;
esac
