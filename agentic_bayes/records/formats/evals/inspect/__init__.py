"""Logs of Inspect: one JSON object, or a zip file with a member per sample or per piece of one."""
