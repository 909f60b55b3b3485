"""OpenTelemetry spans: traces, turns and conversations."""
