"""What readers share: JSON piece by piece, typed fields of foreign objects, message logs as turns."""
