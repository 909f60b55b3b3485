"""Readers of file formats, one module or package per format."""
