#!/usr/bin/env bash
# Starts one part of VictoriaMetrics: victoria.sh storage|alert. Both listen on loopback (ADDRESS to change it).
set -euo pipefail
data=${DATA:-/var/lib/victoria-metrics} rules=${RULES:-/etc/cephqos/rules} address=${ADDRESS:-127.0.0.1}
interval=${INTERVAL:-15s} alertmanager=${ALERTMANAGER:-http://127.0.0.1:9093}
# The agents' samples are this late: their batches, and one scrape.
late=${LATE:-15s}
storage_http=${STORAGE_HTTP:-8428} alert_http=${ALERT_HTTP:-8880}

case ${1:-} in
storage)
  # Both agents of a pair send the same labels: one sample of each interval is kept.
  exec victoria-metrics -loggerLevel=WARN -storageDataPath="$data/storage" -retentionPeriod=15d \
    -httpListenAddr="$address:$storage_http" -dedup.minScrapeInterval="$interval" -search.latencyOffset=0s \
    -vmalert.proxyURL="http://$address:$alert_http" # Grafana and the doctor ask the storage for rules
  ;;
alert)
  # A rule sees what others recorded only after it was sent, hence the short flush; rules are built for that
  # (README.md). vmalert would give each series of a rule a label of its own: then no dashboard would find it.
  exec vmalert -loggerLevel=WARN -rule="$rules/*.yml" -evaluationInterval="$interval" -rule.evalDelay="$late" \
    -datasource.url="http://$address:$storage_http" -remoteWrite.url="http://$address:$storage_http" \
    -remoteRead.url="http://$address:$storage_http" -remoteWrite.flushInterval=200ms \
    -notifier.url="$alertmanager" -disableAlertgroupLabel -httpListenAddr="$address:$alert_http"
  ;;
*)
  echo "victoria.sh: '${1:-}': expected storage or alert" >&2
  exit 2
  ;;
esac
