"""Human review: blind sheets out, labels back in, in four formats.

Drawing the sample, and what labels say of a judge, stand elsewhere.
"""
