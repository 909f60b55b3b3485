"""OpenTelemetry GenAI spans: from spans to traces, turns and conversations."""
