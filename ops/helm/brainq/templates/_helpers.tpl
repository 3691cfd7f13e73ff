{{- define "brainq.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "brainq.selector" -}}
app.kubernetes.io/name: brainq
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "brainq.labels" -}}
{{ include "brainq.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "brainq.secret" -}}
{{ .Values.secret.existing | default (include "brainq.name" .) }}
{{- end }}

{{- define "brainq.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "brainq.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "brainq.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* Of a pod: how it is placed, and as whom it runs. */}}
{{- define "brainq.pod" -}}
serviceAccountName: {{ include "brainq.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "brainq.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* Of a container of brainq's image: a password is before the URL that has it. */}}
{{- define "brainq.env" -}}
- name: BRAINQ_APP
  value: {{ .Values.brain.app | quote }}
{{- with .Values.build }}
- name: BRAINQ_BUILD
  value: {{ . | quote }}
{{- end }}
{{- if .Values.redis.bundled }}
- name: REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "brainq.secret" . }}
      key: REDIS_PASSWORD
- name: BRAINQ_REDIS_URL
  value: redis://:$(REDIS_PASSWORD)@{{ include "brainq.name" . }}-redis:6379/0
{{- end }}
{{- if .Values.postgres.bundled }}
- name: BRAINQ_SQL_URL
  value: postgresql+psycopg://brainq@{{ include "brainq.name" . }}-postgres:5432/brainq
{{- end }}
- name: BRAINQ_DATA_DIR
  value: /data
- name: BRAINQ_LOG_FORMAT
  value: json
- name: PYTHONDONTWRITEBYTECODE
  value: "1"
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "brainq.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: data
  mountPath: /data
{{- if .Values.brain.configMap }}
- name: brain
  mountPath: /app
  readOnly: true
{{- end }}
{{- end }}

{{- define "brainq.volumes" -}}
- name: tmp
  emptyDir: {}
- name: data
  {{- if .Values.data.existingClaim }}
  persistentVolumeClaim:
    claimName: {{ .Values.data.existingClaim }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- if .Values.brain.configMap }}
- name: brain
  configMap:
    name: {{ .Values.brain.configMap }}
{{- end }}
{{- end }}

{{- /* Of a bundled store's pod: both images have a user 999. */}}
{{- define "brainq.storePod" -}}
serviceAccountName: {{ include "brainq.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 999
  runAsGroup: 999
  fsGroup: 999
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "brainq.claim" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ .storage }}
{{- end }}
