{{- define "cephqos.labels" -}}
app.kubernetes.io/name: cephqos
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Of one role: dict "root" $ "role" "osd" */}}
{{- define "cephqos.selector" -}}
app.kubernetes.io/name: cephqos
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "cephqos.name" -}}
{{- printf "%s-%s" .root.Release.Name .role | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "cephqos.rookNamespace" -}}
{{- .Values.rook.namespace | default .Release.Namespace }}
{{- end }}

{{- define "cephqos.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}
{{- else }}{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{/* What all pods have in common. No role talks to the API server. */}}
{{- define "cephqos.pod" -}}
serviceAccountName: {{ .root.Release.Name }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .root.Values.cephUser }}
  runAsGroup: {{ .root.Values.cephUser }}
  fsGroup: {{ .root.Values.cephUser }}
  seccompProfile: {type: RuntimeDefault}
  {{- with .values.seLinuxType }}
  seLinuxOptions: {type: {{ . }}}
  {{- end }}
  {{- if and .values.appArmorProfile (semverCompare ">=1.30-0" .root.Capabilities.KubeVersion.Version) }}
  appArmorProfile: {type: {{ .values.appArmorProfile }}}
  {{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cephqos.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "cephqos.container" -}}
image: {{ include "cephqos.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{ include "cephqos.confined" . }}
ports:
  - {name: metrics, containerPort: {{ .values.port }}, protocol: TCP}
livenessProbe:
  httpGet: {path: /-/healthy, port: metrics}
  periodSeconds: 30
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /-/ready, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
resources: {{ toYaml .values.resources | nindent 2 }}
{{- end }}

{{- define "cephqos.dropCephCounters" -}}
{{- if .Values.monitors.dropCephCounters }}
metricRelabelings:
  - {sourceLabels: [__name__], regex: "ceph_.*", action: drop}
{{- end }}
{{- end }}
