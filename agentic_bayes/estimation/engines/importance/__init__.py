"""The importance engine: the crossed posterior by adaptive importance sampling, seeded and without compiling."""
