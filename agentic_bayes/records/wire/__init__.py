"""What readers share: JSON in pieces, typed fields of foreign objects, and message logs turned into turns."""
