"""The façade for code written for Gaussia or Fair-Forge."""
