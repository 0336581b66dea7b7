{{- define "cephqos.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "cephqos.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "cephqos.rookNamespace" -}}
{{- .Values.rook.namespace | default (include "cephqos.namespace" .) }}
{{- end }}

{{/* Most templates below take the scope of one role: a dict with "root" ($), "role" (osd, cluster, probe, logs),
     "values" (those of the role, with the defaults for all pods) and perhaps "user" (another than Ceph's). */}}
{{/* Labels that select the pods of a role. */}}
{{- define "cephqos.selector" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "cephqos.name" -}}
{{- printf "%s-%s" (include "cephqos.fullname" .root) .role }}
{{- end }}

{{- define "cephqos.account" -}}
{{- $account := .values.serviceAccount | default dict }}
{{- $account.name | default (include "cephqos.name" .) }}
{{- end }}

{{/* Name, namespace, labels and annotations: dict "root" $ "name" …, and what there is of "role",
     "namespace", "labels", "annotations". */}}
{{- define "cephqos.metadata" -}}
{{- $root := .root }}
{{- $labels := dict "app.kubernetes.io/name" ($root.Values.nameOverride | default $root.Chart.Name)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version) }}
{{- with .role }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end -}}
name: {{ .name }}
{{- if not .ofTheCluster }}
namespace: {{ .namespace | default (include "cephqos.namespace" $root) }}
{{- end }}
labels: {{ toYaml (merge $labels (.labels | default dict) $root.Values.commonLabels) | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) $root.Values.commonAnnotations }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Of the chart's or the collector's image: dict "root" $ "image" … */}}
{{- define "cephqos.image" -}}
{{- $registry := (.root.Values.global | default dict).imageRegistry | default .image.registry }}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* What all workloads have in common, below `spec`. */}}
{{- define "cephqos.workload" -}}
{{- range $key := list "revisionHistoryLimit" "minReadySeconds" }}
{{- $value := index $.values $key }}
{{- if not (kindIs "invalid" $value) }}
{{ $key }}: {{ int $value }}
{{- end }}
{{- end }}
selector:
  matchLabels: {{ include "cephqos.selector" . | nindent 4 }}
{{- end }}

{{/* Labels and annotations of the pods. */}}
{{- define "cephqos.podMetadata" -}}
{{- $labels := include "cephqos.selector" . | fromYaml -}}
labels: {{ toYaml (merge $labels (.values.podLabels | default dict) .root.Values.commonLabels) | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.values.podAnnotations | default dict) }}
annotations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all pods have in common. No role talks to the API server. */}}
{{- define "cephqos.pod" -}}
{{- $user := hasKey . "user" | ternary .user .root.Values.cephUser }}
{{- $context := dict "runAsNonRoot" (ne (int $user) 0) "runAsUser" $user "runAsGroup" $user "fsGroup" $user }}
{{- $_ := set $context "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- with .values.seLinuxType }}{{ $_ := set $context "seLinuxOptions" (dict "type" .) }}{{ end }}
{{- if and .values.appArmorProfile (semverCompare ">=1.30-0" .root.Capabilities.KubeVersion.Version) }}
{{- $_ := set $context "appArmorProfile" (dict "type" .values.appArmorProfile) }}
{{- end -}}
serviceAccountName: {{ include "cephqos.account" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- $secrets := list }}
{{- range concat .root.Values.imagePullSecrets ((.root.Values.global | default dict).imagePullSecrets | default list) }}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- with uniq $secrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext: {{ toYaml (mergeOverwrite $context (.values.podSecurityContext | default dict)) | nindent 2 }}
{{- $affinity := dict }}
{{- with .beside }}{{ $affinity = include "cephqos.beside" $ | fromYaml }}{{ end }}
{{- with mergeOverwrite $affinity (.values.affinity | default dict) }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "topologySpreadConstraints" "priorityClassName" "runtimeClassName"
  "schedulerName" "hostAliases" "dnsPolicy" "dnsConfig" }}
{{- with index $.values $key }}
{{ $key }}: {{ kindIs "string" . | ternary . (toYaml . | nindent 2) }}
{{- end }}
{{- end }}
{{- if not (kindIs "invalid" .values.terminationGracePeriodSeconds) }}
terminationGracePeriodSeconds: {{ int .values.terminationGracePeriodSeconds }}
{{- end }}
{{- end }}

{{/* An update strategy. Kubernetes refuses maxSurge together with maxUnavailable, and the chart sets the first. */}}
{{- define "cephqos.update" -}}
{{- $update := deepCopy (.updateStrategy | default dict) }}
{{- if eq (toString $update.type) "OnDelete" }}{{ $_ := unset $update "rollingUpdate" }}{{ end }}
{{- with $update.rollingUpdate }}
{{- if not (has (toString .maxUnavailable) (list "0" "0%" "<nil>")) }}{{ $_ := set . "maxSurge" 0 }}{{ end }}
{{- end }}
{{- toYaml $update }}
{{- end }}

{{/* Only on nodes that have a pod of Rook with one of these labels `app`. */}}
{{- define "cephqos.beside" -}}
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - labelSelector:
        matchExpressions: [{key: app, operator: In, values: {{ toJson .beside }}}]
      namespaces: [{{ include "cephqos.rookNamespace" .root }}]
      topologyKey: kubernetes.io/hostname
{{- end }}

{{- define "cephqos.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* "true" if the role records, else empty. */}}
{{- define "cephqos.records" -}}
{{- if and (has .role (list "osd" "cluster")) (.root.Values.recorder | default dict).minutes }}true{{ end }}
{{- end }}

{{/* "true" if the cluster's exporter passes alerts on to those beside OSDs, else empty. */}}
{{- define "cephqos.forwards" -}}
{{- if and (.Values.recorder | default dict).minutes .Values.osd.enabled .Values.cluster.enabled }}true{{ end }}
{{- end }}

{{/* An exporter's container, after its arguments and before its own mounts. */}}
{{- define "cephqos.exporter" -}}
{{- $web := .root.Values.web | default dict }}
{{- range .values.extraArgs }}
  - {{ . | quote }}
{{- end }}
{{- if $web.secrets }}
  - --web.config.file=/etc/cephqos/web/{{ $web.file }}
{{- end }}
{{- if include "cephqos.records" . }}
  - --recorder.minutes={{ .root.Values.recorder.minutes }}
  - --recorder.megabytes={{ int .root.Values.recorder.megabytes }}
{{- if and (eq .role "cluster") (include "cephqos.forwards" .root) }}
  - --recorder.forward={{ include "cephqos.name" (dict "root" .root "role" "osd") }}.{{ include "cephqos.namespace" .root }}:{{ .root.Values.osd.port }}
{{- end }}
{{- end }}
image: {{ include "cephqos.image" (dict "root" .root "image" .root.Values.image) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{ include "cephqos.confined" . }}
{{- $env := .values.extraEnv | default list }}
{{- if include "cephqos.records" . }}
{{- $node := dict "fieldRef" (dict "fieldPath" "spec.nodeName") }}
{{- $env = prepend $env (dict "name" "CEPHQOS_EXPORTER_RECORDER_HOST" "valueFrom" $node) }}
{{- end }}
{{- with $env }}
env: {{ toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: metrics, containerPort: {{ .values.port }}, protocol: TCP}
livenessProbe: {{ include "cephqos.health" (list . "/-/healthy" 30 .values.livenessProbe) | nindent 2 }}
readinessProbe: {{ include "cephqos.health" (list . "/-/ready" 10 .values.readinessProbe) | nindent 2 }}
resources: {{ toYaml .values.resources | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
{{- if $web.secrets }}
  - {name: web, mountPath: /etc/cephqos/web, readOnly: true}
{{- end }}
{{- if include "cephqos.records" . }}
  - {name: recorded, mountPath: /var/lib/cephqos-exporter}
{{- end }}
{{- with .values.extraVolumeMounts }}
{{ toYaml . | indent 2 }}
{{- end }}
{{- end }}

{{/* A health check: list scope path period values. With authentication it only opens a connection, because
     Kubernetes has neither a password nor a client certificate for its checks. */}}
{{- define "cephqos.health" -}}
{{- $scope := index . 0 }}
{{- $web := $scope.root.Values.web | default dict }}
{{- $check := dict "periodSeconds" (index . 2) "timeoutSeconds" 5 }}
{{- if and $web.secrets $web.authentication }}
{{- $_ := set $check "tcpSocket" (dict "port" "metrics") }}
{{- else }}
{{- $get := dict "path" (index . 1) "port" "metrics" }}
{{- if and $web.secrets $web.tls }}{{ $_ := set $get "scheme" "HTTPS" }}{{ end }}
{{- $_ := set $check "httpGet" $get }}
{{- end }}
{{- toYaml (mergeOverwrite $check (index . 3 | default dict)) }}
{{- end }}

{{/* Volumes that every exporter has, and those of the values. */}}
{{- define "cephqos.volumes" -}}
- {name: tmp, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
{{- $web := .root.Values.web | default dict }}
{{- if and $web.secrets (ne .role "logs") }}
- name: web
  projected:
    defaultMode: 0440
    sources:
      {{- range $web.secrets }}
      - secret: {name: {{ . }}}
      {{- end }}
{{- end }}
{{- if include "cephqos.records" . }}
{{- $path := eq .role "osd" | ternary .root.Values.recorder.hostPath "" }}
- name: recorded
  {{- if $path }}
  hostPath: {path: {{ $path | quote }}, type: Directory}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* One endpoint of a monitor: dict "root" $ "relabelings" list … */}}
{{- define "cephqos.endpoint" -}}
{{- $monitors := .root.Values.monitors }}
{{- $web := .root.Values.web | default dict -}}
port: metrics
interval: {{ $monitors.interval }}
{{- if and $web.secrets $web.tls }}
scheme: https
{{- end }}
{{- range $key := list "scrapeTimeout" "tlsConfig" "basicAuth" "authorization" "oauth2" "proxyUrl" }}
{{- with index $monitors $key }}
{{ $key }}: {{ kindIs "string" . | ternary . (toYaml . | nindent 2) }}
{{- end }}
{{- end }}
relabelings: {{ toYaml (concat .relabelings ($monitors.relabelings | default list)) | nindent 2 }}
{{- $cluster := list }}
{{- if eq .root.Values.rook.clusterLabel "namespace" }}
{{- $cluster = list (dict "sourceLabels" (list "cluster") "regex" ".+" "targetLabel" "cluster" "replacement" (include "cephqos.rookNamespace" .root)) }}
{{- end }}
{{- with concat (.metricRelabelings | default list) $cluster ($monitors.metricRelabelings | default list) }}
metricRelabelings: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The pods that a monitor selects, and its limits. */}}
{{- define "cephqos.monitored" -}}
selector:
  matchLabels: {{ include "cephqos.selector" . | nindent 4 }}
{{- $monitors := .root.Values.monitors }}
{{- if $monitors.namespace }}
namespaceSelector: {matchNames: [{{ include "cephqos.namespace" .root }}]}
{{- end }}
{{- range $key := list "podTargetLabels" "attachMetadata" }}
{{- with index $monitors $key }}
{{ $key }}: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- range $key := list "sampleLimit" "targetLimit" "labelLimit" "labelNameLengthLimit" "labelValueLengthLimit" }}
{{- with index $monitors $key }}
{{ $key }}: {{ int . }}
{{- end }}
{{- end }}
{{- end }}

{{/* What a copy of the chart lacks: dict "folder" "rules" "off" "rules.enabled=false". */}}
{{- define "cephqos.missing" -}}
{{- fail (printf "cephqos: this copy of the chart has no files/%s. It is a symbolic link in the repository, and what copied the repository left links out, as Flux does. Use the packaged chart, which `make chart` writes to dist/, or set %s." .folder .off) }}
{{- end }}
