{{- define "oauth-server.name" -}}
{{- if contains (default .Chart.Name .Values.nameOverride) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* What selects every pod of the release. */ -}}
{{- define "oauth-server.selector" -}}
app.kubernetes.io/name: oauth-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* What selects the servers among them. */ -}}
{{- define "oauth-server.serverSelector" -}}
{{ include "oauth-server.selector" . }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "oauth-server.labels" -}}
{{ include "oauth-server.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "oauth-server.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* 85 % of the memory limit: the rest is for what Go does not count. The schema admits Mi and Gi. */ -}}
{{- define "oauth-server.goMemLimit" -}}
{{- $limit := .Values.resources.limits.memory -}}
{{- $mebibytes := trimSuffix "Mi" $limit | atoi -}}
{{- if hasSuffix "Gi" $limit -}}{{- $mebibytes = mul 1024 (trimSuffix "Gi" $limit | atoi) -}}{{- end -}}
{{ div (mul $mebibytes 85) 100 }}MiB
{{- end -}}

{{- define "oauth-server.operatorSecret" -}}
{{ .Values.firstOperator.existingSecret | default (printf "%s-operator" (include "oauth-server.name" .)) }}
{{- end -}}

{{- /* The command of the pods: that of the configuration. */ -}}
{{- define "oauth-server.command" -}}
{{- $gateway := .Values.config.gateway | default dict -}}
{{- if or $gateway.upstream $gateway.judge }}gateway{{ else }}serve{{ end -}}
{{- end -}}

{{- /* The URL at which clients reach the pods. */ -}}
{{- define "oauth-server.url" -}}
{{- if eq (include "oauth-server.command" .) "gateway" }}{{ .Values.config.gateway.public_url }}{{ else }}{{ .Values.config.issuer }}{{ end -}}
{{- end -}}

{{- /* The configuration file: what the values give, and what must agree with the rest of the chart. */ -}}
{{- define "oauth-server.config" -}}
{{- if eq (include "oauth-server.command" .) "serve" -}}
{{- $_ := required "config.issuer is required: the public https URL of the server" .Values.config.issuer -}}
{{- else if .Values.config.gateway.upstream -}}
{{- $_ := required "config.gateway.token_path is required: the paths of the upstream's token endpoint" (.Values.config.gateway.token_path | default list | first) -}}
{{- $_ := required "config.gateway.public_url is required: the URL at which clients reach the gateway" .Values.config.gateway.public_url -}}
{{- end -}}
{{- if not .Values.config.trusted_proxies -}}
{{- fail "config.trusted_proxies is required: the addresses that your ingress connects from, and nothing more; or none" -}}
{{- end -}}
{{- $fixed := dict
  "listen" "0.0.0.0:9096"
  "admin_listen" "0.0.0.0:9097"
  "drain_delay" (printf "%ds" (int .Values.drainDelaySeconds))
  "shutdown_timeout" (printf "%ds" (int .Values.shutdownTimeoutSeconds)) -}}
{{- toYaml (merge $fixed .Values.config) -}}
{{- end -}}

{{- define "oauth-server.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false # the names of their variables would look like options of the server
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "oauth-server.container" -}}
image: {{ include "oauth-server.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
resources: {{- toYaml .Values.resources | nindent 2 }}
env: # the last field: the server adds its own
  - name: OAUTH_MONGODB_URI
    valueFrom:
      secretKeyRef: { name: {{ .Values.mongodb.existingSecret }}, key: {{ .Values.mongodb.key }} }
  - { name: OAUTH_MONGODB_DATABASE, value: {{ .Values.mongodb.database | quote }} }
  - { name: GOMEMLIMIT, value: {{ include "oauth-server.goMemLimit" . }} }
{{- end -}}

{{- define "oauth-server.migrate" -}}
# Safe when several pods start at once, and when the database is up to date.
- name: migrate
  args: [migrate, up]
  {{- include "oauth-server.container" . | nindent 2 }}
{{- end -}}
